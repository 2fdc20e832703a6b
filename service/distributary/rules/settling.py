"""When events become `base`, and when a key is plain again.

Events leave `recent` from the front, once nothing that is unread can come before them. Those of a plain key leave at
once: its row is all that later events need. No truncate and no key change is forgotten while an event is in quarantine,
except in `mode: append`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from distributary.rules.event import TOMBSTONE, Event
from distributary.rules.fold import companions_of, fold, split
from distributary.rules.key_rows import KeyRows
from distributary.rules.log_traits import log_traits
from distributary.rules.outcome import BatchChanges, keeps_marked_row
from distributary.rules.passed_positions import is_passed, is_settled, is_snapshot_row_passed
from distributary.rules.pointers import Departures, is_waiting, reference_of, reference_to, references_of, resolved
from distributary.rules.state import Departure, KeyState, Origin, Row, RuleSettings, RulesState
from distributary.rules.truncate import follows, is_truncate_remembered


def settle_key(
    rules: RuleSettings,
    state: RulesState,
    name: str,
    key: KeyState,
    key_rows: KeyRows,
    changes: BatchChanges,
    *,
    has_quarantined: bool,
) -> None:
    """Moves the settled events of `recent` into `base`. `key_rows`: the rows after all events of `recent`.
    `has_quarantined`: whether any event of the table is in quarantine."""
    count = len(key.recent)
    if is_special(rules, state, key, key_rows):
        count = _settled_count(rules, state, key.recent)
        if has_quarantined and rules.mode == "history":
            count = min(count, _known_values_count(key, key_rows, state.departures))
    settled, rest = split(key.recent, count)
    if rest:
        remembered = state.truncates_of(name)
        truncates = [
            truncate
            for truncate in remembered
            if is_passed(rules.connector, state, truncate.position)
            and not any(follows(rules.connector, truncate, event, event.position) for event in rest)
        ]
        if not settled and not truncates:
            state.special[name] = key
            return
        key_rows = fold(rules.connector, key, settled, truncates, remembered, rest)
    for change, departure in key_rows.departed.items():
        state.departures[name, change] = replace(departure, provisional=False)
    changes.ambiguous += key_rows.ambiguous
    changes.unknown += _unknown(key_rows, state.departures, key.base)
    base = key_rows.top or key_rows.last
    if key_rows.top is None and rules.mode == "upsert" and not keeps_marked_row(rules, key_rows):
        # The table has no row. A row that a truncate removed is kept as long as older changes of it may come.
        truncates = state.truncates_of(name, with_quarantined=True)
        base = base if base is not None and is_truncate_remembered(rules.connector, base, truncates) else None
    if base is not None:
        base = replace(
            base,
            highest_position=key_rows.highest_position,
            origins=_final(base, state, has_quarantined=has_quarantined),
        )
    key.base, key.highest_position, key.recent = base, key_rows.highest_position, rest
    if base is not None and base.replaced_row is not None and is_snapshot_row_passed(rules.connector, state, base):
        base = key.base = replace(base, replaced_row=None)
    if not rest and not is_waiting(base, state.departures) and (base is None or base.replaced_row is None):
        state.special.pop(name, None)
        if key_rows.top is None and key_rows.highest_position is not None:
            state.deleted_keys[name] = key_rows.highest_position
    else:
        state.special[name] = key


def _settled_count(rules: RuleSettings, state: RulesState, recent: list[Event]) -> int:
    """The number of events at the front that are settled. Events of one transaction settle together."""
    unsettled = (i for i, event in enumerate(recent) if not is_settled(rules.connector, state, event))
    count = next(unsettled, len(recent))
    while 0 < count < len(recent) and _belong_together(recent[count - 1], recent[count]):
        count -= 1
    return count


def _known_values_count(key: KeyState, key_rows: KeyRows, departures: Departures) -> int:
    """The number of events at the front whose versions have all their values: `base` is one row, and can't hold a
    closed version that waits for a value."""
    waiting = {version.row.at for version in key_rows.versions if is_waiting(version.row, departures)}
    if key.base is not None and key.base.at in waiting:
        return 0
    return next((i for i, event in enumerate(key.recent) if event.at in waiting), len(key.recent))


def _belong_together(one: Event, other: Event) -> bool:
    """Whether two consecutive events are of one transaction, or the second one is the tombstone of the first one."""
    if other.op == TOMBSTONE:
        return True
    if one.position is None or other.position is None:
        return False
    return one.position.transaction is not None and one.position.transaction == other.position.transaction


def without_early_tombstones(rules: RuleSettings, state: RulesState, recent: Sequence[Event]) -> list[Event]:
    """The events without the tombstones whose deletes may still be unread: if the topic grew between a delete and its
    tombstone, they are in two partitions (rule 3.3). Where all deletes have records of their own, a tombstone waits for
    its delete."""
    if not state.partition_change_unread or rules.deletes_are_null or rules.compacted:
        return list(recent)
    known = companions_of(recent)
    return [
        event
        for event in recent
        if event.op != TOMBSTONE or event.at in known or is_settled(rules.connector, state, event)
    ]


def is_special(rules: RuleSettings, state: RulesState, key: KeyState, key_rows: KeyRows) -> bool:
    """Whether later events may need more of a key than its row in the table."""
    rows = (
        [version.row for version in key_rows.versions] if rules.mode == "history" else [key_rows.top or key_rows.last]
    )
    return (
        state.partitions_changed
        or key_rows.stacked
        or key.has_quarantined
        or any(is_waiting(row, state.departures) for row in rows)
    )


def may_get_older_changes(rules: RuleSettings, state: RulesState, row: Row) -> bool:
    """Rule 2.3: whether changes with a position before a snapshot row may still arrive after it. False where snapshot
    rows are ordered by arrival."""
    by_arrival = log_traits(rules.connector).snapshot_rows_by_arrival
    return row.op == "r" and not by_arrival and not is_passed(rules.connector, state, row.position)


def _final(row: Row, state: RulesState, *, has_quarantined: bool) -> tuple[tuple[str, Origin], ...]:
    """The origins of a settled row. An unknown departure becomes None: it can't come any more, unless an event is in
    quarantine."""
    waiting = resolved(row, state.departures, exclude_provisional=True)
    return tuple(
        (column, None if _is_nowhere(origin, state) and not has_quarantined else origin) for column, origin in waiting
    )


def _is_nowhere(origin: Origin, state: RulesState) -> bool:
    reference = reference_of(origin)
    return reference is not None and reference not in state.departures


def _unknown(key_rows: KeyRows, departures: Departures, base: Row | None) -> int:
    """Rule 3.7: the number of values of new rows that no record has."""
    new = (version.row for version in key_rows.versions if base is None or version.row.at != base.at)
    return sum(
        origin is None or reference_of(origin) is not None for row in new for _, origin in resolved(row, departures)
    )


def forget(rules: RuleSettings, state: RulesState) -> None:
    """Forgets the truncates and departures that all partitions have passed and no remembered event or row needs."""
    connector = rules.connector
    recent = [event for key in state.special.values() for event in key.recent]
    state.truncates = [
        truncate
        for truncate in state.truncates
        if not is_passed(connector, state, truncate.position)
        or any(follows(connector, truncate, event, event.position) for event in recent)
    ]
    state.departures = {name: _resolved(departure, state) for name, departure in state.departures.items()}
    rows = [departure.row for departure in state.departures.values()] + [key.base for key in state.special.values()]
    needed: set[tuple[str, str] | None] = {reference_to(event) for event in recent}
    needed |= {reference for row in rows if row is not None for reference in references_of(row)}
    state.departures = {
        name: departure
        for name, departure in state.departures.items()
        if name in needed or not is_passed(connector, state, departure.position)
    }


def forget_deleted(rules: RuleSettings, state: RulesState) -> None:
    """Forgets the deletes that all partitions have passed. A record in quarantine does not need them: its key is
    special, or in `without_order`. A record whose key could not be read has neither: its replay may add a row that was
    deleted since."""
    if not rules.compacted:
        # Copies of records that compaction removed may come long after all partitions have passed them.
        connector = rules.connector
        state.deleted_keys = {
            key: known
            for key, known in state.deleted_keys.items()
            if key in state.without_order or not is_passed(connector, state, known)
        }


def _resolved(departure: Departure, state: RulesState) -> Departure:
    """The departure with its row's references replaced by records, so that the departures they name can be
    forgotten."""
    row = departure.row
    return (
        departure
        if row is None
        else replace(departure, row=replace(row, origins=resolved(row, state.departures, exclude_provisional=True)))
    )
