"""Points in time without a zone, as a Delta table has them: its features, and `timestamps: utc`."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import Any

import pytest
from deltalake import DeltaTable
from tests.support.changes import DAY, INSTANT, INT, TEXT, Row, Topic, key
from tests.support.spark import Bench

from distributary.errors import TableHalt
from distributary.halt_actions import ResumeAction

MICROS = 1_700_000_000_123_456
INSTANT_AT = datetime.fromisoformat("2023-11-14T22:13:20.123456")
NTZ = "timestampNtz"


def features(bench: Bench) -> set[str]:
    protocol = DeltaTable(bench.table).protocol()
    return {*(protocol.reader_features or ()), *(protocol.writer_features or ())}


def send(topic: Topic, op: str, number: int, at: int, **columns: tuple[Row, Any]) -> None:
    """One change of a row, with a schema beside it."""
    row = {"id": number, **{name: value for name, (_, value) in columns.items()}}
    kinds = {"id": INT, **{name: kind for name, (kind, _) in columns.items()}}
    topic.with_schema(topic.change(op, key(number), row, at=at), kinds)


def test_a_table_has_the_feature_from_its_first_column_that_needs_it_on(bench: Bench) -> None:
    topic = Topic(bench.create().topic)
    send(topic, "c", 1, 1, v=(TEXT, "a"))
    worker = bench.take(topic.records)
    assert (DeltaTable(bench.table).protocol().min_reader_version, features(bench)) == (1, set())
    send(topic, "u", 1, 2, v=(TEXT, "b"), seen=(INSTANT, MICROS))
    bench.take(topic.records[1:], worker)
    assert NTZ in features(bench)
    assert bench.columns() == {"id": "int", "v": "string", "seen": "timestamp_ntz"}
    assert bench.rows() == [(1, "b", INSTANT_AT)]


def test_a_date_that_is_widened_to_a_point_in_time_brings_the_feature(bench: Bench) -> None:
    topic = Topic(bench.create().topic)
    send(topic, "c", 1, 1, day=(DAY, 0))
    worker = bench.take(topic.records)
    assert NTZ not in features(bench)
    send(topic, "c", 2, 2, day=(INSTANT, MICROS))
    bench.take(topic.records[1:], worker)
    assert NTZ in features(bench)
    found = bench.frame().select("id", "day").collect()
    assert sorted(map(tuple, found)) == [(1, datetime.fromisoformat("1970-01-01")), (2, INSTANT_AT)]


def test_column_mapping_never_comes_without_the_feature(bench: Bench) -> None:
    """By reader version 2 the deltalake library does not see that columns are mapped, and reads NULL."""
    topic = Topic(bench.create().topic)
    send(topic, "c", 1, 1, v=(TEXT, "a"))
    worker = bench.take(topic.records)
    send(topic, "u", 1, 2, v=(TEXT, "b"), **{"yes no": (TEXT, "c")})
    bench.take(topic.records[1:], worker)
    assert {NTZ, "columnMapping"} <= features(bench)
    with pytest.raises(Exception, match="columnMapping"):
        DeltaTable(bench.table).to_pyarrow_table()


def test_as_instants_they_need_no_feature_and_another_setting_halts_the_table(bench: Bench) -> None:
    bench.rule = {"timestamps": "utc"}
    topic = Topic(bench.create().topic)
    send(topic, "c", 1, 1, seen=(INSTANT, MICROS))
    bench.take(topic.records)
    expected = INSTANT_AT.replace(tzinfo=timezone.utc)
    assert features(bench) == set()
    assert (bench.columns(), bench.rows()) == ({"id": "int", "seen": "timestamp"}, [(1, expected)])
    send(topic, "c", 2, 2, seen=(INSTANT, MICROS))
    bench.rule = {}
    with pytest.raises(TableHalt, match="timestamps-changed") as halt:
        bench.take(topic.records[1:])
    assert "Columns: seen" in halt.value.message
    bench.rule = {"timestamps": "utc"}
    bench.take([])
    assert bench.rows() == [(1, expected), (2, expected)]
    bench.rule = {}
    worker = bench.worker()
    worker.resume(ResumeAction.REBUILD)
    bench.take([], worker)
    assert (bench.columns()["seen"], bench.rows()) == ("timestamp_ntz", [(1, INSTANT_AT), (2, INSTANT_AT)])
    send(topic, "c", 3, 3, seen=(INSTANT, MICROS))
    bench.rule = {"timestamps": "utc"}
    with pytest.raises(TableHalt, match="timestamps-changed"):
        bench.take(topic.records[2:])
