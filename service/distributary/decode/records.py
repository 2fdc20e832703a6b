"""From Kafka's bytes to decoded records: one row per record, typed, with what the merge needs to order them.

Nothing here runs a Spark job. The value is cut before it is parsed: JsonConverter writes `{"schema":…,"payload":…}`
without spaces, the schema is most of the bytes, and comparing it with the one already known is far cheaper than
parsing it.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from distributary.decode import envelope as e
from distributary.decode import sql
from distributary.decode.position import position_sql, transaction_sql
from distributary.decode.shapes import Shape, has_schema
from distributary.decode.types import Codec

_CUT = ',"payload":'
_CORRUPT = "_corrupt"


@dataclass(frozen=True)
class Reading:
    """How a table's records are to be read.

    `columns` are the table's columns (name to Spark type) that a decoded row has, `key` those of its key.
    `deleted` maps a partition to the hash of the key whose delete was the last record taken in before this slice: a
    tombstone that comes first for that key belongs to that delete.
    """

    connector: str
    epoch: int
    columns: Mapping[str, str]
    key: Mapping[str, str]
    placeholder: str
    deleted: Mapping[int, int]


def sliced(raw: DataFrame) -> DataFrame:
    """Key and value as text, cut into schema and payload.

    In: Kafka's columns (key BINARY, value BINARY, partition, offset, timestamp, headers). Out: partition, offset,
    timestamp, moved_in and moved_out BOOLEAN (the headers of a key change), valid BOOLEAN (UTF-8), k and v STRING
    (payloads; v is NULL for a tombstone), ks and vs STRING (signatures, see shapes.Signature).
    """
    headers = F.col("headers")
    text = raw.select(
        "partition",
        "offset",
        "timestamp",
        _has_header(headers, e.OLD_KEY_HEADER).alias("moved_in"),
        _has_header(headers, e.NEW_KEY_HEADER).alias("moved_out"),
        F.expr("coalesce(is_valid_utf8(CAST(key AS STRING)), true)").alias("key_valid"),
        F.expr("coalesce(is_valid_utf8(CAST(value AS STRING)), true)").alias("value_valid"),
        F.expr(_compact("CAST(key AS STRING)")).alias("k"),
        F.expr(_compact("CAST(value AS STRING)")).alias("v"),
    )
    cut = text.select(
        "*", F.expr(f"instr(k, '{_CUT}')").alias("k_cut"), F.expr(f"instr(v, '{_CUT}')").alias("v_cut")
    ).select(
        "partition",
        "offset",
        "timestamp",
        "moved_in",
        "moved_out",
        F.expr("key_valid AND value_valid").alias("valid"),
        F.expr(_payload("k")).alias("k"),
        F.expr(_payload("v")).alias("v"),
        F.expr(_schema("k")).alias("k_schema"),
        F.expr(_schema("v")).alias("v_schema"),
    )
    return cut.select(
        *(c for c in cut.columns if not c.endswith("_schema")),
        F.expr("coalesce(k_schema, CASE WHEN k IS NOT NULL THEN to_json(json_object_keys(k)) END)").alias("ks"),
        F.expr(
            "coalesce(v_schema, CASE WHEN v IS NOT NULL"
            " THEN to_json(json_object_keys(coalesce(get_json_object(v, '$.after'), '{}'))) END)"
        ).alias("vs"),
    )


def _has_header(headers: Column, name: str) -> Column:
    return F.coalesce(F.exists(headers, lambda h: h["key"] == name), F.lit(False))


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
    hopeless = ~F.col("valid") | (F.col("v").isNotNull() & ~F.startswith(F.ltrim(F.col("v")), F.lit("{")))
    return F.when(hopeless, 0).otherwise(number)


def decoded(records: DataFrame, shape: Shape, reading: Reading) -> DataFrame:
    """Sliced records of one shape, decoded.

    Out, one row per record: partition INT, offset BIGINT, timestamp TIMESTAMP, kind STRING (envelope.Kind),
    bad STRUCT<code, message> (NULL where the record can be applied), k STRUCT (the key), kh BIGINT (its hash),
    pos STRING, tx STRING, read_id STRING (a PostgreSQL snapshot row's source block), ts_ms BIGINT,
    moved_in, moved_out, carried BOOLEAN, placeholder BOOLEAN, row STRUCT (the table's columns; NULL without `after`),
    known BOOLEAN (the record has this shape; if not, nothing of it counts).
    """
    parsed = records.select(
        "*",
        (shape_number([shape]) >= 0).alias("known"),
        F.from_json("v", _envelope_ddl(shape), {"columnNameOfCorruptRecord": _CORRUPT}).alias("p"),
        F.from_json("k", _key_ddl(shape), {"columnNameOfCorruptRecord": _CORRUPT}).alias("kp"),
    )
    op, source = "p.op", "p.source"
    position = position_sql(reading.connector, source, op, reading.epoch)
    typed = parsed.select(
        "partition",
        "offset",
        "timestamp",
        "known",
        "moved_in",
        "moved_out",
        "valid",
        F.expr(
            f"CASE WHEN v IS NULL THEN 'x' WHEN {op} IN ('c', 'u', 'r', 'd', 't', 'm') THEN {op} ELSE '!' END"
        ).alias("kind"),
        F.expr(f"v IS NOT NULL AND (p IS NULL OR p.{_CORRUPT} IS NOT NULL)").alias("broken"),
        F.expr(f"k IS NOT NULL AND (kp IS NULL OR kp.{_CORRUPT} IS NOT NULL)").alias("key_broken"),
        F.expr(f"v IS NOT NULL AND {op} IS NULL AND {source} IS NULL").alias("no_envelope"),
        F.expr("p.after IS NOT NULL").alias("has_row"),
        F.expr("k IS NOT NULL").alias("has_key"),
        F.expr(f"{source}.connector").alias("connector"),
        F.expr(position).alias("pos"),
        F.expr(f"try_cast({source}.ts_ms AS BIGINT)").alias("ts_ms"),
        F.expr(_read_id(reading)).alias("read_id"),
        F.expr(transaction_sql(reading.connector, source, position)).alias("tx"),
        F.expr(_placeholder(reading)).alias("placeholder"),
        *_values("kp", "k", shape.key),
        *_values("p.after", "c", shape.row),
    )
    ok = typed.select(
        "partition",
        "offset",
        "timestamp",
        "known",
        "kind",
        F.expr(_bad(shape, reading)).alias("bad"),
        F.expr(_key(shape, reading)).alias("k"),
        "pos",
        "tx",
        "read_id",
        "ts_ms",
        F.expr("moved_in AND kind = 'c'").alias("moved_in"),
        F.expr("moved_out AND kind = 'd'").alias("moved_out"),
        "placeholder",
        F.expr(_row(shape, reading)).alias("row"),
    )
    hashed = ok.withColumn("kh", F.xxhash64("k"))
    return hashed.withColumn("carried", _carried(reading))


def _values(struct: str, letter: str, codecs: Mapping[str, Codec]) -> Iterator[Column]:
    """Per column its value (c0, c1 …) and whether the wire has one (c0_there …); one that comes out NULL is a fault."""
    for index, (name, codec) in enumerate(codecs.items()):
        wire = f"{struct}.{sql.name(name)}"
        value = codec.sql(wire)
        yield F.expr(value).alias(f"{letter}{index}")
        yield F.expr("false" if value == wire else codec.there(wire)).alias(f"{letter}{index}_there")


def _envelope_ddl(shape: Shape) -> str:
    source = ", ".join(f"`{name}`: STRING" for name in e.SOURCE_FIELDS)
    return f"op STRING, source STRUCT<{source}>, after STRUCT<{_fields(shape.row)}>, {_CORRUPT} STRING"


def _fields(codecs: Mapping[str, Codec]) -> str:
    return ", ".join(f"{sql.name(name)}: {codec.wire}" for name, codec in codecs.items())


def _key_ddl(shape: Shape) -> str:
    fields = ", ".join(f"{sql.name(name)} {codec.wire}" for name, codec in shape.key.items())
    return f"{fields}, {_CORRUPT} STRING" if fields else f"{_CORRUPT} STRING"


def _read_id(reading: Reading) -> str:
    """Only PostgreSQL's snapshot rows have no place among the changes: they are known again by their source block."""
    if reading.connector != "postgresql":
        return "CAST(NULL AS STRING)"
    return "CASE WHEN p.op = 'r' THEN hex(xxhash64(to_json(p.source))) END"


def _placeholder(reading: Reading) -> str:
    """Whether the row may hold a value that the database did not send (TOAST), in any of Debezium's encodings."""
    if reading.connector != "postgresql":
        return "false"
    text = reading.placeholder
    forms = [text, base64.b64encode(text.encode()).decode(), ",".join(str(b) for b in text.encode())]
    if text == e.DEFAULT_PLACEHOLDER:
        forms.append(e.DERIVED_UUID_OF_DEFAULT)
    found = " OR ".join(f"contains(v, {sql.text(form)})" for form in forms)
    return f"v IS NOT NULL AND ({found})"


def _bad(shape: Shape, reading: Reading) -> str:
    lost = ", ".join(
        f"CASE WHEN c{i}_there AND c{i} IS NULL THEN {sql.text(name)} END" for i, name in enumerate(shape.row)
    )
    lost_list = f"array_join(array({lost or 'CAST(NULL AS STRING)'}), ', ')"
    key_lost = " OR ".join(["key_broken", *(f"(k{i}_there AND k{i} IS NULL)" for i in range(len(shape.key)))])
    applies = "kind NOT IN ('t', 'm', '!')"
    cases: list[tuple[str, str]] = [
        ("true" if shape.unreadable else "false", _reason(e.BAD_SCHEMA)),
        ("NOT valid", _reason(e.BAD_UTF8)),
        ("broken", _reason(e.NOT_JSON)),
        ("no_envelope", _reason(e.NOT_AN_ENVELOPE)),
        ("kind = '!'", _reason(e.UNKNOWN_OPERATION)),
        ("kind IN ('c', 'u', 'r') AND NOT has_row", _reason(e.NO_ROW)),
        (f"{applies} AND NOT has_key", _reason(e.NO_KEY)),
        (f"{applies} AND ({key_lost} OR ({_all_null(shape)}))", _reason(e.BAD_KEY)),
        (f"kind NOT IN ('x', 'm') AND connector NOT IN ({_family(reading.connector)})", _reason(e.OTHER_CONNECTOR)),
        ("kind NOT IN ('x', 'm') AND pos IS NULL", _reason(e.NO_POSITION)),
        (
            f"kind IN ('c', 'u', 'r') AND {lost_list} <> ''",
            (
                f"named_struct('code', {sql.text(e.BAD_VALUE.code)},"
                f" 'message', concat({sql.text(e.BAD_VALUE.message)}, {lost_list}))"
            ),
        ),
    ]
    whens = " ".join(f"WHEN {condition} THEN {reason}" for condition, reason in cases)
    return f"CASE {whens} END"


def _family(connector: str) -> str:
    """MariaDB was read by the MySQL connector before it had its own: their positions are the same."""
    names = ("mysql", "mariadb") if connector in ("mysql", "mariadb") else (connector,)
    return ", ".join(sql.text(name) for name in names)


def _all_null(shape: Shape) -> str:
    """A unique key may have nullable columns, but a key of nothing but NULLs names no row."""
    return " AND ".join(["true", *(f"k{i} IS NULL" for i in range(len(shape.key)))])


def _reason(reason: e.Reason) -> str:
    return f"named_struct('code', {sql.text(reason.code)}, 'message', {sql.text(reason.message)})"


def _key(shape: Shape, reading: Reading) -> str:
    at = {name: f"k{i}" for i, name in enumerate(shape.key)}
    fields = ", ".join(
        f"'k{i}', CAST({at.get(name, 'NULL')} AS {kind})" for i, (name, kind) in enumerate(reading.key.items())
    )
    # A slice of truncates alone may be all there is, and then nothing tells the key yet.
    return f"named_struct({fields})" if fields else "named_struct('k0', CAST(NULL AS STRING))"


def _row(shape: Shape, reading: Reading) -> str:
    at = {name: f"c{i}" for i, name in enumerate(shape.row)}
    fields = ", ".join(
        f"'c{i}', CAST({at.get(name, 'NULL')} AS {kind})" for i, (name, kind) in enumerate(reading.columns.items())
    )
    return f"CASE WHEN has_row THEN named_struct({fields}) END"


def _carried(reading: Reading) -> Column:
    # Text instead of numbers: Spark writes numbers into the code that it compiles, and would compile for every slice.
    ends = [f"{partition}:{key_hash}" for partition, key_hash in sorted(reading.deleted.items())]
    at = F.concat_ws(":", F.col("partition").cast("string"), F.col("kh").cast("string"))
    return (F.col("kind") == e.Kind.TOMBSTONE.value) & F.instr(
        F.lit(f",{','.join(ends)},"), F.concat(F.lit(","), at, F.lit(","))
    ).cast("boolean")
