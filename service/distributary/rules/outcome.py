"""The result of a batch: one outcome for each touched key, and counts."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from distributary.rules.event import Event, Pointer
from distributary.rules.key_rows import KeyRows, Version
from distributary.rules.pointers import Departures, resolved
from distributary.rules.state import Row, RuleSettings


@dataclass(frozen=True)
class Outcome:
    """A key's new row.

    `row`: None removes it; `ended` set marks it as deleted (rule 3.2). Of a column in `row.origins` the value is in the
    record that stands there; None, or a reference to another key that is still open, is NULL. Of all other columns the
    value is in the table's row that the record `row.at` wrote; if there is no such row, in that record. `versions`
    (history, rule 4.2): they replace the key's versions that the records `replaced` wrote."""

    row: Row | None
    versions: tuple[Version, ...] = ()
    replaced: frozenset[Pointer] = frozenset()


@dataclass
class BatchChanges:
    """All changes of a batch to its table.

    Apply them in this order: `truncates` remove the rows of the table below them, then each of the `outcomes` replaces
    the row of its key. `appended`: the records of `mode: append`. `quarantined`: the new events that are in quarantine.

    Numbers: `seen` of records that were applied before, `ambiguous` of deletes that may have meant another row (rule
    2.7), `unknown` of values that became NULL (rule 3.7), `forgotten_keys` of keys of a topic that got more partitions,
    of which only the rows are left (rule 2.5, see end_partition_change), `without_order` of records in quarantine that
    lost their order and `forgotten` of those whose keys are no longer noted (rule 6.3, quarantine_order.py),
    `stale_snapshot_rows` of snapshot rows that are older than their key's newest change (rule 2.3).

    `went_back` (rule 2.6) and `halting` (rule 3.6, truncate: halt) hold the events that halt the table, `contradicted`
    those that must go to quarantine because their positions are wrong (rule 2.6). If there are any, nothing of the
    batch may be applied, and the state must be thrown away."""

    outcomes: dict[str, Outcome] = field(default_factory=dict)
    truncates: list[Event] = field(default_factory=list)
    appended: list[Event] = field(default_factory=list)
    quarantined: list[Event] = field(default_factory=list)
    went_back: list[Event] = field(default_factory=list)
    contradicted: list[Event] = field(default_factory=list)
    halting: list[Event] = field(default_factory=list)
    seen: int = 0
    ambiguous: int = 0
    unknown: int = 0
    forgotten_keys: int = 0
    without_order: int = 0
    forgotten: int = 0
    stale_snapshot_rows: int = 0

    @property
    def is_refused(self) -> bool:
        """Whether nothing of the batch may be applied."""
        return bool(self.went_back or self.contradicted or self.halting)


def outcome_of(rules: RuleSettings, key_rows: KeyRows, departures: Departures, recent: Iterable[Event]) -> Outcome:
    """Rules 4.1, 4.2 and 3.2: the outcome for a key, from its rows. `recent`: the events that made them."""
    if rules.mode == "history":
        versions = (
            Version(_with_origins(version.row, key_rows, departures), version.end) for version in key_rows.versions
        )
        replaced = {event.at for event in recent} | {version.row.at for version in key_rows.versions}
        return Outcome(None, tuple(versions), frozenset(replaced))
    row = key_rows.top or (key_rows.last if keeps_marked_row(rules, key_rows) else None)
    return Outcome(None if row is None else _with_origins(row, key_rows, departures))


def keeps_marked_row(rules: RuleSettings, key_rows: KeyRows) -> bool:
    """Whether the last row of a key without current row stays in the table, marked as deleted."""
    is_truncated = key_rows.last is not None and key_rows.last.ended == "t"
    if rules.deletes == "soft":
        return not ((key_rows.emptied or is_truncated) and rules.truncate == "apply")
    return rules.truncate == "soft" and is_truncated


def _with_origins(row: Row, key_rows: KeyRows, departures: Departures) -> Row:
    return replace(row, highest_position=key_rows.highest_position, origins=resolved(row, departures))
