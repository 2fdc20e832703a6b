"""The keys that a record names: its own, and those in the headers of a key change; or those of its rows."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from distributary.decode import sql
from distributary.decode.reading import Reading
from distributary.decode.shapes import Shape
from distributary.decode.types import Codec

# An update that changes the columns that stand for a key is two changes, as the connector would have sent them.
_HALVES = "array('d', 'c')"
_WHOLE = "array(CAST(NULL AS STRING))"


def key_struct(at: Mapping[str, str], reading: Reading) -> str:
    """STRUCT<k0, k1 …>: the table's key, from an expression per column; NULL for those without."""
    fields = ", ".join(
        f"'k{i}', CAST({at.get(name, 'NULL')} AS {kind})" for i, (name, kind) in enumerate(reading.key.items())
    )
    # A slice of truncates alone may be all there is, and then nothing tells the key yet.
    return f"named_struct({fields})" if fields else "named_struct('k0', CAST(NULL AS STRING))"


def key_hash(reading: Reading) -> str:
    """BIGINT: the hash of a key `k`. It stays the same when a whole number's column is widened: it is remembered."""
    whole = ("tinyint", "smallint", "int")
    parts = [f"CAST(k.k{i} AS {'BIGINT' if kind in whole else kind})" for i, kind in enumerate(reading.key.values())]
    return f"xxhash64({', '.join(parts) or 'k'})"


def linked_key(header: str, shape: Shape, reading: Reading) -> Column:
    """A header's key, parsed: SimpleHeaderConverter writes the bare key, JsonConverter may put a schema beside it."""
    if not reading.links or reading.key_from_row:
        return F.lit(None)
    # Not for any `{"schema":`: a key's column may be called so.
    wrapped = f"startswith({header}, '{{\"schema\":{{')"
    payload = f"CASE WHEN {wrapped} THEN get_json_object({header}, '$.payload') ELSE {header} END"
    struct = f"STRUCT<{shape.sent(shape.key) or '_none: STRING'}>"
    # SimpleHeaderConverter escapes quotes and backslashes in texts, and nothing else.
    key = f"from_json({payload}, {sql.text(struct)}, map('allowUnquotedControlChars', 'true'))"
    return F.expr(shape.as_lake(key, shape.called(shape.key)) if shape.key else key)


def key_of_header(parsed: str, shape: Shape, reading: Reading) -> str:
    """The key of a parsed header; NULL where there is none or some part of it can't be read.

    SimpleHeaderConverter writes Connect's own dates and times (`time.precision.mode: connect`) without quotes: a key of
    those is no JSON.
    """
    if not reading.links or not reading.key or reading.key_from_row:
        return f"CASE WHEN false THEN {key_struct({}, reading)} END"
    return _key_at(parsed, shape.key, reading)


def _key_at(struct: str, codecs: Mapping[str, Codec], reading: Reading) -> str:
    at = {name: codec.sql(f"{struct}.{sql.name(name)}") for name, codec in codecs.items()}
    lost = " OR ".join(codec.lost(f"{struct}.{sql.name(name)}") for name, codec in codecs.items()) or "false"
    nothing = " AND ".join(f"{struct}.{sql.name(name)} IS NULL" for name in codecs) or "true"
    return f"CASE WHEN NOT ({lost}) AND NOT ({nothing}) THEN {key_struct(at, reading)} END"


def halves(shape: Shape, reading: Reading) -> str:
    """ARRAY<STRING>, for explode: `d` and `c` where the record changes the columns that stand for the key, else NULL.

    Of a parsed record `p`.
    """
    codecs = reading.key_codecs(shape)
    if not codecs:
        return _WHOLE
    old, new = _key_at("p.before", codecs, reading), _key_at("p.after", codecs, reading)
    return (
        f"CASE WHEN p.op = 'u' AND p.before IS NOT NULL THEN"
        f" CASE WHEN {old} <> {new} THEN {_HALVES} ELSE {_WHOLE} END ELSE {_WHOLE} END"
    )


def with_whole_updates(records: DataFrame) -> DataFrame:
    """Decoded records (see records.decoded) in which an update that is two changes is one record: bad where one of them
    is, and then there once."""
    place = Window.partitionBy("partition", "offset", "timestamp")
    marked = records.withColumn("bad", F.coalesce("bad", F.first("bad", ignorenulls=True).over(place)))
    marked = marked.withColumn("nth", F.row_number().over(place.orderBy("kind")))
    return marked.where("bad IS NULL OR nth = 1").drop("nth")


def key_of_row(row: str, shape: Shape, reading: Reading) -> str:
    """The key that a row's columns stand for."""
    return _key_at(row, reading.key_codecs(shape), reading)
