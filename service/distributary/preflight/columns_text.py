"""The `columns` of a table in a first config: the types that values show, with a comment where they may be others."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

from distributary.preflight.table_plan import TablePlan
from distributary.preflight.yaml_text import line, pair, scalar

_INDENT = " " * 4


def columns_text(tables: Collection[TablePlan]) -> Iterator[str]:
    """The lines for the tables of one name, several where several databases have one: an entry is for all of them.

    A type is named only where run would take the same one by the values, so that the tables are those that they would
    be without it.
    """
    types = _types(tables)
    guesses = {name: guess for table in tables for name, guess in table.guesses.items()}
    named = [(name, kind) for name, kind in types.items() if kind is not None]
    if named:
        yield f"{_INDENT}columns:"
    for name, kind in named:
        said = f"  # {line(guesses[name])}" if name in guesses else ""
        yield pair(name, kind, f"{_INDENT}  ") + said
    by_value = {name for table in tables for name in table.by_value}
    yield from _without("Not alike in all databases", (name for name in types if name in by_value and not types[name]))
    untyped = (name for table in tables for name in table.untyped)
    yield from _without("Only nulls so far, which show no type", (name for name in untyped if name not in by_value))


def _types(tables: Iterable[TablePlan]) -> dict[str, str | None]:
    """The types that values alone show, in the order of the columns; None where not all tables that have the column
    show the same."""
    types: dict[str, str | None] = {}
    for table in tables:
        for name in dict.fromkeys((*table.columns, *table.by_value, *table.untyped)):
            kind = table.by_value.get(name)
            types[name] = kind if types.setdefault(name, kind) == kind else None
    return types


def _without(why: str, names: Iterable[str]) -> Iterator[str]:
    if named := ", ".join(map(scalar, dict.fromkeys(names))):
        yield f"{_INDENT}# {why}: {named}"
