"""Names under `mask`, `exclude`, `columns` and `rename` that no column of the table has: most likely misspelt.

A misspelt `mask` or `exclude` publishes the column, so it halts a table before its first row where that is certain
enough; everything else is a warning.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from difflib import get_close_matches

from distributary.config.table import TableSettings, named_columns
from distributary.errors import TableHalt

CODE = "unknown-column"
FIX = (
    "write the source's name of the column, in the case that the source has; take the name out where the table has no"
    " such column any more"
)
_PROTECTING = ("mask", "exclude")
_SIMILAR = 0.6
_MOST_NEAR = 3
_SHORTEST_TYPO = 4
"""Characters: of shorter names many differ from others by one letter."""


@dataclass(frozen=True)
class UnknownColumn:
    """A `name` that the config has under `option` at `place` (`file:line`), `near` the most similar columns.

    `is_typo`: it differs from each of them by one typo (a letter more, less or other, or two swapped), or is the lake's
    name of a renamed column.
    `names_one_table`: an entry for this one table has it, and not `defaults` or a pattern, whose names may be those of
    other tables.
    """

    option: str
    name: str
    place: str
    near: tuple[str, ...]
    is_typo: bool
    names_one_table: bool

    @property
    def publishes(self) -> bool:
        """Whether the most similar columns reach the lake although the config most likely means to protect them."""
        return self.option in _PROTECTING and self.is_typo and self.names_one_table

    def __str__(self) -> str:
        place = f" ({self.place})" if self.place else ""
        near = f"; the nearest: {', '.join(self.near)}" if self.near else ""
        return f"`{self.option}`{place} names {self.name!r}, which is no column of the table{near}"


def unknown_columns(settings: TableSettings, columns: Collection[str]) -> list[UnknownColumn]:
    """Names of the config that are not among `columns`, all columns that are known of the table by the source's names.

    A name from `defaults` or from an entry for several tables counts only where it is a typo of a column. A column that
    the config also names can't be the one that was meant.
    """
    named = dict.fromkeys(named_columns(settings))
    candidates = [c for c in columns if c not in {name for _, name in named}]
    unknown = []
    for option, name in named:
        if name in columns:
            continue
        near, is_typo = _nearest(settings, name, candidates)
        names_one_table = settings.is_for_one_table and (option, name) in settings.own_names
        if is_typo or names_one_table:
            place = settings.name_places.get((option, name), settings.where)
            unknown.append(UnknownColumn(option, name, place, near, is_typo, names_one_table))
    return unknown


def check_protected_columns(settings: TableSettings, columns: Collection[str]) -> None:
    """Raises TableHalt if a table without rows would publish a column that the config most likely means to protect.

    `columns` as for unknown_columns; empty while no record has shown them.
    """
    publishing = [unknown for unknown in unknown_columns(settings, columns) if unknown.publishes]
    if publishing:
        raise TableHalt(
            CODE,
            f"{'; '.join(map(str, publishing))}: a misspelt column would get into the table unprotected",
            "write the column's name as the source has it. If the source has both columns, set the other one's type"
            " under `columns`, so that the config knows it",
        )


def _nearest(settings: TableSettings, name: str, columns: Iterable[str]) -> tuple[tuple[str, ...], bool]:
    """The columns that are most like a name, and whether it is a typo of each of them."""
    columns = list(columns)
    # The config has the source's names; this is the lake's name.
    renamed = tuple(source for source, lake in settings.rename.items() if lake == name and source != name)
    typos = renamed or tuple(column for column in columns if _is_typo(name, column))
    if typos:
        return typos[:_MOST_NEAR], True
    by_lower = {column.lower(): column for column in columns}
    near = get_close_matches(name.lower(), by_lower, n=_MOST_NEAR, cutoff=_SIMILAR)
    return tuple(by_lower[lower_name] for lower_name in near), False


def _is_typo(name: str, column: str) -> bool:
    """Whether both are the same but for case and separators, or for one letter that is added, missing, wrong or swapped
    with the next. Digits number columns (`phone1`, `phone2`): a different digit is no typo."""
    one, other = _plain(name), _plain(column)
    if one == other:
        return True
    if min(len(one), len(other)) < _SHORTEST_TYPO or abs(len(one) - len(other)) > 1:
        return False
    begin = next((i for i, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))
    one, other = one[begin:], other[begin:]
    if len(one) == len(other):
        swapped = one[1::-1] + one[2:] == other and len(one) > 1
        return swapped or (one[1:] == other[1:] and not (one[0].isdigit() or other[0].isdigit()))
    longer, shorter = (one, other) if len(one) > len(other) else (other, one)
    return longer[1:] == shorter and not longer[0].isdigit()


def _plain(name: str) -> str:
    return "".join(character for character in name.casefold() if character not in "_-. ")
