"""The Debezium envelope: which fields it has, what kinds of records there are, why one can't be applied."""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple

_COMMON_FIELDS = ("connector", "ts_ms", "snapshot")
_PLACE_FIELDS = {
    "sqlserver": ("commit_lsn", "change_lsn", "event_serial_no"),
    "db2": ("commit_lsn", "change_lsn"),
    "postgresql": ("sequence", "lsn", "txId"),
    "mysql": ("file", "pos", "row", "server_id", "gtid"),
    "mariadb": ("file", "pos", "row", "server_id", "gtid"),
    "oracle": ("commit_scn", "scn", "rs_id", "ssn", "txId"),
}


def source_fields(connector: str) -> tuple[str, ...]:
    """The fields of `source` that say where a change stands in its database's log.

    They are read as text: their JSON types changed between Debezium versions (`event_serial_no` and `snapshot` came as
    numbers, booleans and texts). A connector that is not known has what any may have of a transaction.
    """
    return (*_COMMON_FIELDS, *_PLACE_FIELDS.get(connector, ("txId", "gtid")))


OLD_KEY_HEADER = "__debezium.oldkey"
NEW_KEY_HEADER = "__debezium.newkey"

CONNECTORS = ("sqlserver", "db2", "postgresql", "mysql", "mariadb", "oracle")


class Kind(str, Enum):
    """What a record asks for; the value is what the `kind` column of decoded records holds."""

    CREATE = "c"
    UPDATE = "u"
    READ = "r"
    DELETE = "d"
    TRUNCATE = "t"
    TOMBSTONE = "x"
    PASSED_OVER = "m"
    BAD = "!"


class Reason(NamedTuple):
    """Why a record went to the quarantine table: a stable code and what a person reads."""

    code: str
    message: str


SNAPSHOT_ENDS = ("last", "last_in_data_collection")
"""What `source.snapshot` says in the last row of a table's snapshot: of the whole snapshot, if no table comes after it.
Before Debezium 2.0 there was only `last`. All rows of an incremental snapshot say `incremental`."""

NOT_JSON = Reason("not-json", "the value is not one JSON object")
TEXT_AFTER = Reason("text-after-json", "the key or the value goes on after its JSON object")
WRONG_TYPE = Reason(
    "wrong-json-type", "a field holds an array, an object or a plain value where its schema says another of these"
)
TOO_LONG = Reason(
    "text-too-long", "a record without a schema has a text of more than 20 million characters, or is no JSON at all"
)
AMBIGUOUS = Reason(
    "ambiguous-json", "an object in the key or the value has a field twice, or a text has half a character (`\\ud800`)"
)
BAD_UTF8 = Reason("not-utf8", "the key or the value is not valid UTF-8")
NO_SCHEMA_ID = Reason("no-schema-id", "the key or the value does not name the schema that it was written with")
NOT_AVRO = Reason("not-avro", "the key's or the value's bytes are not what the schema that they name says")
NOT_AN_AVRO_SCHEMA = Reason("not-an-avro-schema", "the schema that the key or the value names is not one for columns")
BAD_SCHEMA = Reason("bad-schema", "the schema beside the value is not that of a change event")
NOT_AN_ENVELOPE = Reason("not-an-envelope", "the value has no Debezium envelope (`op` and `source` are missing)")
UNKNOWN_OPERATION = Reason("unknown-operation", "`op` is none of c, u, r, d, t, m")
NOT_A_ROW = Reason("not-a-row", "the table's records are rows without an envelope; this value is an envelope, or empty")
NO_ROW = Reason("no-row", "a create, update or read without `after`")
NO_KEY = Reason("no-key", "the table's records have keys, this one has none")
NO_KEY_COLUMNS = Reason("no-key-columns", "the row does not hold the columns that `key` in the config names")
BAD_KEY = Reason("bad-key", "the key does not hold a value for each key column that its type can hold")
NO_POSITION = Reason("no-position", "`source` does not say where in the database's log the change stands")
BAD_POSITION = Reason("bad-position", "a log position in `source` is not in the form that its connector writes")
BAD_VALUE = Reason("bad-value", "these columns hold a value that their type can't hold: ")
OTHER_CONNECTOR = Reason("other-connector", "`source.connector` is not the one the table's other records come from")

UNREADABLE = (BAD_UTF8, NO_SCHEMA_ID, NOT_AVRO, NOT_AN_AVRO_SCHEMA)
"""Reasons why nothing of a record can be read."""
NOT_STRICT = (TEXT_AFTER, AMBIGUOUS)
"""Reasons why what can be read of a record need not be what its writer meant."""

REASONS = {
    reason.code: reason
    for reason in (
        NOT_JSON, WRONG_TYPE, TOO_LONG, *NOT_STRICT, *UNREADABLE, BAD_SCHEMA, NOT_AN_ENVELOPE, UNKNOWN_OPERATION,
        NOT_A_ROW, NO_ROW, NO_KEY, NO_KEY_COLUMNS, BAD_KEY, NO_POSITION, BAD_POSITION, BAD_VALUE, OTHER_CONNECTOR,
    )
}  # fmt: skip
