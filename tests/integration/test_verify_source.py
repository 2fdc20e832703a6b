"""`verify --source-dsn`: a table compared with the live one of a real PostgreSQL."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from tests.support.changes import Topic
from tests.support.kafka import produce
from tests.support.postgres import Postgres, running_postgres
from tests.support.source_verification import assert_one_of_each_fault, verified
from tests.support.spark import Bench

from distributary.decode.renames import Renames
from distributary.verify import source_check
from distributary.verify.postgresql import PostgresTable
from distributary.verify.report import State

ROWS = [(1, "a", "1.50", "2024-02-29"), (2, "b", "-0.01", "0001-01-01"), (3, "ü '\\", "12.00", None)]


@pytest.fixture(scope="module")
def postgres() -> Iterator[Postgres]:
    with running_postgres() as server, server.connect() as connection:
        connection.execute("CREATE SCHEMA dbo")
        connection.execute(
            "CREATE TABLE dbo.t (id bigint PRIMARY KEY, v text, n numeric(8, 2), d date, at_night time, added int)"
        )
        for row in ROWS:
            connection.execute("INSERT INTO dbo.t VALUES (%s, %s, %s::numeric, %s::date, '23:00')", row)
        yield server


@pytest.fixture
def filled_bench(kafka_bench: Bench, monkeypatch: pytest.MonkeyPatch) -> Bench:
    """The table with what PostgreSQL has."""
    monkeypatch.setattr(source_check, "pause", lambda: None)
    bench = kafka_bench.create()
    bench.rule = {"columns": {"id": "bigint", "n": "decimal(8,2)", "d": "date", "at_night": "string"}}
    topic = Topic(bench.topic, "postgresql")
    for number, value, amount, day in ROWS:
        row = {"id": number, "v": value, "n": float(amount), "d": day, "at_night": "23:00:00"}
        topic.change("r", {"id": number}, row, at=10)
    bench.take(topic.records)
    return bench


def dsn(postgres: Postgres) -> str:
    return f"postgresql://postgres@127.0.0.1:{postgres.port}/{postgres.database}"


def test_3_5_a_table_is_compared_with_the_live_one(filled_bench: Bench, postgres: Postgres) -> None:
    found = verified(filled_bench, dsn(postgres))
    assert (found.state, found.differences) == (State.EQUAL, ())
    assert (found.compared_with, found.counts.lake, found.counts.expected, found.counts.equal) == ("source", 3, 3, 3)
    lsn, left_out = found.notes
    assert lsn.startswith("the source was read at LSN 0/")
    assert left_out == "the column at_night is not compared: time without time zone can't be compared with string"

    topic = Topic(filled_bench.topic, "postgresql")
    later = {"id": 2, "v": "from later", "n": 1.0, "d": None, "at_night": None}
    topic.change("u", {"id": 2}, later, at=10**15, ts_ms=1_700_000_100_000)
    filled_bench.take(topic.records)
    unread = Topic(filled_bench.topic, "postgresql").change("c", {"id": 5}, {"id": 5, "v": "e"}, at=11)
    with postgres.connect() as connection:
        connection.execute("UPDATE dbo.t SET v = 'changed', n = NULL WHERE id = 1")
        connection.execute("DELETE FROM dbo.t WHERE id = 3")
        connection.execute("INSERT INTO dbo.t VALUES (4, 'new')")
    produce(filled_bench.kafka, [unread])
    found = verified(filled_bench, dsn(postgres))
    assert_one_of_each_fault(found)


@pytest.mark.parametrize("keys", [None, [["ab    "], ["  "], ["ü"]]])
def test_texts_of_a_fixed_length_are_read_with_the_blanks_that_the_connector_sends(
    postgres: Postgres, tmp_path: Path, keys: list[list[str]] | None
) -> None:
    with postgres.connect() as connection:
        connection.execute("CREATE TABLE IF NOT EXISTS dbo.fixed (code character(6) PRIMARY KEY, c char(3), v varchar)")
        connection.execute("TRUNCATE dbo.fixed")
        for row in (("ab", "x", "x  "), (" ", None, None), ("ü", "", "")):
            connection.execute("INSERT INTO dbo.fixed VALUES (%s, %s, %s)", row)
        table = PostgresTable(connection, "dbo", "fixed", Renames({}))
        found = table.comparable({"code": "string", "c": "string", "v": "string"})
        assert (list(found.types), found.left_out) == (["code", "c", "v"], {})
        if keys is None:
            table.read(found.types, tmp_path)
        else:
            table.read_keys(found.types, ["code"], keys, tmp_path)
    rows = pq.read_table(tmp_path).to_pylist()
    assert sorted(tuple(row.values()) for row in rows) == [
        ("      ", None, None),
        ("ab    ", "x  ", "x  "),
        ("ü     ", "   ", ""),
    ]


def test_a_change_on_its_way_is_no_difference(
    filled_bench: Bench, postgres: Postgres, monkeypatch: pytest.MonkeyPatch
) -> None:
    with postgres.connect() as connection:
        connection.execute("TRUNCATE dbo.t")
        for row in ROWS:
            connection.execute("INSERT INTO dbo.t VALUES (%s, %s, %s::numeric, %s::date)", row)
        connection.execute("DELETE FROM dbo.t WHERE id = 1")

    def meanwhile() -> None:
        filled_bench.take([Topic(filled_bench.topic, "postgresql").change("d", {"id": 1}, at=20)])

    monkeypatch.setattr(source_check, "pause", meanwhile)
    found = verified(filled_bench, dsn(postgres))
    assert (found.state, found.counts.not_checked["changed_meanwhile"]) == (State.EQUAL, 1)
