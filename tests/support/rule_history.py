"""Hand-written events, and a table that has only the rules' outcomes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from distributary.rules.event import Event, Position
from distributary.rules.event_processor import apply
from distributary.rules.order import change_id
from distributary.rules.outcome import BatchChanges
from distributary.rules.state import Row, RuleSettings, RulesState
from distributary.rules.truncate import end_by_truncate


def at(level: int, sub_position: int = 0, transaction: str | None = None, time: int = 0) -> Position:
    """A position in a log, of a transaction that is called like its level."""
    return Position((level,), (sub_position,), transaction or str(level), time or level)


def event(
    op: str,
    key: str | None,
    position: Position | None = None,
    *,
    partition: int = 0,
    offset: int = 0,
    moved_from: str | None = None,
    moved_to: str | None = None,
    unavailable: bool = False,
    connector: str = "postgresql",
    time: int = 0,
) -> Event:
    """An event of one key with a column `big`, which it may not hold."""
    return Event(
        op,
        key,
        partition,
        offset,
        time or offset,
        position,
        None if op == "r" else change_id(connector, position),
        repr(position) if op == "r" else None,
        moved_from,
        moved_to,
        ("big",) if unavailable else (),
    )


@dataclass
class Table:
    """Rows by key: the number of the record that wrote each, and the record that holds its `big`."""

    rules: RuleSettings
    partitions: int = 1
    rows: dict[str, Row] = field(default_factory=dict)
    changes: list[BatchChanges] = field(default_factory=list)
    values: dict[tuple[int, int], object] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.state = RulesState(self.partitions)
        self._ends: dict[int, int] = {}

    def take(self, *events: Event, replayed: Iterable[Event] = ()) -> Table:
        """A batch; events get the next offsets of their partitions."""
        arrived = []
        for one in events:
            offset = self._ends[one.partition] = self._ends.get(one.partition, -1) + 1
            arrived.append(replace(one, offset=offset, timestamp=one.timestamp or offset))
        changes = apply(self.rules, self.state, arrived, self.rows.get, replayed)
        for truncate in changes.truncates:
            self._truncate(truncate)
        for key, outcome in changes.outcomes.items():
            if outcome.row is None:
                self.rows.pop(key, None)
            else:
                origin = dict(outcome.row.origins).get("big", outcome.row.at)
                self.values[outcome.row.at] = self.values.get(origin, origin)  # type: ignore[arg-type]
                self.rows[key] = replace(outcome.row, origins=())
        self.changes.append(changes)
        return self

    def pointers(self) -> dict[str, tuple[int, int]]:
        """By key the record of its row."""
        return {key: row.at for key, row in self.rows.items() if not row.ended}

    def big(self, key: str) -> object:
        """The record that holds a row's `big`; None for nothing."""
        return self.values[self.rows[key].at]

    def _truncate(self, truncate: Event) -> None:
        assert truncate.position is not None
        for key, row in list(self.rows.items()):
            ended = end_by_truncate(self.rules.connector, row, truncate.position)
            if ended.ended and self.rules.truncate == "apply":
                del self.rows[key]
            else:
                self.rows[key] = ended
