"""Maintenance of a table's files between batches: rows and progress are unchanged, files are few."""

from __future__ import annotations

import itertools
import json
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable
from tests.support.changes import Topic
from tests.support.kafka import produce
from tests.support.lake import read_table
from tests.support.spark import Bench

from distributary import failpoints
from distributary.job import Service
from distributary.lake import table as lake
from distributary.lake.layout import FILES_KEPT
from distributary.launch.tagged_jobs import TaggedJobs
from distributary.maintain.maintenance_thread import MaintenanceThread
from distributary.maintain.schedule import Due, Task
from distributary.observe.recorder import Recorder
from distributary.observe.status import ServiceStatus
from distributary.workers.table_worker import TableWorker

DAY = 86_400.0


@pytest.fixture
def make_maintained(make_bench: Callable[..., Bench]) -> Iterator[Callable[..., Bench]]:
    """Makes topics and tables of their own."""

    def make(compact_after: int = 3, **rule: Any) -> Bench:
        return make_bench(**{"maintenance": {"compact_after": compact_after}, **rule}).create()

    yield make
    failpoints.arm(None)


def maintenance_thread(one: Bench, table: TableWorker) -> tuple[MaintenanceThread, Recorder]:
    """What looks after the one table, as the service does it, turn by turn."""
    recorder = Recorder(ServiceStatus())
    return MaintenanceThread(lambda: [table], lambda: False, recorder, TaggedJobs(one.session, "maintenance")), recorder


def everything(one: Bench) -> list[dict[str, Any]]:
    """All rows with all columns, but for the topic's name."""
    table = read_table(one.table)
    assert table is not None
    return sorted(table.drop_columns(["__topic"]).to_pylist(), key=repr)


def operations(place: Path) -> list[str]:
    """What each commit to a table did, the oldest first."""
    return [commit["operation"] for commit in DeltaTable(str(place)).history()][::-1]


def files(one: Bench) -> int:
    """How many files the table has."""
    return len(DeltaTable(str(one.table)).file_uris())


def parts() -> list[Topic]:
    """Batches: three that leave a file each, then changes of rows in all of them."""
    at = itertools.count(1)
    batches = [Topic("") for _ in range(5)]
    for number, topic in enumerate(batches[:3]):
        for key in range(10 * number, 10 * number + 3):
            topic.change("c", {"id": key}, {"id": key, "v": "new"}, at=next(at))
        topic.change("d", {"id": 10 * number + 2}, at=next(at))
        topic.tombstone({"id": 10 * number + 2})
    for key in (0, 10, 20):
        batches[3].change("u", {"id": key}, {"id": key, "v": "changed"}, at=next(at))
    for key in (0, 10, 20):
        batches[4].change("d", {"id": key + 1}, at=next(at))
    return batches


AT_THE_END = [(0, "changed"), (10, "changed"), (20, "changed")]
RECORDS = sum(len(topic.records) for topic in parts())


def take(one: Bench, topic: Topic, table: TableWorker | None = None) -> TableWorker:
    """The table takes the batch in; a new driver's, where none is given."""
    return one.take([record._replace(topic=one.topic) for record in topic.records], table)


def progress(table: TableWorker) -> dict[str, Any]:
    """The progress record, but for what names the topic, the commit and a file, and its size."""
    assert table.progress is not None
    return table.progress.model_dump(exclude={"topic", "topic_id", "commit", "memory", "recalled", "memory_bytes"})


@pytest.mark.parametrize("mode", ["upsert", "history"])
def test_rows_and_progress_are_as_without_it_and_files_are_few(
    make_maintained: Callable[..., Bench], mode: str
) -> None:
    one, left = make_maintained(3, mode=mode), make_maintained(0, mode=mode)
    table = other = None
    for number, topic in enumerate(parts(), start=1):
        table, other = take(one, topic, table), take(left, topic, other)
        before, many = everything(one), files(one)
        care, recorder = maintenance_thread(one, table)
        care.do_next_task()
        care.do_next_task()
        assert everything(one) == before == everything(left)
        if number == 2:
            table = None  # a service that is restarted before it is due
        if number == 3:
            assert many >= 3
            assert operations(one.table)[-1] == "OPTIMIZE"
            assert files(one) == 1
            labels = {"table": "dbo.t"}
            result = recorder.registry.get_sample_value("distributary_table_compacted_files_total", labels)
            assert result == many
            table = None  # and after it
    assert table is not None
    assert other is not None
    assert operations(one.table).count("OPTIMIZE") == 1, "it was compacted again and again"
    without = progress(other)
    assert progress(table) == {**without, "sequence": without["sequence"] + 1}, "a compaction carries the record on"
    assert progress(table)["records"] == RECORDS


@pytest.mark.parametrize("point", [pytest.param("before-compaction", marks=pytest.mark.slow), "after-compaction"])
def test_6_1_a_crash_around_a_compaction_loses_and_doubles_nothing(
    make_maintained: Callable[..., Bench], point: str
) -> None:
    one, table, batches = make_maintained(3), None, parts()
    for topic in batches[:3]:
        table = take(one, topic, table)
    assert table is not None
    before = everything(one)
    failpoints.arm(f"{point}:dbo.t=raise@1")
    care, recorder = maintenance_thread(one, table)
    care.do_next_task()
    care.do_next_task()  # in the pause after the failure
    failures = {"table": "dbo.t", "task": "compact"}
    assert recorder.registry.get_sample_value("distributary_table_maintenance_failures_total", failures) == 1
    assert table.halted is None
    assert operations(one.table).count("OPTIMIZE") == (point == "after-compaction")
    assert everything(one) == before
    take(one, batches[3], table)
    again = take(one, batches[4])
    assert progress(again)["records"] == RECORDS
    maintenance_thread(one, again)[0].do_next_task()
    assert (one.rows(), files(one)) == (AT_THE_END, 1)


def test_the_files_of_a_clustered_table_are_laid_out_by_delta(make_maintained: Callable[..., Bench]) -> None:
    one, table = make_maintained(3, cluster_by=["id"]), None
    for topic in parts()[:3]:
        table = take(one, topic, table)
    assert table is not None
    before = everything(one)
    maintenance_thread(one, table)[0].do_next_task()
    done = DeltaTable(str(one.table)).history(1)[0]
    assert (done["operation"], done["operationParameters"]["clusterBy"]) == ("OPTIMIZE", '["id"]')
    assert (everything(one), files(one)) == (before, 1)
    take(one, parts()[3], table)
    assert progress(table)["records"] == sum(len(topic.records) for topic in parts()[:4])


def test_rows_that_are_dead_in_large_files_go_with_a_compaction(make_maintained: Callable[..., Bench]) -> None:
    one = make_maintained(2, layout="vectors")
    rows, half = Topic(""), Topic("")
    for key in range(100):
        rows.change("c", {"id": key}, {"id": key, "v": "new"}, at=1 + key)
    for key in range(0, 100, 2):
        half.change("u", {"id": key}, {"id": key, "v": "changed"}, at=1000 + key)
    table = take(one, half, take(one, rows))
    before = everything(one)
    maintenance_thread(one, table)[0].do_next_task()
    assert operations(one.table)[-1] == "OPTIMIZE"
    assert (everything(one), files(one)) == (before, 1)
    log = (one.table / f"_delta_log/{DeltaTable(str(one.table)).version():020d}.json").read_text(encoding="utf-8")
    added = [found["add"] for line in log.splitlines() if "add" in (found := json.loads(line))]
    assert [("deletionVector" in file, json.loads(file["stats"])["numRecords"]) for file in added] == [(False, 100)]


def compact(one: Bench) -> None:
    """As somebody else does it."""
    one.session.newSession().sql(f"OPTIMIZE delta.`{one.table}`")


def aged(path: Path, days: float) -> None:
    """The file is as if written so long ago."""
    at = time.time() - days * DAY
    os.utime(path, (at, at))


def test_files_that_no_table_has_go_and_those_of_earlier_versions_stay(make_maintained: Callable[..., Bench]) -> None:
    one, batches = make_maintained(3), parts()
    table = None
    for topic in batches[:3]:
        table = take(one, topic, table)
    assert table is not None
    earlier = read_table(one.table)
    table.maintain(Task.COMPACT)
    version = DeltaTable(str(one.table)).version()
    left_over, at_work = one.table / "part-left-over.parquet", one.table / "part-at-work.parquet"
    note = one.folder / "lake" / "_distributary" / "maintenance" / "dbo" / "t.json"

    def a_day_later() -> TableWorker:
        """A new driver, when the old one's last VACUUM was a day ago."""
        note.write_text(json.dumps({**json.loads(note.read_text()), "since": 0, "vacuumed_at": time.time() - DAY}))
        left_over.write_bytes(b"of a writer that was killed")
        at_work.write_bytes(b"of a writer that has not committed yet")
        aged(left_over, 8)
        aged(at_work, 6)
        again = one.worker()
        again.start()
        return again

    again = a_day_later()
    care, recorder = maintenance_thread(one, again)
    care.do_next_task()
    done = {"table": "dbo.t", "task": "vacuum"}
    assert recorder.registry.get_sample_value("distributary_table_maintenance_duration_seconds_count", done) == 1
    assert (left_over.exists(), at_work.exists()) == (False, True)
    assert again.due() is None
    assert DeltaTable(str(one.table)).version() == version, "VACUUM made a commit"
    before = DeltaTable(str(one.table), version=version - 1).to_pyarrow_table()
    assert earlier is not None
    assert sorted(before.to_pylist(), key=repr) == sorted(earlier.to_pylist(), key=repr)
    # The table itself may ask for longer.
    one.session.sql(
        f"ALTER TABLE delta.`{one.table}` SET TBLPROPERTIES ('delta.deletedFileRetentionDuration' = 'interval 9 days')"
    )
    again = a_day_later()
    maintenance_thread(one, again)[0].do_next_task()
    assert (left_over.exists(), again.due()) == (True, None)


def test_a_table_of_which_much_is_dead_is_compacted_after_a_few_commits(
    make_maintained: Callable[..., Bench], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("distributary.delta.compaction.WORTH_BYTES", 1)
    one, first, second = make_maintained(100, layout="vectors"), Topic(""), Topic("")
    for key in range(10):
        first.change("c", {"id": key}, {"id": key, "v": "new"}, at=key + 1)
    table = take(one, first)
    assert table.due() is None
    for key in range(3):
        second.change("d", {"id": key}, at=key + 20)
    table = take(one, second, table)
    assert table.due() == Due(Task.COMPACT, overdue=False)
    maintenance_thread(one, table)[0].do_next_task()
    assert table.due() is None
    assert operations(one.table)[-1] == "OPTIMIZE"
    found = read_table(one.table)
    assert found is not None
    assert sorted(found["id"].to_pylist()) == list(range(3, 10))


def test_files_stay_as_long_as_the_config_says(make_maintained: Callable[..., Bench]) -> None:
    one, batches = make_maintained(0), parts()
    take(one, batches[0])
    one.rule = {"maintenance": {"compact_after": 0, "keep": "30d"}}
    table = take(one, batches[1])
    assert DeltaTable(str(one.table)).metadata().configuration[FILES_KEPT] == "interval 30 days"
    younger, older = one.table / "part-younger.parquet", one.table / "part-older.parquet"
    for file, days in ((younger, 29), (older, 31)):
        file.write_bytes(b"of a writer that was killed")
        aged(file, days)
    table.maintain(Task.VACUUM)
    assert (younger.exists(), older.exists()) == (True, False)


def test_a_column_that_comes_after_a_long_rest_does_not_cost_the_record(
    make_maintained: Callable[..., Bench], monkeypatch: pytest.MonkeyPatch
) -> None:
    one, batches = make_maintained(0), parts()
    table = take(one, batches[0])
    one.session.sql(f"ALTER TABLE delta.`{one.table}` SET TBLPROPERTIES ('delta.checkpointInterval' = '1')")
    table = take(one, batches[1], table)
    for file in (one.table / "_delta_log").glob("0*"):
        aged(file, 40)
    monkeypatch.setattr(lake, "_RECORD_IS_OLD", -1)
    wider = Topic("")
    wider.change("c", {"id": 90}, {"id": 90, "v": "new", "w": "wider"}, at=90)
    take(one, wider, table)
    again = one.worker()
    again.start()
    assert progress(again)["records"] == len(batches[0].records) + len(batches[1].records) + 1
    assert one.rows("id", "w")[-1] == (90, "wider")


def test_a_compaction_carries_the_record_on_that_the_log_may_lose(make_maintained: Callable[..., Bench]) -> None:
    one, batches = make_maintained(3), parts()
    table = take(one, batches[0])
    one.session.sql(f"ALTER TABLE delta.`{one.table}` SET TBLPROPERTIES ('delta.checkpointInterval' = '2')")
    take(one, batches[2], take(one, batches[1], table))
    before = progress(table)
    table.maintain(Task.COMPACT)
    assert operations(one.table)[-1] == "OPTIMIZE"
    again = one.worker()
    again.start()
    assert progress(again) == {**before, "sequence": before["sequence"] + 1}
    # What Delta's own clean-up leaves is enough. It comes with a checkpoint, which commits of the library make due.
    log, renewed = one.table / "_delta_log", DeltaTable(str(one.table)).version()
    for file in sorted(log.glob("0*")):
        if int(file.name[:20]) < renewed:
            aged(file, 40 - int(file.name[:20]))
    take(one, batches[3], again)
    take(one, batches[4], again)
    left = {int(file.stem) for file in log.glob("0*.json")}
    assert min(left) > 0
    assert renewed in left
    last = take(one, Topic(""))
    last.start()
    assert (progress(last)["records"], one.rows()) == (RECORDS, AT_THE_END)


@pytest.mark.usefixtures("signal_handlers")
def test_a_service_that_only_ever_runs_once_compacts_its_tables_and_the_quarantine(kafka_bench: Bench) -> None:
    one = kafka_bench.create()
    options = {"defaults": {"maintenance": {"compact_after": 4}}, "trigger": {"max_records": 6}}
    one.options = {**options, "quarantine": {"max_ratio": 1}}
    for topic in parts():
        topic.add({"id": 0}, b"no JSON")
        produce(one.kafka, [record._replace(topic=one.topic) for record in topic.records])
    config, recorder = one.config(), Recorder(ServiceStatus())
    assert Service(config, one.session, one.client(config), recorder).run(once=True) == 0
    assert one.rows() == AT_THE_END
    table = recorder.status.table("dbo.t")
    assert table is not None
    assert table.compacted_at is not None
    assert operations(one.quarantine).count("OPTIMIZE") == 1
    bad = read_table(one.quarantine)
    assert bad is not None
    assert bad.num_rows == len(parts())
