"""The result of a comparison, as values and as JSON."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from enum import Enum
from typing import Any

from distributary.former_names import with_former_names


class State(Enum):
    """The result for a table."""

    EQUAL = "equal"
    DIFFERENT = "different"
    NOT_VERIFIED = "not_verified"


# Faults of a key, in the order of the report.
MISSING, UNEXPECTED, DIFFERENT, REPEATED = "missing", "unexpected", "different", "repeated"
FAULTS = (MISSING, UNEXPECTED, DIFFERENT, REPEATED)
# Why a key was not checked. It does not count as a difference.
BEFORE_TOPIC, QUARANTINED, REMOVED_ORPHAN, CHANGED_MEANWHILE = (
    "before_topic",
    "quarantined",
    "removed_orphaned_rows",
    "changed_meanwhile",
)
NOT_CHECKED = (BEFORE_TOPIC, QUARANTINED, REMOVED_ORPHAN, CHANGED_MEANWHILE)


@dataclass(frozen=True)
class Event:
    """A change: its partition and offset in the topic, its position in the source's log and its operation."""

    partition: int | None
    offset: int | None
    position: str | None
    op: str | None


@dataclass(frozen=True)
class Value:
    """A column that differs, with both values as text; None for NULL."""

    column: str
    lake: str | None
    expected: str | None


@dataclass(frozen=True)
class Difference:
    """A key that differs. `key` is JSON.

    `fault` is one of FAULTS. `decided_by`: the change that produced or deleted the expected row; `last_record`: the
    key's last record in the topic; `lake_row`: the change that the lake's row comes from. None if there is none.
    """

    key: str
    fault: str
    values: tuple[Value, ...] = ()
    decided_by: Event | None = None
    last_record: Event | None = None
    lake_row: Event | None = None


@dataclass(frozen=True)
class Counts:
    """Rows in the lake, expected rows, equal keys, keys per fault, and keys that were not checked per reason."""

    lake: int = 0
    expected: int = 0
    equal: int = 0
    faults: Mapping[str, int] = field(default_factory=lambda: dict.fromkeys(FAULTS, 0))
    not_checked: Mapping[str, int] = field(default_factory=lambda: dict.fromkeys(NOT_CHECKED, 0))

    @property
    def different(self) -> int:
        """Number of keys that differ."""
        return sum(self.faults.values())


@dataclass(frozen=True)
class Quarantined:
    """Records in quarantine: their number, the number of their keys, the number without a readable key, and the first
    few."""

    records: int = 0
    keys: int = 0
    without_key: int = 0
    examples: tuple[Event, ...] = ()


@dataclass(frozen=True)
class TableReport:
    """The result of one table.

    `compared_with`: topic or source. `version`: the Delta version that was compared. `offsets`: per partition the first
    offset that was read and the next one after the last. `notes`: what limits the comparison. `error`: `code`,
    `message` and `fix` if the table can't be verified.
    """

    table: str
    topic: str
    path: str
    mode: str
    state: State
    compared_with: str = "topic"
    version: int | None = None
    position: str | None = None
    offsets: Mapping[int, tuple[int, int]] = field(default_factory=dict)
    keys: str | None = None
    counts: Counts = field(default_factory=Counts)
    quarantined: Quarantined = field(default_factory=Quarantined)
    differences: tuple[Difference, ...] = ()
    notes: tuple[str, ...] = ()
    error: Mapping[str, str] | None = None

    def as_json(self) -> dict[str, Any]:
        """The report in JSON's types."""
        report = asdict(self)
        report["state"] = self.state.value
        report["counts"]["not_checked"] = with_former_names(self.counts.not_checked)
        report["offsets"] = {str(p): list(ends) for p, ends in sorted(self.offsets.items())}
        return report
