"""From sliced to decoded records: one row per record, typed, with what the merge needs to order them.

Nothing here runs a Spark job.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from distributary.decode import envelope as e
from distributary.decode import sql
from distributary.decode.placeholder import CONNECTORS_WITH_PLACEHOLDER, is_placeholder, may_hold_placeholder
from distributary.decode.position import position_sql, transaction_sql
from distributary.decode.shapes import Shape
from distributary.decode.slices import shape_number
from distributary.decode.types import Codec

_CORRUPT = "_corrupt"


@dataclass(frozen=True)
class Reading:
    """How a table's records are to be read.

    `columns` are the table's columns (name to Spark type) that a decoded row has, `key` those of its key.
    `deleted` maps a partition to the hash of the key whose delete was the last record taken in before this slice: a
    tombstone that comes first for that key belongs to that delete. `keyless`: the table has no key, and its records
    need none. What only some slices need is read on request:
    `before` the row before the change, `links` the keys that the headers of a key change name, `missing` the columns
    whose value the source did not send.
    """

    connector: str
    epoch: int
    columns: Mapping[str, str]
    key: Mapping[str, str]
    placeholder: str
    deleted: Mapping[int, int]
    keyless: bool = False
    before: bool = False
    links: bool = False
    missing: bool = False


def decoded(records: DataFrame, shape: Shape, reading: Reading) -> DataFrame:
    """Sliced records of one shape, decoded.

    Out, one row per record: partition INT, offset BIGINT, timestamp TIMESTAMP, kind STRING (envelope.Kind),
    bad STRUCT<code, message> (NULL where the record can be applied), k STRUCT (the key), kh BIGINT (its hash),
    pos STRING, tx STRING, read_id STRING (a PostgreSQL snapshot row's source block), ts_ms BIGINT,
    moved_in, moved_out, carried BOOLEAN, placeholder BOOLEAN (some value may not have been sent), row STRUCT (the
    table's columns c0, c1 …; NULL without `after`), known BOOLEAN (the record has this shape; if not, nothing of it
    counts); and as far as `reading` asks for them, else NULL: before STRUCT (as row), old_k and new_k STRUCT (as k: the
    key that the row had before a key change, on its `c`; the one that it gets, on its `d`), missing ARRAY<INT> (places
    in row of values that the source did not send; they are NULL in row).
    """
    parsed = records.select(
        "*",
        (shape_number([shape]) >= 0).alias("known"),
        F.from_json("v", _envelope_ddl(shape, reading), {"columnNameOfCorruptRecord": _CORRUPT}).alias("p"),
        F.from_json("k", _key_ddl(shape), {"columnNameOfCorruptRecord": _CORRUPT}).alias("kp"),
        *(_linked_key(header, shape, reading) for header in ("old_key", "new_key")),
    )
    op, source = "p.op", "p.source"
    position = position_sql(reading.connector, source, op, reading.epoch)
    typed = parsed.select(
        "partition",
        "offset",
        "timestamp",
        "known",
        F.expr("old_key IS NOT NULL").alias("moved_in"),
        F.expr("new_key IS NOT NULL").alias("moved_out"),
        F.expr(_key_of("old_keyp", shape, reading)).alias("old_k"),
        F.expr(_key_of("new_keyp", shape, reading)).alias("new_k"),
        "valid",
        F.expr(
            f"CASE WHEN v IS NULL THEN 'x' WHEN {op} IN ('c', 'u', 'r', 'd', 't', 'm') THEN {op} ELSE '!' END"
        ).alias("kind"),
        F.expr(f"v IS NOT NULL AND (p IS NULL OR p.{_CORRUPT} IS NOT NULL)").alias("broken"),
        F.expr(f"k IS NOT NULL AND (kp IS NULL OR kp.{_CORRUPT} IS NOT NULL)").alias("key_broken"),
        F.expr(f"v IS NOT NULL AND {op} IS NULL AND {source} IS NULL").alias("no_envelope"),
        F.expr("p.after IS NOT NULL").alias("has_row"),
        F.expr("p.before IS NOT NULL" if reading.before else "false").alias("has_before"),
        F.expr("k IS NOT NULL").alias("has_key"),
        F.expr(f"{source}.connector").alias("connector"),
        F.expr(position).alias("pos"),
        F.expr(f"try_cast({source}.ts_ms AS BIGINT)").alias("ts_ms"),
        F.expr(_read_id(reading)).alias("read_id"),
        F.expr(transaction_sql(reading.connector, source, position)).alias("tx"),
        F.expr(may_hold_placeholder("v", reading.connector, reading.placeholder)).alias("placeholder"),
        F.expr(_missing(shape, reading)).alias("missing"),
        *_values("kp", "k", shape.key),
        *_values("p.after", "c", shape.row),
        *(_values("p.before", "b", shape.row) if reading.before else ()),
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
        F.expr("CASE WHEN kind = 'c' THEN old_k END").alias("old_k"),
        F.expr("CASE WHEN kind = 'd' THEN new_k END").alias("new_k"),
        "placeholder",
        "missing",
        F.expr(_row(shape, reading, "c", "has_row")).alias("row"),
        F.expr(_row(shape, reading, "b", "has_before")).alias("before"),
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


def _envelope_ddl(shape: Shape, reading: Reading) -> str:
    source = ", ".join(f"`{name}`: STRING" for name in e.SOURCE_FIELDS)
    row = f"STRUCT<{_fields(shape.row)}>"
    before = f" before {row}," if reading.before else ""
    return f"op STRING, source STRUCT<{source}>,{before} after {row}, {_CORRUPT} STRING"


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


def _missing(shape: Shape, reading: Reading) -> str:
    """ARRAY<INT>: the places, among the table's columns, of values that the source did not send."""
    none = "CAST(NULL AS ARRAY<INT>)"
    if not reading.missing or reading.connector not in CONNECTORS_WITH_PLACEHOLDER:
        return none
    place = {name: i for i, name in enumerate(reading.columns)}

    def places(struct: str) -> str:
        found = [
            f"CASE WHEN {test} THEN {place[name]} END"
            for name, codec in shape.row.items()
            if name in place
            and (test := is_placeholder(f"{struct}.{sql.name(name)}", codec.wire, reading.placeholder)) is not None
        ]
        return f"array_compact(array({', '.join(found)}))" if found else none

    return (
        f"CASE WHEN p.op = 'd' THEN {places('p.before')} ELSE {places('p.after')} END"
        if reading.before
        else places("p.after")
    )


def _bad(shape: Shape, reading: Reading) -> str:
    def lost_values(letter: str) -> str:
        lost = ", ".join(
            f"CASE WHEN {letter}{i}_there AND {letter}{i} IS NULL{_sent(name, reading)} THEN {sql.text(name)} END"
            for i, name in enumerate(shape.row)
        )
        return f"array_join(array({lost or 'CAST(NULL AS STRING)'}), ', ')"

    # Of a delete the row before it is kept, of the others the one after.
    lost_list = lost_values("c")
    if reading.before:
        lost_list = f"CASE WHEN kind = 'd' THEN {lost_values('b')} ELSE {lost_list} END"
    keeps_row = "kind IN ('c', 'u', 'r', 'd')" if reading.before else "kind IN ('c', 'u', 'r')"
    key_lost = " OR ".join(["key_broken", *(f"(k{i}_there AND k{i} IS NULL)" for i in range(len(shape.key)))])
    applies = "kind NOT IN ('t', 'm', '!')"
    cases: list[tuple[str, str]] = [
        ("true" if shape.unreadable else "false", _reason(e.BAD_SCHEMA)),
        ("NOT valid", _reason(e.BAD_UTF8)),
        ("broken", _reason(e.NOT_JSON)),
        ("no_envelope", _reason(e.NOT_AN_ENVELOPE)),
        ("kind = '!'", _reason(e.UNKNOWN_OPERATION)),
        ("kind IN ('c', 'u', 'r') AND NOT has_row", _reason(e.NO_ROW)),
        ("false" if reading.keyless else f"{applies} AND NOT has_key", _reason(e.NO_KEY)),
        (
            "false" if reading.keyless else f"{applies} AND ({key_lost} OR ({_all_null(shape)}))",
            _reason(e.BAD_KEY),
        ),
        (f"kind NOT IN ('x', 'm') AND connector NOT IN ({_family(reading.connector)})", _reason(e.OTHER_CONNECTOR)),
        ("kind NOT IN ('x', 'm') AND pos IS NULL", _reason(e.NO_POSITION)),
        (
            f"{keeps_row} AND {lost_list} <> ''",
            (
                f"named_struct('code', {sql.text(e.BAD_VALUE.code)},"
                f" 'message', concat({sql.text(e.BAD_VALUE.message)}, {lost_list}))"
            ),
        ),
    ]
    whens = " ".join(f"WHEN {condition} THEN {reason}" for condition, reason in cases)
    return f"CASE {whens} END"


def _sent(column: str, reading: Reading) -> str:
    """A value that was not sent is no bad value, even where the placeholder does not fit the column's type."""
    place = list(reading.columns).index(column) if column in reading.columns else -1
    return f" AND NOT coalesce(array_contains(missing, {place}), false)" if reading.missing else ""


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
    return _key_struct(at, reading)


def _key_struct(at: Mapping[str, str], reading: Reading) -> str:
    fields = ", ".join(
        f"'k{i}', CAST({at.get(name, 'NULL')} AS {kind})" for i, (name, kind) in enumerate(reading.key.items())
    )
    # A slice of truncates alone may be all there is, and then nothing tells the key yet.
    return f"named_struct({fields})" if fields else "named_struct('k0', CAST(NULL AS STRING))"


def _linked_key(header: str, shape: Shape, reading: Reading) -> Column:
    """A header's key, parsed: SimpleHeaderConverter writes the bare key, JsonConverter may put a schema beside it."""
    if not reading.links:
        return F.lit(None).alias(f"{header}p")
    payload = (
        f"CASE WHEN startswith({header}, '{{\"schema\":') THEN get_json_object({header}, '$.payload') ELSE {header} END"
    )
    return F.from_json(F.expr(payload), _key_ddl(shape)).alias(f"{header}p")


def _key_of(parsed: str, shape: Shape, reading: Reading) -> str:
    """The key of a parsed header; NULL where there is none or some part of it can't be read."""
    if not reading.links or not reading.key:
        return f"CASE WHEN false THEN {_key_struct({}, reading)} END"
    at = {name: codec.sql(f"{parsed}.{sql.name(name)}") for name, codec in shape.key.items()}
    lost = " OR ".join(codec.lost(f"{parsed}.{sql.name(name)}") for name, codec in shape.key.items()) or "false"
    nothing = " AND ".join(f"{parsed}.{sql.name(name)} IS NULL" for name in shape.key) or "true"
    return f"CASE WHEN NOT ({lost}) AND NOT ({nothing}) THEN {_key_struct(at, reading)} END"


def _row(shape: Shape, reading: Reading, letter: str, there: str) -> str:
    at = {name: f"{letter}{i}" for i, name in enumerate(shape.row)} if letter == "c" or reading.before else {}
    place = {name: i for i, name in enumerate(reading.columns)}

    def value(name: str) -> str:
        if reading.missing and name in at:
            return f"CASE WHEN NOT coalesce(array_contains(missing, {place[name]}), false) THEN {at[name]} END"
        return at.get(name, "NULL")

    fields = ", ".join(
        f"'c{i}', CAST({value(name)} AS {kind})" for i, (name, kind) in enumerate(reading.columns.items())
    )
    return f"CASE WHEN {there} THEN named_struct({fields}) END"


def _carried(reading: Reading) -> Column:
    # Text instead of numbers: Spark writes numbers into the code that it compiles, and would compile for every slice.
    ends = [f"{partition}:{key_hash}" for partition, key_hash in sorted(reading.deleted.items())]
    at = F.concat_ws(":", F.col("partition").cast("string"), F.col("kh").cast("string"))
    return (F.col("kind") == e.Kind.TOMBSTONE.value) & F.instr(
        F.lit(f",{','.join(ends)},"), F.concat(F.lit(","), at, F.lit(","))
    ).cast("boolean")
