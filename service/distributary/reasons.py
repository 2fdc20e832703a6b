"""The reasons to reject a record: the codes that the quarantine table shows. Of several faults the first counts."""

from __future__ import annotations

from typing import NamedTuple

from distributary.errors import TableHalt


class Reason(NamedTuple):
    """A stable code, and a message for people."""

    code: str
    message: str


BEYOND_LIMITS = Reason("beyond-limits", "the record exceeds a limit of the decoder: ")
BAD_SCHEMA = Reason("bad-schema", "the schema beside the value is not that of a change event")
BAD_UTF8 = Reason("not-utf8", "the key, the value or the name of a header is not valid UTF-8")
NO_SCHEMA_ID = Reason("no-schema-id", "the key or the value does not name the schema that it was written with")
NOT_AVRO = Reason("not-avro", "the bytes of the key or the value do not match the schema that they name")
NOT_AN_AVRO_SCHEMA = Reason("not-an-avro-schema", "the schema that the key or the value names can't be read as columns")
NOT_JSON = Reason("not-json", "the value is not one JSON object")
WRONG_TYPE = Reason(
    "wrong-json-type", "a field holds an array, an object or a plain value, and its schema names another of these"
)
TEXT_AFTER = Reason("text-after-json", "text follows the JSON object of the key or the value")
AMBIGUOUS = Reason(
    "ambiguous-json",
    "a field occurs twice in the key or in a value without a schema, or a text has half a character (`\\ud800`)",
)
NOT_AN_ENVELOPE = Reason("not-an-envelope", "the value has no Debezium envelope (`op` and `source` are missing)")
NOT_A_ROW = Reason("not-a-row", "the table's records are rows without an envelope; this value is an envelope, or empty")
UNKNOWN_OPERATION = Reason("unknown-operation", "`op` is none of c, u, r, d, t, m")
NO_ROW = Reason("no-row", "a create, update or read without `after`")
NO_KEY = Reason("no-key", "the table's records have keys, this one has none")
NO_KEY_COLUMNS = Reason("no-key-columns", "the row lacks columns that `key` in the config names")
BAD_KEY = Reason("bad-key", "a column of the key is missing, or has a value that its type can't hold")
OTHER_KEY = Reason("other-key", "the row has another value than the record's key in the column ")
NO_SOURCE_TABLE = Reason(
    "no-source-table", "`merge_sources` has the source table's name in the key, and `source` does not name the table"
)
OTHER_CONNECTOR = Reason("other-connector", "`source.connector` is another one than that of the table's other records")
NO_POSITION = Reason("no-position", "`source` does not contain the change's position in the database's log")
BAD_POSITION = Reason("bad-position", "a log position in `source` is not in the form that its connector writes")
CONTRADICTED_POSITION = Reason(
    "contradicted-position",
    "the position is below that of an earlier record, as after a restore of the source, and the time is in the future:"
    " the source can't have written it",
)
NEEDS_DECISION = Reason(
    "needs-decision",
    "the table can't have the record's columns or key; a second such record among the next 100 of its"
    " partition halts the table: ",
)
BAD_VALUE = Reason("bad-value", "these columns hold a value that their type can't hold: ")
BY_REFERENCE = Reason(
    "value-by-reference",
    "the connector keeps the value elsewhere and sent a reference (name the bucket of Debezium's large message post"
    " processor under `large_messages`; or take the post processor, or the transform EnforceRecordSize, out of the"
    " connector, or these columns out of its list): ",
)
LARGE_VALUE_UNREADABLE = Reason("large-value-unreadable", "a value that the connector stored elsewhere can't be read: ")

NO_CHANGE_EVENT = (NOT_JSON.code, NOT_AN_ENVELOPE.code)
"""The reasons of records that may be no change events at all."""
REASONS: tuple[Reason, ...] = (
    *(BEYOND_LIMITS, BAD_SCHEMA, BAD_UTF8, NO_SCHEMA_ID, NOT_AVRO, NOT_AN_AVRO_SCHEMA, NOT_JSON, WRONG_TYPE),
    *(TEXT_AFTER, AMBIGUOUS, NOT_AN_ENVELOPE, NOT_A_ROW, UNKNOWN_OPERATION, NO_ROW, NO_KEY, NO_KEY_COLUMNS, BAD_KEY),
    *(
        NO_SOURCE_TABLE,
        OTHER_CONNECTOR,
        BAD_POSITION,
        NO_POSITION,
        CONTRADICTED_POSITION,
        NEEDS_DECISION,
        BY_REFERENCE,
        LARGE_VALUE_UNREADABLE,
        BAD_VALUE,
        OTHER_KEY,
    ),
)
UNREADABLE = frozenset((BEYOND_LIMITS, BAD_SCHEMA, BAD_UTF8, NO_SCHEMA_ID, NOT_AVRO, NOT_AN_AVRO_SCHEMA))
"""Reasons that count for a key whether the record needs one or not."""
RANK = {reason.code: rank for rank, reason in enumerate(REASONS)}


class Rejected(Exception):
    """The record can't be applied. `detail` is appended to the reason's message. `conflict`: the halt of
    the table if more records are like it (see ingest/stray_records.py)."""

    def __init__(self, reason: Reason, detail: str = "", conflict: TableHalt | None = None) -> None:
        self.reason = reason
        self.detail = detail
        self.conflict = conflict
        super().__init__(reason.code)

    def again(self) -> Rejected:
        """A copy, to be kept or raised again. The traceback of a raised exception keeps all records of the batch in
        memory."""
        return Rejected(self.reason, self.detail, self.conflict)


LONGEST_DETAIL = 1_000
"""Characters of a detail that has names of a record: it may have thousands of long ones."""


def needs_decision(conflict: TableHalt) -> Rejected:
    """Why a record is rejected whose table would halt if more records were like it."""
    return Rejected(NEEDS_DECISION, conflict.message[:LONGEST_DETAIL], conflict)
