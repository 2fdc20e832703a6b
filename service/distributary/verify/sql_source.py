"""Reads a live table through SQLAlchemy, in chunks, and writes every value as text to Parquet files.

The differences between databases are in a Dialect: sqlserver.py, oracle.py and db2.py have one each.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from distributary.decode.renames import Renames
from distributary.errors import SetupError, UsageError
from distributary.verify.source import (
    CHUNK,
    ReadPoint,
    Source,
    SourceTable,
    chunks,
    table_not_found,
    write_chunks,
)

if TYPE_CHECKING:
    import sqlalchemy

_KEYS_AT_ONCE = 200
"""Keys of one statement: databases limit the parameters of a statement, SQL Server to 2,100."""

Ask = Callable[[str], Sequence[Sequence[Any]]]
"""Runs a statement and gives its rows."""


@dataclass(frozen=True)
class Dialect:
    """How a database's table is read. `extra` is the package's extra with the drivers, `schemes` are those of the DSN
    with SQLAlchemy's name of the driver.

    `columns`: the statement for the columns of {schema} and {table}: name, type, and the values from which `declared`
    makes a full type. `texts`: by type, SQL of a column's value as text; types that are not in it are not compared.
    `comparable`: the types that can be compared, by Spark type. `begin` prepares the connection. `point` returns the
    current end of the log.
    """

    name: str
    extra: str
    connectors: tuple[str, ...]
    schemes: Mapping[str, str]
    columns: str
    declared: Callable[[Sequence[Any]], str]
    texts: Mapping[str, str]
    comparable: Mapping[str, tuple[str, ...]]
    begin: Callable[[Ask], str]
    point: Callable[[Ask], ReadPoint]
    values: Mapping[str, str] = field(default_factory=dict)
    """Spark's SQL that makes a value of {text}, by `type spark-type` or by Spark type; else it is cast to {kind}."""

    def source(self) -> Source:
        """The kind of database, for `verify`."""

        @contextmanager
        def opened(dsn: str, schema: str, table: str, renames: Renames) -> Iterator[SourceTable]:
            with connected(self, dsn) as connection:
                yield SqlTable(self, connection, schema, table, renames)

        return Source(self.name, tuple(self.schemes), self.connectors, opened)


class SqlTable(SourceTable):
    """One table, read by a connection of SQLAlchemy."""

    def __init__(
        self, dialect: Dialect, connection: sqlalchemy.Connection, schema: str, table: str, renames: Renames
    ) -> None:
        """`renames` gives the lake's names of the columns."""
        self._dialect, self._connection = dialect, connection
        self._quote = connection.dialect.identifier_preparer.quote_identifier
        self._name = f"{self._quoted(schema)}.{self._quoted(table)}"
        column_rows = self._ask(dialect.columns, {"schema": schema, "table": table})
        if not column_rows:
            raise table_not_found(schema, table)
        named = {str(row[0]).strip(): str(row[1]).strip().lower() for row in column_rows}
        renames = self._renames = renames.among(list(named))
        self._declared = {renames.of(str(row[0]).strip()): dialect.declared(row[1:]) for row in column_rows}
        self.types = {renames.of(name): kind for name, kind in named.items() if renames.is_own(name)}
        self._about = dialect.begin(self._ask)

    def is_comparable(self, column: str, kind: str) -> bool:
        source_type = self.types[column]
        return source_type in self._dialect.texts and source_type in self._dialect.comparable.get(
            kind.partition("(")[0], ()
        )

    def value(self, column: str, text: str, kind: str) -> str:
        base, values = kind.partition("(")[0], self._dialect.values
        form = values.get(f"{self.types[column]} {base}") or values.get(base, "try_cast({text} AS {kind})")
        return form.format(text=text, kind=kind)

    def is_key(self, column: str, kind: str) -> bool:
        return super().is_key(column, kind) and kind != "double"

    def read(self, columns: Iterable[str], folder: Path) -> ReadPoint:
        columns = list(columns)
        at = self._now()
        with self._connection.begin():
            write_chunks(self._chunks(self._select(columns), {}), len(columns), folder)
        return at

    def read_keys(
        self, columns: Iterable[str], key: Sequence[str], keys: Sequence[Sequence[str]], folder: Path
    ) -> ReadPoint:
        columns = list(columns)
        at = self._now()
        with self._connection.begin():
            write_chunks(self._chunks_of_keys(columns, key, keys), len(columns), folder)
        return at

    def _chunks_of_keys(
        self, columns: Sequence[str], key: Sequence[str], keys: Sequence[Sequence[str]]
    ) -> Iterator[Sequence[Sequence[str | None]]]:
        for start in range(0, len(keys), _KEYS_AT_ONCE):
            some = keys[start : start + _KEYS_AT_ONCE]
            given = {f"k{i}_{j}": value for i, row in enumerate(some) for j, value in enumerate(row)}
            wanted = " OR ".join(
                "(" + " AND ".join(self._equals(name, f"k{i}_{j}") for j, name in enumerate(key)) + ")"
                for i in range(len(some))
            )
            yield from self._chunks(f"{self._select(columns)} WHERE {wanted}", given)

    def _equals(self, column: str, parameter: str) -> str:
        """As the column's own type: texts of one value may differ."""
        return f"{self._column(column)} = CAST({{{parameter}}} AS {self._declared[column]})"

    def _select(self, columns: Iterable[str]) -> str:
        texts = [self._dialect.texts[self.types[name]].format(self._column(name)) for name in columns]
        return f"SELECT {', '.join(texts)} FROM {self._name} t"

    def _column(self, name: str) -> str:
        return f"t.{self._quoted(self._renames.source(name))}"

    def _quoted(self, name: str) -> str:
        return str(self._quote(name)).replace("{", "{{").replace("}", "}}")

    def _now(self) -> ReadPoint:
        at = self._dialect.point(self._ask)
        return ReadPoint(f"{at.description}{self._about}", at.is_later)

    def _chunks(self, statement: str, given: Mapping[str, str]) -> Iterator[Sequence[Sequence[str | None]]]:
        options = {"stream_results": True, "max_row_buffer": CHUNK}
        with self._connection.execute(_statement(statement, given), given, execution_options=options) as rows:
            for chunk in chunks(rows):
                yield [[None if value is None else str(value) for value in row] for row in chunk]

    def _ask(self, statement: str, given: Mapping[str, str] | None = None) -> Sequence[Sequence[Any]]:
        with self._connection.begin():
            result = self._connection.execute(_statement(statement, given or {}), given or {})
            rows: Sequence[Sequence[Any]] = result.fetchall() if result.returns_rows else ()
        return rows


def _statement(statement: str, given: Mapping[str, str]) -> sqlalchemy.TextClause:
    """The SQL with its {parameters} as SQLAlchemy's; colons are literal."""
    from sqlalchemy import text

    return text(statement.replace(":", r"\:").format_map({name: f":{name}" for name in given}))


@contextmanager
def connected(dialect: Dialect, dsn: str) -> Iterator[sqlalchemy.Connection]:
    """A connection. Raises SetupError and UsageError; their texts never contain the DSN."""
    missing = SetupError(
        "driver-missing",
        f"SQLAlchemy or the driver of {dialect.name} is not installed",
        f"pip install 'distributary[{dialect.extra}]'",
    )
    try:
        from sqlalchemy import create_engine
        from sqlalchemy.exc import ArgumentError, DBAPIError, NoSuchModuleError
        from sqlalchemy.pool import NullPool
    except ImportError as error:
        raise missing from error
    scheme, _, rest = dsn.partition("://")
    try:
        urlsplit(dsn)
        engine = create_engine(f"{dialect.schemes[scheme.lower()]}://{rest}", poolclass=NullPool)
    except (ImportError, NoSuchModuleError) as error:
        raise missing from error
    except (ArgumentError, ValueError) as error:
        raise UsageError(
            "bad-source-dsn",
            "--source-dsn is no URL",
            f"write {next(iter(dialect.schemes))}://user:password@host:port/database, reserved characters as %XX",
        ) from error
    try:
        connection = engine.connect()
    except DBAPIError as error:
        raise UsageError(
            "source-unreachable",
            f"the database of --source-dsn can't be reached ({type(error.orig).__name__})",
            "try the same address, user and password with the database's own client",
        ) from error
    with connection:
        yield connection
