"""Records that look like those before them: cut by the bytes of the schemas that are known, which most are.

JsonConverter writes the schema before the payload, the same one each time, and it is most of a record's bytes: they are
compared, not looked through, and none of what slices.sliced asks of all other records is in the plan.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from distributary.decode import envelope as e
from distributary.decode import strict
from distributary.decode.shapes import Shape, has_schema
from distributary.decode.slices import CUT, OPEN, added_headers, key_headers, shape_number, sliced
from distributary.decode.unwrapped import Unwrapped

_NOTHING = b'{"schema":null,"payload":null}'
"""How JsonConverter with schemas may write a null."""


def alike(raw: DataFrame, shape: Shape, unwrapped: Unwrapped | None = None, *, before: bool = False) -> DataFrame:
    """Key and value as text, cut into schema and payload; for a topic whose records have that shape.

    In: Kafka's columns, as for slices.sliced, and `before` as there. Out: partition, offset, timestamp, old_key,
    new_key, fault, k, v and h as there, and known BOOLEAN: the record has the shape; if not, nothing else of it counts.
    Of a shape without a schema ks and vs too, which tell it then.
    """
    if not _have_schemas(shape):
        return with_known(sliced(raw, unwrapped, before=before), shape)
    keys, rows = (_beginnings(texts) for texts in zip(*((s.key, s.row) for s in shape.signatures), strict=True))
    found = raw.select(
        "partition",
        "offset",
        "timestamp",
        *key_headers(),
        *added_headers(unwrapped),
        *(F.when(F.col(data) != F.lit(bytearray(_NOTHING)), F.col(data)).alias(data) for data in ("key", "value")),
    )
    found = found.select(
        "*",
        _which("key", keys).alias("k_schema"),
        _which("value", rows).alias("v_schema"),
    )
    kept = [c for c in found.columns if c not in ("key", "value", "k_schema", "v_schema")]
    known = f"{_known('key', 'k_schema')} AND {_known('value', 'v_schema')}"
    cut = found.select("*", F.expr(known).alias("known")).select(
        *kept,
        "known",
        _text("key", "k_schema", keys).alias("k"),
        _text("value", "v_schema", rows).alias("v"),
    )
    valid = "coalesce(is_valid_utf8(k), true) AND coalesce(is_valid_utf8(v), true)"
    return cut.select(
        *kept,
        "known",
        F.expr(f"CASE WHEN NOT ({valid}) THEN '{e.BAD_UTF8.code}' END").alias("fault"),
        *(F.expr(f"CASE WHEN trim({c}) <> 'null' THEN {c} END").alias(c) for c in ("k", "v")),
    )


def with_known(cut: DataFrame, shape: Shape) -> DataFrame:
    """Sliced records with known BOOLEAN, as alike() has it."""
    return cut.withColumn("known", shape_number([shape]) >= 0)


def _have_schemas(shape: Shape) -> bool:
    return all(has_schema(s.row) and (s.key is None or has_schema(s.key)) for s in shape.signatures)


def _beginnings(schemas: Iterable[str | None]) -> list[bytes]:
    """What comes before the payload, with each of the schemas."""
    return [f"{OPEN}{schema}{CUT}".encode() for schema in dict.fromkeys(schemas) if schema is not None]


def _which(data: str, beginnings: Sequence[bytes]) -> Column:
    """INT: with which of them the bytes begin; NULL where it is none, or where they do not end as an object does."""
    found = F.lit(None).cast("int")
    for index, begin in reversed(list(enumerate(beginnings))):
        begins = F.startswith(F.col(data), F.lit(bytearray(begin)))
        found = F.when(begins & F.endswith(F.col(data), F.lit(bytearray(b"}"))), index).otherwise(found)
    return found


def _known(data: str, schema: str) -> str:
    """BOOLEAN: there is nothing, or one of the schemas, or what is no JSON object at all: that has no other shape."""
    return f"({data} IS NULL OR {schema} IS NOT NULL OR NOT {strict.begins_object(f'CAST({data} AS STRING)')})"


def _text(data: str, schema: str, beginnings: Sequence[bytes]) -> Column:
    """STRING, of what is known: what lies between one of the beginnings and the last brace; else all that there is."""
    found = F.expr(f"CASE WHEN known THEN CAST({data} AS STRING) END")
    for index, begin in enumerate(beginnings):
        start = len(begin) + 1
        inner = F.expr(f"CAST(substring({data}, {start}, octet_length({data}) - {start}) AS STRING)")
        found = F.when(F.col(schema) == index, inner).otherwise(found)
    return found
