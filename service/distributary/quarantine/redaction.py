"""Removes the values of excluded and masked columns from records that go to the quarantine table.

If such a record's key or value is not a JSON object in which the columns can be found, that key or value is removed as
a whole. The record is still in Kafka at the offset in the quarantine table, and a replay reads it there.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping

import msgspec
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from distributary import sql
from distributary.config.table import TableSettings
from distributary.consume.offsets import OffsetRange, Offsets
from distributary.consume.source import RecordSource
from distributary.decode.document import MONGODB
from distributary.decode.unwrapped import added_by

HEADER = "__distributary.redacted"
"""The header that marks a redacted record in the quarantine table; its value lists the columns."""
FORMER_HEADER = "__distributary.withheld"
"""The header's former name, which records may have that an earlier version put into quarantine."""

# Replace escaped backslashes and quotes while columns are searched: then a text ends at the next quote. JSON can't
# contain these characters.
_BACKSLASH, _QUOTE = "\x01", "\x02"
# A name with an escape in it may be another spelling of a column.
_ESCAPED_NAME = re.compile(r'"[^"\\\x01\x02]*[\\\x01\x02][^"]*"\s*:')
_SIMPLE_VALUE = r'"[^"]*"|[-+.0-9eE]+|true|false|null'
_LARGEST = 16 * 2**20
"""Bytes of a key or value that is redacted. Larger ones are left out, as to parse them would take gigabytes."""
# A word in a header is a single value, and names no column.
_BARE = re.compile(r'[^\s"{\[]*')
_IS_REDACTED = f"exists(headers, h_ -> h_.key IN ({sql.text(HEADER)}, {sql.text(FORMER_HEADER)}))"


# Fields with the SQL statement of a change, which has values of columns: MySQL's `include.query`, Oracle's LogMiner.
_STATEMENTS = ("query", "redo_sql")
_DOCUMENT_FIELDS = ("before", "after", "updateDescription")
# In the source block, in rows of ExtractNewRecordState, and as attributes of CloudEvents.
_STATEMENT_FIELDS = (
    *(f"{prefix}{name}" for name in _STATEMENTS for prefix in ("", "__", "__source_")),
    *(f"iodebezium{name.replace('_', '')}" for name in _STATEMENTS),
)


def redacted_columns(
    settings: TableSettings, connector_properties: Mapping[str, str], connector: str | None = None
) -> tuple[str, ...]:
    """The excluded and masked columns; if there are any, also the fields with SQL statements, under the names that the
    connector's settings give them, and the fields of MongoDB's events that documents and their ids come in."""
    columns = (*settings.exclude, *settings.mask)
    if not columns:
        return ()
    if connector == MONGODB:
        columns = (*columns, *_DOCUMENT_FIELDS, "id")
    added = added_by(connector_properties)
    named = [
        name for names in (added.fields, added.headers) for name, meaning in names.items() if meaning in _STATEMENTS
    ]
    return tuple(dict.fromkeys((*columns, *_STATEMENT_FIELDS, *named)))


def redact(records: pa.Table, columns: Collection[str]) -> pa.Table:
    """Kafka's records (key, value, headers and more) without the values of these columns, at any depth."""
    if not columns:
        return records
    cut = _Redaction(columns)
    mark = {"key": HEADER, "value": json.dumps(list(columns), ensure_ascii=False).encode()}
    headers = [
        [*({"key": header["key"], "value": cut.header(**header)} for header in pairs or ()), mark]
        for pairs in records["headers"].to_pylist()
    ]
    redacted = {
        "key": [cut.data(key) for key in records["key"].to_pylist()],
        "value": [cut.data(value) for value in records["value"].to_pylist()],
        "headers": headers,
    }
    for name, values in redacted.items():
        number = records.column_names.index(name)
        records = records.set_column(number, name, pa.array(values, records.schema.field(name).type))
    return records


class _Redaction:
    """Removes the values of these columns from JSON objects."""

    def __init__(self, columns: Collection[str]) -> None:
        names = "|".join(re.escape(json.dumps(name, ensure_ascii=False)) for name in columns)
        self._columns = frozenset(columns)
        self._nested = re.compile(rf"(?:{names})\s*:\s*[\[{{]")
        self._simple = re.compile(rf"({names})\s*:\s*(?:{_SIMPLE_VALUE})")

    def header(self, key: str, value: bytes | None) -> bytes | None:
        """A header's value; None if it may be one of the columns', or hide one."""
        if key in self._columns or value is None or len(value) > _LARGEST:
            return None
        text = _text_of(value)
        return value if text is not None and _BARE.fullmatch(text) else self.data(value)

    def data(self, data: bytes | None) -> bytes | None:
        """A JSON object without the columns' values; None if they may be hidden in it."""
        text = None if data is None or len(data) > _LARGEST else _text_of(data)
        if text is None or _BACKSLASH in text or _QUOTE in text or not _is_object(text):
            return None
        text = text.replace("\\\\", _BACKSLASH).replace('\\"', _QUOTE)
        if _ESCAPED_NAME.search(text) or self._nested.search(text):
            return None
        text = self._simple.sub(r"\1:null", text)
        return text.replace(_QUOTE, '\\"').replace(_BACKSLASH, "\\\\").encode()


def _text_of(data: bytes) -> str | None:
    try:
        return data.decode()
    except UnicodeDecodeError:
        return None


def _is_object(text: str) -> bool:
    try:
        return isinstance(msgspec.json.decode(text), dict)
    except (msgspec.DecodeError, RecursionError):
        return False


def with_original_bytes(
    waiting: DataFrame,
    session: SparkSession,
    topic: str,
    first: Offsets,
    end: Offsets,
    source: RecordSource,
) -> DataFrame:
    """Records of the quarantine table with their original bytes. Redacted ones are read from Kafka again, and skipped
    if Kafka no longer has them. `first` and `end`: Kafka's first and end offset of each partition."""
    extremes = (
        waiting.where(_IS_REDACTED)
        .groupBy("partition")
        .agg(F.min("offset").alias("low"), F.max("offset").alias("high"))
    )
    ranges = {
        row["partition"]: (max(row["low"], first.get(row["partition"], 0)), row["high"] + 1)
        for row in extremes.collect()
        if first.get(row["partition"], 0) <= row["high"] < end.get(row["partition"], 0)
    }
    if not ranges:
        return waiting.where(f"NOT coalesce({_IS_REDACTED}, false)")
    part = OffsetRange(topic, {p: low for p, (low, _) in ranges.items()}, {p: high for p, (_, high) in ranges.items()})
    # The timestamp is compared, too, because a recreated topic has other records at the same offsets.
    identity = ["partition", "offset", "timestamp"]
    again = source.frame(session, part).join(
        F.broadcast(waiting.where(_IS_REDACTED).select(*identity)), identity, "left_semi"
    )
    unredacted = waiting.where(f"NOT coalesce({_IS_REDACTED}, false)")
    return unredacted.unionByName(again.select(*unredacted.columns))
