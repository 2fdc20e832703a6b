"""Finds columns or keys of records that do not fit their table: it halts, because the records that follow may be the
same, and somebody has to decide. All names are the lake's."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from distributary.decode.options import DecodeOptions
from distributary.decode.renames import Renames
from distributary.decode.source_block import SOURCE_TABLE_COLUMN
from distributary.errors import TableHalt
from distributary.types.widening import WHOLE_NUMBERS, decimal_of, holds, wider

_POINTS = ("date", "timestamp_ntz", "timestamp")


def columns_conflict(types: Mapping[str, str], table: Mapping[str, str], options: DecodeOptions) -> TableHalt | None:
    """The halt if rows with the columns `types` do not fit a table with the columns `table` (both name to Spark type).
    Columns that the table neither has nor gets do not count."""
    filled = options.filled
    if filled is None:
        return None
    lowered = {name.lower(): name for name in table}
    renames = Renames(options.renames)
    for name, kind in types.items():
        if name in table:
            conflict = type_conflict(name, table[name], kind, renames, is_key=name in filled.key)
        else:
            conflict = name_conflict(name, lowered, filled.reserved) if options.adds_columns else None
        if conflict is not None:
            return conflict
    return None


def name_conflict(name: str, lowered: Mapping[str, str], reserved: Collection[str]) -> TableHalt | None:
    """The halt if a table can't have a column of that name. `lowered` has the names of its columns by their lower case,
    `reserved` the names of the service's own columns in lower case."""
    if name.lower() in reserved:
        return TableHalt(
            "column-name-taken",
            f"the source has a column {name!r}, a name that the service uses for a column of its own",
            "leave it out with `exclude`, or give it another name with `rename`",
        )
    twin = lowered.get(name.lower(), name)
    if twin != name:
        return TableHalt(
            "columns-differ-in-case",
            f"the source's column {name!r} differs only in case from the table's column {twin!r}",
            "leave one out with `exclude`, or give it another name with `rename`",
        )
    return None


class TypeConflict(TableHalt):
    """The halt for a `column` (the source's name) that is `table_type` in the table and has `wire_type` in records."""

    def __init__(self, halt: TableHalt, column: str, table_type: str, wire_type: str) -> None:
        super().__init__(halt.code, halt.message, halt.fix)
        self.column, self.table_type, self.wire_type = column, table_type, wire_type


def type_conflict(
    name: str, table_type: str, wire_type: str, renames: Renames, *, is_key: bool = False
) -> TableHalt | None:
    """The halt if a column can't have values of that type: it neither holds them nor can be widened to the type. A
    key's column is only widened to a larger whole number, so that existing rows are found by the same values."""
    if holds(table_type, wire_type):
        return None
    to = wider(table_type, wire_type)
    if to is not None and (not is_key or to in WHOLE_NUMBERS):
        return None
    return TypeConflict(
        _type_changed(name, table_type, wire_type, renames), renames.source(name), table_type, wire_type
    )


def _type_changed(name: str, table_type: str, wire_type: str, renames: Renames) -> TableHalt:
    column, source = f"{name!r}{renames.origin(name)}", renames.source(name)
    if is_another_thing(table_type, wire_type):
        return TableHalt(
            "column-type-changed",
            f"the column {column} is {table_type} in the table, and its records now have {wire_type}, which is"
            " another kind of type",
            "if the config was given another type for it, undo that; or run"
            " `distributary resume -c FILE TABLE --rebuild` to fill the table again with the new type",
        )
    # Without a schema, `columns` names the type of the values in the record: with another scale or unit they would be
    # read wrong.
    if decimal_of(wire_type) or wire_type in _POINTS:
        return TableHalt(
            "column-type-changed",
            f"the column {column} is {table_type} in the table, and its records now have {wire_type}, which it can't"
            " always hold",
            f"where the records carry a schema, set `columns: {{{source}: {table_type}}}` if the values still fit it"
            " (others go to the quarantine table; times without a zone count as UTC), or `distributary resume -c FILE"
            " TABLE --rebuild` to fill the table again with the new type",
        )
    return TableHalt(
        "column-type-changed",
        f"the column {column} is {table_type} in the table, and its records now have {wire_type}, which it can't hold",
        f"set `columns: {{{source}: {table_type}}}` if the values still fit it (others go to the quarantine table),"
        " or `distributary resume -c FILE TABLE --rebuild` to fill the table again with the new type",
    )


def is_another_thing(table_type: str, wire_type: str) -> bool:
    """Whether the values can't be converted to the type in `columns` (see types/conversions.py), or only to other
    values: times to bare numbers, bare numbers to times, texts to bytes."""
    if "binary" in (table_type, wire_type):
        return True
    if wire_type in _POINTS:
        return table_type not in _POINTS
    if table_type in _POINTS:
        return wire_type != "string"
    is_number = table_type in (*WHOLE_NUMBERS, "float", "double") or decimal_of(table_type) is not None
    return decimal_of(wire_type) is not None and not (is_number or table_type == "string")


def sent_key(options: DecodeOptions) -> tuple[str, ...]:
    """The columns of the table's key that are in its records' keys; none if the table is not filled yet."""
    key = () if options.filled is None else options.filled.key
    return tuple(name for name in key if name != SOURCE_TABLE_COLUMN or not options.source_in_key)


def is_malformed_key(names: Collection[str], table: Collection[str], options: DecodeOptions) -> bool:
    """Whether the columns `names` can't be a key of this table, even after a change of the primary key: a column of the
    previous key is missing, and one column is in no row."""
    return options.adds_columns and not (set(names) <= set(table) or set(names) >= set(sent_key(options)))


def key_changed(known: Collection[str], key: Iterable[str]) -> TableHalt | None:
    """The halt of a table that was filled with the key `known` and gets records with another key; None for the same
    key."""
    now = tuple(key)
    if not known or not now or set(now) == set(known):
        return None
    return TableHalt(
        "key-changed",
        f"the table's key is ({', '.join(known)}), and the records now have the key ({', '.join(now)})",
        "`distributary resume -c FILE TABLE --rebuild` fills the table again under the new key",
    )
