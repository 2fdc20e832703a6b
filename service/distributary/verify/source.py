"""The interface of a source's table for a comparison; each database implements it in its own module."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from distributary.decode.renames import Renames
from distributary.errors import TableHalt

CHUNK = 5_000
"""Rows in memory at a time."""


@dataclass(frozen=True)
class SourceColumns:
    """`types`: the columns that can be compared, with the source's types; `left_out`: the others, with the reason."""

    types: Mapping[str, str]
    left_out: Mapping[str, str]


@dataclass(frozen=True)
class ReadPoint:
    """When the source was read: `description` for people; `is_later` makes a SQL BOOLEAN from a position's SQL: whether
    the position is later than the read."""

    description: str
    is_later: Callable[[str], str]


def at_lsn(hexadecimal: object, length: int, why_unknown: str) -> ReadPoint:
    """A read of a database whose log ended at an LSN of SQL Server or Db2, as `length` hexadecimal digits; of another
    length it is unknown."""
    digits = str(hexadecimal or "").lower()
    if len(digits) != length:
        return ReadPoint(f"an unknown LSN ({why_unknown}): newer rows are not recognized", lambda _: "false")
    lsn = f"{digits[:8]}:{digits[8:16]}:{digits[16:]}"
    return ReadPoint(f"LSN {lsn}", lambda position: f"substring({position}, 5, {len(lsn)}) > '{lsn}'")


class SourceTable(ABC):
    """One table of the source on an open connection. Columns have the lake's names in all arguments and results.

    Values are written as text to Parquet files with the columns `c0`, `c1` …, in the order of `columns`. `types` has
    the source's name of each column's type.
    """

    types: Mapping[str, str]

    @abstractmethod
    def read(self, columns: Iterable[str], folder: Path) -> ReadPoint:
        """Writes all rows as of one moment. No change in them is later than the returned point."""

    @abstractmethod
    def read_keys(
        self, columns: Iterable[str], key: Sequence[str], keys: Sequence[Sequence[str]], folder: Path
    ) -> ReadPoint:
        """Writes the rows with these keys, given as Spark's texts. `key`: the key's columns."""

    @abstractmethod
    def is_comparable(self, column: str, kind: str) -> bool:
        """Whether the source's column can be compared with a column of that Spark type."""

    @abstractmethod
    def value(self, column: str, text: str, kind: str) -> str:
        """SQL that converts a text of this table to the Spark type; NULL if the type can't hold the value or the
        connector sends another one."""

    def lake_value(self, column: str, value: str, kind: str) -> str:  # noqa: ARG002
        """SQL of the lake's value in the form in which it is compared."""
        return value

    def is_key(self, column: str, kind: str) -> bool:  # noqa: ARG002
        """Whether rows can be selected by this comparable column."""
        return kind not in ("binary", "float")

    def comparable(self, lake: Mapping[str, str], masked: Collection[str] = ()) -> SourceColumns:
        """Divides the lake's columns (name to Spark type) into those that can be compared and those that can't."""
        types, left_out = {}, {}
        for name, kind in lake.items():
            source_type = self.types.get(name)
            if source_type is None:
                left_out[name] = "the source does not have it"
            elif name in masked:
                left_out[name] = "it is masked"
            elif self.is_comparable(name, kind):
                types[name] = source_type
            else:
                left_out[name] = f"{source_type} can't be compared with {kind}"
        return SourceColumns(types, left_out)


@dataclass(frozen=True)
class Source:
    """A kind of database. `table` opens a read-only connection for a DSN, schema, table and renames. It raises
    TableHalt if the database has no such table, else SetupError or UsageError; their texts never contain the DSN."""

    name: str
    schemes: tuple[str, ...]
    connectors: tuple[str, ...]
    table: Callable[[str, str, str, Renames], AbstractContextManager[SourceTable]]


def table_not_found(schema: str, table: str) -> TableHalt:
    """The error for a database without the table."""
    return TableHalt(
        "not-at-the-source",
        f"the database has no table {schema}.{table}, or its user may not see it",
        "name the right database in --source-dsn",
    )


def chunks(cursor: Any) -> Iterator[Sequence[Sequence[Any]]]:
    """The rows of a cursor in chunks of CHUNK."""
    while rows := cursor.fetchmany(CHUNK):
        yield rows


def write_chunks(rows: Iterable[Sequence[Sequence[str | None]]], width: int, folder: Path) -> None:
    """Writes chunks of rows of texts to one Parquet file."""
    schema = pa.schema([(f"c{i}", pa.string()) for i in range(width)])
    with pq.ParquetWriter(folder / "rows.parquet", schema) as writer:
        for chunk in rows:
            columns = list(zip(*chunk, strict=True)) or [()] * width
            writer.write_table(pa.table([pa.array(column, pa.string()) for column in columns], schema=schema))
