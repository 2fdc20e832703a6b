"""The `columns` block of a table in a first config: types inferred from values, with comments where they are unsure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

from distributary.preflight.table_plan import TablePlan
from distributary.preflight.yaml_text import line, pair, scalar

_INDENT = " " * 4


def columns_text(tables: Collection[TablePlan]) -> Iterator[str]:
    """The lines for all tables of one name; several databases may have one each, and an entry applies to all of them.

    Only types that `run` would infer as well are written, so that the block does not change the tables.
    """
    types = _types(tables)
    possible_types = {name: guess for table in tables for name, guess in table.possible_types.items()}
    named = [(name, kind) for name, kind in types.items() if kind is not None]
    if named:
        yield f"{_INDENT}columns:"
    for name, kind in named:
        comment = f"  # {line(possible_types[name])}" if name in possible_types else ""
        yield pair(name, kind, f"{_INDENT}  ") + comment
    by_value = {name for table in tables for name in table.by_value}
    yield from _without(
        "Different types in different databases", (name for name in types if name in by_value and not types[name])
    )
    untyped = (name for table in tables for name in table.untyped)
    yield from _without("Only nulls so far, which show no type", (name for name in untyped if name not in by_value))


def _types(tables: Iterable[TablePlan]) -> dict[str, str | None]:
    """The inferred types in the order of the columns; None if the tables that have the column show different ones."""
    types: dict[str, str | None] = {}
    for table in tables:
        for name in dict.fromkeys((*table.columns, *table.by_value, *table.untyped)):
            kind = table.by_value.get(name)
            types[name] = kind if types.setdefault(name, kind) == kind else None
    return types


def _without(why: str, names: Iterable[str]) -> Iterator[str]:
    if named := ", ".join(map(scalar, dict.fromkeys(names))):
        yield f"{_INDENT}# {why}: {named}"
