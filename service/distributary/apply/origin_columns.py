"""Reads what the rules need of a table's row: its origin and its end, from the service columns.

`__partition` and `__offset` name the record that wrote the row, `__position` is that of the row's last change (of a row
that was deleted softly the delete's), `__op` its operation: `t` after a soft truncate, which leaves the position as it
was. All four are NULL in adopted rows, which another writer wrote. Of `mode: history` they are those of the change that
opened the version, and `__end_at` is where it ended.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import blake2b
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from distributary.rules.columns import one_array
from distributary.rules.event import ADOPTED, Position
from distributary.rules.order import compare
from distributary.rules.position_text import read_position
from distributary.rules.state import Row, RuleSettings

DELETED = "__deleted"
END = "__end_at"
CURRENT = "__current"
ORIGIN = ("__op", "__position", "__partition", "__offset")


def with_origin(rows: pa.Table, keys: pa.Array) -> pa.Table:
    """Rows with `__partition` and `__offset`. Adopted rows have neither: each gets a place of its own, below all of
    Kafka's and the same each time, so that pointers can name its values. `keys`: those of the rows, as texts."""
    adopted = one_array(rows["__offset"]).is_null()
    offsets = pa.array([_own_place(key) for key in keys.filter(adopted).to_pylist()], pa.int64())
    service_columns = {
        "__offset": pc.replace_with_mask(one_array(rows["__offset"]).cast(pa.int64()), adopted, offsets),
        "__partition": one_array(rows["__partition"]).fill_null(ADOPTED),
        **({"__op": one_array(rows["__op"]).fill_null("c")} if "__op" in rows.column_names else {}),
    }
    for name, column in service_columns.items():
        rows = rows.set_column(rows.schema.get_field_index(name), name, column)
    return rows


def _own_place(key: str) -> int:
    return -2 - (int.from_bytes(blake2b(key.encode(), digest_size=8).digest(), "big") >> 2)


def columns_of_end(rules: RuleSettings) -> tuple[str, ...]:
    """The columns that show whether a row is deleted, or its version is closed."""
    if rules.mode == "history":
        return (CURRENT, END)
    return (DELETED,) if rules.marks_deleted else ()


def row_of(connector: str, columns: Mapping[str, Any], truncates: Sequence[Position | None] = ()) -> Row:
    """The rules' row of one row of the table, from the columns ORIGIN and those of its end. `truncates`: the positions
    of remembered truncates.
    """
    op = columns["__op"]
    pointer = (columns["__partition"], columns["__offset"])
    at = _position(connector, columns["__position"])
    known = None if op == "r" else at
    if op == "d" and DELETED not in columns:  # `mode: append`
        return Row(pointer, op, at, at, at, ended="d")
    if columns.get(CURRENT, True) and not columns.get(DELETED):
        return Row(pointer, op, at, at, known)
    if CURRENT not in columns:
        return Row(pointer, op, at, at, at, ended="t" if op == "t" else "d")
    end = _position(connector, columns[END])
    if end is not None and any(
        position is not None and compare(connector, position, end) == 0 for position in truncates
    ):
        return Row(pointer, op, at, at, known, ended="t", ended_at=end)
    return Row(pointer, op, at, at, end or known, ended="d")


def _position(connector: str, text: str | None) -> Position | None:
    return None if text is None else read_position(connector, text)
