"""A table whose columns change twenty times: the same rows whether the changes come one by one or all in one batch.

The tables are read by Spark: the deltalake package does not read what was widened.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from tests.support.changes import BOOLEAN, DAY, DOUBLE, FLOAT, INSTANT, INT, LONG, SHORT, TEXT, Row, Topic, decimal
from tests.support.kafka import Record
from tests.support.spark import Bench

GONE: Row = {}

# What each step changes: columns with their types from then on, GONE for one that is dropped.
STEPS: list[dict[str, Row]] = [
    {"id": INT, "a": TEXT},
    {"n": SHORT},
    {"n": INT},
    {"f": FLOAT},
    {"a": GONE},
    {"b": TEXT},
    {"f": DOUBLE},
    {"d": decimal(8, 2)},
    {"n": LONG},
    {"d": decimal(12, 4)},
    {"a": TEXT},
    {"day": DAY},
    {"b": GONE, "list": {"type": "array", "items": {**TEXT, "optional": True}}},
    {"day": INSTANT},
    {"id": LONG},
    {"d": GONE, "e": decimal(12, 4)},  # renamed
    {"b": TEXT},
    {"n": GONE},
    {"yes no": BOOLEAN},
    {"f": GONE, "g": DOUBLE},
    {"e": decimal(20, 6)},
]

TYPES = {
    "id": "bigint",
    "a": "string",
    "n": "bigint",
    "f": "double",
    "b": "string",
    "d": "decimal(12,4)",
    "day": "timestamp_ntz",
    "list": "array<string>",
    "e": "decimal(20,6)",
    "yes no": "boolean",
    "g": "double",
}
"""What the columns are in the end."""

EPOCH = datetime.fromisoformat("1970-01-01")


def sent(name: str, kind: Row, seed: int) -> Any:
    """A value as it is in the record."""
    if kind is DAY:
        return seed
    if kind is INSTANT:
        return seed * 1_000_001
    by_name = {"a": f"a{seed}", "b": f"b{seed}", "list": [str(seed), None], "yes no": seed % 2 == 0}
    whole = {SHORT["type"]: seed, INT["type"]: 70_000 + seed, LONG["type"]: 2**40 + seed}
    scale = int(kind.get("parameters", {}).get("scale", 0))
    return by_name.get(name, seed + 0.1**scale if scale else whole.get(kind["type"], seed + 0.5))


def stored(kind: Row, value: Any) -> Any:
    """The same value as the table has it."""
    if kind is DAY:
        return EPOCH + timedelta(days=value)
    if kind is INSTANT:
        return EPOCH + timedelta(microseconds=value)
    return Decimal(repr(value)) if "parameters" in kind else value


class Source:
    """A table of the source: `records` of each step, and the `rows` that it ends with."""

    def __init__(self, topic: str) -> None:
        self.rows: dict[int, Row] = {}
        self._topic = Topic(topic)
        self._columns: dict[str, Row] = {}
        self._places = itertools.count(1)

    def step(self, number: int, changes: dict[str, Row]) -> list[Record]:
        """The columns change, and with them come two new rows, a changed one, a deleted one and one that comes back."""
        columns = {**self._columns, **changes}
        self._columns = {name: kind for name, kind in columns.items() if kind is not GONE}
        before = len(self._topic.records)
        self._write("c", 2 * number)
        self._write("c", 2 * number + 1)
        if number > 1:
            self._write("u", 2 * number - 4 + 2 * (number % 2))
            self._delete(2 * number - 1)
        if number % 4 == 3:
            self._write("c", 2 * number - 1)
        return self._topic.records[before:]

    def _write(self, op: str, id_: int) -> None:
        at = next(self._places)
        row = {name: sent(name, kind, at) for name, kind in self._columns.items()} | {"id": id_}
        self._topic.with_schema(self._topic.change(op, {"id": id_}, row, at=at), self._columns)
        self.rows[id_] = {name: stored(self._columns[name], value) for name, value in row.items()}

    def _delete(self, id_: int) -> None:
        at = next(self._places)
        self._topic.with_schema(self._topic.change("d", {"id": id_}, at=at), self._columns)
        self._topic.tombstone({"id": id_})
        del self.rows[id_]


def rows(bench: Bench, *more: str) -> list[tuple[Any, ...]]:
    """What the table has, without what depends on the topic's name."""
    found = bench.frame()
    assert {f.name: f.dataType.simpleString() for f in found.schema if f.name in TYPES} == TYPES
    return sorted((tuple(row) for row in found.select(*(f"`{name}`" for name in (*TYPES, *more))).collect()), key=repr)


@pytest.mark.parametrize(
    ("mode", "more"),
    [
        ("upsert", ("__position",)),
        pytest.param("history", ("__start_at", "__end_at", "__current"), marks=pytest.mark.slow),
        pytest.param("append", ("__op", "__position"), marks=pytest.mark.slow),
    ],
)
def test_5_1_and_5_2_twenty_changes_of_the_columns_in_one_batch_and_one_by_one(
    make_bench: Callable[..., Bench], mode: str, more: tuple[str, ...]
) -> None:
    tables = []
    for cut in (False, True):
        bench = make_bench(mode=mode).create()
        source = Source(bench.topic)
        parts = [source.step(number, changes) for number, changes in enumerate(STEPS)]
        worker = None
        for part in parts if cut else [list(itertools.chain(*parts))]:
            worker = bench.take(part, worker)
        tables.append(rows(bench, *more))
        if mode == "upsert":
            expected = [tuple(row.get(name) for name in TYPES) for row in source.rows.values()]
            assert [row[: len(TYPES)] for row in tables[-1]] == sorted(expected, key=repr)
    assert tables[0] == tables[1]
