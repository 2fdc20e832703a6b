"""What a comparison needs of a source's table: the same of every database, each in a module of its own."""

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
"""Rows that are held in memory at once."""


@dataclass(frozen=True)
class SourceColumns:
    """The columns that can be compared, with the source's types; `left_out`: those that can't, with why."""

    types: Mapping[str, str]
    left_out: Mapping[str, str]


@dataclass(frozen=True)
class ReadAt:
    """When the source was read: for people, and as a BOOLEAN of SQL that says whether a position is from later."""

    told: str
    is_before: Callable[[str], str]


class SourceTable(ABC):
    """One table of the source, while a connection is open. Columns are asked for and told by the lake's names.

    Values are written as text into Parquet files: `c0`, `c1` …, in the order of `columns`. `types` has the source's own
    name of each column's type.
    """

    types: Mapping[str, str]

    @abstractmethod
    def read(self, columns: Iterable[str], folder: Path) -> ReadAt:
        """Writes all rows, as of one moment. No change that is in them is later than what this gives."""

    @abstractmethod
    def read_keys(
        self, columns: Iterable[str], key: Sequence[str], keys: Sequence[Sequence[str]], folder: Path
    ) -> ReadAt:
        """The same of the rows with those keys, given as Spark's texts. `key`: its columns."""

    @abstractmethod
    def is_comparable(self, column: str, kind: str) -> bool:
        """Whether a column of the source can be compared with one of that Spark type."""

    @abstractmethod
    def value(self, column: str, text: str, kind: str) -> str:
        """SQL of the value of a Spark type that a text of this table stands for; NULL where the type can't hold it, or
        the connector does not send it as it is."""

    def lake_value(self, column: str, value: str, kind: str) -> str:  # noqa: ARG002
        """SQL of the lake's value as it is compared."""
        return value

    def is_key(self, column: str, kind: str) -> bool:  # noqa: ARG002
        """Whether rows can be found by this column, which is comparable."""
        return kind not in ("binary", "float")

    def comparable(self, lake: Mapping[str, str], masked: Collection[str] = ()) -> SourceColumns:
        """Which of the lake's columns, name to Spark type, can be compared with the source's."""
        types, left_out = {}, {}
        for name, kind in lake.items():
            found = self.types.get(name)
            if found is None:
                left_out[name] = "the source does not have it"
            elif name in masked:
                left_out[name] = "it is masked"
            elif self.is_comparable(name, kind):
                types[name] = found
            else:
                left_out[name] = f"{found} can't be compared with {kind}"
        return SourceColumns(types, left_out)


@dataclass(frozen=True)
class Source:
    """A kind of database. `table` opens a connection that only reads: DSN, schema, table and renames go in. It raises
    TableHalt where the database lacks the table, SetupError and UsageError without the DSN in their text."""

    name: str
    schemes: tuple[str, ...]
    connectors: tuple[str, ...]
    table: Callable[[str, str, str, Renames], AbstractContextManager[SourceTable]]


def not_at_the_source(schema: str, table: str) -> TableHalt:
    """The error of a database without the table."""
    return TableHalt(
        "not-at-the-source",
        f"the database has no table {schema}.{table}, or its user may not see it",
        "name the right database in --source-dsn",
    )


def chunks(cursor: Any) -> Iterator[Sequence[Sequence[Any]]]:
    """The rows of a cursor, some at a time."""
    while rows := cursor.fetchmany(CHUNK):
        yield rows


def write_chunks(rows: Iterable[Sequence[Sequence[str | None]]], width: int, folder: Path) -> None:
    """Rows of texts as one Parquet file; a chunk is in memory at a time."""
    schema = pa.schema([(f"c{i}", pa.string()) for i in range(width)])
    with pq.ParquetWriter(folder / "rows.parquet", schema) as writer:
        for chunk in rows:
            columns = list(zip(*chunk, strict=True)) or [()] * width
            writer.write_table(pa.table([pa.array(column, pa.string()) for column in columns], schema=schema))
