"""Unusual values: read as intended or quarantined, whatever the boundaries of batches."""

from __future__ import annotations

import math
from datetime import date
from decimal import Decimal
from typing import Any

import pytest
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
            topic.change("c", {"id": key}, {"id": key, **given}, at=len(topic.records) + 1)
            topic.with_schema(topic.records[-1], SCHEMA)
        rows[1000 + number] = dict(READ)
        if read is not None or sent is None:
            rows[number] = {**READ, column: read}
    return rows


def same(value: Any, other: Any) -> bool:
    both = isinstance(value, float) and isinstance(other, float)
    return value == other or (both and math.isnan(value) and math.isnan(other))


@pytest.mark.parametrize(
    ("rule", "cut"),
    [({}, 1), ({}, 1000), ({"mode": "history"}, 1000), ({"rename": {"amount": "total", "n": "count"}}, 1)],
    ids=["upsert", "upsert, one batch", "history", "renamed"],
)
def test_values_that_come_otherwise(bench: Bench, rule: dict[str, Any], cut: int) -> None:
    bench.rule, bench.options = rule, {"quarantine": {"max_ratio": 1.0}}
    topic = Topic(bench.create().topic)
    expected = history(topic)
    worker = None
    for start in range(0, len(topic.records), cut):
        worker = bench.take(topic.records[start : start + cut], worker)
    lakes = {**dict(zip(READ, READ, strict=True)), **rule.get("rename", {})}
    names = ("id", *(lakes[name] for name in READ))
    found = {row[0]: dict(zip(READ, row[1:], strict=True)) for row in bench.rows(*names)}
    assert found.keys() == expected.keys()
    for key, row in expected.items():
        assert all(same(found[key][name], value) for name, value in row.items()), (key, found[key], row)
    assert len(rows_of(bench.quarantine, "offset")) == len(topic.records) - len(expected)


def test_rows_before_the_change_and_rows_without_a_key(bench: Bench) -> None:
    """What the row before holds is read like the row itself, where it counts."""
    bench.rule = {"key": ["id"]}
    topic = Topic(bench.create().topic)
    kinds = {"id": LONG, "n": INT, "amount": decimal(8, 2)}
    first, second = {"id": 1, "n": 1, "amount": "AQ=="}, {"id": 2, "n": 1, "amount": "AQ=="}
    for op, before, after in (
        ("c", None, first),
        ("u", first, {**first, "n": "2"}),
        ("c", None, second),
        ("u", {**first, "n": "2", "amount": 0.01}, {**first, "id": 3}),
        ("d", {**second, "n": "x"}, None),
    ):
        topic.change(op, {"id": 1}, after, at=len(topic.records) + 1, before=before)
        topic.with_schema(topic.records[-1], kinds)
    records = [record._replace(key=None) for record in topic.records]
    worker = None
    for record in records:
        worker = bench.take([record], worker)
    assert bench.rows("id", "n", "amount") == [(3, 1, Decimal("0.01"))]
