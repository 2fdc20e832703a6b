"""Decoded events as the table that the merge reads: one row per record, rejected ones included. Arrow only, no Spark.

| column | type | content |
| --- | --- | --- |
| partition, offset, timestamp | INT, BIGINT, TIMESTAMP | the record's place in Kafka, and Kafka's timestamp |
| size | INT | bytes of the payload |
| kind | STRING | Debezium's operation, `x` for a tombstone, `m` for a message, `!` for an unknown operation |
| bad | STRUCT<code, message> | the reason of a rejected record, else NULL |
| k | STRUCT<k0, k1 …> | the key; never NULL itself |
| pos, tx | STRING | position in the source's log, and transaction |
| read_id | STRING | the source block of a PostgreSQL snapshot row as JSON; Spark replaces it by its hash |
| ts_ms | BIGINT | commit time at the source, milliseconds since 1970 |
| ends | BOOLEAN | the last row of the table's snapshot |
| moved_in, moved_out | BOOLEAN | the create and the delete of a key change |
| old_k, new_k | STRUCT, as k | the other key of a key change |
| placeholder | BOOLEAN | the source left values out of the row |
| missing | ARRAY<INT> | the indexes of these values in row; they are NULL there |
| row, before | STRUCT<c0, c1 …> | the table's columns after and before the change |
| transaction | STRUCT<id STRING, order BIGINT> | the transaction block, if requested |
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from distributary import sql
from distributary.decode.decoder import Decoded
from distributary.decode.types.from_name import element_of_name, fields_of_name, item_of_name

_UNKNOWN = "!"


@dataclass(frozen=True)
class RecordColumns:
    """The columns of a table's row and key: name in the lake and Spark type. Their order is that of the fields c0, c1 …
    and k0, k1 …."""

    row: tuple[tuple[str, str], ...]
    key: tuple[tuple[str, str], ...]
    before: bool = False
    transactions: bool = False

    @classmethod
    def of(
        cls, row: Mapping[str, str], key: Mapping[str, str], *, before: bool = False, transactions: bool = False
    ) -> RecordColumns:
        """The columns of a table; `key` is a part of `row`."""
        return cls(tuple(row.items()), tuple(key.items()), before, transactions)

    @property
    def row_type(self) -> str:
        """The type of row and before."""
        return _struct("c", (kind for _, kind in self.row))

    @property
    def key_type(self) -> str:
        """The type of k, old_k and new_k."""
        # The key of a new table is unknown as long as all its records are truncates.
        return _struct("k", [kind for _, kind in self.key] or ["string"])

    def ddl(self) -> str:
        """All columns as Arrow holds them: a variant is its JSON text."""
        row, key = _without_variants(self.row_type), _without_variants(self.key_type)
        transaction = ", transaction STRUCT<id: STRING, order: BIGINT>" if self.transactions else ""
        return (
            "partition INT, offset BIGINT, timestamp TIMESTAMP, size INT, kind STRING,"
            f" bad STRUCT<code: STRING, message: STRING>, k {key}, pos STRING, tx STRING, read_id STRING,"
            f" ts_ms BIGINT, ends BOOLEAN, moved_in BOOLEAN, moved_out BOOLEAN, old_k {key}, new_k {key},"
            f" placeholder BOOLEAN, missing ARRAY<INT>, row {row}, before {row}{transaction}"
        )


def _struct(letter: str, kinds: Iterable[str]) -> str:
    return f"struct<{','.join(f'{letter}{place}:{kind}' for place, kind in enumerate(kinds))}>"


def _without_variants(kind: str) -> str:
    """The Spark type with STRING in place of each VARIANT."""
    if kind == "variant":
        return "string"
    if (element := element_of_name(kind)) is not None:
        return f"array<{_without_variants(element)}>"
    if (value := item_of_name(kind)) is not None:
        return f"map<string,{_without_variants(value)}>"
    if (fields := fields_of_name(kind)) is not None:
        return f"struct<{','.join(f'{sql.name(name)}:{_without_variants(part)}' for name, part in fields)}>"
    return kind


def merge_table(decoded: Decoded, columns: RecordColumns, schema: pa.Schema) -> pa.Table:
    """The records of a decoded batch; `schema` is the Arrow schema of RecordColumns.ddl()."""
    none = pa.nulls(decoded.events.num_rows, pa.string())
    events = decoded.events.append_column("reason", none).append_column("message", none)
    table = pa.concat_tables([events, decoded.rejected.select(events.column_names)])
    arrays = {name: _one_array(table[name]) for name in table.column_names}
    key_type, row_type = schema.field("k").type, schema.field("row").type
    unavailable = arrays["unavailable"]
    no_rows = pa.nulls(table.num_rows, row_type)
    found = {
        **{name: arrays[name] for name in ("partition", "offset", "timestamp", "size")},
        "kind": pc.fill_null(arrays["operation"], _UNKNOWN),
        "bad": _struct_if(arrays["reason"].is_valid(), {"code": arrays["reason"], "message": arrays["message"]}),
        "k": _not_null(_renamed_fields(arrays["key"], key_type)),
        "pos": arrays["position"],
        "tx": arrays["transaction"],
        "read_id": arrays["snapshot_identity"],
        "ts_ms": arrays["source_time"],
        "ends": arrays["snapshot_end"],
        "moved_in": arrays["moved_in"],
        "moved_out": arrays["moved_out"],
        "old_k": _renamed_fields(arrays["old_key"], key_type),
        "new_k": _renamed_fields(arrays["new_key"], key_type),
        "placeholder": unavailable.is_valid(),
        "missing": _indexes(unavailable, [name for name, _ in columns.row]),
        "row": _renamed_fields(arrays["row"], row_type),
        "before": _renamed_fields(arrays["before"], row_type) if columns.before else no_rows,
    }
    if columns.transactions:
        block = {"id": arrays["transaction_id"], "order": arrays["transaction_order"]}
        found["transaction"] = _struct_if(block["id"].is_valid(), block)
    return pa.table(found).cast(schema)


def _one_array(column: pa.ChunkedArray) -> pa.Array:
    return pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)


def _renamed_fields(array: pa.StructArray, kind: pa.StructType) -> pa.Array:
    """The struct with the names and types of another struct's fields, field by field."""
    parts = array.flatten() if array.type.num_fields else [pa.nulls(len(array), field.type) for field in kind]
    parts = [part.cast(field.type) for part, field in zip(parts, kind, strict=True)]
    return pa.StructArray.from_arrays(parts, fields=list(kind), mask=array.is_null())


def _not_null(array: pa.StructArray) -> pa.Array:
    """The struct with null fields in place of null."""
    return pa.StructArray.from_arrays(array.flatten(), fields=list(array.type))


def _struct_if(condition: pa.Array, parts: Mapping[str, pa.Array]) -> pa.Array:
    fields = [pa.field(name, part.type) for name, part in parts.items()]
    return pa.StructArray.from_arrays(list(parts.values()), fields=fields, mask=pc.invert(condition))


def _indexes(unavailable: pa.ListArray, names: list[str]) -> pa.Array:
    """Lists of column names as lists of their indexes in `names`."""
    indexes = pc.index_in(unavailable.values, value_set=pa.array(names, pa.string()))
    lists = pa.ListArray.from_arrays(unavailable.offsets, indexes.cast(pa.int32()))
    return pc.if_else(unavailable.is_valid(), lists, pa.scalar(None, lists.type))
