"""Columns on the wire against columns of the table."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

from distributary.decode.options import TypeSources
from distributary.decode.renames import NO_RENAMES, Renames
from distributary.decode.table_conflicts import key_changed, name_conflict, type_conflict
from distributary.errors import TableHalt
from distributary.types.bounds import Bounds
from distributary.types.from_name import type_of_name
from distributary.types.widening import holds, wider


@dataclass(frozen=True)
class SchemaChanges:
    """The changes that a table needs to hold the source's columns: columns that are `added`, and those that are
    `widened`, name to their new Spark type."""

    added: Mapping[str, str] = field(default_factory=dict)
    widened: Mapping[str, str] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.added or self.widened)


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
) -> SchemaChanges:
    """The columns and types that the table lacks, in the records' order; `wire` has one mapping per shape, the oldest
    first. All names are the lake's; `renames` has the source's.

    A column that is no longer sent stays. Raises TableHalt for a type that the table's column can't hold and can't be
    widened to, for names that differ only in case, for a source column with a name that the service uses itself. In the
    `key`, only whole numbers are widened, so that existing rows are found by the same values.
    """
    have = dict(table)
    lowered = {name.lower(): name for name in have}
    reserved_names = {name.lower() for name in reserved}
    added: dict[str, str] = {}
    widened: dict[str, str] = {}
    for columns in wire:
        for name, kind in columns.items():
            if halt := name_conflict(name, lowered, reserved_names):
                raise halt
            twin = lowered.get(name.lower())
            if twin is None:
                have[name] = added[name] = kind
                lowered[name.lower()] = name
            elif not holds(have[name], kind):
                if name in added and holds(kind, have[name]):
                    have[name] = added[name] = kind
                    continue
                if halt := type_conflict(name, have[name], kind, renames, is_key=name in key):
                    raise halt
                wider_type = wider(have[name], kind)
                assert wider_type is not None  # there was no conflict
                have[name] = wider_type
                (added if name in added else widened)[name] = wider_type
    return SchemaChanges(added, widened)


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
    if halt := key_changed(known, key):
        raise halt
