"""The columns that the records of a batch have. The table is created and changed to hold these columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from distributary.decode.renames import Renames
from distributary.decode.row_shape import RowShape
from distributary.decode.source_block import SOURCE_TABLE_COLUMN


@dataclass(frozen=True)
class ObservedColumns:
    """The columns of records of one schema, those of their rows or (`is_key`) of their keys.

    `types` are Spark types and `marks` how values are masked (see base.ColumnType.mark), by the lake's names. `renames`
    has the lake's names of columns that the source calls otherwise. `names` are the source's names of all columns that
    were sent, also of those that are left out. `has_schema`: the types are from a schema. `guessed` are those of
    `types` that were inferred from values alone. `defaults` are those of the shape (see row_shape.RowShape), `since` is
    the lowest position of these records, where the options ask for it.
    """

    is_key: bool
    types: Mapping[str, str]
    marks: Mapping[str, str | None]
    renames: Mapping[str, str]
    names: frozenset[str]
    has_schema: bool = True
    guessed: Mapping[str, str] = field(default_factory=dict)
    defaults: Mapping[str, str] = field(default_factory=dict)
    since: str | None = None


def columns_of_shape(shape: RowShape, *, is_key: bool, has_schema: bool = True) -> ObservedColumns:
    """The columns of records with that shape."""
    return ObservedColumns(
        is_key,
        {shape.lake[name]: kind.spark for name, kind in shape.types.items()},
        {shape.lake[name]: kind.mark for name, kind in shape.types.items()},
        {name: lake for name, lake in shape.lake.items() if name != lake},
        shape.names,
        has_schema,
        defaults=shape.defaults,
    )


def with_source_table(key: ObservedColumns) -> ObservedColumns:
    """The columns of keys, with the column for the name of the source table."""
    types = {**key.types, SOURCE_TABLE_COLUMN: "string"}
    return replace(key, types=types, marks={**key.marks, SOURCE_TABLE_COLUMN: None})


def table_columns(observed: Sequence[ObservedColumns]) -> list[dict[str, str]]:
    """The columns that a table needs for such records: Spark types by the lake's names for each schema, the oldest
    first. The key's columns are the first ones. A key may have no schema: then the row's types count for its columns.
    """
    rows = [columns.types for columns in observed if not columns.is_key]
    keys = [columns for columns in observed if columns.is_key]
    first = {} if not keys else {name: _type_in_rows(name, keys[0], rows) for name in keys[0].types}
    return [
        *({**first, **types} for types in rows),
        *(dict(columns.types) for columns in keys if columns.has_schema or not rows),
    ]


def _type_in_rows(name: str, key: ObservedColumns, rows: Sequence[Mapping[str, str]]) -> str:
    own = key.types[name]
    return own if key.has_schema else next((types[name] for types in rows if name in types), own)


def renames_of(observed: Sequence[ObservedColumns]) -> Renames:
    """All renames of such records."""
    return Renames({source: lake for columns in observed for source, lake in columns.renames.items()})
