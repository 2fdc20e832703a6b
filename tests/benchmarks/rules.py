"""What an event costs in the rules: CPU time in one process, for several shares of special keys. Run by hand:

    PYTHONPATH=.:service python -m tests.benchmarks.rules

Each line is the lowest of several rounds, as other work on the machine only adds to it.
"""

from __future__ import annotations

import time
from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from distributary.rules.column_batch import apply_columns
from distributary.rules.columns import EventColumns
from distributary.rules.event import Event, Position
from distributary.rules.event_processor import apply
from distributary.rules.plain_keys import FoundKeys
from distributary.rules.state import Row, RuleSettings, RulesState

EVENTS = 100_000
ROUNDS = 3
SHARES = (0, 1, 10, 100)
"""Percent of the keys whose value was not sent."""
RULES = RuleSettings("postgresql")
_PARTITIONS = 4
_CHANGES = 2
"""Of each key, in the mean."""


class HalfTable:
    """A table that has every second key."""

    def find(self, keys: pa.Array) -> FoundKeys:
        numbers = np.asarray(keys.cast(pa.int64()))
        there = numbers % 2 == 0
        return FoundKeys(there, there, numbers % _PARTITIONS, np.zeros(len(keys), np.bool_))

    def snapshot_positions(self) -> list[Position]:
        return []

    def positions(self, keys: pa.Array) -> pa.Array:
        return pa.nulls(len(keys), pa.string())

    def row(self, key: str) -> Row | None:
        return Row((0, 0), "u", PLACE, PLACE, PLACE) if int(key) % 2 == 0 else None


PLACE = Position((1,), (1,), "1", 1)


def make_batch(percent: int, *, deletes: bool) -> EventColumns:
    """Changes of random keys in four partitions, after each other in the log."""
    random = np.random.default_rng(1)
    keys = random.integers(0, EVENTS // _CHANGES, EVENTS)
    order = np.argsort(keys % _PARTITIONS, kind="stable")
    keys, log = keys[order], 1_000 + order
    special = keys % 100 < percent
    operation = np.where(deletes & (random.random(EVENTS) < 0.1), "d", "u")
    offset = np.concatenate([np.arange(count) for count in np.bincount(keys % _PARTITIONS)])
    names = pa.array(keys).cast(pa.string())
    texts, letters = names.to_pylist(), operation.tolist()
    logs, partitions, offsets, flags = log.tolist(), (keys % _PARTITIONS).tolist(), offset.tolist(), special.tolist()

    def event(row: int) -> Event:
        at = logs[row]
        position = Position((at // 10,), (at,), str(at // 10), at)
        unavailable = ("big",) if flags[row] else ()
        place = (partitions[row], offsets[row], at)
        return Event(letters[row], texts[row], *place, position, f"[{at}]", unavailable=unavailable)

    columns = {
        "partition": pa.array(keys % _PARTITIONS, pa.int32()),
        "offset": pa.array(offset, pa.int64()),
        "timestamp": pa.array(log, pa.int64()),
        "time": pa.array(log, pa.int64()),
        "operation": pa.array(operation, pa.string()),
        "key": names,
        "level": pc.utf8_lpad(pa.array(log // 10).cast(pa.string()), 20, "0"),
        "sub_position": pc.utf8_lpad(pa.array(log).cast(pa.string()), 20, "0"),
        "series": pa.array(["000"]).take(pa.array(np.zeros(EVENTS, np.int64))),
        "read": pa.nulls(EVENTS, pa.string()),
        "content": pa.nulls(EVENTS, pa.string()),
        "special": pa.array(special),
    }
    table = pa.table(columns)
    return EventColumns(table, event)


def measure() -> Iterator[tuple[str, float, int]]:
    """Of each case: its name, microseconds an event, keys that were settled as columns."""
    for percent in SHARES:
        for deletes in (False, True):
            best, plain = float("inf"), 0
            columns = make_batch(percent, deletes=deletes)
            for _ in range(ROUNDS):
                start = time.process_time()
                found, _ = apply_columns(
                    RULES, RulesState(_PARTITIONS), EventColumns(columns.table, columns.event), HalfTable()
                )
                best = min(best, time.process_time() - start)
                plain = len(found.last)
            name = f"{percent} % special keys, {'10 % deletes' if deletes else 'updates'}"
            yield name, best / EVENTS * 1e6, plain
    events = [columns.event(row) for row in range(EVENTS)]
    start = time.process_time()
    apply(RULES, RulesState(_PARTITIONS), events, HalfTable().row)
    yield "the walk alone, of events that are made", (time.process_time() - start) / EVENTS * 1e6, 0


if __name__ == "__main__":
    for name, micros, plain in measure():
        print(f"{name:<45}{micros:8.2f} µs an event  {plain:7d} plain keys")  # noqa: T201
