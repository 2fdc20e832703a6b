"""Removes the values of excluded and masked columns from records that go to the quarantine table.

If such a record's key or value is not a JSON object in which the columns can be found, that key or value is removed as
a whole. The record is still in Kafka at the offset in the quarantine table, and a replay reads it there.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping

from pyspark.sql import Column, DataFrame, SparkSession
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

# Replace escaped backslashes and quotes while columns are searched: then a text ends at the next quote, and the regular
# expression needs no recursion for long texts. JSON can't contain these characters.
_BACKSLASH, _QUOTE = "\x01", "\x02"
# A name with an escape in it may be another spelling of a column.
_ESCAPED_NAME = r'"[^"\\\x01\x02]*+[\\\x01\x02][^"]*+"\s*+:'
_SIMPLE_VALUE = r'"[^"]*+"|[-+.0-9eE]++|true|false|null'
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


def redact(records: DataFrame, columns: Collection[str]) -> DataFrame:
    """Kafka's records (key, value, headers and more) without the values of these columns, at any depth."""
    if not columns:
        return records
    mark = F.struct(
        F.lit(HEADER).alias("key"), F.lit(json.dumps(list(columns), ensure_ascii=False)).cast("binary").alias("value")
    )
    own = F.transform(
        F.col("headers"),
        lambda h: F.struct(
            h["key"].alias("key"),
            F.when(~h["key"].isin(*columns), _redacted(h["value"], columns, bare=True)).alias("value"),
        ),
    )
    return records.withColumns(
        {
            "key": _redacted(F.col("key"), columns),
            "value": _redacted(F.col("value"), columns),
            "headers": F.concat(
                F.coalesce(own, F.array().cast("array<struct<key:string,value:binary>>")), F.array(mark)
            ),
        }
    )


def _redacted(data: Column, columns: Collection[str], *, bare: bool = False) -> Column:
    """BINARY: a JSON object without the columns' values; NULL if they may be hidden in it. `bare`: data that does not
    begin like JSON is kept, because it is a single value."""
    given = data.cast("string")
    text = F.replace(F.replace(given, F.lit("\\\\"), F.lit(_BACKSLASH)), F.lit('\\"'), F.lit(_QUOTE))
    names = "|".join(re.escape(json.dumps(name, ensure_ascii=False)) for name in columns)
    hides = given.rlike(r"[\x01\x02]") | text.rlike(_ESCAPED_NAME) | text.rlike(rf"(?:{names})\s*+:\s*+[\[{{]")
    cut = F.regexp_replace(text, rf"({names})\s*+:\s*+(?:{_SIMPLE_VALUE})", "$1:null")
    cut = F.replace(F.replace(cut, F.lit(_QUOTE), F.lit('\\"')), F.lit(_BACKSLASH), F.lit("\\\\"))
    # The parser ignores text after an object. Inside a list and inside an object such text is an error.
    within = [F.concat(F.lit(before), given, F.lit(behind)) for before, behind in (("[", "]"), ('{"o":', "}"))]
    is_one = F.try_parse_json(within[0]).isNotNull() & F.try_parse_json(within[1]).isNotNull()
    is_object = F.startswith(F.ltrim(given), F.lit("{")) & is_one
    visible = F.when(is_object & ~hides, cut.cast("binary"))
    if bare:
        visible = F.when(given.rlike(r'^[^\s"{\[]*$'), data).otherwise(visible)
    return F.when(F.is_valid_utf8(given), visible)


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
