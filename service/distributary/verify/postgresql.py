"""Reads the live table of a PostgreSQL in chunks and writes every value as text to Parquet files."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from distributary.decode.renames import Renames
from distributary.errors import SetupError, UsageError
from distributary.verify.position_sql import lsn_of
from distributary.verify.source import CHUNK, ReadPoint, Source, SourceTable, chunks, table_not_found, write_chunks

if TYPE_CHECKING:
    import psycopg

_COLUMNS = """
SELECT attname, format_type(atttypid, NULL), typtype = 'e'
FROM pg_attribute JOIN pg_type ON pg_type.oid = atttypid
WHERE attrelid = to_regclass(%s) AND attnum > 0 AND NOT attisdropped
"""
_WHOLE = ("smallint", "integer", "bigint")
# The types of the source that can be compared with a Spark type, because their texts have the same meaning.
_COMPARABLE: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(("smallint", "int", "bigint"), _WHOLE),
    "boolean": ("boolean",),
    "float": ("real",),
    "double": ("real", "double precision"),
    "decimal": ("numeric",),
    "string": ("text", "character varying", "character", "uuid", "json", "jsonb", "numeric"),
    "date": ("date",),
    "timestamp_ntz": ("timestamp without time zone",),
    # Without a zone by `timestamps: utc`, which reads it in UTC as the session here does.
    "timestamp": ("timestamp with time zone", "timestamp without time zone"),
    "binary": ("bytea",),
}
# How a value of the source becomes text; all other types are cast. A cast would cut the trailing blanks of a
# character(n), which the connector sends.
_AS_TEXT: Mapping[str, str] = {"bytea": "encode({}, 'hex')", "character": "textin(bpcharout({}))"}
# In a cast, `character` means a text of one character.
_CAST_TO: Mapping[str, str] = {"character": "bpchar"}
_INFINITE: Mapping[str, str] = {
    "date": "'infinity', DATE'9999-12-31', '-infinity', DATE'0001-01-01'",
    "timestamp_ntz": (
        "'infinity', TIMESTAMP_NTZ'9999-12-31 23:59:59.999999', '-infinity', TIMESTAMP_NTZ'0001-01-01 00:00:00'"
    ),
    "timestamp": "'infinity', TIMESTAMP'9999-12-31 23:59:59.999999Z', '-infinity', TIMESTAMP'0001-01-01 00:00:00Z'",
}


class PostgresTable(SourceTable):
    """One table, read by a connection."""

    def __init__(self, connection: psycopg.Connection, schema: str, table: str, renames: Renames) -> None:
        """`renames` gives the lake's names of the columns."""
        from psycopg import sql

        self._connection = connection
        self._name = sql.Identifier(schema, table)
        column_rows = connection.execute(_COLUMNS, (self._name.as_string(connection),)).fetchall()
        if not column_rows:
            raise table_not_found(schema, table)
        renames = self._renames = renames.among([name for name, _, _ in column_rows])
        # Another column may be renamed to the name of a column that is left out.
        named = [(renames.of(name), kind, is_enum) for name, kind, is_enum in column_rows if renames.is_own(name)]
        self.types = {name: kind for name, kind, _ in named}
        self.enums = [name for name, _, is_enum in named if is_enum]

    def is_comparable(self, column: str, kind: str) -> bool:
        is_enum = column in self.enums and kind == "string"
        return is_enum or self.types[column] in _COMPARABLE.get(kind.partition("(")[0], ())

    def value(self, column: str, text: str, kind: str) -> str:  # noqa: ARG002
        if kind == "binary":
            return f"unhex({text})"
        plain = f"try_cast({text} AS {kind})"
        base = kind.partition("(")[0]
        if base not in _INFINITE:
            return plain
        high, high_value, low, low_value = _INFINITE[base].split(", ")
        return f"CASE {text} WHEN {high} THEN {high_value} WHEN {low} THEN {low_value} ELSE {plain} END"

    def read(self, columns: Iterable[str], folder: Path) -> ReadPoint:
        columns = list(columns)
        query = self._select(columns)
        with self._connection.transaction():
            self._connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
            at = self._now()
            with self._connection.cursor(name="distributary_verify") as cursor:
                cursor.itersize = CHUNK
                cursor.execute(query)
                write_chunks(chunks(cursor), len(columns), folder)
        return at

    def read_keys(
        self, columns: Iterable[str], key: Sequence[str], keys: Sequence[Sequence[str]], folder: Path
    ) -> ReadPoint:
        from psycopg import sql

        columns = list(columns)
        names = [sql.Identifier(f"k{i}") for i in range(len(key))]
        on = sql.SQL(" AND ").join(
            sql.SQL("t.{} = w.{}::{}").format(self._column(name), alias, sql.SQL(self._cast_to(name)))
            for name, alias in zip(key, names, strict=True)
        )
        arrays = sql.SQL(", ").join([sql.SQL("%s::text[]")] * len(key))
        wanted = sql.SQL(" JOIN unnest({}) AS w({}) ON {}").format(arrays, sql.SQL(", ").join(names), on)
        parameters = [[row[i] for row in keys] for i in range(len(key))]
        at = self._now()
        with self._connection.cursor() as cursor:
            cursor.execute(self._select(columns) + wanted, parameters)
            write_chunks([cursor.fetchall()], len(columns), folder)
        return at

    def _select(self, columns: Iterable[str]) -> Any:
        from psycopg import sql

        texts = [
            sql.SQL(_AS_TEXT.get(self.types[name], "{}::text")).format(sql.SQL("t.{}").format(self._column(name)))
            for name in columns
        ]
        return sql.SQL("SELECT {} FROM {} AS t").format(sql.SQL(", ").join(texts), self._name)

    def _cast_to(self, name: str) -> str:
        return _CAST_TO.get(self.types[name], self.types[name])

    def _column(self, name: str) -> Any:
        from psycopg import sql

        return sql.Identifier(self._renames.source(name))

    def _now(self) -> ReadPoint:
        row = self._connection.execute("SELECT (pg_current_wal_lsn() - '0/0'::pg_lsn)::text").fetchone()
        assert row is not None
        return read_point(int(row[0]))


def read_point(lsn: int) -> ReadPoint:
    """A read of a database whose log ended at this LSN."""
    return ReadPoint(f"LSN {lsn >> 32:X}/{lsn & 0xFFFFFFFF:X}", lambda position: f"{lsn_of(position)} > '{lsn:020}'")


@contextmanager
def connected(dsn: str) -> Iterator[psycopg.Connection]:
    """A read-only connection. Raises SetupError and UsageError; their texts never contain the DSN."""
    try:
        import psycopg
    except ImportError as error:
        raise SetupError(
            "driver-missing", "the driver of PostgreSQL is not installed", "pip install 'psycopg[binary]'"
        ) from error
    try:
        connection = psycopg.connect(
            dsn,
            autocommit=True,
            connect_timeout=10,
            options="-c TimeZone=UTC -c DateStyle=ISO -c IntervalStyle=iso_8601",
        )
    except psycopg.Error as error:
        # libpq's text may contain parts of the DSN.
        raise UsageError(
            "source-unreachable",
            f"the database of --source-dsn can't be reached ({type(error).__name__})",
            "try the same DSN with psql",
        ) from error
    with connection:
        for setting in ("default_transaction_read_only = on", "TimeZone = 'UTC'", "DateStyle = ISO"):
            connection.execute(f"SET {setting}")
        yield connection


@contextmanager
def _table(dsn: str, schema: str, table: str, renames: Renames) -> Iterator[SourceTable]:
    with connected(dsn) as connection:
        yield PostgresTable(connection, schema, table, renames)


POSTGRESQL = Source("PostgreSQL", ("postgresql", "postgres"), ("postgresql",), _table)
