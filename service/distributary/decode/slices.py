"""Kafka's bytes cut into schema and payload, as text: what tells records' shapes apart, before anything is parsed.

JsonConverter writes `{"schema":…,"payload":…}` without spaces; records may come otherwise, and with schemas that nobody
has seen yet. Where all look like those before them alike.py cuts them, which is far quicker.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from distributary.decode import envelope as e
from distributary.decode import sql, strict
from distributary.decode.shapes import Shape, Signature, has_schema
from distributary.decode.unwrapped import Unwrapped, header_texts, row_signature

OPEN = '{"schema":'
CUT = ',"payload":'


def sliced(raw: DataFrame, unwrapped: Unwrapped | None = None, *, before: bool = False) -> DataFrame:
    """Key and value as text, cut into schema and payload.

    In: Kafka's columns (key BINARY, value BINARY, partition, offset, timestamp, headers). Out: partition, offset,
    timestamp, old_key and new_key STRING (the headers of a key change; NULL without), fault STRING (the code of the
    reason why it is no text at all, see envelope.UNREADABLE; NULL where it is), k and v STRING (payloads; v is NULL for
    a tombstone), ks and vs STRING (signatures, see shapes.Signature); h STRUCT where rows without envelope have headers
    that were added (see unwrapped.header_texts). `before`: the row before the change tells the signature where there is
    none after it.
    """
    row = row_signature("v") if unwrapped else _row_of_envelope(before=before)
    found = raw.select("partition", "offset", "timestamp", *key_headers(), *added_headers(unwrapped), "key", "value")
    kept = [c for c in found.columns if c not in ("key", "value")]
    text = found.select(
        *kept, F.col("key").cast("string").alias("k_text"), F.col("value").cast("string").alias("v_text")
    )
    text = text.withColumns({f"{c}_loose": F.expr(_is_loose(f"{c}_text")) for c in ("k", "v")})
    compact = text.select(
        *kept,
        F.expr(
            f"CASE WHEN NOT ({_valid('k')} AND {_valid('v')}) THEN '{e.BAD_UTF8.code}'"
            f" ELSE coalesce({_fault_of_loose('v')}, {_fault_of_loose('k')}) END"
        ).alias("fault"),
        F.expr(_compact("k")).alias("k"),
        F.expr(_compact("v")).alias("v"),
    )
    cut = compact.select(
        "*", F.expr(f"instr(k, '{CUT}')").alias("k_cut"), F.expr(f"instr(v, '{CUT}')").alias("v_cut")
    ).select(
        *kept,
        "fault",
        F.expr(_payload("k")).alias("k"),
        F.expr(_payload("v")).alias("v"),
        F.expr(_schema("k")).alias("k_schema"),
        F.expr(_schema("v")).alias("v_schema"),
    )
    if unwrapped is None:
        cut = cut.withColumn("fault", F.expr(f"coalesce(fault, {_TOO_LONG})"))
    # A value that is JSON's null is a tombstone too.
    cut = cut.withColumns({c: F.expr(f"CASE WHEN trim({c}) <> 'null' THEN {c} END") for c in ("k", "v")})
    return cut.select(
        *(c for c in cut.columns if not c.endswith("_schema")),
        F.expr(
            "coalesce(k_schema, CASE WHEN k IS NOT NULL THEN to_json(array_distinct(json_object_keys(k))) END)"
        ).alias("ks"),
        F.expr(f"coalesce(v_schema, CASE WHEN v IS NOT NULL THEN {row} END)").alias("vs"),
    )


# get_json_object passes over a row with a text that is too long, and what has no row fits every shape. The row of a
# delete is not needed.
_TOO_LONG = (
    f"CASE WHEN v_schema IS NULL AND octet_length(v) > {strict.LONGEST} AND get_json_object(v, '$.op') <> 'd'"
    f" AND coalesce(get_json_object(v, '$.after'), get_json_object(v, '$.before')) IS NULL THEN '{e.TOO_LONG.code}' END"
)


def _valid(c: str) -> str:
    return f"coalesce(is_valid_utf8({c}_text), true)"


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
    place = f"nullif(array_position(headers.key, {sql.text(name)}), 0L)"
    found = F.expr(f"element_at(headers, CAST({place} AS INT))")
    return F.when(found.isNotNull(), F.coalesce(found["value"].cast("string"), F.lit("")))


def _is_loose(text: str) -> str:
    """BOOLEAN: a `{"schema":…,"payload":…}` written with spaces or the other way round."""
    looks = f"{text} RLIKE '^\\\\s*[{{]\\\\s*\"(schema|payload)\"\\\\s*:\\\\s*([{{]|null)'"
    usual = f"startswith({text}, '{OPEN}') AND instr({text}, '{CUT}') > 0"
    # Not for any object that begins so: without a payload it would be taken for a tombstone.
    whole = f"array_sort(array_distinct(json_object_keys({text}))) = array('payload', 'schema')"
    return f"NOT ({usual}) AND {looks} AND coalesce({whole}, false)"


def _compact(c: str) -> str:
    """Such a text in the order that JsonConverter has, without spaces; others as they are."""
    text = f"{c}_text"
    rebuilt = (
        f"concat('{{\"schema\":', coalesce(get_json_object({text}, '$.schema'), 'null'),"
        f" '{CUT}', coalesce(get_json_object({text}, '$.payload'), 'null'), '}}')"
    )
    return f"CASE WHEN {c}_loose THEN {rebuilt} ELSE {text} END"


def _fault_of_loose(c: str) -> str:
    """What get_json_object passes over in such a text, see strict.fault."""
    return f"CASE WHEN {c}_loose THEN {strict.fault_of(f'{c}_text')} END"


def _wrapped(c: str) -> str:
    return f"{c}_cut > 0 AND (startswith({c}, '{{\"schema\":{{') OR startswith({c}, '{{\"schema\":null'))"


def _payload(c: str) -> str:
    """What stands behind the cut, without the last brace; with whatever comes after that brace, which is a fault."""
    # Blanks behind it are rare, and to trim others than spaces takes eight bytes of memory for each one of the text.
    behind = sql.let(
        "behind_",
        f"substring({c}, {c}_cut + {len(CUT)})",
        f"CASE WHEN endswith(behind_, '}}') THEN {_without_last('behind_')} ELSE"
        f" {sql.let('trimmed_', _TRIMMED, _TRIMMED_INNER)} END",
    )
    return f"CASE WHEN {_wrapped(c)} THEN {behind} ELSE {c} END"


def _without_last(text: str) -> str:
    return f"left({text}, length({text}) - 1)"


_TRIMMED = "trim(TRAILING ' \\t\\r\\n' FROM behind_)"
_TRIMMED_INNER = f"CASE WHEN endswith(trimmed_, '}}') THEN {_without_last('trimmed_')} ELSE trimmed_ END"


def _schema(c: str) -> str:
    start = len(OPEN) + 1
    cut = f"substring({c}, {start}, {c}_cut - {start})"
    return f"CASE WHEN {_wrapped(c)} AND startswith({c}, '{OPEN}{{') THEN {cut} END"


def shape_number(shapes: Sequence[Shape]) -> Column:
    """INT: the place of a sliced record's shape in `shapes`, from 0; -1 for a shape that is not among them.

    A record without key (a truncate) or without row (a tombstone, a delete without schema) fits every shape that
    agrees in what it has.
    """
    number = F.lit(-1)
    for index in reversed(range(len(shapes))):
        fits = reduce(Column.__or__, map(_fits, shapes[index].signatures))
        number = F.when(fits, index).otherwise(number)
    # What is no JSON object has no shape of its own to wait for: it is quarantined whatever the shapes are.
    hopeless = F.col("fault").isNotNull() | (F.col("v").isNotNull() & ~F.startswith(F.ltrim(F.col("v")), F.lit("{")))
    return F.when(hopeless, 0).otherwise(number)


def _fits(signature: Signature) -> Column:
    """BOOLEAN: a sliced record has that signature, as far as it has one."""
    key_fits = F.col("ks").isNull() | F.col("ks").eqNullSafe(F.lit(signature.key))
    row_fits = F.col("vs").isNull() | (F.col("vs") == "[]") | F.col("vs").eqNullSafe(F.lit(signature.row))
    if signature.row is not None and not has_schema(signature.row):
        # A row without schema may leave fields out: it fits where it has no other ones.
        usual = f"from_json({sql.text(signature.row)}, 'ARRAY<STRING>')"
        others = f"array_except(from_json(vs, 'ARRAY<STRING>'), {usual})"
        row_fits = row_fits | F.expr(f"startswith(vs, '[') AND size({others}) = 0")
    return key_fits & row_fits
