"""Events as the columns that the rules need, and a table of plain rows in which keys are looked up."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa

from distributary.rules.columns import EventColumns
from distributary.rules.event import Event, Part, Position
from distributary.rules.order import latest
from distributary.rules.outcome import Outcome
from distributary.rules.plain_keys import FoundKeys, PlainKeys
from distributary.rules.state import Row, RuleSettings


def columns_of(events: Sequence[Event]) -> EventColumns:
    """The columns of events, each partition's by offset."""
    positions = [event.position for event in events]
    columns = {
        "partition": pa.array([event.partition for event in events], pa.int32()),
        "offset": pa.array([event.offset for event in events], pa.int64()),
        "timestamp": pa.array([event.timestamp for event in events], pa.int64()),
        "time": pa.array([0 if at is None else at.time for at in positions], pa.int64()),
        "operation": pa.array([event.op for event in events], pa.string()),
        "key": pa.array([event.key for event in events], pa.string()),
        "level": pa.array(
            [None if at is None or at.level is None else _text(at.level) for at in positions], pa.string()
        ),
        "sub_position": pa.array([None if at is None else _text(at.sub_position) for at in positions], pa.string()),
        "series": pa.array([_series(event) for event in events], pa.string()),
        "snapshot_identity": pa.array([event.snapshot_identity for event in events], pa.string()),
        "content": pa.array([event.content for event in events], pa.string()),
        "special": pa.array([_is_special(event) for event in events], pa.bool_()),
    }
    return EventColumns(pa.table(columns), events.__getitem__)


def _text(parts: Sequence[Part]) -> str:
    return "/".join(f"{part:020d}" if isinstance(part, int) else part for part in parts)


def _series(event: Event) -> str | None:
    at = event.position
    return None if at is None or event.op == "r" else f"{at.epoch} {at.server}"


def _is_special(event: Event) -> bool:
    return bool(event.moved_from or event.moved_to or event.unavailable or event.quarantined)


class LookupRows:
    """Looks rows up one by one."""

    def __init__(self, row: Callable[[str], Row | None]) -> None:
        self.row = row
        self._found: list[str] = []

    def find(self, keys: pa.Array) -> FoundKeys:
        self._found = keys.to_pylist()
        rows = [self.row(key) for key in self._found]
        return FoundKeys(
            np.array([row is not None for row in rows], np.bool_),
            np.array([row is not None and not row.ended for row in rows], np.bool_),
            np.array([-1 if row is None else row.at[0] for row in rows], np.int64),
            np.array([row is not None and row.op == "r" for row in rows], np.bool_),
        )

    def snapshot_positions(self) -> list[Position]:
        rows = map(self.row, self._found)
        return [row.position for row in rows if row is not None and row.op == "r" and row.position is not None]

    def positions(self, keys: pa.Array) -> pa.Array:
        rows = map(self.row, keys.to_pylist())
        return pa.array([None if row is None else repr(row.position) for row in rows], pa.string())


def plain_outcomes(
    rules: RuleSettings, events: Sequence[Event], plain: PlainKeys, row: Callable[[str], Row | None]
) -> dict[str, Outcome]:
    """The outcomes of plain keys, in the form of EventProcessor's."""
    outcomes = {}
    for key, last, put in zip(plain.keys.to_pylist(), plain.last.tolist(), plain.put.tolist(), strict=True):
        before = row(key)
        known = None if before is None else before.highest_position
        after = before
        if put >= 0:
            event = events[put]
            after = Row(event.at, event.op, event.position, latest(rules.connector, known, event.position))
        if events[last].op != "r":
            known = events[last].position
        if events[last].op != "d":
            assert after is not None
            outcomes[key] = Outcome(replace(after, highest_position=known))
        elif after is None or rules.deletes == "hard":
            outcomes[key] = Outcome(None)
        else:
            outcomes[key] = Outcome(replace(after, highest_position=known, ended=after.ended or "d"))
    return outcomes
