"""The records of a merge table (see merge_table) as a DataFrame, completed by what only Spark can make.

Its columns are those of the merge table, with `read_id` hashed, and kh BIGINT (the key's hash) and carried BOOLEAN (see
with_carried).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType, _parse_datatype_string

from distributary import sql
from distributary.decode.envelope import TOMBSTONE
from distributary.decode.types.from_name import element_of_name, fields_of_name, item_of_name
from distributary.ingest.merge_table import RecordColumns
from distributary.merge.queries import Queries

_WHOLE = ("tinyint", "smallint", "int")


@lru_cache(maxsize=256)
def spark_schema(columns: RecordColumns) -> StructType:
    """The schema of RecordColumns.ddl()."""
    schema = _parse_datatype_string(columns.ddl())
    assert isinstance(schema, StructType)
    return schema


@lru_cache(maxsize=256)
def arrow_schema(columns: RecordColumns) -> pa.Schema:
    """The same for Arrow."""
    return to_arrow_schema(spark_schema(columns), timezone="UTC")


def complete(records: DataFrame, columns: RecordColumns) -> DataFrame:
    """A merge table with variants in place of their JSON texts, with hashes, and without carried deletes."""
    made: dict[str, Column] = {}
    if (row := _with_variants("row", columns.row_type)) is not None:
        made["row"] = F.expr(row)
    if (before := _with_variants("before", columns.row_type)) is not None:
        made["before"] = F.expr(before)
    made["read_id"] = F.when(F.col("read_id").isNotNull(), F.expr("hex(xxhash64(read_id))"))
    made["kh"] = F.expr(key_hash(kind for _, kind in columns.key))
    made["carried"] = F.lit(False)
    return records.withColumns(made)


def key_hash(kinds: Iterable[str]) -> str:
    """SQL of the hash of a key `k` with fields of these types. Widening a whole number does not change the hash:
    progress records keep hashes."""
    parts = [f"CAST(k.k{i} AS {'BIGINT' if kind in _WHOLE else kind})" for i, kind in enumerate(kinds)]
    return f"xxhash64({', '.join(parts) or 'k'})"


def _with_variants(value: str, kind: str, depth: int = 0) -> str | None:
    """SQL of a value of that type whose variants are JSON texts; None for a type without variants."""
    if kind == "variant":
        return f"parse_json({value})"
    item = f"item{depth}_"
    if (element := element_of_name(kind)) is not None:
        part = _with_variants(item, element, depth + 1)
        return None if part is None else f"transform({value}, {item} -> {part})"
    if (map_value := item_of_name(kind)) is not None:
        part = _with_variants(item, map_value, depth + 1)
        return None if part is None else f"transform_values({value}, (name{depth}_, {item}) -> {part})"
    if (fields := fields_of_name(kind)) is None:
        return None
    at = {name: f"{value}.{sql.name(name)}" for name, _ in fields}
    parts = {name: _with_variants(at[name], part, depth) for name, part in fields}
    if not any(parts.values()):
        return None
    values = ", ".join(f"{sql.text(name)}, {part or at[name]}" for name, part in parts.items())
    return f"CASE WHEN {value} IS NOT NULL THEN named_struct({values}) END"


def local_records(session: SparkSession, table: pa.Table, columns: RecordColumns, queries: Queries) -> DataFrame:
    """The records of a merge table in this process, in one partition. Runs no job."""
    raw = session.createDataFrame(table, spark_schema(columns)).coalesce(1)
    return queries.over(raw, ("records", columns), lambda rows: complete(rows, columns))


def with_carried(records: DataFrame, deleted: Mapping[int, int]) -> DataFrame:
    """Records with `carried` TRUE for tombstones whose delete was the last record of the batch before.

    `deleted` maps a partition to the hash of that delete's key.
    """
    # Text instead of numbers: Spark writes numbers into the code that it compiles, and would compile for every batch.
    ends = [f"{partition}:{deleted_hash}" for partition, deleted_hash in sorted(deleted.items())]
    at = F.concat_ws(":", F.col("partition").cast("string"), F.col("kh").cast("string"))
    carried = (F.col("kind") == TOMBSTONE) & F.instr(
        F.lit(f",{','.join(ends)},"), F.concat(F.lit(","), at, F.lit(","))
    ).cast("boolean")
    # Never NULL, as in complete(): another nullability would have all queries planned anew.
    return records.withColumn("carried", F.coalesce(carried, F.lit(False)))
