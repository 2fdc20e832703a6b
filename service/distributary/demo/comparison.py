"""Compares a table in the lake with its source table: every row, every column of the source.

The lake is read with the `deltalake` package, which shares no code with the service that wrote it.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from deltalake import DeltaTable
from deltalake.exceptions import TableNotFoundError

from distributary.demo.record import Row, Truth

Key = tuple[Any, ...]


@dataclass(frozen=True)
class Comparison:
    """The result of a comparison. `source` and `lake` are the rows by key; `columns` names the columns that only one
    side has."""

    truth: Truth
    source: dict[Key, Row]
    lake: dict[Key, Row]
    found: bool
    columns: tuple[str, ...]
    repeated: tuple[Key, ...]

    @property
    def missing(self) -> list[Key]:
        """Keys of rows that the lake should have and has not."""
        return [key for key in self.source if key not in self.lake]

    @property
    def extra(self) -> list[Key]:
        """Keys of rows that the lake has and should not."""
        return [key for key in self.lake if key not in self.source]

    @property
    def different(self) -> dict[Key, list[str]]:
        """Keys of rows that both have with other values, and in which columns."""
        names_by_key = {
            key: [name for name in self.truth.columns if not same(row.get(name), self.lake[key].get(name))]
            for key, row in self.source.items()
            if key in self.lake
        }
        return {key: names for key, names in names_by_key.items() if names}

    @property
    def equal(self) -> bool:
        wrong = self.columns or self.repeated or self.missing or self.extra or self.different
        return self.found and not wrong


def compare(truth: Truth, lake: Path) -> Comparison:
    """Compare `truth` with the table that lies in `lake` under `<schema>/<table>`; a table that isn't there differs."""
    schema, _, name = truth.table.partition(".")
    found = True
    try:
        table = DeltaTable(str(lake / schema / name)).to_pyarrow_table()
        rows: list[dict[str, Any]] = table.to_pylist()
        own = {column for column in table.column_names if not column.startswith("__")}
    except TableNotFoundError:
        found, rows, own = False, [], set()
    keys = Counter(_key(truth, row) for row in rows)
    return Comparison(
        truth=truth,
        source=_by_key(truth, truth.on_the_wire()),
        lake=_by_key(truth, rows),
        found=found,
        columns=tuple(sorted(own ^ set(truth.columns))) if found else (),
        repeated=tuple(key for key, count in keys.items() if count > 1),
    )


def same(one: Any, other: Any) -> bool:
    """Equal in value and in kind: 1 is not True and not 1.0; one NaN is like another."""
    if type(one) is not type(other):
        return False
    if isinstance(one, float) and math.isnan(one):
        return math.isnan(other)
    return bool(one == other)


def _by_key(truth: Truth, rows: Iterable[Row]) -> dict[Key, Row]:
    return {_key(truth, row): row for row in rows}


def _key(truth: Truth, row: Row) -> Key:
    return tuple(row.get(name) for name in truth.key)
