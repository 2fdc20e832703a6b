"""A table of another job is taken over: its rows stay, changes are applied over them, and differences are reported."""

from __future__ import annotations

import itertools
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from click.testing import CliRunner
from deltalake import DeltaTable, write_deltalake
from pyspark.sql import SparkSession
from tests.support.changes import INT, TEXT, Row, Topic, key, row
from tests.support.kafka import Record, produce
from tests.support.spark import Bench

from distributary.cli import main
from distributary.consume.starting_point import StartingPoint
from distributary.consume.topics import TableId
from distributary.control.resume_requests import Requests
from distributary.errors import TableHalt, UsageError
from distributary.halt_actions import ResumeAction
from distributary.ingest.service_columns import service_columns_of
from distributary.ingest.tables import ConfiguredTable, find_table, lake_path, list_tables
from distributary.lake.table import LakeTable
from distributary.verify.check import VerifyOptions, report
from distributary.verify.report import State
from distributary.workers.adopt import Adopted, Adoption
from distributary.workers.reconcile import remove_orphaned_rows

LARGE = "__debezium_unavailable_value"
ORIGIN = ("__op", "__position", "__topic", "__partition", "__offset")


def adopt(bench: Bench, start: dict[int, int] | None = None, *, check_only: bool = False) -> Adopted:
    """What the command does, in this process."""
    config = bench.config()
    settings = config.settings_for("dbo", "t")
    assert settings is not None
    table = TableId("dbo", "t")
    one = ConfiguredTable(table, bench.topic, settings, lake_path(config, table))
    lake = LakeTable(bench.session, one.path, service_columns_of(settings))
    return Adoption(config, one, bench.client(config), lake).run(StartingPoint(start), check_only=check_only)


def differences(bench: Bench) -> list[str]:
    return [str(one) for one in adopt(bench).differences]


def write(bench: Bench, rows: Sequence[Row], **columns: pa.DataType) -> None:
    """The other job's table, by a library that is not ours."""
    fields = {"id": pa.int32(), "v": pa.string(), **columns}
    schema = pa.schema(fields)
    write_deltalake(
        bench.table, pa.Table.from_pylist([{name: one.get(name) for name in fields} for one in rows], schema)
    )


class History:
    """Changes of some rows of a table in one partition of its topic, and what the rows are after each of them.

    The rows' keys begin behind `first`. Two histories have their changes at the same places of the source's log.
    """

    def __init__(self, name: str, connector: str, partition: int = 0, first: int = 0) -> None:
        self.topic = Topic(name, connector)
        self.states: list[dict[int, str]] = [{}]
        self._partition = partition
        self._first = first
        self._places = itertools.count(10, 10)

    def put(self, op: str, number: int, value: str) -> None:
        number += self._first
        self._change(op, number, row(number, value))
        self.states.append({**self.states[-1], number: value})

    def delete(self, number: int) -> None:
        number += self._first
        self._change("d", number, None)
        self.states.append({n: v for n, v in self.states[-1].items() if n != number})

    def move(self, old: int, new: int) -> None:
        """The two changes of a changed key; in between the table is as before."""
        old, new = old + self._first, new + self._first
        value = self.states[-1][old]
        self.topic.move(old, new, row(new, value), at=next(self._places), partition=self._partition)
        left = {n: v for n, v in self.states[-1].items() if n != old}
        self.states += [left, {**left, new: value}]

    def truncate(self) -> None:
        """Of the whole table, whose rows of all histories go."""
        self.topic.change("t", None, at=next(self._places), partition=self._partition)
        self.states.append({})

    def _change(self, op: str, number: int, after: Row | None) -> None:
        self.topic.change(op, key(number), after, at=next(self._places), partition=self._partition)


def with_schemas(topic: Topic) -> list[Record]:
    """The records with a schema, so that nothing depends on the table's types."""
    found: list[Record] = []
    for record in topic.records:
        lone = Topic(topic.name, topic.connector, records=[record])
        found.append(lone.with_schema(record, {"id": INT, "v": TEXT}))
    return found


TRUNCATED = 15
"""How many changes of a history there are until its table was truncated."""


def history(name: str, connector: str, partition: int, first: int) -> History:
    found = History(name, connector, partition, first)
    for number in range(1, 6):
        found.put("c", number, f"first {number}")
    found.delete(2)
    found.put("u", 3, "second 3")
    found.move(4, 2)
    found.put("c", 4, "again 4")
    found.delete(1)
    found.put("c", 1, "again 1")
    found.put("u", 5, "second 5")
    found.delete(5)
    found.truncate()
    found.put("c", 3, "after 3")
    found.put("c", 6, "after 6")
    found.move(6, 5)
    found.put("u", 5, "last 5")
    found.put("c", 7, "last 7")
    return found


ENDS = {"sqlserver": (6, 8, 13, 15, 19), "postgresql": (6, 9, 15)}
"""After how many changes the other job ended."""


@pytest.mark.parametrize("truncated", [False, True], ids=["from the first changes", "from behind the truncate"])
@pytest.mark.parametrize("connector", ENDS)
def test_changes_from_before_the_other_jobs_end_are_applied_once_more_and_every_row_is_right(
    bench: Bench, connector: str, truncated: bool
) -> None:
    """Each case has its rows in a partition of its own. A truncate that is read empties the table for all cases: those
    that start behind it have a table to themselves."""
    starts = [(end, start) for end in ENDS[connector] for start in sorted({0, end // 2, end})]
    cases = [(end, start) for end, start in starts if (start >= TRUNCATED) == truncated]
    bench.create(partitions=len(cases))
    sources = [history(bench.topic, connector, number, 10 * number) for number in range(len(cases))]
    theirs: dict[int, str] = {}
    for (end, _), source in zip(cases, sources, strict=True):
        assert source.states[TRUNCATED] == {}
        produce(bench.kafka, with_schemas(source.topic))
        theirs |= source.states[end]
    write(bench, [row(n, v) for n, v in theirs.items()])
    at = {number: start for number, (_, start) in enumerate(cases)}
    done = adopt(bench, at)
    assert (done.differences, done.key, done.start) == ((), ("id",), at)
    bench.take([])
    found = bench.rows()
    for number, (case, source) in enumerate(zip(cases, sources, strict=True)):
        own = [one for one in found if one[0] // 10 == number]
        assert own == sorted(source.states[-1].items()), f"the other job's end and the start: {case}"


def test_rows_stay_as_they_are_until_they_change(bench: Bench) -> None:
    bench.create()
    topic = Topic(bench.topic)
    topic.change("u", key(1), row(1, "ours"), at=1)
    topic.change("d", key(2), at=2)
    produce(bench.kafka, with_schemas(topic))
    write(bench, [row(n, "theirs") for n in (1, 2, 3)])
    before = DeltaTable(bench.table).version()
    found = adopt(bench, check_only=True)
    assert found.warning is None
    assert found.added == (*ORIGIN[:1], "__source_ts", *ORIGIN[1:])
    assert DeltaTable(bench.table).version() == before
    files = set(DeltaTable(bench.table).file_uris())
    adopt(bench)
    assert set(DeltaTable(bench.table).file_uris()) == files
    assert bench.rows("id", "v", *ORIGIN)[2] == (3, "theirs", None, None, None, None, None)
    worker = bench.take([])
    assert bench.rows() == [(1, "ours"), (3, "theirs")]
    assert worker.progress is not None
    assert (worker.progress.next, worker.progress.records, worker.progress.adopted) == ({0: 2}, 2, {0: 0})
    with pytest.raises(UsageError, match="already-ours"):
        adopt(bench)


def test_values_that_are_not_sent_are_those_of_the_adopted_rows(bench: Bench) -> None:
    """Rows that no record wrote have no coordinates that distinguish them."""
    bench.create(partitions=2)
    topic = Topic(bench.topic, "postgresql")
    for number in range(1, 5):
        topic.change("u", key(number), row(number, LARGE, n=number), at=number, partition=number % 2)
    topic.change("u", key(1), row(1, LARGE, n=10), at=11, partition=1)
    produce(bench.kafka, topic.records)
    write(bench, [row(n, f"large {n}", n=0) for n in range(1, 7)], n=pa.int64())
    assert "they become NULL, unless the start is exactly" in str(adopt(bench).warning)
    worker = bench.take([])
    expected = [(n, f"large {n}", {1: 10, 5: 0, 6: 0}.get(n, n)) for n in range(1, 7)]
    assert bench.rows() == expected
    later = Topic(bench.topic, "postgresql")
    later.change("u", key(5), row(5, LARGE, n=5), at=20, partition=1)
    later.change("u", key(2), row(2, LARGE, n=20), at=21)
    bench.take(later.records, worker)
    assert bench.rows() == [(n, v, {5: 5, 2: 20}.get(n, m)) for n, v, m in expected]


def test_with_soft_deletes_all_rows_are_marked_as_not_deleted_and_deleted_ones_stay(bench: Bench) -> None:
    bench.rule = {"deletes": "soft"}
    bench.create(partitions=2)
    topic = Topic(bench.topic)
    topic.change("d", key(1), at=1)
    topic.change("d", key(2), at=2, partition=1)
    topic.change("u", key(3), row(3, "ours"), at=3)
    produce(bench.kafka, with_schemas(topic))
    write(bench, [row(n, f"theirs {n}") for n in (1, 2, 3, 4)])
    adopt(bench)
    assert bench.rows("id", "__deleted") == [(n, False) for n in (1, 2, 3, 4)]
    bench.take([])
    assert bench.rows("id", "v", "__deleted") == [
        (1, "theirs 1", True),
        (2, "theirs 2", True),
        (3, "ours", False),
        (4, "theirs 4", False),
    ]


def test_an_adoption_that_was_cut_short_is_done_again(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    bench.rule = {"deletes": "soft"}
    bench.create()
    topic = Topic(bench.topic)
    topic.change("u", key(1), row(1, "ours"), at=1)
    produce(bench.kafka, with_schemas(topic))
    write(bench, [row(1, "theirs"), row(2, "theirs")])
    with monkeypatch.context() as cut:
        cut.setattr(LakeTable, "fill_nulls", lambda *_: (_ for _ in ()).throw(RuntimeError("cut short")))
        with pytest.raises(RuntimeError, match="cut short"):
            adopt(bench)
    with pytest.raises(TableHalt, match="not-our-table"):
        bench.take([])
    assert adopt(bench).added == ()
    bench.take([])
    assert bench.rows("id", "v", "__deleted") == [(1, "ours", False), (2, "theirs", False)]


def test_a_job_that_still_writes_is_noticed(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    topic = Topic(bench.create().topic)
    topic.change("u", key(1), row(1, "ours"), at=1)
    produce(bench.kafka, with_schemas(topic))
    write(bench, [row(1, "theirs")])
    last_written = Adoption._last_written

    def written_meanwhile(adoption: Adoption) -> str:
        write_deltalake(bench.table, pa.table({"id": pa.array([1], pa.int32()), "v": ["twice"]}), mode="append")
        return last_written(adoption)

    monkeypatch.setattr(Adoption, "_last_written", written_meanwhile)
    with pytest.raises(UsageError, match="still-written"):
        adopt(bench)
    assert bench.rows() == [(1, "theirs"), (1, "twice")]


@pytest.mark.parametrize("method", ["add_columns", "fill_nulls", "head", "commit"])
def test_a_job_that_writes_during_the_take_over_is_noticed(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    """It writes right behind the service's columns, their values or the last look, or right before the commit."""
    bench.rule = {"deletes": "soft"}
    topic = Topic(bench.create().topic)
    topic.change("u", key(1), row(1, "ours"), at=1)
    produce(bench.kafka, with_schemas(topic))
    write(bench, [row(1, "theirs")])
    theirs = pa.table({"id": pa.array([1], pa.int32()), "v": ["twice"]})
    own, calls = getattr(LakeTable, method), itertools.count()

    def interrupted(lake: LakeTable, *given: Any) -> Any:
        number = next(calls)
        found = None if method == "commit" else own(lake, *given)
        # The table is looked at twice before it is changed.
        if number == (2 if method == "head" else 0):
            write_deltalake(bench.table, theirs, mode="append", schema_mode="merge")
        return own(lake, *given) if method == "commit" else found

    with monkeypatch.context() as patch:
        patch.setattr(LakeTable, method, interrupted)
        with pytest.raises(UsageError, match="still-written"):
            adopt(bench)
    assert bench.rows() == [(1, "theirs"), (1, "twice")]
    assert "several rows" in str(differences(bench)), "it is checked again, and refused"


@pytest.mark.parametrize("connector", ["sqlserver", "postgresql", "oracle", "mysql"])
def test_a_snapshot_over_the_rows_tells_which_of_them_the_source_no_longer_has(bench: Bench, connector: str) -> None:
    topic = Topic(bench.create(partitions=2).topic, connector)
    topic.change("c", key(9), row(9, "gone"), at=1)
    produce(bench.kafka, topic.records)
    write(bench, [row(n, "theirs") for n in (1, 2, 3, 4)])
    adopt(bench, {0: 1, 1: 0})
    snapshot = Topic(bench.topic, connector)
    for number, partition, mark in ((1, 0, "first"), (2, 1, "true"), (5, 0, "last_in_data_collection")):
        snapshot.change("r", key(number), row(number, "read"), at=50, partition=partition, snapshot=mark)
    snapshot.change("u", key(2), row(2, "changed"), at=60, partition=1)
    worker = bench.take(snapshot.records)
    everything = [(1, "read"), (2, "changed"), (3, "theirs"), (4, "theirs"), (5, "read")]
    assert bench.rows() == everything
    assert worker.progress is not None
    assert worker.progress.snapshot is not None
    assert worker.progress.snapshot.orphaned_rows == 2
    config = bench.config()
    settings = config.settings_for("dbo", "t")
    assert settings is not None
    one = ConfiguredTable(worker.table, bench.topic, settings, lake_path(config, worker.table))
    assert remove_orphaned_rows(one, bench.session) == 2
    alive = [one for one in everything if one[1] != "theirs"]
    assert bench.rows() == alive
    later = Topic(bench.topic, connector)
    later.change("c", key(3), row(3, "anew"), at=70)
    bench.take(later.records, worker)
    assert bench.rows() == sorted([*alive, (3, "anew")])


def test_a_table_of_spark_with_partitions_mapped_columns_vectors_and_a_change_feed_goes_on(bench: Bench) -> None:
    properties = {
        "delta.columnMapping.mode": "name",
        "delta.enableDeletionVectors": "true",
        "delta.enableChangeDataFeed": "true",
    }
    told_properties = ", ".join(f"'{name}' = '{value}'" for name, value in properties.items())
    session = bench.session
    session.sql(
        f"CREATE TABLE delta.`{bench.table}` (id INT NOT NULL, v STRING, `the region` STRING, loaded TIMESTAMP)"
        f" USING delta PARTITIONED BY (`the region`) TBLPROPERTIES ({told_properties})"
    )
    values = ", ".join(f"({n}, 'theirs', 'r{n % 2}', TIMESTAMP'2026-01-01')" for n in range(1, 6))
    session.sql(f"INSERT INTO delta.`{bench.table}` VALUES {values}")
    session.sql(f"DELETE FROM delta.`{bench.table}` WHERE id = 5")
    topic = Topic(bench.create().topic)
    topic.change("u", key(1), {"id": 1, "v": "ours", "the region": "r7"}, at=1)
    topic.change("d", key(2), at=2)
    topic.change("c", key(5), {"id": 5, "v": "ours", "the region": None}, at=3)
    for place in (0, 2):
        lone = Topic(bench.topic, records=[topic.records[place]])
        topic.records[place] = lone.with_schema(topic.records[place], {"id": INT, "v": TEXT, "the region": TEXT})
    produce(bench.kafka, topic.records)
    done = adopt(bench)
    assert done.not_sent == ("loaded",)
    bench.take([])
    found = session.read.format("delta").load(str(bench.table)).select("id", "v", "`the region`", "loaded").collect()
    assert sorted((r[0], r[1], r[2], r[3] is None) for r in found) == [
        (1, "ours", "r7", True),
        (3, "theirs", "r1", False),
        (4, "theirs", "r0", False),
        (5, "ours", None, True),
    ]


def test_all_that_does_not_fit_is_told_at_once_and_nothing_is_changed(bench: Bench) -> None:
    bench.rule = {"exclude": ["secret"]}
    bench.create()
    topic = Topic(bench.topic)
    topic.with_schema(topic.change("c", key(1), row(1, "a", n=1), at=1), {"id": INT, "v": TEXT, "n": INT})
    produce(bench.kafka, topic.records)
    columns = {"n": pa.timestamp("us", "UTC"), "secret": pa.string(), "__offset": pa.string()}
    write(bench, [row(1, "a"), row(1, "b"), row(2, "c"), row(3, "d"), row(3, "e"), {"v": "f"}], **columns)
    before = DeltaTable(bench.table).version()
    settings = bench.config().settings_for("dbo", "t")
    where = None if settings is None else settings.where
    assert [one.what for one in adopt(bench).differences] == [
        "the table has the column __offset string, and the service needs its own __offset bigint",
        f"`exclude` names secret ({where}), and the table's rows have values in it",
        "the column n is timestamp in the table, and the topic sends int",
        "1 rows have NULL in a column of the key",
        "2 keys (id) have several rows, such as (1), (3)",
    ]
    assert DeltaTable(bench.table).version() == before
    with pytest.raises(TableHalt, match="not-our-table") as halt:
        bench.take([])
    assert "resume -c FILE TABLE --adopt" in halt.value.fix


@pytest.mark.parametrize("mode", ["append", "history"])
def test_tables_that_keep_changes_are_not_adopted(bench: Bench, mode: str) -> None:
    bench.rule = {"mode": mode}
    bench.create()
    write(bench, [row(1, "a")])
    [difference] = differences(bench)
    assert f"mode: {mode}" in difference
    assert "adopt it with mode: upsert" in difference


@pytest.mark.parametrize(
    ("statement", "named"),
    [
        ("ALTER TABLE {} SET TBLPROPERTIES ('delta.enableRowTracking' = 'true')", "the table feature rowTracking"),
    ],
)
def test_a_table_that_the_service_can_not_write_is_refused_by_the_features_name(
    bench: Bench, statement: str, named: str
) -> None:
    topic = Topic(bench.create().topic)
    topic.change("c", key(1), row(1, "a"), at=1)
    produce(bench.kafka, with_schemas(topic))
    write(bench, [row(1, "a")])
    bench.session.sql(statement.format(f"delta.`{bench.table}`"))
    with pytest.raises(TableHalt, match="table-not-writable") as halt:
        adopt(bench)
    assert named in halt.value.message


def test_a_table_that_takes_rows_alone_is_refused(bench: Bench) -> None:
    topic = Topic(bench.create().topic)
    topic.change("c", key(1), row(1, "a"), at=1)
    produce(bench.kafka, with_schemas(topic))
    write(bench, [row(1, "a")])
    bench.session.sql(f"ALTER TABLE delta.`{bench.table}` SET TBLPROPERTIES ('delta.appendOnly' = 'true')")
    [difference] = differences(bench)
    assert "delta.appendOnly" in difference


def test_another_jobs_table_whose_first_commits_are_cleaned_up_is_not_taken_for_ours(bench: Bench) -> None:
    topic = Topic(bench.create().topic)
    topic.change("u", key(1), row(1, "ours"), at=1)
    produce(bench.kafka, with_schemas(topic))
    write(bench, [row(1, "theirs")])
    for number in (2, 3):
        bench.session.sql(f"INSERT INTO delta.`{bench.table}` VALUES ({number}, 'theirs')")
    DeltaTable(bench.table).create_checkpoint()
    for version in (0, 1):
        (bench.table / "_delta_log" / f"{version:020d}.json").unlink()
    with pytest.raises(TableHalt, match="not-our-table"):
        bench.take([])
    adopt(bench)
    bench.take([])
    assert bench.rows() == [(1, "ours"), (2, "theirs"), (3, "theirs")]


def test_offsets_that_the_topic_does_not_have_are_refused(bench: Bench) -> None:
    topic = Topic(bench.create(partitions=2).topic)
    topic.change("c", key(1), row(1, "a"), at=1)
    produce(bench.kafka, with_schemas(topic))
    write(bench, [row(1, "a")])
    with pytest.raises(UsageError, match="no-such-offsets") as error:
        adopt(bench, {0: 2, 5: 0})
    assert "partition 5 is none of the topic; partition 1 has no offset given; partition 0 has the offsets 0 to 1" in (
        error.value.message
    )


def resume(bench: Bench, *arguments: str) -> tuple[int, Any]:
    command = ["resume", "-c", str(bench.folder / "config.yaml"), "dbo.t", *arguments]
    result = CliRunner().invoke(main, [*command, "--output", "json"])
    assert result.exit_code in (0, 1), result.stderr
    return result.exit_code, json.loads(result.stdout)


@pytest.fixture
def shared_session(session: SparkSession, monkeypatch: pytest.MonkeyPatch) -> SparkSession:
    """The command takes the session that is there, and leaves it."""
    monkeypatch.setattr("distributary.workers.adopt.open_session", lambda _properties: session)
    monkeypatch.setattr("distributary.workers.adopt.close_session", lambda _session: None)
    return session


@pytest.mark.usefixtures("shared_session")
def test_the_command_checks_adopts_from_a_time_and_has_a_halted_table_go_on(kafka_bench: Bench) -> None:
    bench = kafka_bench
    bench.create()
    topic = Topic(bench.topic)
    topic.change("u", key(1), row(1, "ours"), at=1)
    produce(bench.kafka, with_schemas(topic))
    write(bench, [row(1, "theirs"), row(2, "twice"), row(2, "theirs")])
    worker = bench.worker()
    with pytest.raises(TableHalt, match="not-our-table") as halt:
        bench.take([], worker)
    worker.halted = halt.value
    code, told_ = resume(bench, "--adopt")
    assert (code, told_["adopted"]) == (1, False)
    assert "(2)" in told_["differences"][0]["what"]
    page = (Path(__file__).parents[2] / "docs" / "adopt.md").read_text()
    statement = page.partition("<!-- adopt: duplicates -->\n```sql\n")[2].partition(";\n```")[0]
    statement = statement.replace("/data/lake/dbo/customers", str(bench.table)).replace("loaded_at DESC", "v")
    bench.session.sql(statement)
    code, told_ = resume(bench, "--adopt", "--check")
    assert (code, told_["adopted"], told_["start"]) == (0, False, {"0": 0})
    shown = CliRunner().invoke(main, ["resume", "-c", str(bench.folder / "config.yaml"), "dbo.t", "--adopt", "--check"])
    lines = shown.stdout.splitlines()
    assert lines[:3] == [
        "dbo.t can be adopted",
        "  key: id",
        "  first record to apply, by partition: 0: 0; the table must have all changes before it",
    ]
    assert lines[-2].endswith("that job must not write any more")
    assert lines[-1].endswith(" dbo.t --adopt   # after the other job has stopped for good")
    requests = Requests(bench.session, bench.config())
    assert requests.waiting() == []
    assert resume(bench, "--adopt", "--check", "--from-time", "2126-01-01T00:00:00Z")[1]["start"] == {"0": 1}
    code, told_ = resume(bench, "--adopt", "--from-time", "2026-01-01T00:00:00Z")
    assert (code, told_["adopted"], told_["start"]) == (0, True, {"0": 0})
    [request] = requests.waiting()
    assert request.action is ResumeAction.RETRY
    worker.resume(request.action)
    bench.take([], worker)
    assert bench.rows() == [(1, "ours"), (2, "theirs")]
    # What the topic does not decide is not checked; what it does is.
    config = bench.config()
    broker = bench.client(config)
    one = find_table("dbo.t", list_tables(config, broker))
    found = report(config, one, bench.session, broker, VerifyOptions(20, None), lambda _: None)
    assert found.state is State.EQUAL, found
    assert any("was adopted" in note for note in found.notes)
    bench.session.sql(f"UPDATE delta.`{bench.table}` SET v = 'damaged'")
    found = report(config, one, bench.session, broker, VerifyOptions(20, None), lambda _: None)
    assert (found.state, sum(found.counts.faults.values())) == (State.DIFFERENT, 1)
