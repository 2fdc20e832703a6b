"""A table of a PostgreSQL as it is now, read in chunks: every value as text, into Parquet files."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from distributary.decode.renames import Renames
from distributary.errors import SetupError, TableHalt, UsageError

if TYPE_CHECKING:
    import psycopg

_CHUNK = 5_000  # rows that are held in memory at once
_COLUMNS = """
SELECT attname, format_type(atttypid, NULL), typtype = 'e'
FROM pg_attribute JOIN pg_type ON pg_type.oid = atttypid
WHERE attrelid = to_regclass(%s) AND attnum > 0 AND NOT attisdropped
"""
_WHOLE = ("smallint", "integer", "bigint")
# Which types of the source can be compared with a Spark type: their text says the same.
_COMPARABLE: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(("smallint", "int", "bigint"), _WHOLE),
    "boolean": ("boolean",),
    "float": ("real",),
    "double": ("real", "double precision"),
    "decimal": ("numeric",),
    "string": ("text", "character varying", "uuid", "json", "jsonb", "numeric"),
    "date": ("date",),
    "timestamp_ntz": ("timestamp without time zone",),
    "timestamp": ("timestamp with time zone",),
    "binary": ("bytea",),
}


@dataclass(frozen=True)
class SourceColumns:
    """The columns that can be compared, with the source's types; `left_out`: those that can't, with why."""

    types: Mapping[str, str]
    left_out: Mapping[str, str]


def comparable_columns(
    lake: Mapping[str, str], source: Mapping[str, str], enums: Iterable[str], masked: Collection[str] = ()
) -> SourceColumns:
    """Which of the lake's columns, name to Spark type, can be compared with the source's. Pure."""
    types, left_out = {}, {}
    for name, kind in lake.items():
        found = source.get(name)
        if found is None:
            left_out[name] = "the source does not have it"
        elif name in masked:
            left_out[name] = "it is masked"
        elif found in _COMPARABLE.get(kind.partition("(")[0], ()) or (name in enums and kind == "string"):
            types[name] = found
        else:
            left_out[name] = f"{found} can't be compared with {kind}"
    return SourceColumns(types, left_out)


class PostgresTable:
    """One table, read by a connection. Values are written as text: `c0`, `c1` …, in the order of `columns`."""

    def __init__(self, connection: psycopg.Connection, schema: str, table: str, renames: Renames) -> None:
        """`renames` gives the lake's names, by which columns are asked for and told."""
        from psycopg import sql

        self._connection = connection
        self._name = sql.Identifier(schema, table)
        found = connection.execute(_COLUMNS, (self._name.as_string(connection),)).fetchall()
        if not found:
            raise TableHalt(
                "not-at-the-source",
                f"the database has no table {schema}.{table}, or its user may not see it",
                "name the right database in --source-dsn",
            )
        renames = self._renames = renames.among([name for name, _, _ in found])
        # A column that is left out may have the name that another one is given.
        named = [(renames.of(name), kind, is_enum) for name, kind, is_enum in found if renames.is_own(name)]
        self.types = {name: kind for name, kind, _ in named}
        self.enums = [name for name, _, is_enum in named if is_enum]

    def read(self, columns: Mapping[str, str], folder: Path) -> str:
        """Writes all rows, as of one moment; gives the log's position (LSN) then, in 20 digits."""
        query = self._select(columns)
        with self._connection.transaction():
            self._connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
            lsn = self._lsn()
            with self._connection.cursor(name="distributary_verify") as cursor:
                cursor.itersize = _CHUNK
                cursor.execute(query)
                write_chunks(_chunks(cursor), len(columns), folder)
        return lsn

    def read_keys(
        self, columns: Mapping[str, str], key: Sequence[str], keys: Sequence[Sequence[str]], folder: Path
    ) -> str:
        """The same of the rows with those keys, given as texts."""
        from psycopg import sql

        names = [sql.Identifier(f"k{i}") for i in range(len(key))]
        on = sql.SQL(" AND ").join(
            sql.SQL("t.{} = w.{}::{}").format(self._column(name), alias, sql.SQL(self.types[name]))
            for name, alias in zip(key, names, strict=True)
        )
        arrays = sql.SQL(", ").join([sql.SQL("%s::text[]")] * len(key))
        wanted = sql.SQL(" JOIN unnest({}) AS w({}) ON {}").format(arrays, sql.SQL(", ").join(names), on)
        parameters = [[row[i] for row in keys] for i in range(len(key))]
        lsn = self._lsn()
        with self._connection.cursor() as cursor:
            cursor.execute(self._select(columns) + wanted, parameters)
            write_chunks([cursor.fetchall()], len(columns), folder)
        return lsn

    def _select(self, columns: Mapping[str, str]) -> Any:
        from psycopg import sql

        texts = [
            sql.SQL("encode(t.{}, 'hex')" if kind == "bytea" else "t.{}::text").format(self._column(name))
            for name, kind in columns.items()
        ]
        return sql.SQL("SELECT {} FROM {} AS t").format(sql.SQL(", ").join(texts), self._name)

    def _column(self, name: str) -> Any:
        from psycopg import sql

        return sql.Identifier(self._renames.source(name))

    def _lsn(self) -> str:
        row = self._connection.execute("SELECT (pg_current_wal_lsn() - '0/0'::pg_lsn)::text").fetchone()
        assert row is not None
        return str(row[0]).zfill(20)


@contextmanager
def connected(dsn: str) -> Iterator[psycopg.Connection]:
    """A connection that only reads. Raises SetupError and UsageError; the DSN is never in their text."""
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
        # libpq's text may repeat what the DSN says.
        raise UsageError(
            "source-unreachable",
            f"the database of --source-dsn can't be reached ({type(error).__name__})",
            "try the same DSN with psql",
        ) from error
    with connection:
        for setting in ("default_transaction_read_only = on", "TimeZone = 'UTC'", "DateStyle = ISO"):
            connection.execute(f"SET {setting}")
        yield connection


def _chunks(cursor: Any) -> Iterator[list[tuple[str | None, ...]]]:
    while rows := cursor.fetchmany(_CHUNK):
        yield rows


def write_chunks(chunks: Iterable[Sequence[Sequence[str | None]]], width: int, folder: Path) -> None:
    """Rows of texts as one Parquet file; a chunk is in memory at a time."""
    schema = pa.schema([(f"c{i}", pa.string()) for i in range(width)])
    with pq.ParquetWriter(folder / "rows.parquet", schema) as writer:
        for rows in chunks:
            columns = list(zip(*rows, strict=True)) or [()] * width
            writer.write_table(pa.table([pa.array(column, pa.string()) for column in columns], schema=schema))
