"""Columns whose types grow at the source: widened in place, in every mode, however the records were cut.

The tables are read by Spark: the deltalake package does not read what was widened.
"""

from __future__ import annotations

import json
import random
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from tests.support.changes import Row, Topic
from tests.support.kafka import Record, produce
from tests.support.spark import Bench

from distributary.errors import TableHalt
from distributary.operate import failpoints
from distributary.operate.failpoints import MadeToFail
from distributary.operate.records import newest_record

SHORT, INT, LONG = {"type": "int16"}, {"type": "int32"}, {"type": "int64"}
FLOAT, DOUBLE = {"type": "float"}, {"type": "double"}
DAY = {"type": "int32", "name": "io.debezium.time.Date"}
INSTANT = {"type": "int64", "name": "io.debezium.time.MicroTimestamp"}
TEXT = {"type": "string"}


def decimal(precision: int, scale: int) -> Row:
    parameters = {"scale": str(scale), "connect.decimal.precision": str(precision)}
    return {"type": "bytes", "name": "org.apache.kafka.connect.data.Decimal", "parameters": parameters}


STEPS: tuple[dict[str, tuple[Row, Any]], ...] = (
    {"id": (INT, 1), "n": (SHORT, 1), "f": (FLOAT, 0.5), "d": (decimal(8, 2), 1.25), "day": (DAY, 19000)},
    {"n": (INT, 70_000)},
    {"d": (decimal(10, 4), 1.2345)},
    {"a": (TEXT, "new")},
    {"f": (DOUBLE, 0.1)},
    {"n": (LONG, 2**40)},
    {"b": (SHORT, 5)},
    {"day": (INSTANT, 1_700_000_000_000_000)},
    {"b": (LONG, 2**50)},
    {"id": (LONG, 1)},
    {"d": (decimal(20, 4), 10**12)},
    {"c": (FLOAT, 1.5)},
    {"n": (SHORT, 3)},
    {"c": (DOUBLE, 0.2)},
    {"e": (decimal(3, 0), 999)},
    {"e": (decimal(6, 2), 999.25)},
    {"with space": (INT, 7)},
    {"with space": (LONG, 2**33)},
    {"g": (DAY, 1)},
    {"g": (INSTANT, 1)},
)
"""What each step changes: columns with their Connect type from now on, and the value in the step's own row."""
LAST = (20, 3, 0.1, Decimal("1000000000000.0000"), datetime.fromisoformat("2023-11-14T22:13:20"), "new", 2**50, 0.2,
        Decimal("999.25"), 2**33, datetime.fromisoformat("1970-01-01T00:00:00.000001"))  # fmt: skip
COLUMNS = ("id", "n", "f", "d", "day", "a", "b", "c", "e", "with space", "g")


def wrapped(topic: Topic, record: Record, row: dict[str, Row]) -> Record:
    """The record with the schema of such a row beside key and value."""

    def schema(fields: dict[str, Row], **more: Any) -> Row:
        named = [{**kind, "optional": True, "field": name} for name, kind in fields.items()]
        return {"type": "struct", "fields": named, "optional": True, **more}

    envelope = [schema(row, field=place) for place in ("before", "after")]
    envelope += [schema({}, field="source"), {**TEXT, "field": "op"}]
    key = {"schema": schema({"id": row["id"]}), "payload": json.loads(record.key or b"")}
    value = {"schema": {"type": "struct", "fields": envelope}, "payload": json.loads(record.value or b"")}
    data = [json.dumps(one, separators=(",", ":")).encode() for one in (key, value)]
    topic.records[-1] = record._replace(key=data[0], value=data[1])
    return topic.records[-1]


def played(bench: Bench) -> list[list[Record]]:
    """The records of each step: a row of its own, an update of the first one, and a row that comes and goes."""
    types: dict[str, Row] = {}
    values: Row = {}
    steps = []
    for number, changed in enumerate(STEPS, start=1):
        types |= {name: kind for name, (kind, _) in changed.items()}
        values |= {name: value for name, (_, value) in changed.items()}
        topic = Topic(bench.topic)
        for place, (op, id_) in enumerate((("c", number), ("u", 1), ("c", -number), ("d", -number))):
            row = None if op == "d" else {**values, "id": id_}
            wrapped(topic, topic.change(op, {"id": id_}, row, at=10 * number + place), types)
        steps.append(topic.records)
    return steps


def rows(bench: Bench, *columns: str) -> list[tuple[Any, ...]]:
    found = bench.session.read.format("delta").load(str(bench.table)).select(*(f"`{name}`" for name in columns))
    return sorted((tuple(row) for row in found.collect()), key=repr)


@pytest.fixture
def bench(session: SparkSession, kafka: str, tmp_path: Path) -> Bench:
    return Bench(session, kafka, tmp_path, f"wide{random.randrange(10**9)}.dbo.t").create()


@pytest.mark.parametrize("mode", ["upsert", "history", "append"])
def test_5_1_and_5_2_twenty_changes_of_a_schema_in_one_batch_and_in_twenty(
    session: SparkSession, kafka: str, tmp_path: Path, mode: str
) -> None:
    tables = []
    for name, at_once in (("once", len(STEPS)), ("steps", 1)):
        folder = tmp_path / name
        folder.mkdir()
        one = Bench(session, kafka, folder, f"{name}{random.randrange(10**9)}.dbo.t", {"mode": mode}).create()
        steps, worker = played(one), None
        for first in range(0, len(steps), at_once):
            worker = one.take([r for step in steps[first : first + at_once] for r in step], worker)
        tables.append((one, rows(one, *COLUMNS)))
    (once, at_last), (_, by_steps) = tables
    assert at_last == by_steps
    if mode == "upsert":
        assert [row[0] for row in at_last] == sorted(range(1, 21), key=lambda n: repr((n,)))
        assert next(row for row in at_last if row[0] == 20) == LAST
    found = dict(session.read.format("delta").load(str(once.table)).select(*(f"`{c}`" for c in COLUMNS)).dtypes)
    assert [found[name] for name in COLUMNS] == [
        "bigint", "bigint", "double", "decimal(20,4)", "timestamp_ntz", "string", "bigint", "double", "decimal(6,2)",
        "bigint", "timestamp_ntz",
    ]  # fmt: skip


def test_5_1_a_crash_after_widening_loses_nothing_and_a_late_change_brings_no_deleted_row_back(bench: Bench) -> None:
    narrow, wide = {"id": INT, "n": INT, "day": DAY}, {"id": LONG, "n": LONG, "day": INSTANT}
    topic = Topic(bench.topic)
    for number in (1, 2, 3):
        wrapped(topic, topic.change("c", {"id": number}, {"id": number, "n": number, "day": 0}, at=number), narrow)
    wrapped(topic, topic.change("d", {"id": 2}, at=5), narrow)
    bench.take(topic.records)
    grown = Topic(bench.topic)
    wrapped(grown, grown.change("u", {"id": 1}, {"id": 1, "n": 2**40, "day": 1}, at=6), wide)
    produce(bench.kafka, grown.records)
    failpoints.arm("after-schema-change:dbo.t=raise@1")
    try:
        with pytest.raises(MadeToFail):
            bench.take([])
    finally:
        failpoints.arm(None)
    late = Topic(bench.topic)
    wrapped(late, late.change("u", {"id": 2}, {"id": 2, "n": 0, "day": 1}, at=4), wide)
    bench.take(late.records)
    assert rows(bench, "id", "n", "day") == [
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
    wrapped(topic, topic.change("c", {"id": 1}, {"id": 1, "n": 1}, at=1), {"id": INT, "n": INT})
    bench.take(topic.records)
    grown = Topic(bench.topic)
    kind = LONG if rule else decimal(30, 2)
    wrapped(grown, grown.change("u", {"id": 1}, {"id": 1, "n": 2}, at=2), {"id": INT, "n": kind})
    with pytest.raises(TableHalt) as halt:
        bench.take(grown.records)
    assert halt.value.code == code
    assert "int" in halt.value.message
    assert ("bigint" if rule else "decimal(30,2)") in halt.value.message
    assert bench.rows("id", "n") == [(1, 1)]
