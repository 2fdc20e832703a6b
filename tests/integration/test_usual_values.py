"""Values that come otherwise than usual: read as they are meant, or put into quarantine, however slices are cut."""

from __future__ import annotations

import math
import random
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from tests.support.changes import BOOLEAN, DAY, DOUBLE, INSTANT, INT, LONG, TEXT, Topic, decimal
from tests.support.spark import Bench, rows_of

SCHEMA = {
    "id": LONG, "n": INT, "x": DOUBLE, "yes": BOOLEAN, "day": DAY, "at": INSTANT, "amount": decimal(8, 2), "t": TEXT,
}  # fmt: skip
USUAL = {"n": 1, "x": 0.5, "yes": True, "day": 1, "at": 0, "amount": "AQ==", "t": "text"}
READ = {"n": 1, "x": 0.5, "yes": True, "day": date(1970, 1, 2), "amount": Decimal("0.01"), "t": "text"}
# What is sent, and what it is read as; None: it can't be applied.
OTHERWISE: list[tuple[str, Any, Any]] = [
    ("n", "7", 7), ("n", 7.5, None), ("n", 2**31, None), ("n", "seven", None), ("n", None, None),
    ("x", "NaN", math.nan), ("x", "-Infinity", -math.inf), ("x", 10**400, None), ("x", 3, 3.0),
    ("yes", "true", True), ("yes", 1, None),
    ("day", "2", date(1970, 1, 3)), ("day", -2147472692, date(9999, 12, 31)), ("day", 10**12, None),
    ("amount", 12.25, Decimal("12.25")), ("amount", 12.255, None), ("amount", "AQ==AQ==", None),
    ("amount", "AQ==\n", None), ("amount", "/w==", Decimal("-0.01")), ("amount", "", None),
    ("t", 5, "5"), ("t", True, "true"), ("t", "\u00fc", "\u00fc"),
]  # fmt: skip


def history(topic: Topic) -> dict[int, dict[str, Any]]:
    """Fills the topic; the rows that it stands for, by their keys, without those of records that can't be applied."""
    rows: dict[int, dict[str, Any]] = {}
    for number, (column, sent, read) in enumerate(OTHERWISE):
        for key, given in ((number, {**USUAL, column: sent}), (1000 + number, USUAL)):
            topic.change("c", {"id": key}, {"id": key, **given}, at=10 * key + 1)
            topic.with_schema(topic.records[-1], SCHEMA)
        rows[1000 + number] = dict(READ)
        if read is not None or sent is None:
            rows[number] = {**READ, column: read}
    return rows


def same(value: Any, other: Any) -> bool:
    both = isinstance(value, float) and isinstance(other, float)
    return value == other or (both and math.isnan(value) and math.isnan(other))


@pytest.mark.parametrize("cut", [3, 1000])
@pytest.mark.parametrize("rule", [{}, {"mode": "history"}], ids=["upsert", "history"])
def test_values_that_come_otherwise(
    session: SparkSession, kafka: str, tmp_path: Path, cut: int, rule: dict[str, Any]
) -> None:
    topic = Topic(f"otherwise{random.randrange(10**9)}.dbo.t")
    expected = history(topic)
    bench = Bench(session, kafka, tmp_path, topic.name, rule, {"quarantine": {"max_ratio": 1.0}}).create()
    worker = None
    for start in range(0, len(topic.records), cut):
        worker = bench.take(topic.records[start : start + cut], worker)
    names = ("id", *READ)
    found = {row[0]: dict(zip(names[1:], row[1:], strict=True)) for row in bench.rows(*names)}
    assert found.keys() == expected.keys()
    for key, row in expected.items():
        assert all(same(found[key][name], value) for name, value in row.items()), (key, found[key], row)
    assert len(rows_of(bench.quarantine, "offset")) == len(topic.records) - len(expected)
