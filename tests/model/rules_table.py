"""A table that only the rules keep, with rows, versions or records.

It holds values only where the service can: in the rows of the table, in the batch at hand, and for the records that the
rules name. If the rules forget a row, it is missing here, too.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from tests.model.case import Kept, Rows, appended_row, counted
from tests.model.cuts import Batch
from tests.model.delivery import Arrived
from tests.model.event_columns import LookupRows, columns_of, plain_outcomes
from tests.model.source.sent import PLACEHOLDER, TOMBSTONE, Sent

from distributary.decode.position import position_of
from distributary.decode.source_block import restate_source, source_time, transaction_of
from distributary.rules.codec import from_json_value, to_json_value
from distributary.rules.column_batch import apply_columns
from distributary.rules.event import Event, Pointer, Position
from distributary.rules.event_processor import apply, needed
from distributary.rules.order import change_id, compare, precedes_truncate
from distributary.rules.outcome import BatchChanges, Outcome
from distributary.rules.passed_positions import add_partitions, note_caught_up, schedule_partition_change_end
from distributary.rules.position_text import read_position
from distributary.rules.state import Row, RuleSettings, RulesState
from distributary.rules.truncate import end_by_truncate

Values = Mapping[str, Any]


@dataclass
class _Kept:
    """A row of the table, or a version of a key. `events`: those after which it was unchanged; `end`: its end."""

    row: Row
    values: Values
    events: tuple[Pointer, ...] = ()
    end: Position | None = None


class EventReader:
    """Makes events of sent records. Each record is read once, even if its topic is read again."""

    def __init__(self, connector: str) -> None:
        self._connector = connector
        self._known: dict[int, tuple[Sent, Event]] = {}
        self._arrived: dict[int, tuple[Arrived, Event]] = {}

    def read(self, record: Arrived, *, quarantined: bool = False) -> Event:
        """The event of a record; `quarantined`: it goes to quarantine."""
        if id(record) not in self._arrived:
            sent = record.sent
            if id(sent) not in self._known:
                self._known[id(sent)] = (sent, self._event(sent))
            known = self._known[id(sent)][1]
            micros = 1000 * record.timestamp
            arrived = replace(known, partition=record.partition, offset=record.offset, timestamp=micros)
            self._arrived[id(record)] = (record, arrived)
        event = self._arrived[id(record)][1]
        return replace(event, quarantined=True) if quarantined else event

    def _event(self, sent: Sent) -> Event:
        key = None if sent.key is None else key_text(sent.key)
        headers = {name: key_text(row) for name, row in sent.headers}
        at = None if sent.op == TOMBSTONE else self._position(sent)
        return Event(
            sent.op,
            key,
            *(0, 0, 0),
            at,
            None if sent.op in ("r", TOMBSTONE) else change_id(self._connector, at),
            json.dumps(sent.source, sort_keys=True) if sent.op == "r" else None,
            headers.get("oldkey"),
            headers.get("newkey"),
            tuple(name for name, value in (sent.after or {}).items() if value == PLACEHOLDER),
        )

    def _position(self, sent: Sent) -> Position | None:
        source = restate_source(sent.source)
        text = position_of(self._connector)(source, sent.op)
        if text is None:
            return None
        time = 1000 * (source_time(source.ts_ms) or 0)
        return read_position(self._connector, f"000:{text}", transaction_of(self._connector, source), time)


def key_text(key: Mapping[str, Any]) -> str:
    """A key as the rules name it."""
    return json.dumps(dict(key), sort_keys=True)


class RulesTable:
    """The table of one topic."""

    def __init__(
        self,
        connector: str,
        kept: Kept,
        partitions: int,
        *,
        compacted: bool = False,
        by_columns: bool = False,
        keyless: bool = False,
        deletes_are_null: bool = False,
    ) -> None:
        self.rules = RuleSettings(
            connector, kept.mode, kept.deletes, kept.truncate, deletes_are_null, compacted=compacted, keyless=keyless
        )
        self.state = RulesState(partitions)
        self.by_columns = by_columns
        self.plain = self.rested = 0
        """See gate.Table."""
        self.ambiguous = self.seen = self.unknown = 0
        self._kept: dict[str, list[_Kept]] = {}
        self._appended: list[Values] = []
        self._store: dict[Pointer, Values] = {}

    def process(
        self,
        batch: Batch,
        read: Callable[[Arrived], tuple[Event, Sent]],
        partitions: int,
        replayed: Iterable[tuple[Event, Sent]] = (),
    ) -> list[tuple[Event, Sent]]:
        """Applies a batch, and the growth of its topic to `partitions`. Returns the events that went to quarantine."""
        if batch.grown:
            add_partitions(self.rules.connector, self.state, partitions)
        quarantined = self.take(map(read, batch.records), replayed)
        if batch.settled:
            schedule_partition_change_end(self.rules.connector, self.state)
        if batch.caught_up:
            before = self.state.settled_until
            note_caught_up(self.rules.connector, self.state)
            self.rested += self.state.settled_until != before
        return quarantined

    def take(
        self, batch: Iterable[tuple[Event, Sent]], replayed: Iterable[tuple[Event, Sent]] = ()
    ) -> list[tuple[Event, Sent]]:
        """Applies records. Returns the events that went to quarantine."""
        records, again = list(batch), list(replayed)
        events, replays = [event for event, _ in records], [event for event, _ in again]
        changes = self._apply_columns(events, replays) if self.by_columns else self._apply(events, replays)
        if changes.went_back or changes.contradicted:
            raise AssertionError("the source did not go back")
        self.ambiguous += changes.ambiguous
        self.seen += changes.seen
        self.unknown += changes.unknown
        sent = {event.at: sent for event, sent in records if not event.quarantined} | {
            event.at: sent for event, sent in again
        }
        if self.rules.mode == "append":
            self._append(changes, sent)
        else:
            self._change(changes, sent)
        quarantined = {event.at for event in changes.quarantined}
        return [(event, one) for event, one in records if event.at in quarantined]

    def _apply(self, events: list[Event], replayed: list[Event]) -> BatchChanges:
        return apply(self.rules, self.state, events, self._row, replayed)

    def _apply_columns(self, events: list[Event], replayed: list[Event]) -> BatchChanges:
        plain, changes = apply_columns(self.rules, self.state, columns_of(events), LookupRows(self._row), replayed)
        self.plain += len(plain.last) + len(plain.appended)
        assert changes.outcomes.keys().isdisjoint(plain.keys.to_pylist())
        if self.rules.mode != "append":
            changes.outcomes |= plain_outcomes(self.rules, events, plain, self._row)
        changes.appended += [events[row] for row in plain.appended.tolist()]
        return changes

    def reopen_snapshot_row(self) -> None:
        """Continues with the state as it is read back from a file."""
        self.state = from_json_value(json.loads(json.dumps(to_json_value(self.state))))

    def rows(self) -> Rows:
        """The table's rows, in the form of Books."""
        if self.rules.mode == "append":
            return counted(self._appended)
        if self.rules.mode == "history":
            return counted(
                {**version.values, "__number": number, "__current": not version.row.ended}
                for versions in self._kept.values()
                for number, version in enumerate(versions)
            )
        marked = self.rules.marks_deleted
        kept = (versions[-1] for versions in self._kept.values())
        return counted({**one.values, "__deleted": bool(one.row.ended)} if marked else one.values for one in kept)

    def content(self) -> tuple[Rows, Any]:
        """See gate.Table."""
        ends = Counter(
            (key, number, str(version.end))
            for key, versions in self._kept.items()
            for number, version in enumerate(versions)
        )
        return self.rows(), ends if self.rules.mode == "history" else None

    def ends(self) -> dict[tuple[tuple[str, Any], ...], Position | None]:
        """The end of each version, in the form of Books.ends."""
        return {
            (*sorted(version.values.items()), ("__number", number)): version.end
            for versions in self._kept.values()
            for number, version in enumerate(versions)
        }

    def full_content(self) -> Any:
        """All that the table and its counters hold."""
        rows = {key: [(one.row, one.values, one.end) for one in versions] for key, versions in self._kept.items()}
        return rows, self.rows(), self.ambiguous, self.unknown, self.seen

    def _row(self, key: str) -> Row | None:
        versions = self._kept.get(key)
        return versions[-1].row if versions else None

    def _append(self, changes: BatchChanges, sent: Mapping[Pointer, Sent]) -> None:
        for event in changes.appended:
            self._appended.append(appended_row(sent[event.at]))
            if event.key is not None and event.op != "r" and event.position is not None:
                row = self._row(event.key)
                if (
                    row is None
                    or row.highest_position is None
                    or compare(self.rules.connector, event.position, row.highest_position) >= 0
                ):
                    self._kept[event.key] = [
                        _Kept(
                            Row(event.at, "", highest_position=event.position, ended="d" if event.op == "d" else ""), {}
                        )
                    ]

    def _change(self, changes: BatchChanges, sent: Mapping[Pointer, Sent]) -> None:
        values: dict[Pointer, Values] = {
            **self._store,
            **{at: one.after for at, one in sent.items() if one.after is not None},
            # A row of the table has also the values that its record did not hold.
            **{version.events[-1]: version.values for versions in self._kept.values() for version in versions},
        }
        for truncate in changes.truncates:
            self._truncate(truncate)
        for key, outcome in changes.outcomes.items():
            if self.rules.mode == "history":
                self._put_versions(key, outcome, values)
            elif outcome.row is None:
                self._kept.pop(key, None)
            else:
                row = outcome.row
                self._kept[key] = [_Kept(replace(row, origins=(), replaced_row=None), _filled(row, values), (row.at,))]
        self._store = {at: values[at] for at in needed(self.state) if at in values}

    def _truncate(self, truncate: Event) -> None:
        connector, at = self.rules.connector, truncate.position
        assert at is not None
        soft = self.rules.truncate == "soft"
        for key, versions in list(self._kept.items()):
            for version in versions:
                if not precedes_truncate(connector, version.row.effective_position, at):
                    continue
                if self.rules.mode == "history":
                    if version.end is None or compare(connector, at, version.end) < 0:
                        version.end = at
                        version.row = end_by_truncate(connector, replace(version.row, ended=""), at)
                elif soft:
                    version.row = end_by_truncate(connector, version.row, at)
                else:
                    self._kept.pop(key, None)

    def _put_versions(self, key: str, outcome: Outcome, values: Mapping[Pointer, Values]) -> None:
        versions = self._kept.setdefault(key, [])
        renewed = {new.row.at for new in outcome.versions}
        first = next((i for i, version in enumerate(versions) if not renewed.isdisjoint(version.events)), len(versions))
        before: tuple[Pointer, ...] = ()
        if first < len(versions):
            events = versions[first].events
            before = events[: next(i for i, at in enumerate(events) if at in renewed)]
        del versions[first:]
        last_end: Event | None = None
        for new in outcome.versions:
            content = _filled(new.row, values)
            ended = "" if new.end is None else "t" if new.end.op == "t" else "d"
            events = (*before, new.row.at)
            before = ()
            if last_end is not None and last_end.at == new.row.at and versions[-1].values == content:
                events = (*versions.pop().events, new.row.at)
            end = None if new.end is None else new.end.position
            versions.append(
                _Kept(replace(new.row, origins=(), replaced_row=None, ended=ended, ended_at=end), content, events, end)
            )
            last_end = new.end
        if not versions:
            del self._kept[key]


def _filled(row: Row, values: Mapping[Pointer, Values]) -> Values:
    filled = dict(values[row.at])
    for column, origin in row.origins:
        filled[column] = None if origin is None or isinstance(origin[0], str) else values[origin][column]
        assert filled[column] != PLACEHOLDER, (row, origin)
    return filled
