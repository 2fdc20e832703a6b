"""Allows or refuses changes of a table's columns, by `schema_changes` in the config."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Literal, TypeVar

from distributary.decode.observed_columns import ObservedColumns, renames_of, table_columns
from distributary.errors import TableHalt
from distributary.evolve.diff import SchemaChanges, check_key, column_changes
from distributary.types.bounds import Bounds

_Policy = Literal["evolve", "halt", "ignore"]
_Told = TypeVar("_Told")


def tracked_columns(policy: _Policy, table: Collection[str], wire: Mapping[str, _Told]) -> dict[str, _Told]:
    """Those of the source's columns that count for a table: all, but where it has columns and others are ignored."""
    ignores = policy == "ignore" and bool(table)
    return {name: kind for name, kind in wire.items() if not ignores or name in table}


@dataclass(frozen=True)
class ColumnPolicy:
    """How a table gets the columns of its records: `schema_changes` of the config, the names of the service's own
    columns (`reserved`), and the most columns that it gets (`most`)."""

    schema_changes: _Policy
    reserved: Collection[str]
    most: int = Bounds.columns

    def changes(
        self, table: Mapping[str, str], observed: Sequence[ObservedColumns], key: tuple[str, ...]
    ) -> SchemaChanges:
        """The changes of a table's columns for these records (see diff.column_changes); for a new table without columns
        all are added. `table`: name to Spark type; `key`: its key's columns. Records that would give it more than
        `most` columns add none: once the table has the columns of the others, the decoder rejects these records.

        Raises TableHalt if the table can't have the columns that the source sends, or if the policy is to halt.
        """
        for columns in observed:
            if columns.is_key:
                check_key(key, columns.types)
        tracked = [tracked_columns(self.schema_changes, table, columns) for columns in table_columns(observed)]
        wire = list(_within_limit(table, tracked, self.most))
        changes = column_changes(table, wire, self.reserved, key, renames_of(observed))
        if changes and table and self.schema_changes == "halt":
            raise TableHalt(
                "schema-changed",
                f"the source has {_described(table, changes)} and schema_changes is halt",
                "change the table's columns, or set schema_changes: evolve or ignore",
            )
        return changes

    def fitting(
        self, table: Mapping[str, str], observed: Sequence[ObservedColumns], key: tuple[str, ...]
    ) -> Sequence[ObservedColumns]:
        """The columns that the table can have together, of several that contradict each other the earlier ones. Once
        the table has them, records with the others are rejected."""
        fitting: list[ObservedColumns] = []
        try:
            self.changes(table, observed, key)
        except TableHalt:
            for columns in observed:
                with suppress(TableHalt):
                    self.changes(table, [*fitting, columns], key)
                    fitting.append(columns)
            return fitting
        return observed


def _within_limit(table: Collection[str], wire: Iterable[Mapping[str, str]], most: int) -> Iterator[Mapping[str, str]]:
    have = set(table)
    for columns in wire:
        new = columns.keys() - have
        if not new or not have or len(have) + len(new) <= most:
            have |= new
            yield columns


def _described(table: Mapping[str, str], changes: SchemaChanges) -> str:
    added = ", ".join(f"{name} {kind}" for name, kind in changes.added.items())
    widened = ", ".join(f"{name} {table[name]} to {kind}" for name, kind in changes.widened.items())
    parts = (f"new columns ({added})" if added else "", f"wider types ({widened})" if widened else "")
    return " and ".join(filter(None, parts))
