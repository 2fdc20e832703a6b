"""From sliced records to their envelope and key as structs: what from_json reads, and whether it could."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from distributary.decode import envelope as e
from distributary.decode import sql, strict
from distributary.decode.keys import halves, linked_key
from distributary.decode.plain_keys import plain_key
from distributary.decode.reading import Reading
from distributary.decode.shapes import Shape, has_schema
from distributary.decode.types import Codec
from distributary.decode.unwrapped import as_envelope

_NO_TEXT = "CAST(NULL AS STRING)"
_TRANSACTION_FIELDS = "transaction: STRUCT<id: STRING, data_collection_order: STRING>"


def parsed(records: DataFrame, shape: Shape, reading: Reading, *, usual: bool) -> DataFrame:
    """Records that were cut (see records.decoded) with `p`, the envelope as a struct, and `kp`, the key; old_keyp and
    new_keyp from headers; `plain`, `value_frame` and `key_frame`, which both were read from. `usual`: the shape is that
    of usual values (Shape.usual), and a record that from_json has not read as it was asked to is not `known` any more.

    Where the row stands for the key: also `half`, which of its two changes an update of the key is, and `half_op`.
    """
    links = [linked_key(header, shape, reading).alias(f"{header}p") for header in ("old_key", "new_key")]
    ddl = _envelope_ddl if reading.unwrapped is None else _row_ddl
    value = ddl(shape, reading, shape.sent)
    frame = strict.framed("v", value, with_schema=has_schema(shape.signature.row))
    plain = _plain_key(shape, reading)
    framed = records.select("*", F.expr(plain or _NO_TEXT).alias("plain"))
    framed = framed.select("*", frame.alias("value_frame"), _key_frame(shape, reading).alias("key_frame"), *links)
    read = F.expr(shape.as_lake(strict.only("value_frame"), ddl(shape, reading, shape.called)))
    kp = F.expr(_named_key(shape, reading))
    if reading.unwrapped is None:
        found = framed.withColumns({"p": read, "kp": kp})
    else:
        p = as_envelope(reading.connector, shape.added, reading.unwrapped.headers)
        found = framed.withColumns({"raw": read, "kp": kp}).withColumn("p", F.expr(p))
    if usual:
        found = found.withColumn("known", F.expr(_known(shape, reading)))
    if not reading.key_from_row:
        return found
    return found.withColumn("half", F.explode(F.expr(halves(shape, reading)))).withColumns(
        {
            "half_op": F.expr("coalesce(half, p.op)"),
            "kp": F.expr("CASE WHEN coalesce(half, p.op) = 'd' THEN p.before ELSE p.after END"),
        }
    )


def _plain_key(shape: Shape, reading: Reading) -> str | None:
    return None if reading.key_from_row else plain_key("k", shape)


def _key_frame(shape: Shape, reading: Reading) -> Column:
    """The key within its frame, where it has to be parsed."""
    if reading.key_from_row:
        return F.lit(None)
    frame = strict.framed("k", shape.sent(shape.key))
    return F.when(F.col("plain").isNull(), frame)


def _named_key(shape: Shape, reading: Reading) -> str:
    if reading.key_from_row:
        return "NULL"
    parsed = shape.as_lake(strict.only("key_frame"), shape.called(shape.key))
    if _plain_key(shape, reading) is None:
        return parsed
    [name] = shape.key
    return f"CASE WHEN plain IS NULL THEN {parsed} ELSE named_struct({sql.text(name)}, plain) END"


_Fields = Callable[[Mapping[str, Codec]], str]


def _envelope_ddl(shape: Shape, reading: Reading, fields: _Fields) -> str:
    source = ", ".join(f"`{name}`: STRING" for name in e.source_fields(reading.connector))
    row = f"STRUCT<{fields(shape.row)}>"
    before = f" before: {row}," if reading.parses_before else ""
    transaction = f", {_TRANSACTION_FIELDS}" if tells_transactions(reading) else ""
    return f"op: STRING, source: STRUCT<{source}>,{before} after: {row}{transaction}"


def tells_transactions(reading: Reading) -> bool:
    """Whether each change's place in its transaction is read."""
    return reading.transactions and reading.unwrapped is None


def _row_ddl(shape: Shape, _reading: Reading, fields: _Fields) -> str:
    added = ", ".join(f"{sql.name(name)}: STRING" for name in shape.added)
    return ", ".join(filter(None, (fields(shape.row), added)))


def _known(shape: Shape, reading: Reading) -> str:
    """BOOLEAN: the record has the shape, and from_json has read what is written there, or it is no object at all."""
    rows = ("p.after", "p.before") if reading.parses_before else ("p.after",)
    doubts = [
        doubt
        for name, codec in shape.row.items()
        for row in rows
        if (doubt := codec.doubt(f"{row}.{sql.name(name)}", shape.renames.source(name), "v"))
    ]
    refused = [f"v IS NOT NULL AND {strict.broken('value_frame')} AND {strict.begins_object('v')}"]
    if not reading.key_from_row:
        refused.append(
            f"plain IS NULL AND k IS NOT NULL AND {strict.broken('key_frame')} AND {strict.begins_object('k')}"
        )
    return f"known AND (fault IS NOT NULL OR NOT coalesce({' OR '.join([*refused, *doubts])}, false))"
