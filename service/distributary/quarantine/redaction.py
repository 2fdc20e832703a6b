"""Values of excluded and masked columns in records that go to the quarantine table: they are cut out of the bytes.

Such a record can't be applied, so nobody knows what is in it: where it is no JSON object in which the columns can be
found, its key or value is left out as a whole. The record itself still lies in Kafka, at the place that the quarantine
table has, and is read from there to be applied again.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from distributary import sql
from distributary.config.table import TableSettings
from distributary.consume.offsets import OffsetRange, Offsets
from distributary.consume.source import RecordSource

HEADER = "__distributary.withheld"
"""The header that such a record has in the quarantine table beside its own; its value names the columns."""

# In place of escaped backslashes and quotes while columns are looked for: a text then ends at the next quote, and an
# expression that says so needs no recursion, however long the text is. No JSON has these characters.
_BACKSLASH, _QUOTE = "\x01", "\x02"
# A name with an escape in it may be one of the columns, spelt otherwise.
_ESCAPED_NAME = r'"[^"\\\x01\x02]*+[\\\x01\x02][^"]*+"\s*+:'
_SIMPLE_VALUE = r'"[^"]*+"|[-+.0-9eE]++|true|false|null'
_PLACES = f"exists(headers, h_ -> h_.key = {sql.text(HEADER)})"


# The statement of a change, with the values of all its columns: MySQL's `include.query`, Oracle's LogMiner.
_STATEMENTS = ("query", "redo_sql")
_STATEMENT_FIELDS = tuple(f"{prefix}{name}" for name in _STATEMENTS for prefix in ("", "__", "__source_"))


def withheld_columns(settings: TableSettings) -> tuple[str, ...]:
    """The columns whose values must not be anywhere, and where there are any the fields that hold whole statements."""
    columns = (*settings.exclude, *settings.mask)
    return tuple(dict.fromkeys((*columns, *_STATEMENT_FIELDS))) if columns else ()


def without(records: DataFrame, columns: Collection[str]) -> DataFrame:
    """Kafka's records (key, value, headers and more) without the values of these columns, at whatever depth."""
    if not columns:
        return records
    mark = F.struct(
        F.lit(HEADER).alias("key"), F.lit(json.dumps(list(columns), ensure_ascii=False)).cast("binary").alias("value")
    )
    own = F.transform(
        F.col("headers"),
        lambda h: F.struct(
            h["key"].alias("key"), F.when(~h["key"].isin(*columns), _cut(h["value"], columns, bare=True)).alias("value")
        ),
    )
    return records.withColumns(
        {
            "key": _cut(F.col("key"), columns),
            "value": _cut(F.col("value"), columns),
            "headers": F.concat(
                F.coalesce(own, F.array().cast("array<struct<key:string,value:binary>>")), F.array(mark)
            ),
        }
    )


def _cut(data: Column, columns: Collection[str], *, bare: bool = False) -> Column:
    """BINARY: a JSON object without the columns' values, NULL for what may hide them. `bare`: what begins like no JSON
    is a value of its own, and stays."""
    given = data.cast("string")
    text = F.replace(F.replace(given, F.lit("\\\\"), F.lit(_BACKSLASH)), F.lit('\\"'), F.lit(_QUOTE))
    names = "|".join(re.escape(json.dumps(name, ensure_ascii=False)) for name in columns)
    hides = given.rlike(r"[\x01\x02]") | text.rlike(_ESCAPED_NAME) | text.rlike(rf"(?:{names})\s*+:\s*+[\[{{]")
    cut = F.regexp_replace(text, rf"({names})\s*+:\s*+(?:{_SIMPLE_VALUE})", "$1:null")
    cut = F.replace(F.replace(cut, F.lit(_QUOTE), F.lit('\\"')), F.lit(_BACKSLASH), F.lit("\\\\"))
    # The parser passes over what comes behind an object; nothing can stand behind it in a list and in an object.
    within = [F.concat(F.lit(before), given, F.lit(behind)) for before, behind in (("[", "]"), ('{"o":', "}"))]
    is_one = F.try_parse_json(within[0]).isNotNull() & F.try_parse_json(within[1]).isNotNull()
    is_object = F.startswith(F.ltrim(given), F.lit("{")) & is_one
    kept = F.when(is_object & ~hides, cut.cast("binary"))
    if bare:
        kept = F.when(given.rlike(r'^[^\s"{\[]*$'), data).otherwise(kept)
    return F.when(F.is_valid_utf8(given), kept)


def with_withheld(
    waiting: DataFrame,
    session: SparkSession,
    topic: str,
    first: Offsets,
    end: Offsets,
    source: RecordSource,
) -> DataFrame:
    """Records of the quarantine table as Kafka had them: those with something cut out are read from Kafka again, and
    left out where it has them no more. `first` and `end`: the offsets that Kafka has of each partition."""
    places = (
        waiting.where(_PLACES).groupBy("partition").agg(F.min("offset").alias("low"), F.max("offset").alias("high"))
    )
    ranges = {
        row["partition"]: (max(row["low"], first.get(row["partition"], 0)), row["high"] + 1)
        for row in places.collect()
        if first.get(row["partition"], 0) <= row["high"] < end.get(row["partition"], 0)
    }
    if not ranges:
        return waiting.where(f"NOT coalesce({_PLACES}, false)")
    part = OffsetRange(topic, {p: low for p, (low, _) in ranges.items()}, {p: high for p, (_, high) in ranges.items()})
    # By its time too: a topic that was created again has other records at the same places.
    place = ["partition", "offset", "timestamp"]
    again = source.frame(session, part).join(F.broadcast(waiting.where(_PLACES).select(*place)), place, "left_semi")
    kept = waiting.where(f"NOT coalesce({_PLACES}, false)")
    return kept.unionByName(again.select(*kept.columns))
