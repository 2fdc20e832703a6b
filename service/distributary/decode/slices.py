"""Kafka's bytes cut into schema and payload, as text: what tells records' shapes apart, before anything is parsed.

JsonConverter writes `{"schema":…,"payload":…}` without spaces, the schema is most of the bytes, and comparing it with
the one already known is far cheaper than parsing it.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from distributary.decode import envelope as e
from distributary.decode import sql
from distributary.decode.shapes import Shape, has_schema
from distributary.decode.unwrapped import Unwrapped, header_texts, row_signature

_CUT = ',"payload":'


def sliced(raw: DataFrame, unwrapped: Unwrapped | None = None, *, before: bool = False) -> DataFrame:
    """Key and value as text, cut into schema and payload.

    In: Kafka's columns (key BINARY, value BINARY, partition, offset, timestamp, headers). Out: partition, offset,
    timestamp, old_key and new_key STRING (the headers of a key change; NULL without), fault STRING (the code of the
    reason why it is no text at all, see envelope.UNREADABLE; NULL where it is), k and v STRING (payloads; v is NULL for
    a tombstone), ks and vs STRING (signatures, see shapes.Signature); h STRUCT where rows without envelope have headers
    that were added (see unwrapped.header_texts). `before`: the row before the change tells the signature where there is
    none after it.
    """
    added = added_headers(unwrapped)
    row = row_signature("v") if unwrapped else _row_of_envelope(before=before)
    text = raw.select(
        "partition",
        "offset",
        "timestamp",
        *key_headers(),
        F.expr("coalesce(is_valid_utf8(CAST(key AS STRING)), true)").alias("key_valid"),
        F.expr("coalesce(is_valid_utf8(CAST(value AS STRING)), true)").alias("value_valid"),
        F.expr(_compact("CAST(key AS STRING)")).alias("k"),
        F.expr(_compact("CAST(value AS STRING)")).alias("v"),
        *added,
    )
    cut = text.select(
        "*", F.expr(f"instr(k, '{_CUT}')").alias("k_cut"), F.expr(f"instr(v, '{_CUT}')").alias("v_cut")
    ).select(
        "partition",
        "offset",
        "timestamp",
        "old_key",
        "new_key",
        F.expr(f"CASE WHEN NOT (key_valid AND value_valid) THEN '{e.BAD_UTF8.code}' END").alias("fault"),
        *(["h"] if added else []),
        F.expr(_payload("k")).alias("k"),
        F.expr(_payload("v")).alias("v"),
        F.expr(_schema("k")).alias("k_schema"),
        F.expr(_schema("v")).alias("v_schema"),
    )
    return cut.select(
        *(c for c in cut.columns if not c.endswith("_schema")),
        F.expr("coalesce(k_schema, CASE WHEN k IS NOT NULL THEN to_json(json_object_keys(k)) END)").alias("ks"),
        F.expr(f"coalesce(v_schema, CASE WHEN v IS NOT NULL THEN {row} END)").alias("vs"),
    )


def _row_of_envelope(*, before: bool) -> str:
    rows = "get_json_object(v, '$.after')" + (", get_json_object(v, '$.before')" if before else "")
    return f"to_json(json_object_keys(coalesce({rows}, '{{}}')))"


def key_headers() -> list[Column]:
    """The columns old_key and new_key of Kafka's `headers`."""
    return [_header(e.OLD_KEY_HEADER).alias("old_key"), _header(e.NEW_KEY_HEADER).alias("new_key")]


def added_headers(unwrapped: Unwrapped | None) -> list[Column]:
    """The column h of Kafka's `headers`, where rows without envelope have added ones."""
    if unwrapped is None or not unwrapped.headers:
        return []
    return [header_texts(F.col("headers"), unwrapped.headers).alias("h")]


def _header(name: str) -> Column:
    """STRING: the header's value; empty where the header has none, NULL where there is no such header."""
    found = F.try_element_at(F.filter("headers", lambda h: h["key"] == name), F.lit(1))
    return F.when(found.isNotNull(), F.coalesce(found["value"].cast("string"), F.lit("")))


def _compact(text: str) -> str:
    """A `{"schema":…,"payload":…}` written with spaces or the other way round, in the order that JsonConverter has."""
    looks = f"{text} RLIKE '^\\\\s*[{{]\\\\s*\"(schema|payload)\"\\\\s*:\\\\s*([{{]|null)'"
    usual = f"startswith({text}, '{{\"schema\":') AND instr({text}, '{_CUT}') > 0"
    rebuilt = (
        f"concat('{{\"schema\":', coalesce(get_json_object({text}, '$.schema'), 'null'),"
        f" '{_CUT}', coalesce(get_json_object({text}, '$.payload'), 'null'), '}}')"
    )
    return f"CASE WHEN {usual} OR NOT ({looks}) THEN {text} ELSE {rebuilt} END"


def _wrapped(c: str) -> str:
    return f"{c}_cut > 0 AND (startswith({c}, '{{\"schema\":{{') OR startswith({c}, '{{\"schema\":null'))"


def _payload(c: str) -> str:
    inner = f"substring({c}, {c}_cut + {len(_CUT)}, length({c}) - {c}_cut - {len(_CUT)})"
    closed = f"right({c}, 1) = '}}'"
    payload = f"CASE WHEN {_wrapped(c)} AND {closed} THEN {inner} ELSE {c} END"
    return f"CASE WHEN trim({payload}) NOT IN ('null', '') THEN {payload} WHEN {c} = '' THEN {c} END"


def _schema(c: str) -> str:
    start = len('{"schema":') + 1
    cut = f"substring({c}, {start}, {c}_cut - {start})"
    return f"CASE WHEN {_wrapped(c)} AND startswith({c}, '{{\"schema\":{{') THEN {cut} END"


def shape_number(shapes: Sequence[Shape]) -> Column:
    """INT: the place of a sliced record's shape in `shapes`, from 0; -1 for a shape that is not among them.

    A record without key (a truncate) or without row (a tombstone, a delete without schema) fits every shape that
    agrees in what it has.
    """
    number = F.lit(-1)
    for index in reversed(range(len(shapes))):
        signature = shapes[index].signature
        key_fits = F.col("ks").isNull() | F.col("ks").eqNullSafe(F.lit(signature.key))
        row_fits = F.col("vs").isNull() | (F.col("vs") == "[]") | F.col("vs").eqNullSafe(F.lit(signature.row))
        if signature.row is not None and not has_schema(signature.row):
            # A row without schema may leave fields out: it fits where it has no other ones.
            others = (
                f"array_except(from_json(vs, 'ARRAY<STRING>'), from_json({sql.text(signature.row)}, 'ARRAY<STRING>'))"
            )
            row_fits = row_fits | F.expr(f"startswith(vs, '[') AND size({others}) = 0")
        number = F.when(key_fits & row_fits, index).otherwise(number)
    # What is no JSON object has no shape of its own to wait for: it is quarantined whatever the shapes are.
    hopeless = F.col("fault").isNotNull() | (F.col("v").isNotNull() & ~F.startswith(F.ltrim(F.col("v")), F.lit("{")))
    return F.when(hopeless, 0).otherwise(number)
