"""Columns whose types grow at the source: widened in place, in every mode, however the records were cut.

The tables are read by Spark: the deltalake package does not read what was widened.
"""

from __future__ import annotations

import json
from datetime import datetime
from decimal import Decimal
from typing import Any

import pytest
from tests.support.changes import DAY, DOUBLE, FLOAT, INSTANT, INT, LONG, SHORT, Row, Topic, decimal
from tests.support.kafka import Record, create_topic, produce
from tests.support.spark import Bench

from distributary import failpoints
from distributary.errors import TableHalt
from distributary.storage.lake_files import newest_record

NARROW = {"id": INT, "n": SHORT, "f": FLOAT, "d": decimal(8, 2), "day": DAY}
WIDE = {"id": LONG, "n": INT, "f": DOUBLE, "d": decimal(20, 4), "day": INSTANT}


pytestmark = pytest.mark.bench(partitions=1)


@pytest.mark.parametrize("mode", ["history", "append"])
def test_5_1_and_5_2_types_that_grow_in_the_middle_of_a_batch(bench: Bench, mode: str) -> None:
    bench.rule = {"mode": mode}
    topic = Topic(bench.topic)

    def change(op: str, id_: int, at: int, types: dict[str, Row], *values: Any) -> None:
        topic.with_schema(topic.change(op, {"id": id_}, dict(zip(types, (id_, *values), strict=True)), at=at), types)

    change("c", 1, 1, NARROW, 1, 0.5, 1.25, 0)
    bench.take(topic.records)
    first = topic.records[0]
    change("c", 2, 2, NARROW, 2, 0.5, 2.25, 0)
    change("u", 1, 3, WIDE, 70_000, 0.1, 1.2345, 1)
    bench.take([*topic.records[1:], first])  # the first one is sent again
    was, now = datetime.fromisoformat("1970-01-01"), datetime.fromisoformat("1970-01-01T00:00:00.000001")
    assert bench.rows_by_spark(*NARROW) == [
        (1, 1, 0.5, Decimal("1.2500"), was),
        (1, 70_000, 0.1, Decimal("1.2345"), now),
        (2, 2, 0.5, Decimal("2.2500"), was),
    ]


def test_5_1_a_crash_after_widening_loses_nothing_and_a_late_change_brings_no_deleted_row_back(bench: Bench) -> None:
    narrow, wide = {"id": INT, "n": INT, "day": DAY}, {"id": LONG, "n": LONG, "day": INSTANT}
    topic = Topic(bench.topic)
    for number in (1, 2, 3):
        topic.with_schema(topic.change("c", {"id": number}, {"id": number, "n": number, "day": 0}, at=number), narrow)
    topic.with_schema(topic.change("d", {"id": 2}, at=5), narrow)
    bench.take(topic.records)
    grown = Topic(bench.topic)
    grown.with_schema(grown.change("u", {"id": 1}, {"id": 1, "n": 2**40, "day": 1}, at=6), wide)
    produce(bench.kafka, grown.records)
    failpoints.arm("after-schema-change:dbo.t=raise@1")
    try:
        with pytest.raises(TableHalt, match="MadeToFail"):
            bench.take([])
    finally:
        failpoints.arm(None)
    late = Topic(bench.topic)
    late.with_schema(late.change("u", {"id": 2}, {"id": 2, "n": 0, "day": 1}, at=4), wide)
    bench.take(late.records)
    assert bench.rows_by_spark("id", "n", "day") == [
        (1, 2**40, datetime.fromisoformat("1970-01-01T00:00:00.000001")),
        (3, 3, datetime.fromisoformat("1970-01-01")),
    ]
    newest = newest_record(str(bench.table))
    assert newest is not None
    assert dict(newest.progress.next) == {0: 6}


@pytest.mark.parametrize(
    ("rule", "code"), [({"schema_changes": "halt"}, "schema-changed"), ({}, "column-type-changed")]
)
def test_5_1_what_is_not_widened_halts_with_both_types(bench: Bench, rule: Row, code: str) -> None:
    bench.rule = rule
    topic = Topic(bench.topic)
    topic.with_schema(topic.change("c", {"id": 1}, {"id": 1, "n": 1}, at=1), {"id": INT, "n": INT})
    bench.take(topic.records)
    grown = Topic(bench.topic)
    kind = LONG if rule else decimal(30, 2)
    grown.with_schema(grown.change("u", {"id": 1}, {"id": 1, "n": 2}, at=2), {"id": INT, "n": kind})
    with pytest.raises(TableHalt) as halt:
        bench.take(grown.records)
    assert halt.value.code == code
    assert "int" in halt.value.message
    assert ("bigint" if rule else "decimal(30,2)") in halt.value.message
    assert bench.rows("id", "n") == [(1, 1)]


def test_5_1_without_schema_the_connectors_own_topic_tells_that_a_type_grew(bench: Bench) -> None:
    prefix = bench.prefix
    create_topic(bench.kafka, prefix, 1)

    def schema_change(**types: str) -> Record:
        columns = [{"name": name, "typeName": kind, "length": None, "scale": 7} for name, kind in types.items()]
        changes = [{"type": "ALTER", "id": '"db"."dbo"."t"', "table": {"columns": columns}}]
        value = {"source": {"connector": "sqlserver"}, "ddl": "…", "tableChanges": changes}
        return Record(prefix, 0, None, json.dumps(value).encode(), [])

    topic = Topic(bench.topic)
    topic.change("c", {"id": 1}, {"id": 1, "n": 1, "at": 1_700_000_000_000_000_000}, at=1)
    worker = bench.take([schema_change(id="int", n="int", at="datetime2"), *topic.records])
    assert bench.rows("id", "n", "at") == [(1, 1, datetime.fromisoformat("2023-11-14T22:13:20"))]
    grown = Topic(bench.topic)
    grown.change("u", {"id": 1}, {"id": 1, "n": 2**40, "at": 1_700_000_000_123_456_789}, at=2)
    bench.take([schema_change(id="int", n="bigint", at="datetime2"), *grown.records], worker)
    assert bench.rows_by_spark("id", "n", "at") == [(1, 2**40, datetime.fromisoformat("2023-11-14T22:13:20.123456"))]
