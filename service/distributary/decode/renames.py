"""Columns that the lake calls otherwise than the source. Up to where records are parsed the source's names count, from
there on the lake's."""

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
        """The same of several."""
        return tuple(map(self.of, columns))

    def is_own(self, column: str) -> bool:
        """Whether the lake's name of the source's column stands for it, and not for another one."""
        return self.source(self.of(column)) == column

    def source(self, column: str) -> str:
        """The source's name of a column of the lake."""
        return next((source for source, lake in self.lake.items() if lake == column), column)

    def origin(self, column: str) -> str:
        """What messages add to the name of a column of the lake: the source's, which `columns` has, where it is
        another; else nothing."""
        source = self.source(column)
        return "" if source == column else f" (source: {source})"

    def among(self, columns: Collection[str]) -> Renames:
        """Those of a source that has these columns. The lake's name of one that it lacks may be one of its own."""
        return Renames({name: lake for name, lake in self.lake.items() if name in columns})

    def as_source(self, columns: Mapping[str, _Value]) -> dict[str, _Value]:
        """The lake's columns under the source's names, and under their own: a source may lack what is renamed."""
        own = {name: value for name, value in columns.items() if name not in self.lake}
        return {**own, **{self.source(name): value for name, value in columns.items()}}


NO_RENAMES = Renames()


def check_renames(kept: Mapping[str, str] | None, renames: Renames, columns: Collection[str]) -> None:
    """Raises TableHalt if a table with these columns was filled with other renames, `kept`: the rows that it has
    would keep their values under the older name, and have none under the new one."""
    before, now = Renames(kept or {}), renames
    other = [
        name
        for name in sorted({*before.lake, *now.lake})
        if before.of(name) != now.of(name) and before.of(name) in columns
    ]
    if other:
        raise TableHalt(
            "rename-changed",
            f"the table has {', '.join(map(before.of, other))} under another name than `rename` in the config says",
            "undo the change in the config, or `distributary resume -c FILE TABLE --rebuild` fills the table again",
        )
