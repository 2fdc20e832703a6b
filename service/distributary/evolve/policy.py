"""Allows or refuses changes of a table's columns, as `schema_changes` in the config says."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Literal, TypeVar

from distributary.decode.renames import NO_RENAMES, Renames
from distributary.errors import TableHalt
from distributary.evolve.diff import Changes, column_changes
from distributary.types.bounds import Bounds

_Policy = Literal["evolve", "halt", "ignore"]
_Told = TypeVar("_Told")


def tracked_columns(policy: _Policy, table: Collection[str], wire: Mapping[str, _Told]) -> dict[str, _Told]:
    """Those of the source's columns that count for a table: all, but where it has columns and others are ignored."""
    ignores = policy == "ignore" and bool(table)
    return {name: kind for name, kind in wire.items() if not ignores or name in table}


def allowed_changes(
    policy: _Policy,
    table: Mapping[str, str],
    wire: Sequence[Mapping[str, str]],
    reserved: Iterable[str],
    key: Collection[str] = (),
    renames: Renames = NO_RENAMES,
    most: int = Bounds.columns,
) -> Changes:
    """How the table's columns change (see diff.column_changes); all of them are added where it is new and has none.
    What would bring it more than `most` columns adds none: once the table has the others, the decoder rejects its
    records.

    Raises TableHalt if the table can't take what the source sends, or where the policy is to halt.
    """
    tracked = [tracked_columns(policy, table, columns) for columns in wire]
    changes = column_changes(table, list(_fitting(table, tracked, most)), reserved, key, renames)
    if changes and table and policy == "halt":
        raise TableHalt(
            "schema-changed",
            f"the source has {_described(table, changes)} and schema_changes is halt",
            "change the table's columns, or set schema_changes: evolve or ignore",
        )
    return changes


def _fitting(table: Collection[str], wire: Iterable[Mapping[str, str]], most: int) -> Iterator[Mapping[str, str]]:
    have = set(table)
    for columns in wire:
        new = columns.keys() - have
        if not new or not have or len(have) + len(new) <= most:
            have |= new
            yield columns


def _described(table: Mapping[str, str], changes: Changes) -> str:
    added = ", ".join(f"{name} {kind}" for name, kind in changes.added.items())
    widened = ", ".join(f"{name} {table[name]} to {kind}" for name, kind in changes.widened.items())
    parts = (f"new columns ({added})" if added else "", f"wider types ({widened})" if widened else "")
    return " and ".join(filter(None, parts))
