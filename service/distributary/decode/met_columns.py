"""What the records of a batch showed of their columns: the table is made and changed by it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from distributary.decode.renames import Renames
from distributary.decode.row_shape import RowShape
from distributary.decode.source_block import SOURCE_TABLE_COLUMN


@dataclass(frozen=True)
class MetColumns:
    """The columns of records of one schema, those of their rows or (`is_key`) of their keys.

    `types` are Spark types and `marks` how values are masked (see base.ColumnType.mark), by the lake's names. `renames`
    has the lake's names of columns that the source calls otherwise. `names` are all columns that were sent, also those
    that are left out, by the source's names. `has_schema`: a schema tells the types. `guessed` are the types, among
    `types`, that nothing but values shows.
    """

    is_key: bool
    types: Mapping[str, str]
    marks: Mapping[str, str | None]
    renames: Mapping[str, str]
    names: frozenset[str]
    has_schema: bool = True
    guessed: Mapping[str, str] = field(default_factory=dict)


def columns_of_shape(shape: RowShape, *, is_key: bool, has_schema: bool = True) -> MetColumns:
    """The columns that a schema, or a key's fields, tell."""
    return MetColumns(
        is_key,
        {shape.lake[name]: kind.spark for name, kind in shape.types.items()},
        {shape.lake[name]: kind.mark for name, kind in shape.types.items()},
        {name: lake for name, lake in shape.lake.items() if name != lake},
        shape.names,
        has_schema,
    )


def with_source_table(key: MetColumns) -> MetColumns:
    """The columns of keys that get the name of the source table."""
    types = {**key.types, SOURCE_TABLE_COLUMN: "string"}
    return replace(key, types=types, marks={**key.marks, SOURCE_TABLE_COLUMN: None})


def table_columns(met: Sequence[MetColumns]) -> list[dict[str, str]]:
    """What a table needs for such records: the columns of each schema, the oldest first, Spark types by the lake's
    names. A table begins with its key; of a column that both have the row tells more, as a key may have no schema."""
    rows = [columns.types for columns in met if not columns.is_key]
    keys = [columns for columns in met if columns.is_key]
    first = {} if not keys else {name: _type_in_rows(name, keys[0], rows) for name in keys[0].types}
    return [
        *({**first, **types} for types in rows),
        *(dict(columns.types) for columns in keys if columns.has_schema or not rows),
    ]


def _type_in_rows(name: str, key: MetColumns, rows: Sequence[Mapping[str, str]]) -> str:
    own = key.types[name]
    return own if key.has_schema else next((types[name] for types in rows if name in types), own)


def renames_of(met: Sequence[MetColumns]) -> Renames:
    """All renames of such records."""
    return Renames({source: lake for columns in met for source, lake in columns.renames.items()})
