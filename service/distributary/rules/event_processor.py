"""Applies the rules to a batch of events of one table; the result is the changes of the table.

The caller looks up the rows of the keys that the batch touches, applies the changes, resolves pointers to values, and
keeps the state and the values that `needed` names, all in one commit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

from distributary.rules.deduplicate import Verdict, deduplicate, forget_snapshot_rows, remember_snapshot_row
from distributary.rules.event import ADOPTED, TOMBSTONE, Event, Pointer
from distributary.rules.fold import (
    fold,
    insert,
    is_above,
    is_same,
    keep_duplicate,
    merge,
    reopen_snapshot_row,
    snapshot_event,
)
from distributary.rules.key_rows import KeyRows
from distributary.rules.keyless import forget_changes, number_equal_rows, remember_change
from distributary.rules.order import compare
from distributary.rules.outcome import BatchChanges, outcome_of
from distributary.rules.passed_positions import end_partition_change, is_passed, is_settled
from distributary.rules.pointers import records_of
from distributary.rules.quarantine_order import give_up_order, note_events_without_order, note_replayed
from distributary.rules.settling import (
    forget,
    forget_deleted,
    may_get_older_changes,
    settle_key,
    without_early_tombstones,
)
from distributary.rules.state import KeyState, Row, RuleSettings, RulesState
from distributary.rules.truncate import add_truncate

Lookup = Callable[[str], Row | None]


def apply(
    rules: RuleSettings, state: RulesState, events: Iterable[Event], rows: Lookup, replayed: Iterable[Event] = ()
) -> BatchChanges:
    """Updates the state with a batch, and returns the changes of the table.

    `events`: of any partitions, each partition's in the order of its offsets; of a table whose records have keys (rule
    1.6), or get one by the config (rule 3.8); else `key` holds the row's content (keyless.py). `rows` gives a key's row
    of the table, of `mode: history` its last version, of `mode: append` only its highest position. `replayed`: events
    that were in quarantine; each gets its former order among the events of its key.
    """
    if rules.keyless:
        events = [number_equal_rows(rules.connector, state, event) for event in events]
    judged = deduplicate(
        rules.connector,
        state.marks,
        events,
        deletes_are_null=rules.deletes_are_null,
        compacted=rules.compacted,
        partitions_changed=state.partitions_changed or rules.keyless,
        partition_change_unread=state.partition_change_unread,
        partitions=state.partitions,
    )
    changes = BatchChanges(went_back=judged.of(Verdict.WENT_BACK), contradicted=judged.of(Verdict.CONTRADICTED))
    if rules.truncate == "halt":
        changes.halting = [event for event in judged.of(Verdict.NEW) if event.op == "t"]
    if changes.is_refused:
        return changes
    changes.forgotten = note_events_without_order(rules, state, judged.of(Verdict.WITHOUT_ORDER))
    processor = EventProcessor(rules, state, rows, changes)
    for event in replayed:
        processor.replay(event)
    for event, verdict in judged.verdicts:
        if verdict is not Verdict.WITHOUT_ORDER:
            processor.process(event, is_new=verdict is Verdict.NEW)
    if judged.verdicts and all(event.op != "r" for event, _ in judged.verdicts):
        forget_snapshot_rows(state.snapshot_rows)
    processor.finish()
    return changes


def needed(state: RulesState) -> set[Pointer]:
    """The records whose values must be kept beside the table."""
    rows = [key.base for key in state.special.values()] + [departure.row for departure in state.departures.values()]
    pointers = {pointer for row in rows if row is not None for pointer in records_of(row)}
    return pointers | {event.at for key in state.special.values() for event in key.recent}


class EventProcessor:
    """Processes one event after the other; any of their keys may be special."""

    def __init__(self, rules: RuleSettings, state: RulesState, rows: Lookup, changes: BatchChanges) -> None:
        self._rules, self._state, self._rows, self._changes = rules, state, rows, changes
        self._touched: dict[str, KeyState] = {}

    def process(self, event: Event, *, is_new: bool) -> None:
        """Processes an event with its verdict."""
        if self._rules.keyless and event.op != "t":
            self._process_keyless(event, is_new=is_new)
        elif is_new or (self._rules.compacted and self._is_first(event)):
            self._insert(event)
        else:
            self._skip(event)

    def _process_keyless(self, event: Event, *, is_new: bool) -> None:
        if event.key is None:  # a tombstone: the decoder rejects other records without a key
            return
        if is_new:
            is_new = (
                remember_snapshot_row(self._state.snapshot_rows, event)
                if event.op == "r"
                else remember_change(self._state, event)
            )
        if not is_new:
            self._changes.seen += 1
        elif event.quarantined:
            self._changes.quarantined.append(event)
        self._append(event, is_new=is_new)

    def _insert(self, event: Event, *, is_late: bool = False) -> None:
        """Inserts a new event in order. `is_late`: newer events of its key may have been applied."""
        if event.op == "t":
            self._add_truncate(event)
            return
        assert event.key is not None, "the decoder rejects records without a key"
        key = self._load(event.key)
        reopen_snapshot_row(self._rules.connector, key, event)
        fresh = event.op != "r" or remember_snapshot_row(self._state.snapshot_rows, event)
        if (is_late and self._rules.mode != "append") or self._may_be_elsewhere(key, event):
            is_duplicate_snapshot_row = not fresh and all(
                other.snapshot_identity != event.snapshot_identity for other in key.recent
            )
            is_new = not is_duplicate_snapshot_row and merge(self._rules.connector, key, event)
            if not is_new:
                self._skip(event)
            is_new = is_new and (fresh or self._rules.mode != "append")
        else:
            is_new = fresh
            if fresh and (self._rules.mode != "append" or event.quarantined):
                is_new = insert(self._rules.connector, key, event)
            else:
                self._know(key, event)
            if not is_new:
                self._changes.seen += 1
        if not is_new and fresh and event.op == "r":
            self._changes.stale_snapshot_rows += 1
        if is_new and event.quarantined:
            self._changes.quarantined.append(event)
        self._append(event, is_new=is_new)

    def _may_be_elsewhere(self, key: KeyState, event: Event) -> bool:
        """Whether another partition may have changes of the key: the topic grew, now or before the first fill."""
        if self._state.partitions_changed:
            return True
        if self._state.partitions == 1 or self._rules.mode == "append":
            return False
        if key.highest_position is not None and (key.base is None or key.base.op == "r"):
            # This is the position of a change, which may be in any partition.
            return True
        partitions = {other.partition for other in key.recent} | ({key.base.at[0]} if key.base is not None else set())
        return bool(partitions - {event.partition, ADOPTED})

    def _is_first(self, event: Event) -> bool:
        """Whether an event is above its key's highest position: compaction removed its first copy."""
        if event.key is None or event.position is None or event.op not in ("c", "u", "d"):
            return False
        return is_above(self._rules.connector, self._load(event.key), event)

    def _skip(self, event: Event) -> None:
        """An event that was applied before changes no row. A delete still announces its tombstone, so that this deletes
        no other row; a tombstone notes that it has arrived."""
        self._changes.seen += 1
        if self._state.partitions_changed and event.op in ("d", TOMBSTONE) and event.key is not None:
            keep_duplicate(self._rules.connector, self._load(event.key), event)

    def replay(self, event: Event) -> None:
        """Inserts an event from the quarantine in the order that it had."""
        if event.op == "t":
            self._add_truncate(event)
        elif self._rules.keyless:
            self._append(event, is_new=True)
        elif event.key is not None:
            recent = self._load(event.key).recent
            # Only one of the copies of an event waits for its replay.
            index = next((i for i, other in enumerate(recent) if other.quarantined and is_same(other, event)), None)
            if index is not None:
                recent[index] = replace(event, arrival=recent[index].arrival)
                self._append(event, is_new=True)
            elif not any(is_same(other, event) for other in recent):
                # Its key could not be read when it came, or it lost its order.
                self._insert(event, is_late=True)
                note_replayed(self._state, event)

    @property
    def has_quarantined(self) -> bool:
        """Whether any event is in quarantine."""
        return self._state.has_quarantined or any(key.has_quarantined for key in self._touched.values())

    def finish(self) -> None:
        """Folds the events of the touched keys, and moves settled events into `base`."""
        state, rules = self._state, self._rules
        is_cut_short = end_partition_change(rules.connector, state)
        if is_cut_short:
            self._changes.forgotten_keys = len(state.special)
        if rules.mode == "append":
            self._finish_appended()
            return
        self._changes.without_order = give_up_order(state, {**state.special, **self._touched})
        before = dict(state.departures)
        rows_of_keys = {name: self._fold(name, key) for name, key in self._touched.items()}
        has_changed = bool(self._changes.truncates) or state.departures != before
        holds_back = not rules.deletes_are_null and not rules.compacted  # a tombstone, until its delete is read
        rows_of_keys |= {
            name: self._fold(name, key)
            for name, key in state.special.items()
            if name not in rows_of_keys and (has_changed or (holds_back and key.has_tombstone))
        }
        for name, key_rows in rows_of_keys.items():
            recent = (self._touched.get(name) or state.special[name]).recent
            self._changes.outcomes[name] = outcome_of(rules, key_rows, state.departures, recent)
        has_quarantined = self.has_quarantined
        others_may_settle = is_cut_short or any(
            is_passed(rules.connector, state, truncate.position) for truncate in state.truncates
        )
        for name, key in list({**state.special, **self._touched}.items()):
            is_folded = name in rows_of_keys
            if (
                not (is_folded or others_may_settle)
                and key.recent
                and not is_settled(rules.connector, state, key.recent[0])
            ):
                continue
            key_rows = rows_of_keys[name] if is_folded else self._fold(name, key)
            settle_key(rules, state, name, key, key_rows, self._changes, has_quarantined=has_quarantined)
        forget_deleted(rules, state)
        if not has_quarantined:
            forget(rules, state)

    def _finish_appended(self) -> None:
        """A key's newest appended row has its highest position: only unsettled events are remembered."""
        state = self._state
        self._changes.without_order = give_up_order(state, {**state.special, **self._touched})
        for name, key in list({**state.special, **self._touched}.items()):
            while (
                key.recent and not key.recent[0].quarantined and is_settled(self._rules.connector, state, key.recent[0])
            ):
                self._know(key, key.recent.pop(0))
            state.special.pop(name, None)
            if key.recent:
                state.special[name] = key
        forget(self._rules, state)
        forget_deleted(self._rules, state)
        forget_changes(self._rules.connector, state)

    def _know(self, key: KeyState, event: Event) -> None:
        if event.op != "r" and event.position is not None and not event.is_duplicate:
            known = key.highest_position
            if known is None or compare(self._rules.connector, event.position, known) >= 0:
                key.highest_position = event.position
                key.base = Row(event.at, event.op, ended="d" if event.op == "d" else "")

    def _add_truncate(self, event: Event) -> None:
        if self._rules.truncate == "ignore":
            return
        if add_truncate(self._rules.connector, self._state.truncates, event):
            if not event.quarantined:
                self._changes.truncates.append(event)
            self._append(event, is_new=True)
        else:
            self._changes.seen += 1

    def _append(self, event: Event, *, is_new: bool) -> None:
        if self._rules.mode == "append" and is_new and not event.quarantined and event.op != TOMBSTONE:
            self._changes.appended.append(event)

    def _load(self, name: str) -> KeyState:
        key = self._touched.get(name) or self._state.special.get(name)
        if key is None:
            row = self._rows(name)
            known = self._state.deleted_keys.pop(name, None)
            if row is None:
                key = KeyState(None, known)
            elif not row.ended and may_get_older_changes(self._rules, self._state, row):
                key = KeyState(None, row.highest_position, [snapshot_event(name, row)])
            else:
                key = KeyState(row, row.highest_position)
        for arrival in self._state.awaiting_tombstone.pop(name, ()):
            kafka_time, partition, offset = arrival
            keep_duplicate(self._rules.connector, key, Event("d", name, partition, offset, kafka_time, arrival=arrival))
        self._touched[name] = key
        return key

    def _fold(self, name: str, key: KeyState) -> KeyRows:
        recent = without_early_tombstones(self._rules, self._state, key.recent)
        key_rows = fold(self._rules.connector, key, recent, self._state.truncates_of(name))
        for change, departure in key_rows.departed.items():
            self._state.departures[name, change] = departure
        return key_rows
