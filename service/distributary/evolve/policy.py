"""What `schema_changes` in the config lets happen to a table's columns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

from distributary.errors import TableHalt
from distributary.evolve.diff import columns_to_add


def allowed_additions(
    policy: Literal["evolve", "halt", "ignore"],
    table: Mapping[str, str],
    wire: Sequence[Mapping[str, str]],
    reserved: Iterable[str],
) -> dict[str, str]:
    """The columns that the table gets (see diff.columns_to_add); all of them where it is new and has none.

    Raises TableHalt where the table can't take what the source sends, or where the policy is to halt.
    """
    if policy == "ignore" and table:
        wire = [{name: kind for name, kind in columns.items() if name in table} for columns in wire]
    added = columns_to_add(table, wire, reserved)
    if added and table and policy == "halt":
        names = ", ".join(f"{name} {kind}" for name, kind in added.items())
        raise TableHalt(
            "schema-changed",
            f"the source has new columns ({names}) and schema_changes is halt",
            "add the columns to the table, or set schema_changes: evolve or ignore",
        )
    return added
