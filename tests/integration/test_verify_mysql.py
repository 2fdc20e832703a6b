"""`verify --source-dsn`: a table compared with the live one of a real MariaDB."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from urllib.parse import quote

import pyarrow.parquet as pq
import pytest
from tests.support.changes import Topic
from tests.support.kafka import produce
from tests.support.mariadb import PASSWORD, USER, MariaDb, running_mariadb
from tests.support.recorded import Scenario, TruthTable
from tests.support.source_verification import assert_one_of_each_fault, faults, verified, verify_with_source
from tests.support.spark import Bench

from distributary.decode.renames import NO_RENAMES
from distributary.errors import TableHalt, UsageError
from distributary.verify import source_check
from distributary.verify.mysql import MYSQL, connected
from distributary.verify.report import State

RECORDED = Scenario("maria_json_schema")
GEOMETRIES = ("point", "geometry")
ROWS = [(1, "a", "1.50", "2024-02-29"), (2, "b", "-0.01", "1000-01-01"), (3, "ü '\\", "12.00", None)]


@pytest.fixture(scope="module")
def mariadb() -> Iterator[MariaDb]:
    with running_mariadb() as server:
        yield server


# On a real Kafka: `verify` connects to it.
pytestmark = pytest.mark.bench(on_kafka=True, partitions=1)


@pytest.fixture(autouse=True)
def without_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source_check, "pause", lambda: None)


def dsn(mariadb: MariaDb, password: str = PASSWORD) -> str:
    return f"mysql://{USER}:{quote(password, safe='')}@127.0.0.1:{mariadb.port}/dbo"


@pytest.mark.slow
@pytest.mark.parametrize("table", ["big_ids", "special"])
def test_what_the_connector_wrote_equals_its_source(bench: Bench, mariadb: MariaDb, table: str) -> None:
    check_recorded(bench, mariadb, RECORDED.tables[table])


@pytest.mark.slow
def test_each_type_is_compared(bench: Bench, mariadb: MariaDb, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source_check, "_MAX_READS", 1)
    truth = RECORDED.tables["all_types"]
    check_recorded(bench, mariadb, truth)

    one, other = (next(row for row in truth.rows if row["label"] == label) for label in ("typical", "min"))
    changed = [{**other, "id": row["id"]} if row is one else row for row in truth.rows]
    mariadb.load(replace(truth, rows=tuple(changed)))
    found = verified(bench, dsn(mariadb))
    assert faults(found) == {"different": 1}
    values = {value.column: (value.lake, value.expected) for value in found.differences[0].values}
    compared = [c.name for c in truth.columns if not c.in_key and c.type not in GEOMETRIES]
    assert sorted(values) == sorted(name for name in compared if one[name] != other[name])
    assert values["c_time6"] == ("12:34:56.789012", "-838:59:59.999999")


def check_recorded(bench: Bench, mariadb: MariaDb, truth: TruthTable) -> None:
    """The records that a connector wrote, and the rows that its source had at the end."""
    mariadb.load(truth)
    bench.take([replace(record, topic=bench.topic) for record in RECORDED.topic("shop", truth.name)])
    found = verified(bench, dsn(mariadb))
    assert (found.state, faults(found), found.differences) == (State.EQUAL, {}, ())
    assert found.counts.equal == len(truth.rows) > 1
    left_out = [note.split()[2] for note in found.notes if "is not compared" in note]
    assert left_out == [c.name for c in truth.columns if c.type in GEOMETRIES]


def fill(bench: Bench, mariadb: MariaDb) -> Topic:
    """The same rows on both sides."""
    bench.rule = {"columns": {"id": "bigint", "n": "decimal(8,2)", "d": "date", "place": "string"}}
    mariadb.run(
        "DROP TABLE IF EXISTS t",
        "CREATE TABLE t (id bigint PRIMARY KEY, v text, n numeric(8, 2), d date, place point, added int)",
        *("INSERT INTO t VALUES ({}, '{}', {}, {}, NULL, 1)".format(*_literals(row)) for row in ROWS),
    )
    topic = Topic(bench.topic, "mysql")
    for number, value, amount, day in ROWS:
        topic.change("r", {"id": number}, {"id": number, "v": value, "n": float(amount), "d": day}, at=10)
    bench.take(topic.records)
    return Topic(bench.topic, "mysql")


def _literals(row: tuple[int, str, str, str | None]) -> tuple[object, ...]:
    number, value, amount, day = row
    return number, value.replace("\\", "\\\\").replace("'", "''"), amount, "NULL" if day is None else f"'{day}'"


def test_a_table_is_compared_with_the_live_one(bench: Bench, mariadb: MariaDb) -> None:
    topic = fill(bench, mariadb)
    found = verified(bench, dsn(mariadb))
    assert (found.state, faults(found), found.differences) == (State.EQUAL, {}, ())
    assert (found.compared_with, found.counts.lake, found.counts.expected, found.counts.equal) == ("source", 3, 3, 3)
    assert found.notes[0].startswith("the source was read at binlog.900000:")
    assert ", GTID 0-1-10000000" in found.notes[0]

    topic.change("u", {"id": 2}, {"id": 2, "v": "from later", "n": 1.0, "d": None}, at=10**8, ts_ms=1_700_000_100_000)
    bench.take(topic.records)
    unread = Topic(bench.topic, "mysql").change("c", {"id": 5}, {"id": 5, "v": "e"}, at=11)
    mariadb.run(
        "UPDATE t SET v = 'changed', n = NULL WHERE id = 1",
        "DELETE FROM t WHERE id = 3",
        "INSERT INTO t (id, v) VALUES (4, 'new')",
    )
    produce(bench.kafka, [unread])
    found = verified(bench, dsn(mariadb))
    assert_one_of_each_fault(found)


def test_a_change_on_its_way_is_no_difference(bench: Bench, mariadb: MariaDb, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(bench, mariadb)
    mariadb.run("DELETE FROM t WHERE id = 1")

    def meanwhile() -> None:
        bench.take([Topic(bench.topic, "mysql").change("d", {"id": 1}, at=20)])

    monkeypatch.setattr(source_check, "pause", meanwhile)
    found = verified(bench, dsn(mariadb))
    assert (found.state, faults(found)) == (State.EQUAL, {"changed_meanwhile": 1})


def test_a_database_of_another_kind_is_refused(bench: Bench, mariadb: MariaDb) -> None:
    bench.take([Topic(bench.topic, "postgresql").change("r", {"id": 1}, {"id": 1}, at=10)])
    found = verify_with_source(bench, dsn(mariadb))
    assert found.error is not None
    assert found.error["code"] == "source-of-another-kind"
    assert "postgresql" in found.error["message"]
    assert PASSWORD not in str(found)


@pytest.mark.parametrize(
    ("name", "column"),
    [
        *(("text_keys", "k"), ("num_keys", "k"), ("big_ids", "id"), ("special", "c_double"), ("special", "c_time6")),
        *(("all_types", "c_dt6"), ("all_types", "c_ts6"), ("all_types", "c_year"), ("all_types", "c_enum")),
    ],
)
def test_rows_are_found_by_their_keys(mariadb: MariaDb, tmp_path: Path, name: str, column: str) -> None:
    mariadb.load(RECORDED.tables[name])
    with MYSQL.table(dsn(mariadb), "dbo", "t", NO_RENAMES) as table:
        assert table.is_key(column, "string")
        table.read([column], tmp_path)
        values = [value for value in pq.read_table(tmp_path)["c0"].to_pylist() if value is not None]
        table.read_keys([column], [column], [[value] for value in values], tmp_path)
    assert sorted(pq.read_table(tmp_path)["c0"].to_pylist()) == sorted(values) != []


def test_a_user_without_rights_to_the_log_can_read(mariadb: MariaDb, tmp_path: Path) -> None:
    mariadb.load(RECORDED.tables["big_ids"])
    mariadb.run("CREATE USER lesser", "GRANT SELECT ON dbo.t TO lesser")
    with MYSQL.table(f"mariadb://lesser@127.0.0.1:{mariadb.port}", "dbo", "t", NO_RENAMES) as table:
        assert table.read(["id"], tmp_path).description.startswith("GTID 0-1-")
    assert len(pq.read_table(tmp_path)) == len(RECORDED.tables["big_ids"].rows)


def test_a_wrong_password_and_a_missing_table_are_told(mariadb: MariaDb) -> None:
    wrong = connected(dsn(mariadb, "wrong#word"))
    with pytest.raises(UsageError, match=r"source-unreachable.*OperationalError 1045") as raised, wrong:
        pass
    assert "wrong" not in str(raised.value)
    nowhere = MYSQL.table(dsn(mariadb), "dbo", "nowhere", NO_RENAMES)
    with pytest.raises(TableHalt, match="not-at-the-source"), nowhere:
        pass
