"""Compares a table of the lake with the source table: every row, every column, type and value.

An independent reader (the `deltalake` package) reads the lake's table. Only differences that a limit names are allowed,
and an unused limit is a difference, too, so that the list of limits can't outlive its reasons.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa
from tests.support.comparable import Value, column_values, hashable, identical, plain_type
from tests.support.limit import CellLimit, KeptColumn, Limit, MissingColumn, MissingRow
from tests.support.recorded import TruthTable
from tests.support.source_type import SourceType

SourceTypes = Callable[[str], SourceType]
"""From the database's name of a type to the type that it must become: `postgres_type` or `mariadb_type`."""

SERVICE_COLUMNS: dict[str, pa.DataType | None] = {
    "__op": pa.string(),
    "__source_ts": pa.timestamp("us", tz="UTC"),
    "__position": pa.string(),
    "__topic": pa.string(),
    "__partition": None,  # any whole number
    "__offset": None,
}
_SHOWN = 12


@dataclass
class Difference:
    """All differences of the two, in words. Empty (and false) when they are equal."""

    table: str
    columns: list[str] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    extra: list[str] = field(default_factory=list)
    cells: list[str] = field(default_factory=list)
    unused: list[str] = field(default_factory=list)

    def __bool__(self) -> bool:
        return any((self.columns, self.missing, self.extra, self.cells, self.unused))

    def __str__(self) -> str:
        parts = {
            "columns": self.columns,
            "rows that the lake lacks": self.missing,
            "rows that only the lake has": self.extra,
            "cells that differ": self.cells,
            "limits that nothing needed": self.unused,
        }
        lines = [f"{self.table}: {'differs' if self else 'equal'}"]
        for title, found in parts.items():
            if found:
                lines.append(f"  {title}: {len(found)}")
                lines.extend(f"    {line}" for line in found[:_SHOWN])
                lines.extend(["    …"] * (len(found) > _SHOWN))
        return "\n".join(lines)


def compare_table(
    table: pa.Table, truth: TruthTable, source_types: SourceTypes, limits: Iterable[Limit] = ()
) -> Difference:
    """Compares types and contents. Columns that begin with two underscores are the service's and left out, unless the
    source has one of that name."""
    limits = [limit for limit in limits if limit.table == truth.name]
    names = [name for name in table.column_names if not name.startswith("__") or _source_has(truth, name)]
    rows = [
        dict(zip(names, values, strict=True))
        for values in zip(*(column_values(table.column(name)) for name in names), strict=True)
    ]
    difference = compare_rows(rows, truth, source_types, limits, columns=names)
    for column in truth.columns:
        if column.name in names:
            expected, found = source_types(column.type).arrow, plain_type(table.schema.field(column.name).type)
            if not found.equals(plain_type(expected)):
                difference.columns.append(f"{column.name} ({column.type}) must be {expected}, is {found}")
    return difference


def compare_rows(
    rows: Sequence[Mapping[str, Value]],
    truth: TruthTable,
    source_types: SourceTypes,
    limits: Iterable[Limit] = (),
    columns: Sequence[str] | None = None,
) -> Difference:
    """Compares rows of comparable values with the truth: by primary key, and as multisets where there is none.

    `columns` are the names that the rows have, those of the first row when it is not given.
    """
    difference = Difference(truth.name)
    limits = [limit for limit in limits if limit.table == truth.name]
    used: set[int] = set()
    names = list(columns if columns is not None else (rows[0] if rows else [column.name for column in truth.columns]))
    _compare_columns(names, truth, limits, used, difference)
    compared = {column.name: column.type for column in truth.columns if column.name in names}
    reader = _TruthReader(compared, source_types, limits, used)
    if truth.key:
        _compare_by_key(rows, truth, reader, compared, difference)
    else:
        _compare_as_multisets(rows, truth, reader, compared, difference)
    difference.unused += [str(limit) for position, limit in enumerate(limits) if position not in used]
    return difference


def missing_service_columns(table: pa.Table, unknown: Collection[str] = ()) -> list[str]:
    """Which of the service's columns a table of mode `upsert` lacks, has in another type, or has empty.

    Columns that are `unknown`, because the records lack their values, must be empty.
    """
    problems = []
    for name, kind in SERVICE_COLUMNS.items():
        if name not in table.column_names:
            problems.append(f"{name} is missing")
            continue
        found = plain_type(table.schema.field(name).type)
        if not (pa.types.is_integer(found) if kind is None else found.equals(kind)):
            problems.append(f"{name} is {found}")
        nulls = table.column(name).null_count
        if name in unknown and nulls < table.num_rows:
            problems.append(f"{name} is not NULL in {table.num_rows - nulls} rows")
        elif name not in unknown and nulls:
            problems.append(f"{name} is NULL in {nulls} rows")
    return problems


class _TruthReader:
    """Turns the truth's text into the values that the lake must hold, and says which differ."""

    def __init__(
        self, columns: Mapping[str, str], source_types: SourceTypes, limits: Sequence[Limit], used: set[int]
    ) -> None:
        self._types = {name: source_types(kind) for name, kind in columns.items()}
        self._cells: dict[tuple[str, str | None], list[tuple[int, CellLimit]]] = {}
        for position, limit in enumerate(limits):
            if isinstance(limit, CellLimit):
                self._cells.setdefault((limit.column, limit.truth), []).append((position, limit))
        self._rows = {limit.key: position for position, limit in enumerate(limits) if isinstance(limit, MissingRow)}
        self._used = used

    def key_value(self, column: str, text: str | None) -> Value:
        """The key's value as the lake has it: a limit always applies here, because rows can't be matched otherwise."""
        for position, limit in self._cells.get((column, text), ()):
            self._used.add(position)
            return limit.lake
        return None if text is None else self._types[column].read(text)

    def same(self, column: str, text: str | None, lake: Value) -> bool:
        """Whether the lake's value is right, or allowed by a limit."""
        if self._equal(column, text, lake):
            return True
        for position, limit in self._cells.get((column, text), ()):
            if self._carried(limit, lake):
                self._used.add(position)
                return True
        return False

    def may_miss(self, key: tuple[str | None, ...]) -> bool:
        """Whether a limit names the row."""
        if key not in self._rows:
            return False
        self._used.add(self._rows[key])  # type: ignore[index]
        return True

    def _equal(self, column: str, text: str | None, lake: Value) -> bool:
        if text is None or lake is None:
            return text is None and lake is None
        kind = self._types[column]
        try:
            return kind.same(kind.read(text), lake)
        except ValueError:  # a date that no calendar has: only a limit can say what becomes of it
            return False

    def _carried(self, limit: CellLimit, lake: Value) -> bool:
        if limit.lake is None or lake is None:
            return limit.lake is None and lake is None
        return identical(limit.lake, lake) or self._types[limit.column].same(limit.lake, lake)


def _source_has(truth: TruthTable, name: str) -> bool:
    return any(column.name == name for column in truth.columns)


def _compare_columns(
    names: Sequence[str], truth: TruthTable, limits: Sequence[Limit], used: set[int], difference: Difference
) -> None:
    excused = {
        (type(limit), limit.column): position
        for position, limit in enumerate(limits)
        if isinstance(limit, MissingColumn | KeptColumn)
    }
    for column in truth.columns:
        if column.name not in names:
            if (MissingColumn, column.name) in excused:
                used.add(excused[MissingColumn, column.name])
            else:
                difference.columns.append(f"{column.name} ({column.type}) is missing")
    for name in names:
        if not _source_has(truth, name):
            if (KeptColumn, name) in excused:
                used.add(excused[KeptColumn, name])
            else:
                difference.columns.append(f"{name} is not a column of the source")


def _compare_by_key(
    rows: Sequence[Mapping[str, Value]],
    truth: TruthTable,
    reader: _TruthReader,
    compared: Iterable[str],
    difference: Difference,
) -> None:
    lacking = [name for name in truth.key if name not in set(compared)]
    if lacking:
        difference.columns.append(f"the key can't be compared without {', '.join(lacking)}")
        return
    found: dict[object, Mapping[str, Value]] = {}
    for row in rows:
        key = tuple(hashable(row[name]) for name in truth.key)
        if key in found:
            difference.extra.append(f"{_shown(row, truth.key)} a second time")
        found[key] = row
    for expected in truth.rows:
        values = {name: reader.key_value(name, expected[name]) for name in truth.key}
        row = found.pop(tuple(hashable(value) for value in values.values()), {})
        if row:
            difference.cells += [
                f"{_shown(expected, truth.key)} {name}: truth {expected[name]!r}, lake {row[name]!r}"
                for name in compared
                if name not in truth.key and not reader.same(name, expected[name], row[name])
            ]
        elif not reader.may_miss(tuple(expected[name] for name in truth.key)):
            difference.missing.append(_shown(expected, truth.key))
    difference.extra += [_shown(row, truth.key) for row in found.values()]


def _compare_as_multisets(
    rows: Sequence[Mapping[str, Value]],
    truth: TruthTable,
    reader: _TruthReader,
    compared: Iterable[str],
    difference: Difference,
) -> None:
    expected = Counter(tuple(hashable(reader.key_value(name, row[name])) for name in compared) for row in truth.rows)
    found = Counter(tuple(hashable(row[name]) for name in compared) for row in rows)
    difference.missing += [f"{row}, {count} times" for row, count in (expected - found).items()]
    difference.extra += [f"{row}, {count} times" for row, count in (found - expected).items()]


def _shown(row: Mapping[str, Value], names: Iterable[str]) -> str:
    return ", ".join(f"{name}={row[name]!r}" for name in names)
