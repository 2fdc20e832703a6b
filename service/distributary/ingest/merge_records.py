"""Decoded events as the merge takes them: one row per record, the ones that can't be applied included.

A record has partition INT, offset BIGINT, timestamp TIMESTAMP, size INT (bytes of the payload), kind STRING (the
operation, `x` for a tombstone, `!` where nothing tells), bad STRUCT<code, message> (NULL where it can be applied), k
STRUCT<k0, k1 …> (the key) and kh BIGINT (its hash), pos STRING, tx STRING, read_id STRING (a PostgreSQL snapshot row's
source block, hashed), ts_ms BIGINT, ends BOOLEAN (the last row of the table's snapshot), moved_in, moved_out BOOLEAN,
old_k and new_k STRUCT (as k: the key that the row had before a key change, on its `c`; the one that it gets, on its
`d`), placeholder BOOLEAN and missing ARRAY<INT> (places in row of values that the source did not send), row
STRUCT<c0, c1 …> (the table's columns; NULL without one), before STRUCT (as row), carried BOOLEAN (false, see
with_carried) and, where it is asked for, transaction STRUCT<id STRING, order BIGINT>.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType, _parse_datatype_string

from distributary import sql
from distributary.decode.decoder import Decoded
from distributary.decode.envelope import TOMBSTONE
from distributary.decode.types.from_name import element_of_name, fields_of_name, item_of_name
from distributary.merge.queries import Queries

_UNKNOWN = "!"
_WHOLE = ("tinyint", "smallint", "int")


@dataclass(frozen=True)
class RecordColumns:
    """The columns of the merge's records: `row` and `key` have Spark types by the lake's names. The order of both is
    that of the fields c0, c1 … and k0, k1 …."""

    row: tuple[tuple[str, str], ...]
    key: tuple[tuple[str, str], ...]
    before: bool = False
    transactions: bool = False

    @classmethod
    def of(
        cls, row: Mapping[str, str], key: Mapping[str, str], *, before: bool = False, transactions: bool = False
    ) -> RecordColumns:
        """Those of a table with these columns, of which the key is a part."""
        return cls(tuple(row.items()), tuple(key.items()), before, transactions)

    @property
    def row_type(self) -> str:
        """The row as a STRUCT, as it comes from Arrow."""
        return _struct("c", (kind for _, kind in self.row))

    @property
    def key_type(self) -> str:
        """The key, likewise."""
        # A batch of truncates alone may be all there is, and then nothing tells the key yet.
        return _struct("k", [kind for _, kind in self.key] or ["string"])

    def ddl(self) -> str:
        """All columns as they come from Arrow: a variant is its JSON text, and what Spark hashes is not hashed yet."""
        row, key = _as_wire(self.row_type), _as_wire(self.key_type)
        transaction = ", transaction STRUCT<id: STRING, order: BIGINT>" if self.transactions else ""
        return (
            "partition INT, offset BIGINT, timestamp TIMESTAMP, size INT, kind STRING,"
            f" bad STRUCT<code: STRING, message: STRING>, k {key}, pos STRING, tx STRING, read_id STRING,"
            f" ts_ms BIGINT, ends BOOLEAN, moved_in BOOLEAN, moved_out BOOLEAN, old_k {key}, new_k {key},"
            f" placeholder BOOLEAN, missing ARRAY<INT>, row {row}, before {row}{transaction}"
        )

    def schema(self) -> StructType:
        """The same as Spark's type."""
        return _parsed(self.ddl())

    def arrow_schema(self) -> pa.Schema:
        """The same as Arrow's."""
        return to_arrow_schema(self.schema(), timezone="UTC")


def _struct(letter: str, kinds: Iterable[str]) -> str:
    return f"struct<{','.join(f'{letter}{place}:{kind}' for place, kind in enumerate(kinds))}>"


@lru_cache(maxsize=256)
def _parsed(ddl: str) -> StructType:
    schema = _parse_datatype_string(ddl)
    assert isinstance(schema, StructType)
    return schema


def merge_table(decoded: Decoded, columns: RecordColumns, schema: pa.Schema) -> pa.Table:
    """The records of a decoded batch, as far as Arrow has them (see RecordColumns.ddl); `schema` is their Arrow
    schema. Needs no Spark."""
    rejected = decoded.rejected
    none = pa.nulls(decoded.events.num_rows, pa.string())
    events = decoded.events.append_column("reason", none).append_column("message", none)
    table = pa.concat_tables([events, rejected.select(events.column_names)]).combine_chunks()
    count = table.num_rows
    names = [name for name, _ in columns.row]
    arrays = {name: _array(table[name]) for name in table.column_names}
    key_type, row_type = schema.field("k").type, schema.field("row").type
    unavailable = arrays["unavailable"]
    row = _struct_like(arrays["row"], row_type)
    found = {
        **{name: arrays[name] for name in ("partition", "offset", "timestamp", "size")},
        "kind": pc.fill_null(arrays["operation"], _UNKNOWN),
        "bad": _where_there(arrays["reason"].is_valid(), {"code": arrays["reason"], "message": arrays["message"]}),
        "k": _always_there(_struct_like(arrays["key"], key_type)),
        "pos": arrays["position"],
        "tx": arrays["transaction"],
        "read_id": arrays["snapshot_identity"],
        "ts_ms": arrays["source_time"],
        "ends": arrays["snapshot_end"],
        "moved_in": arrays["moved_in"],
        "moved_out": arrays["moved_out"],
        "old_k": _struct_like(arrays["old_key"], key_type),
        "new_k": _struct_like(arrays["new_key"], key_type),
        "placeholder": unavailable.is_valid(),
        "missing": _places(unavailable, names),
        "row": row,
        "before": _struct_like(arrays["before"], row_type) if columns.before else pa.nulls(count, row_type),
    }
    if columns.transactions:
        told = arrays["transaction_id"]
        block = {"id": told, "order": arrays["transaction_order"]}
        found["transaction"] = _where_there(told.is_valid(), block)
    return pa.table(found).cast(schema)


def _array(column: pa.ChunkedArray) -> pa.Array:
    return (
        column.chunk(0)
        if column.num_chunks == 1
        else pa.concat_arrays(column.chunks)
        if column.num_chunks
        else (pa.array([], column.type))
    )


def _struct_like(array: pa.StructArray, kind: pa.StructType) -> pa.Array:
    """A struct whose fields are renamed by their places."""
    if not array.type.num_fields:
        return pa.StructArray.from_arrays(
            [pa.nulls(len(array), field.type) for field in kind], fields=list(kind), mask=array.is_null()
        )
    parts = [part.cast(field.type) for part, field in zip(array.flatten(), kind, strict=True)]
    return pa.StructArray.from_arrays(parts, fields=list(kind), mask=array.is_null())


def _always_there(array: pa.StructArray) -> pa.Array:
    """The struct with null fields where it is null."""
    return pa.StructArray.from_arrays(array.flatten(), fields=list(array.type))


def _where_there(there: pa.Array, parts: Mapping[str, pa.Array]) -> pa.Array:
    fields = [pa.field(name, part.type) for name, part in parts.items()]
    return pa.StructArray.from_arrays(list(parts.values()), fields=fields, mask=pc.invert(there))


def _places(unavailable: pa.Array, names: list[str]) -> pa.Array:
    """Lists of the places of columns, in the order of the table's."""
    if unavailable.null_count == len(unavailable):
        return pa.nulls(len(unavailable), pa.list_(pa.int32()))
    at = pc.index_in(unavailable.values, value_set=pa.array(names, pa.string()))
    offsets = pa.array(np.asarray(unavailable.offsets), mask=None)
    lists = pa.ListArray.from_arrays(offsets, at.cast(pa.int32()))
    return pc.if_else(unavailable.is_valid(), lists, pa.scalar(None, lists.type))


def finished(records: DataFrame, columns: RecordColumns) -> DataFrame:
    """Records as they come from Arrow, with what only Spark makes: variants and hashes."""
    made: dict[str, Column] = {}
    for name, kind in (("row", columns.row_type), ("before", columns.row_type)):
        if (expression := _restored(name, kind)) is not None:
            made[name] = F.expr(expression)
    made["read_id"] = F.when(F.col("read_id").isNotNull(), F.expr("hex(xxhash64(read_id))"))
    made["kh"] = F.expr(key_hash(kind for _, kind in columns.key))
    made["carried"] = F.lit(False)
    return records.withColumns(made)


def key_hash(kinds: Iterable[str]) -> str:
    """BIGINT: the hash of a key `k` of these types. It stays the same when a whole number's column is widened: it is
    remembered."""
    parts = [f"CAST(k.k{i} AS {'BIGINT' if kind in _WHOLE else kind})" for i, kind in enumerate(kinds)]
    return f"xxhash64({', '.join(parts) or 'k'})"


def _restored(x: str, kind: str, depth: int = 0) -> str | None:
    """SQL of a value whose variants are JSON texts, of its own type; None where it has none."""
    if kind == "variant":
        return f"parse_json({x})"
    item = f"item{depth}_"
    if (element := element_of_name(kind)) is not None:
        part = _restored(item, element, depth + 1)
        return None if part is None else f"transform({x}, {item} -> {part})"
    if (value := item_of_name(kind)) is not None:
        part = _restored(item, value, depth + 1)
        return None if part is None else f"transform_values({x}, (name{depth}_, {item}) -> {part})"
    if (fields := fields_of_name(kind)) is None:
        return None
    parts = {name: _restored(f"{x}.{sql.name(name)}", part, depth) for name, part in fields}
    if not any(parts.values()):
        return None
    values = (f"{sql.text(name)}, {part or f'{x}.{sql.name(name)}'}" for name, part in parts.items())
    return f"CASE WHEN {x} IS NOT NULL THEN named_struct({', '.join(values)}) END"


def _as_wire(kind: str) -> str:
    """The type with a text in place of each variant."""
    if kind == "variant":
        return "string"
    if (element := element_of_name(kind)) is not None:
        return f"array<{_as_wire(element)}>"
    if (value := item_of_name(kind)) is not None:
        return f"map<string,{_as_wire(value)}>"
    if (fields := fields_of_name(kind)) is not None:
        return f"struct<{','.join(f'{sql.name(name)}:{_as_wire(part)}' for name, part in fields)}>"
    return kind


def local_frame(session: SparkSession, table: pa.Table, columns: RecordColumns, queries: Queries) -> DataFrame:
    """The records of a table in this process as a DataFrame of one partition, without running a job."""
    raw = session.createDataFrame(table, columns.schema()).coalesce(1)
    return queries.over(raw, ("records", columns), lambda rows: finished(rows, columns))


def with_carried(records: DataFrame, deleted: Mapping[int, int]) -> DataFrame:
    """Records whose `carried` tells the tombstones that belong to a delete before this batch.

    `deleted` maps a partition to the hash of the key whose delete was the last record taken in before: a tombstone of
    that key is the delete's.
    """
    # Text instead of numbers: Spark writes numbers into the code that it compiles, and would compile for every batch.
    ends = [f"{partition}:{key_hash_}" for partition, key_hash_ in sorted(deleted.items())]
    at = F.concat_ws(":", F.col("partition").cast("string"), F.col("kh").cast("string"))
    carried = (F.col("kind") == TOMBSTONE) & F.instr(
        F.lit(f",{','.join(ends)},"), F.concat(F.lit(","), at, F.lit(","))
    ).cast("boolean")
    # As it is without deletes: never NULL, so that what is asked of the records is not planned anew for these.
    return records.withColumn("carried", F.coalesce(carried, F.lit(False)))
