"""Columns on the wire against columns of the table."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

from distributary.decode.options import TypeSources
from distributary.decode.renames import NO_RENAMES, Renames
from distributary.errors import TableHalt
from distributary.types.bounds import Bounds
from distributary.types.from_name import type_of_name

_WHOLE = {"tinyint": 3, "smallint": 5, "int": 10, "bigint": 19}  # decimal digits that hold every value
_ORDER = list(_WHOLE)
_LARGEST_PRECISION = 38
_POINTS = ("date", "timestamp_ntz", "timestamp")


@dataclass(frozen=True)
class Changes:
    """The changes that a table needs to hold the source's columns: columns that are `added`, and those that are
    `widened`, name to their new Spark type."""

    added: Mapping[str, str] = field(default_factory=dict)
    widened: Mapping[str, str] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.added or self.widened)


def holds(table_type: str, wire_type: str) -> bool:
    """Whether a column of `table_type` holds every value of `wire_type` unchanged (both Spark simple strings)."""
    if table_type == wire_type:
        return True
    if wire_type in _WHOLE:
        if table_type in _WHOLE:
            return _ORDER.index(table_type) >= _ORDER.index(wire_type)
        if table_type == "double":
            return wire_type != "bigint"
        whole = _whole_digits(table_type)
        return whole is not None and whole >= _WHOLE[wire_type]
    if (wire_type, table_type) in {("float", "double"), ("date", "timestamp_ntz")}:
        return True
    wire, table = _decimal(wire_type), _decimal(table_type)
    return bool(wire and table and table[1] >= wire[1] and table[0] - table[1] >= wire[0] - wire[1])


def wider(table_type: str, wire_type: str) -> str | None:
    """The type to which Delta widens a column in place, so that it holds every value of both; None if there is none.

    https://docs.delta.io/delta-type-widening/ has the list. Whole numbers are widened to whole numbers alone, although
    Delta would make decimals and doubles of them: what reads the table would see another kind of number.
    """
    if table_type in _WHOLE and wire_type in _WHOLE:
        return max(table_type, wire_type, key=_ORDER.index)
    if (table_type, wire_type) in {("float", "double"), ("date", "timestamp_ntz")}:
        return wire_type
    table, wire = _decimal(table_type), _decimal(wire_type)
    if table is None or wire is None:
        return None
    scale = max(table[1], wire[1])
    precision = max(table[0] - table[1], wire[0] - wire[1]) + scale
    return f"decimal({precision},{scale})" if precision <= _LARGEST_PRECISION else None


def _decimal(spark_type: str) -> tuple[int, int] | None:
    match = re.fullmatch(r"decimal\((\d+),(\d+)\)", spark_type)
    return (int(match[1]), int(match[2])) if match else None


def _whole_digits(spark_type: str) -> int | None:
    found = _decimal(spark_type)
    return found[0] - found[1] if found else None


def compatible_types(types: Mapping[str, str], table: Mapping[str, str], sources: TypeSources) -> dict[str, str]:
    """Those of the types (named as in `columns` of the config) whose values the table's columns hold, or are widened
    for; all of a column that the table lacks. `sources` has the connector's settings."""

    def fits(name: str, kind: str) -> bool:
        wire = sources.in_zone(type_of_name(kind, sources.properties, Bounds()), sources.configured.get(name)).spark
        return name not in table or holds(table[name], wire) or wider(table[name], wire) is not None

    return {name: kind for name, kind in types.items() if fits(name, kind)}


def column_changes(
    table: Mapping[str, str],
    wire: Iterable[Mapping[str, str]],
    reserved: Iterable[str],
    key: Collection[str] = (),
    renames: Renames = NO_RENAMES,
) -> Changes:
    """What the table lacks, in the wire's order; `wire` has one mapping per shape, the oldest first. All names are the
    lake's; `renames` has the source's.

    A column that is no longer sent stays. Raises TableHalt for a type that the table's column can't hold and can't be
    widened to, for names that differ only in case, for a source column with a name that the service uses itself. Of the
    `key`, only whole numbers are widened: by their values rows are known again.
    """
    have = dict(table)
    lowered = {name.lower(): name for name in have}
    reserved_names = {name.lower() for name in reserved}
    added: dict[str, str] = {}
    widened: dict[str, str] = {}
    for columns in wire:
        for name, kind in columns.items():
            if name.lower() in reserved_names:
                raise TableHalt(
                    "column-name-taken",
                    f"the source has a column {name!r}, a name that the service uses for a column of its own",
                    "leave it out with `exclude`, or give it another name with `rename`",
                )
            twin = lowered.get(name.lower())
            if twin is not None and twin != name:
                raise TableHalt(
                    "columns-differ-in-case",
                    f"the source's column {name!r} differs only in case from the table's column {twin!r}",
                    "leave one out with `exclude`, or give it another name with `rename`",
                )
            if twin is None:
                have[name] = added[name] = kind
                lowered[name.lower()] = name
            elif not holds(have[name], kind):
                if name in added and holds(kind, have[name]):
                    have[name] = added[name] = kind
                    continue
                wider_type = wider(have[name], kind)
                if wider_type is None or (name in key and wider_type not in _WHOLE):
                    raise _type_changed(name, have[name], kind, renames)
                have[name] = wider_type
                (added if name in added else widened)[name] = wider_type
    return Changes(added, widened)


def _type_changed(name: str, table_type: str, wire_type: str, renames: Renames) -> TableHalt:
    column, source = f"{name!r}{renames.origin(name)}", renames.source(name)
    if is_another_thing(table_type, wire_type):
        return TableHalt(
            "column-type-changed",
            f"the column {column} is {table_type} in the table, and the source now sends {wire_type}, which is"
            " another kind of type",
            "run `distributary resume -c FILE TABLE --rebuild` to fill the table again with the new type",
        )
    # Without a schema `columns` says what is on the wire: another scale, or another unit, would be read into it.
    if _decimal(wire_type) or wire_type in _POINTS:
        return TableHalt(
            "column-type-changed",
            f"the column {column} is {table_type} in the table, and the source now sends {wire_type}, which it can't"
            " always hold",
            f"where the records carry a schema, set `columns: {{{source}: {table_type}}}` if the values still fit it"
            " (others go to the quarantine table; times without a zone count as UTC), or `distributary resume -c FILE"
            " TABLE --rebuild` to fill the table again with the new type",
        )
    return TableHalt(
        "column-type-changed",
        f"the column {column} is {table_type} in the table, and the source now sends {wire_type}, which it can't hold",
        f"set `columns: {{{source}: {table_type}}}` if the values still fit it (others go to the quarantine table),"
        " or `distributary resume -c FILE TABLE --rebuild` to fill the table again with the new type",
    )


def is_another_thing(table_type: str, wire_type: str) -> bool:
    """Whether `columns` would have nothing made of the values (see types/conversions.py), or other values: bare numbers
    of times, times of bare numbers, bytes of texts."""
    if "binary" in (table_type, wire_type):
        return True
    if wire_type in _POINTS:
        return table_type not in _POINTS
    if table_type in _POINTS:
        return wire_type != "string"
    is_number = table_type in (*_WHOLE, "float", "double") or _decimal(table_type) is not None
    return _decimal(wire_type) is not None and not (is_number or table_type == "string")


def check_key_columns(key: Iterable[str], columns: Mapping[str, str], where: str) -> None:
    """Raises TableHalt if a column of the key is none of the table's; `where` is the place of its rule."""
    if lacking := [name for name in key if name not in columns]:
        raise TableHalt(
            "key-column-missing",
            f"no record so far has the key's columns {', '.join(lacking)}",
            f"name columns of the source table under `key` ({where})",
        )


def check_key(known: tuple[str, ...], key: Iterable[str]) -> None:
    """Raises TableHalt if the records' key is no longer the one that the table was filled under."""
    now = tuple(key)
    if known and now and set(now) != set(known):
        raise TableHalt(
            "key-changed",
            f"the table's key is ({', '.join(known)}), and the records now have the key ({', '.join(now)})",
            "`distributary resume -c FILE TABLE --rebuild` fills the table again under the new key",
        )
