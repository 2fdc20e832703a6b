"""The halt of a table that does not exist yet, and whose records have several types for one column."""

from __future__ import annotations

from distributary.decode.table_conflicts import TypeConflict
from distributary.errors import TableHalt


def before_table_exists(halt: TableHalt) -> TableHalt:
    """The halt of a table without columns: the two types are those of records, and nothing has to be filled again.
    Halts for another cause stay as they are."""
    if not isinstance(halt, TypeConflict):
        return halt
    return TableHalt(
        "column-type-changed",
        f"records of the topic have {halt.table_type} for the column {halt.column!r}, others {halt.wire_type}, and one"
        " column can't have both; there is no table yet",
        f"name one type for it in the config, under the table's entry: `columns: {{{halt.column}: string}}` or another"
        " type (values that do not fit it go to the quarantine table); or leave the column out:"
        f" `exclude: [{halt.column}]`",
    )
