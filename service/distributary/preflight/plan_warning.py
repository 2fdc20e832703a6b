"""The warnings of `plan` and their codes; docs/plan-warnings.md explains each."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Code(str, Enum):
    """The stable names of all warnings."""

    BEGINS_LATE = "begins-late"
    CHANGES_SKIPPED = "changes-skipped"
    COMPACTED = "compacted"
    COMPACTED_CHANGES = "compacted-changes"
    DECIMAL_DOUBLE = "decimal-double"
    DEFAULTS_NOT_FILLED = "defaults-not-filled"
    DELETES_DROPPED = "deletes-dropped"
    ENTRY_NEVER_COUNTS = "entry-never-counts"
    ENTRY_WITHOUT_TOPIC = "entry-without-topic"
    GENERATED_COLUMNS = "generated-columns"
    KEY_FROM_ROW = "key-from-row"
    KEY_NOT_UNIQUE = "key-not-unique"
    KEY_WITHOUT_EFFECT = "key-without-effect"
    LEGACY_SOURCE_STRUCT = "legacy-source-struct"
    NANOSECONDS_WRAP = "nanoseconds-wrap"
    NO_TYPE_YET = "no-type-yet"
    NULLS_REPLACED = "nulls-replaced"
    ORDER_BY_OFFSET = "order-by-offset"
    ORPHANED_ROWS = "orphaned-rows"
    PARTIAL_JSON = "partial-json"
    PARTITIONS_DIFFER = "partitions-differ"
    PRODUCER_REORDERS = "producer-reorders"
    REPLICA_IDENTITY = "replica-identity"
    RETENTION_NEAR = "retention-near"
    TIMES_CUT = "times-cut"
    TOMBSTONES_OFF = "tombstones-off"
    TOPIC_SETTINGS_UNKNOWN = "topic-settings-unknown"
    TRUNCATES_IN_PARTITIONS = "truncates-in-partitions"
    TRUNCATES_SKIPPED = "truncates-skipped"
    TYPED_BY_VALUE = "typed-by-value"
    TYPES_DIFFER = "types-differ"
    UNKNOWN_COLUMN = "unknown-column"
    UNSIGNED_WRAPS = "unsigned-wraps"
    VALUES_CUT = "values-cut"


@dataclass(frozen=True)
class PlanWarning:
    """A setting or a state that loses data, or that may not be intended, without an error from `run`.

    `detail` has the facts of this table: columns, offsets, times.
    """

    code: Code
    message: str
    fix: str
    detail: str = ""

    def as_json(self) -> dict[str, str]:
        """The warning in JSON's types."""
        return {"code": self.code.value, "message": self.message, "fix": self.fix, "detail": self.detail}
