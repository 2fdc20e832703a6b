"""The gate: the rules, fed batch by batch, produce the true rows (Books) of the simulated database.

    python -m tests.model.gate --histories 5000 [--flavour postgresql] [--seed 0]

Every history of every flavour is kept in every mode. The rows are compared with Books at the end and wherever the
records show exactly a prefix of the log, and (rule 2.8) at any stop with those of another reading of the same records.
Cases that the records can't decide are left out by a named reason and counted.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random
from typing import Any, Protocol

from tests.model.applied_table import AppliedTable
from tests.model.case import Case, Happened, Rows
from tests.model.cuts import Batch, Reading
from tests.model.delivery import Arrived
from tests.model.random_cases import MODES, random_case
from tests.model.rules_table import EventReader, RulesTable
from tests.model.shrinking import shrunk
from tests.model.source.flavours import FLAVOURS
from tests.model.source.sent import Sent

from distributary.rules.event import Event

REGRESSIONS = Path(__file__).parent / "regressions" / "rules"
_REOPENED_SHARE = 0.3
_QUARANTINED_SHARE = 0.2
_COLUMNS_SHARE = 0.2
_READINGS = 10
"""The number of readings after which a smaller case counts as right."""


@dataclass(frozen=True)
class Difference:
    """A table that was wrong: after which stop, and the rows that are missing or too many."""

    place: str
    missing: list[Any]
    surplus: list[Any]

    def __str__(self) -> str:
        return f"{self.place}:\n  missing {self.missing}\n  surplus {self.surplus}"


@dataclass
class Report:
    """The result of a run of the gate."""

    checked: Counter[str] = field(default_factory=Counter)
    left_out: Counter[str] = field(default_factory=Counter)
    stops: int = 0
    records: int = 0
    replayed: int = 0
    plain: int = 0
    rested: int = 0
    ambiguous: int = 0
    unknown: int = 0
    failures: list[tuple[Case, int, str]] = field(default_factory=list)


class Table(Protocol):
    """A table that is kept by the rules."""

    ambiguous: int
    unknown: int
    plain: int
    """The number of keys that were processed as columns."""
    rested: int
    """How often idle partitions counted as having passed the records from before a rest."""

    def process(
        self, batch: Batch, read: ReadEvent, partitions: int, replayed: Iterable[tuple[Event, Sent]] = ()
    ) -> list[tuple[Event, Sent]]:
        """Applies a batch, and the growth of its topic to `partitions`. Returns the events that went to quarantine."""
        ...

    def reopen_snapshot_row(self) -> None:
        """Continues with the state as it is read back from files."""
        ...

    def rows(self) -> Rows:
        """The table's rows, in the form of Books."""
        ...

    def content(self) -> tuple[Rows, Any]:
        """Everything that must not depend on the batches' boundaries: the rows, and the ends of versions."""
        ...


ReadEvent = Callable[[Arrived], tuple[Event, Sent]]
MakeTable = Callable[[Happened, bool], Table]
"""Makes the table of a case; with True plain keys are processed as columns."""


def rules_table(happened: Happened, by_columns: bool) -> Table:
    """The rules alone."""
    case = happened.case
    return RulesTable(
        happened.played.connector.name,
        case.kept,
        happened.known_partitions(),
        compacted=case.delivery.compacted > 0,
        by_columns=by_columns,
    )


def applied_table(happened: Happened, _by_columns: bool) -> Table:
    """Records are decoded, and applied to rows of Arrow."""
    case = happened.case
    return AppliedTable(
        happened.played.connector, case.kept, happened.known_partitions(), compacted=case.delivery.compacted > 0
    )


def check(
    case: Case, seed: int, report: Report | None = None, make_table: MakeTable = rules_table
) -> Difference | None:
    """Reads a case's records in the reading of the seed. Returns the first difference; None if there is none."""
    happened = case.happen()
    return _Check(happened, seed, report or Report(), make_table).run()


class _Check:
    def __init__(self, happened: Happened, seed: int, report: Report, make_table: MakeTable) -> None:
        self._make_table = make_table
        self._happened = happened
        self._case = happened.case
        self._seed = seed
        self._random = Random(seed)
        self._report = report
        self._reader = EventReader(happened.played.connector.name)
        self._quarantined = self._choose_quarantined() if self._random.random() < _QUARANTINED_SHARE else set[int]()
        self._reopened = self._random.random() < _REOPENED_SHARE
        self._by_columns = Random(f"columns {seed}").random() < _COLUMNS_SHARE

    def run(self) -> Difference | None:
        arrived, case = self._happened.arrived, self._case
        self._report.records += len(arrived)
        truth = self._happened.truth_after()
        ends = self._happened.ends_after() if case.kept.mode == "history" else []
        reading = Reading(arrived, case.delivery, self._seed)
        boundaries = [] if case.delivery.compacted else list(self._happened.boundaries())
        chosen = sorted(self._random.sample(boundaries, min(len(boundaries), self._random.choice((0, 1, 2, 3, 6)))))
        stops = [reading.counts(sent) for sent, _ in chosen] + [reading.counts(len(arrived))]
        entry_counts = [entries for _, entries in chosen] + [len(truth) - 1]
        for number, table in self._tables(reading, stops, self._by_columns):
            self._report.stops += 1
            expected = truth[entry_counts[number]]
            if table.rows() != expected:
                return _difference(f"stop {number} of {len(stops)}", expected, table.rows())
            wrong = (
                self._wrong_ends(table, ends[entry_counts[number]]) if ends and isinstance(table, RulesTable) else []
            )
            if wrong:
                return Difference(f"the ends of versions at stop {number} of {len(stops)}", wrong, [])
        self._report.ambiguous += table.ambiguous
        self._report.unknown += table.unknown
        self._report.plain += table.plain
        self._report.rested += table.rested
        self._quarantined = set()
        return self._in_other_cuts()

    def _wrong_ends(self, table: RulesTable, ends: Mapping[tuple[tuple[str, Any], ...], int | None]) -> list[Any]:
        """The versions that do not end at the position of the log entry that ended them in Books."""
        entries: dict[str, set[int]] = {}
        for record in self._happened.arrived:
            position = self._reader.read(record).position
            entries.setdefault(str(position), set()).add(record.sent.entry)
        found = table.ends()
        return [
            {**dict(version), "__ended": entry, "__end_at": found[version]}
            for version, entry in ends.items()
            if (entry is None) != (found[version] is None)
            or (entry is not None and entry not in entries.get(str(found[version]), ()))
        ]

    def _in_other_cuts(self) -> Difference | None:
        """Rule 2.8: the same records, read in other batches, leave the same table at every common stop, whether or not
        idle partitions count as passed."""
        arrived, delivery = self._happened.arrived, self._case.delivery
        places = Reading(arrived, delivery, self._seed).some_stops()
        found = []
        # If plain keys are settled as columns, then in one of the two: so the walk leaves the same table.
        for seed, notes, by_columns in ((self._seed + 1, True, self._by_columns), (self._seed + 2, False, False)):
            reading = Reading(arrived, delivery, seed, notes=notes)
            found.append([table.content() for _, table in self._tables(reading, places, by_columns)])
        for place, one, other in zip(places, *found, strict=True):
            if one == other:
                continue
            if one[0] != other[0]:
                return _difference(f"{place} in other cuts", one[0], other[0])
            missing, surplus = one[1] - other[1], other[1] - one[1]
            return Difference(f"the ends of versions at {place} in other cuts", list(missing), list(surplus))
        return None

    def _tables(self, reading: Reading, stops: list[list[int]], by_columns: bool) -> Iterable[tuple[int, Table]]:
        """The table at each stop."""
        table = self._make_table(self._happened, by_columns)
        aside: list[tuple[Event, Sent]] = []
        for batch in reading.batches(stops):
            replayed = aside if aside and (batch.stop is not None or self._random.random() < 0.1) else []
            aside = [] if replayed else aside
            again = [(replace(event, quarantined=False), sent) for event, sent in replayed]
            aside += table.process(batch, self._read, reading.partitions, again)
            self._report.replayed += len(replayed)
            if self._reopened:
                table.reopen_snapshot_row()
            if batch.stop is not None:
                yield batch.stop, table

    def _read(self, record: Arrived) -> tuple[Event, Sent]:
        return self._reader.read(record, quarantined=id(record.sent) in self._quarantined), record.sent

    def _choose_quarantined(self) -> set[int]:
        """Records that go to quarantine, with all copies of them."""
        changes = [record.sent for record in self._happened.arrived if record.sent.op in "cudr"]
        chosen = self._random.sample(changes, min(len(changes), self._random.randint(1, 3)))
        same = {(sent.entry, sent.group, sent.op) for sent in chosen}
        arrived = (record.sent for record in self._happened.arrived)
        return {id(sent) for sent in arrived if (sent.entry, sent.group, sent.op) in same}


def _difference(place: str, expected: Rows, found: Rows) -> Difference:
    return Difference(
        place,
        [dict(row) for row in (expected - found).elements()],
        [dict(row) for row in (found - expected).elements()],
    )


def run(
    flavours: Sequence[str],
    histories: int,
    seed: int = 0,
    most_failures: int = 3,
    make_table: MakeTable = rules_table,
) -> Report:
    """Checks a number of histories of each flavour, in all modes in turn."""
    report = Report()
    for number in range(seed, seed + histories):
        for flavour in flavours:
            case = random_case(flavour, number, MODES[number % len(MODES)])
            reason = case.why_not_truth()
            if reason is not None:
                report.left_out[reason] += 1
                continue
            report.checked[f"{flavour}, {mode_name(case)}"] += 1
            difference = differs(case, number, report, make_table)
            if difference is not None:
                sys.stderr.write(f"{flavour}, history {number}: {difference.place}\n")
                report.failures.append((case, number, str(difference)))
                if len(report.failures) >= most_failures:
                    return report
    return report


def mode_name(case: Case) -> str:
    """A short name of a case's settings."""
    kept = case.kept
    return kept.mode if kept.mode != "upsert" else f"{kept.deletes} deletes, truncates {kept.truncate}"


def fails(case: Case, make_table: MakeTable = rules_table) -> int | None:
    """The first of a few readings in which a case fails; None if none fails."""
    if case.why_not_truth() is not None:
        return None
    return next((seed for seed in range(_READINGS) if differs(case, seed, make_table=make_table) is not None), None)


def differs(
    case: Case, seed: int, report: Report | None = None, make_table: MakeTable = rules_table
) -> Difference | None:
    """Runs check; an exception counts as a difference."""
    try:
        return check(case, seed, report, make_table)
    except Exception as error:
        # The rules may fail with any class of error. It must be reported with its case, and shrunk, like a wrong row.
        return Difference(repr(error), [], [])


def shrink(case: Case, make_table: MakeTable = rules_table) -> tuple[Case, int] | None:
    """The smallest failing case that was found, and the reading in which it fails."""
    if fails(case, make_table) is None:
        return None
    small = shrunk(case, lambda other: fails(other, make_table) is not None, 250)
    seed = fails(small, make_table)
    assert seed is not None
    return small, seed


def write_regression(name: str, case: Case, seed: int) -> None:
    """Writes a failing case as a test."""
    document = {**json.loads(case.to_json()), "reading": seed}
    (REGRESSIONS / f"{name}.json").write_text(json.dumps(document) + "\n", encoding="utf-8")


def main() -> int:
    parser = argparse.ArgumentParser(description="Compares the rules with the books of simulated databases.")
    parser.add_argument("--histories", type=int, default=5000, help="of each flavour")
    parser.add_argument("--flavour", action="append", choices=sorted(FLAVOURS))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--failures", type=int, default=3, help="after so many it stops")
    parser.add_argument("--shrink", action="store_true")
    parser.add_argument("--records", action="store_true", help="decode records, and apply them to rows of Arrow")
    options = parser.parse_args()
    start = time.process_time()
    make_table = applied_table if options.records else rules_table
    report = run(options.flavour or list(FLAVOURS), options.histories, options.seed, options.failures, make_table)
    write = sys.stdout.write
    for name, count in sorted(report.checked.items()):
        write(f"{count:7} {name}\n")
    for reason, count in sorted(report.left_out.items()):
        write(f"{count:7} left out: {reason}\n")
    seconds = time.process_time() - start
    write(f"{report.checked.total()} histories, {report.records} records, {report.stops} comparisons with the books, ")
    write(f"{report.replayed} replays from quarantine, {report.ambiguous} ambiguous deletes, ")
    write(f"{report.plain} keys settled as columns, {report.rested} times idle partitions counted as passed, ")
    write(f"{report.unknown} unknown values, {seconds:.0f} CPU s, {len(report.failures)} failures\n")
    for case, seed, difference in report.failures:
        write(f"\nreading {seed}: {difference}\n{case}\n")
        small = shrink(case, make_table) if options.shrink else None
        if small is not None:
            write(f"smaller, reading {small[1]}: {differs(*small, make_table=make_table)}\n{small[0]}\n")
    return 1 if report.failures else 0


if __name__ == "__main__":
    sys.exit(main())
