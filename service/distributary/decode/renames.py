"""Columns that have another name in the lake than in the source. Code that parses records uses the source's names, all
other code the lake's."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from distributary.errors import TableHalt

_Value = TypeVar("_Value")


@dataclass(frozen=True)
class Renames:
    """`lake` has the lake's name by the source's, of the columns that are renamed."""

    lake: Mapping[str, str] = field(default_factory=dict)

    def of(self, column: str) -> str:
        """The lake's name of a column of the source."""
        return self.lake.get(column, column)

    def all_of(self, columns: Iterable[str]) -> tuple[str, ...]:
        """The lake's names of several columns of the source."""
        return tuple(map(self.of, columns))

    def is_own(self, column: str) -> bool:
        """Whether no other column is renamed to the lake's name of this column of the source."""
        return self.source(self.of(column)) == column

    def source(self, column: str) -> str:
        """The source's name of a column of the lake."""
        return next((source for source, lake in self.lake.items() if lake == column), column)

    def origin(self, column: str) -> str:
        """The text that messages add to the lake's name of a column: the source's name, which `columns` in the config
        has, if it differs; else nothing."""
        source = self.source(column)
        return "" if source == column else f" (source: {source})"

    def among(self, columns: Collection[str]) -> Renames:
        """The renames of the columns that the source has. The lake's name of a column that it lacks may be the name of
        one that it has."""
        return Renames({name: lake for name, lake in self.lake.items() if name in columns})

    def as_source(self, columns: Mapping[str, _Value]) -> dict[str, _Value]:
        """The lake's columns under the source's names, and also under their own names: a source may lack the renamed
        column."""
        own = {name: value for name, value in columns.items() if name not in self.lake}
        return {**own, **{self.source(name): value for name, value in columns.items()}}


NO_RENAMES = Renames()


def check_renames(applied: Mapping[str, str] | None, renames: Renames, columns: Collection[str]) -> None:
    """Raises TableHalt if a table with these columns was filled with other renames, `applied`: its rows have the values
    under the older name, and would have none under the new name."""
    before, now = Renames(applied or {}), renames
    other = [
        name
        for name in sorted({*before.lake, *now.lake})
        if before.of(name) != now.of(name) and before.of(name) in columns
    ]
    if other:
        raise TableHalt(
            "rename-changed",
            f"the table has {', '.join(map(before.of, other))} under another name than `rename` in the config gives it",
            "undo the change in the config, or `distributary resume -c FILE TABLE --rebuild` fills the table again",
        )
