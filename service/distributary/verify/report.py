"""What a comparison found, as values: for a person, and as JSON."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from enum import Enum
from typing import Any


class State(Enum):
    """How a table came out."""

    EQUAL = "equal"
    DIFFERENT = "different"
    NOT_VERIFIED = "not_verified"


# What is wrong with a key. The order is that of the counts in the report.
MISSING, UNEXPECTED, DIFFERENT, REPEATED = "missing", "unexpected", "different", "repeated"
FAULTS = (MISSING, UNEXPECTED, DIFFERENT, REPEATED)
# What nothing tells. None of it counts as a difference.
BEFORE, QUARANTINED, GHOST, MOVING = "before_topic", "quarantined", "removed_ghosts", "changed_meanwhile"
UNTOLD = (BEFORE, QUARANTINED, GHOST, MOVING)


@dataclass(frozen=True)
class Event:
    """A change's place: in the topic, in the source's log, and what it did."""

    partition: int | None
    offset: int | None
    position: str | None
    op: str | None


@dataclass(frozen=True)
class Value:
    """A column that differs, both values as text; None for NULL."""

    column: str
    lake: str | None
    expected: str | None


@dataclass(frozen=True)
class Difference:
    """A key that differs. `key` is JSON.

    `fault` is one of FAULTS. `decided_by`: the change that the expected row, or its absence, comes from; `last_record`:
    the key's last record in the topic; `lake_row`: the change that the lake's row says it comes from. None where there
    is none.
    """

    key: str
    fault: str
    values: tuple[Value, ...] = ()
    decided_by: Event | None = None
    last_record: Event | None = None
    lake_row: Event | None = None


@dataclass(frozen=True)
class Counts:
    """Rows in the lake and expected ones, keys that are equal, keys by fault, and keys of which nothing tells."""

    lake: int = 0
    expected: int = 0
    equal: int = 0
    faults: Mapping[str, int] = field(default_factory=lambda: dict.fromkeys(FAULTS, 0))
    not_checked: Mapping[str, int] = field(default_factory=lambda: dict.fromkeys(UNTOLD, 0))

    @property
    def different(self) -> int:
        """How many keys differ."""
        return sum(self.faults.values())


@dataclass(frozen=True)
class Quarantined:
    """The batch's records that are not in the table: how many, of how many keys, how many name no key that can be read,
    and the places of some."""

    records: int = 0
    keys: int = 0
    without_key: int = 0
    examples: tuple[Event, ...] = ()


@dataclass(frozen=True)
class TableReport:
    """One table, compared. `compared_with`: topic or source. `version`: the Delta version looked at; `offsets`:
    per partition the first and the next offset of the records that were read. `notes` say what could not be told.
    `error` has the keys `code`, `message` and `fix`, for a table that can't be verified."""

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
        """The same with JSON's types only."""
        told = asdict(self)
        told["state"] = self.state.value
        told["offsets"] = {str(p): list(ends) for p, ends in sorted(self.offsets.items())}
        return told
