"""From sliced to decoded records: one row per record, typed, with what the merge needs to order them.

Nothing here runs a Spark job.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from distributary.decode import envelope as e
from distributary.decode import sql, strict
from distributary.decode.keys import key_hash, key_of_header, key_of_row, key_struct
from distributary.decode.parsed import parsed, tells_transactions
from distributary.decode.placeholder import CONNECTORS_WITH_PLACEHOLDER, is_placeholder
from distributary.decode.position import is_malformed, position_sql, transaction_sql
from distributary.decode.reading import Reading
from distributary.decode.shapes import Shape
from distributary.decode.types import Codec
from distributary.decode.verdict import verdict

__all__ = ["Reading", "decoded", "with_carried"]

_NO_TEXT = "CAST(NULL AS STRING)"
_TRANSACTION = (
    "CASE WHEN p.transaction.id IS NOT NULL THEN named_struct('id', p.transaction.id,"
    " 'order', try_cast(p.transaction.data_collection_order AS BIGINT)) END"
)
_TS_MS = "try_cast({}.ts_ms AS BIGINT)"
_LAST_MS = 253_402_300_799_999  # the end of the year 9999, the last one of Python's datetime
_SNAPSHOT_ENDS = ", ".join(map(sql.text, e.SNAPSHOT_ENDS))


def decoded(records: DataFrame, shape: Shape, reading: Reading, *, usual: bool = False) -> DataFrame:
    """Records of one shape, cut by alike.alike or sliced, with known BOOLEAN; decoded. `usual`: quicker, where values
    come as they usually do (see types.Codec); a record with any that does not is not `known`.

    Out, one row per record: partition INT, offset BIGINT, timestamp TIMESTAMP, kind STRING (envelope.Kind),
    bad STRUCT<code, message> (NULL where the record can be applied), k STRUCT (the key), kh BIGINT (its hash),
    pos STRING, tx STRING, read_id STRING (a PostgreSQL snapshot row's source block), ts_ms BIGINT,
    ends BOOLEAN (the last row of the table's snapshot), moved_in, moved_out BOOLEAN, placeholder BOOLEAN (some value
    may not have been sent), row STRUCT (the table's columns c0, c1 …; NULL without `after`), known BOOLEAN (the record
    has this shape; if not, nothing of it counts), size INT (bytes of the payload), carried BOOLEAN (false, see
    with_carried); and as far as `reading` asks for them, else NULL: before STRUCT (as row), old_k and new_k STRUCT (as
    k: the key that the row had before a key change, on its `c`; the one that it gets, on its `d`), missing ARRAY<INT>
    (places in row of values that the source did not send; they are NULL in row).

    With `reading.transactions` also transaction STRUCT<id STRING, order BIGINT>, NULL where the record tells none.

    Two rows for an update that changes the columns that stand for a key (see Reading.key_from_row).
    """
    # What the table does not have (`schema_changes: ignore`) can't be a bad value either.
    shape = shape.within(reading.columns)
    shape = shape.usual() if usual else shape
    found = parsed(records, shape, reading, usual=usual)
    fault = strict.fault_of_usual if usual else strict.fault
    op, source = "half_op" if reading.key_from_row else "p.op", "p.source"
    # A column, so that it is made once however often it is asked for.
    found = found.withColumn("pos", F.expr(position_sql(reading.connector, source, "p.op", reading.epoch)))
    transaction = ("transaction",) if tells_transactions(reading) else ()
    typed = found.select(
        "partition",
        "offset",
        "timestamp",
        "known",
        F.expr("coalesce(octet_length(v), 0)").alias("size"),
        F.expr("old_key IS NOT NULL" if not reading.key_from_row else "half <=> 'c'").alias("moved_in"),
        F.expr("new_key IS NOT NULL" if not reading.key_from_row else "half <=> 'd'").alias("moved_out"),
        F.expr(_other_key("old_keyp", "p.before", shape, reading)).alias("old_k"),
        F.expr(_other_key("new_keyp", "p.after", shape, reading)).alias("new_k"),
        "fault",
        F.expr(_kind(op, reading)).alias("kind"),
        F.expr(fault("v", "value_frame", _ambiguous_value(shape, found))).alias("value_fault"),
        F.expr(_key_fault(reading, fault)).alias("key_fault"),
        F.expr(_no_envelope(reading, found)).alias("no_envelope"),
        F.expr(_there("p.after", "d", reading)).alias("has_row"),
        F.expr(_there("p.before", "c", reading) if reading.before else "false").alias("has_before"),
        F.expr("kp IS NOT NULL" if reading.key_from_row else "k IS NOT NULL").alias("has_key"),
        F.expr(f"{source}.connector").alias("connector"),
        "pos",
        F.expr(f"pos IS NULL AND ({is_malformed(reading.connector, source)})").alias("misplaced"),
        F.expr(f"CASE WHEN {_TS_MS.format(source)} BETWEEN 0 AND {_LAST_MS} THEN {_TS_MS.format(source)} END").alias(
            "ts_ms"
        ),
        F.expr(_read_id(reading)).alias("read_id"),
        F.expr(transaction_sql(reading.connector, source, "pos")).alias("tx"),
        F.expr(f"coalesce(lower({source}.snapshot) IN ({_SNAPSHOT_ENDS}), false)").alias("ends"),
        F.expr(_placeholder(shape, reading)).alias("placeholder"),
        F.expr(_missing(shape, reading)).alias("missing"),
        *(F.expr(_TRANSACTION).alias(name) for name in transaction),
        *_values("kp", "k", reading.key_codecs(shape)),
        *_values("p.after", "c", shape.row),
        *(_values("p.before", "b", shape.row) if reading.before else ()),
    )
    ok = typed.select(
        "partition",
        "offset",
        "timestamp",
        "known",
        "size",
        "kind",
        F.expr(verdict(shape, reading)).alias("bad"),
        F.expr(_key(shape, reading)).alias("k"),
        "pos",
        "tx",
        "read_id",
        "ts_ms",
        F.expr("ends AND kind = 'r'").alias("ends"),
        F.expr("moved_in AND kind = 'c'").alias("moved_in"),
        F.expr("moved_out AND kind = 'd'").alias("moved_out"),
        F.expr("CASE WHEN kind = 'c' THEN old_k END").alias("old_k"),
        F.expr("CASE WHEN kind = 'd' THEN new_k END").alias("new_k"),
        "placeholder",
        "missing",
        *transaction,
        F.expr(_row(shape, reading, "c", "has_row")).alias("row"),
        F.expr(_row(shape, reading, "b", "has_before")).alias("before"),
        F.lit(False).alias("carried"),
    )
    return ok.withColumn("kh", F.expr(key_hash(reading)))


def with_carried(records: DataFrame, deleted: Mapping[int, int]) -> DataFrame:
    """Decoded records whose `carried` tells the tombstones that belong to a delete before this slice.

    `deleted` maps a partition to the hash of the key whose delete was the last record taken in before: a tombstone of
    that key is the delete's.
    """
    # Text instead of numbers: Spark writes numbers into the code that it compiles, and would compile for every slice.
    ends = [f"{partition}:{key_hash}" for partition, key_hash in sorted(deleted.items())]
    at = F.concat_ws(":", F.col("partition").cast("string"), F.col("kh").cast("string"))
    carried = (F.col("kind") == e.Kind.TOMBSTONE.value) & F.instr(
        F.lit(f",{','.join(ends)},"), F.concat(F.lit(","), at, F.lit(","))
    ).cast("boolean")
    # As it is without deletes: never NULL, so that what is asked of the records is not planned anew for these.
    return records.withColumn("carried", F.coalesce(carried, F.lit(False)))


def _values(struct: str, letter: str, codecs: Mapping[str, Codec]) -> Iterator[Column]:
    """Per column its value (c0, c1 …) and whether the wire has one (c0_there …); one that comes out NULL is a fault."""
    for index, (name, codec) in enumerate(codecs.items()):
        wire = f"{struct}.{sql.name(name)}"
        value = codec.sql(wire)
        yield F.expr(value).alias(f"{letter}{index}")
        yield F.expr("false" if value == wire else codec.there(wire)).alias(f"{letter}{index}_there")


def _kind(op: str, reading: Reading) -> str:
    # Without a key a record without a value says nothing: the connector sends one after each delete.
    no_value = f"WHEN v IS NULL THEN '{e.Kind.PASSED_OVER.value}'" if reading.key_from_row else ""
    return (
        f"CASE {no_value} WHEN {op} IN ('c', 'u', 'r', 'd', 't', 'm') THEN {op}"
        f" WHEN v IS NULL THEN '{e.Kind.TOMBSTONE.value}' ELSE '{e.Kind.BAD.value}' END"
    )


def _there(row: str, without: str, reading: Reading) -> str:
    """Whether the change has that row: of an update's two halves one has it, the other (`without`) has not."""
    return f"{row} IS NOT NULL AND NOT half <=> '{without}'" if reading.key_from_row else f"{row} IS NOT NULL"


def _ambiguous_value(shape: Shape, found: DataFrame) -> str:
    """Of a row without schema the names were listed to tell its shape."""
    half = strict.has_half_characters("v")
    return f"({half} OR {strict.has_names_twice('vs', shape.signature.row)})" if "vs" in found.columns else half


def _key_fault(reading: Reading, fault: Callable[[str, str, str], str]) -> str:
    if reading.key_from_row:
        return _NO_TEXT
    return f"CASE WHEN plain IS NULL THEN {fault('k', 'key_frame', strict.ambiguous('k'))} END"


def _no_envelope(reading: Reading, found: DataFrame) -> str:
    if reading.unwrapped is None:
        return "v IS NOT NULL AND p.op IS NULL AND p.source IS NULL"
    return "v IS NOT NULL AND vs = '[]'" if "vs" in found.columns else "false"


def _sender(reading: Reading) -> str:
    """The connector whose placeholders count. Rows without envelope may not tell it: then they may hold some."""
    if reading.unwrapped:
        return reading.unwrapped.connector or CONNECTORS_WITH_PLACEHOLDER[0]
    return reading.connector


def _placeholder(shape: Shape, reading: Reading) -> str:
    """BOOLEAN: some value of the row was not sent."""
    tests = [test for _, test in _not_sent("p.after", shape, reading)]
    return f"p.after IS NOT NULL AND ({' OR '.join(tests)})" if tests else "false"


def _not_sent(row: str, shape: Shape, reading: Reading) -> Iterator[tuple[str, str]]:
    """The table's columns that may not have been sent, and BOOLEAN: a row's was not."""
    if _sender(reading) not in CONNECTORS_WITH_PLACEHOLDER:
        return
    for name, codec in shape.row.items():
        test = is_placeholder(f"{row}.{sql.name(name)}", codec, reading.placeholder)
        if test is not None:
            yield name, test


def _read_id(reading: Reading) -> str:
    """Only PostgreSQL's snapshot rows have no place among the changes: they are known again by their source block."""
    if reading.connector != "postgresql":
        return _NO_TEXT
    return "CASE WHEN p.op = 'r' THEN hex(xxhash64(to_json(p.source))) END"


def _missing(shape: Shape, reading: Reading) -> str:
    """ARRAY<INT>: the places, among the table's columns, of values that the source did not send."""
    none = "CAST(NULL AS ARRAY<INT>)"
    if not reading.missing:
        return none
    place = {name: i for i, name in enumerate(reading.columns)}

    def places(row: str) -> str:
        found = [f"CASE WHEN {test} THEN {place[name]} END" for name, test in _not_sent(row, shape, reading)]
        return f"array_compact(array({', '.join(found)}))" if found else none

    return (
        f"CASE WHEN p.op = 'd' THEN {places('p.before')} ELSE {places('p.after')} END"
        if reading.before
        else places("p.after")
    )


def _key(shape: Shape, reading: Reading) -> str:
    return key_struct({name: f"k{i}" for i, name in enumerate(reading.key_codecs(shape))}, reading)


def _other_key(header: str, row: str, shape: Shape, reading: Reading) -> str:
    if reading.key_from_row and reading.links:
        return f"CASE WHEN half IS NOT NULL THEN {key_of_row(row, shape, reading)} END"
    return key_of_header(header, shape, reading)


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
