"""Reads the live table of a MySQL or MariaDB in chunks and writes every value as text to Parquet files.

Where the connector sends another value than the database has is known from recorded events:
tests/support/wire_limits.py.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, unquote, urlsplit

from distributary import sql
from distributary.decode.renames import Renames
from distributary.errors import SetupError, UsageError
from distributary.verify.mysql_log import read_point
from distributary.verify.source import ReadPoint, Source, SourceTable, chunks, table_not_found, write_chunks

if TYPE_CHECKING:
    import pymysql

_WHOLE = ("tinyint", "smallint", "mediumint", "int", "bigint")
_TEXTS = ("char", "varchar", "tinytext", "text", "mediumtext", "longtext", "enum", "set", "uuid")
_BYTES = ("binary", "varbinary", "tinyblob", "blob", "mediumblob", "longblob", "bit")
# The types of the source that can be compared with a Spark type.
_COMPARABLE: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(("smallint", "bigint"), _WHOLE),
    "int": (*_WHOLE, "year"),
    "boolean": ("bit(1)",),
    "float": ("float",),
    "double": ("float", "double", "decimal"),
    "decimal": ("decimal", "bigint"),
    "string": (*_TEXTS, "decimal", "json", "time"),
    "date": ("date",),
    "timestamp_ntz": ("datetime",),
    "timestamp": ("timestamp", "datetime"),  # datetime by `timestamps: utc`, which reads it in UTC as the session here
    "binary": _BYTES,
}
_NO_SUCH_TABLE = (1044, 1049, 1142, 1146)
_NO_POSITION = (1064, 1227)  # a statement of another version, or a right that the user lacks
_TLS_FILES = ("ssl_ca", "ssl_cert", "ssl_key")
_TLS_CHECKS = ("ssl_verify_cert", "ssl_verify_identity")


class MysqlTable(SourceTable):
    """One table, read by a connection that returns values as the server writes them: text or bytes."""

    def __init__(self, connection: pymysql.Connection[Any], schema: str, table: str, renames: Renames) -> None:
        """`renames` gives the lake's names of the columns."""
        import pymysql

        self._connection = connection
        self._name = f"{_quoted(schema)}.{_quoted(table)}"
        try:
            column_types = [(str(row[0]), str(row[1])) for row in self._ask(f"SHOW COLUMNS FROM {self._name}")]
        except pymysql.MySQLError as error:
            if error.args[0] not in _NO_SUCH_TABLE:
                raise
            raise table_not_found(schema, table) from error
        renames = self._renames = renames.among([name for name, _ in column_types])
        self.types = {renames.of(name): kind for name, kind in column_types if renames.is_own(name)}

    def is_comparable(self, column: str, kind: str) -> bool:
        source_type = self.types[column]
        kinds = _COMPARABLE.get(kind.partition("(")[0], ())
        return (
            _word(source_type) in kinds and not (source_type == "bit(1)" and kind == "binary")
        ) or source_type in kinds

    def is_key(self, column: str, kind: str) -> bool:
        return super().is_key(column, kind) and _word(self.types[column]) not in ("float", "json")

    def value(self, column: str, text: str, kind: str) -> str:
        source_type = self.types[column]
        word = _word(source_type)
        if kind == "boolean":
            return f"({text} = '01')"
        if word == "bit":  # the connector sends the lowest byte first
            return f"unhex(array_join(reverse(regexp_extract_all({text}, '..', 0)), ''))"
        if kind == "binary":
            return f"unhex({text})"
        if word == "bigint" and "unsigned" in source_type and kind == "bigint":
            wide = f"CAST({text} AS DECIMAL(20, 0))"  # the connector sends values above a long's maximum as negative
            return f"CAST(CASE WHEN {wide} > {2**63 - 1} THEN {wide} - {2**64} ELSE {wide} END AS BIGINT)"
        if word == "year":
            return f"try_cast(nullif({text}, '0000') AS {kind})"  # sent as 1900
        if word in ("date", "datetime", "timestamp"):
            zoned = f"concat({text}, 'Z')" if word == "timestamp" else text
            # Years below 100 are sent as 1970 to 2069, and Java's calendar lacks those days of October 1582. Zero parts
            # and days that a month does not have fail in try_cast.
            known = f"{text} >= '0100' AND NOT ({text} >= '1582-10-05' AND {text} < '1582-10-15')"
            return f"CASE WHEN {known} THEN try_cast({zoned} AS {kind}) END"
        return self.lake_value(column, f"try_cast({text} AS {kind})", kind)

    def lake_value(self, column: str, value: str, kind: str) -> str:
        word = _word(self.types[column])
        if word == "float":
            return f"CAST({_six_digits(value)} AS {kind})"
        if word == "enum":
            return rf"replace({value}, r'\,', ',')"  # streaming escapes a comma in a value, a snapshot does not
        if word == "json":  # the connector formats JSON in its own way
            return f"coalesce(to_json(try_parse_json({value})), {value})"
        return value

    def read(self, columns: Iterable[str], folder: Path) -> ReadPoint:
        from pymysql.cursors import SSCursor

        columns = list(columns)
        at = self._now()  # before the snapshot: a commit in between is in the rows and counts as later
        self._ask("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        self._ask("START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY")
        with self._connection.cursor(SSCursor) as cursor:
            cursor.execute(self._select(columns))
            write_chunks(map(_as_texts, chunks(cursor)), len(columns), folder)
        self._ask("COMMIT")
        return at

    def read_keys(
        self, columns: Iterable[str], key: Sequence[str], keys: Sequence[Sequence[str]], folder: Path
    ) -> ReadPoint:
        columns = list(columns)
        names = ", ".join(map(self._column, key))
        wanted = ", ".join(
            f"({', '.join(self._literal(name, value) for name, value in zip(key, row, strict=True))})" for row in keys
        )
        at = self._now()
        rows = self._ask(f"{self._select(columns)} WHERE ({names}) IN ({wanted})")
        write_chunks([_as_texts(rows)], len(columns), folder)
        return at

    def _select(self, columns: Iterable[str]) -> str:
        return f"SELECT {', '.join(map(self._text, columns))} FROM {self._name} AS t"

    def _text(self, column: str) -> str:
        """SQL of a column as the server writes it. Without a function if possible: servers limit the length of their
        results."""
        name, word = self._column(column), _word(self.types[column])
        if word == "float":
            return f"{name} + 0e0"  # in all its digits
        if word == "time":
            return f"CAST({name} AS TIME(6))"
        return name

    def _column(self, name: str) -> str:
        return f"t.{_quoted(self._renames.source(name))}"

    def _literal(self, column: str, text: str) -> str:
        """SQL of a key's value. Numbers are not quoted: servers compare texts with numbers as doubles, which is
        inexact."""
        source_type = self.types[column]
        word = _word(source_type)
        if word == "bit":
            return "b'1'" if text == "true" else "b'0'"
        if word in _WHOLE or word == "year":
            number = int(text)
            return str(number + 2**64 if number < 0 and "unsigned" in source_type else number)
        if word in ("decimal", "double"):
            return text if re.fullmatch(r"[-+0-9.eE]+", text) else "NULL"
        return str(self._connection.escape(text))

    def _now(self) -> ReadPoint:
        """The current end of the server's log."""
        import pymysql

        gtids = []
        for variable in ("gtid_executed", "gtid_current_pos", "gtid_binlog_pos"):  # MySQL's, and MariaDB's two
            with suppress(pymysql.MySQLError):  # it has no such variable
                gtids.append(str(self._ask(f"SELECT @@GLOBAL.{variable}")[0][0] or ""))
        statements = ("SHOW MASTER STATUS", "SHOW BINARY LOG STATUS")  # MySQL renamed it in 8.2
        end = next(filter(None, map(self._end_of_log, statements)), None)
        return read_point(end, ",".join(dict.fromkeys(filter(None, gtids))))

    def _end_of_log(self, statement: str) -> tuple[str, int] | None:
        import pymysql

        try:
            rows = self._ask(statement)
        except pymysql.MySQLError as error:
            if error.args[0] not in _NO_POSITION:
                raise
            return None
        return (str(rows[0][0]), int(rows[0][1])) if rows else None

    def _ask(self, statement: str) -> Sequence[Sequence[Any]]:
        with self._connection.cursor() as cursor:
            cursor.execute(statement)
            rows: Sequence[Sequence[Any]] = cursor.fetchall()
            return rows


@contextmanager
def connected(dsn: str) -> Iterator[pymysql.Connection[Any]]:
    """A read-only connection. Raises SetupError and UsageError; their texts never contain the DSN."""
    try:
        import pymysql
    except ImportError as error:
        raise SetupError(
            "driver-missing", "the driver of MySQL and MariaDB is not installed", "pip install 'pymysql[rsa]'"
        ) from error
    try:
        connection = pymysql.connect(
            **_parts(dsn),
            charset="utf8mb4",
            sql_mode="",  # the server's mode may change the meaning of backslashes and the spaces of CHAR
            init_command="SET time_zone = '+00:00', net_write_timeout = 600, wait_timeout = 28800",
            autocommit=True,
            connect_timeout=10,
            conv={},
        )
    except (pymysql.MySQLError, OSError, RuntimeError) as error:
        number = f" {error.args[0]}" if error.args and isinstance(error.args[0], int) else ""
        raise UsageError(
            "source-unreachable",
            f"the database of --source-dsn can't be reached ({type(error).__name__}{number})",
            "try the same address, user and password with the client `mysql` or `mariadb`",
        ) from error
    try:
        with connection.cursor() as cursor:
            cursor.execute("SET SESSION TRANSACTION READ ONLY")
        yield connection
    finally:
        connection.close()


def _parts(dsn: str) -> dict[str, Any]:
    """The driver's arguments for a DSN. Raises UsageError."""
    try:
        url = urlsplit(dsn)
        port = url.port or 3306
    except ValueError:
        raise _bad_dsn("is no URL") from None
    if not url.hostname:
        raise _bad_dsn("names no host")
    options = dict(parse_qsl(url.query, keep_blank_values=True))
    if unknown := options.keys() - {*_TLS_FILES, *_TLS_CHECKS}:
        raise _bad_dsn(f"has {len(unknown)} options that are not known")
    given: dict[str, Any] = {name: value for name, value in options.items() if name in _TLS_FILES}
    given.update({name: options[name].lower() in ("true", "1") for name in _TLS_CHECKS if name in options})
    if url.username:
        given["user"] = unquote(url.username)
    if database := unquote(url.path.strip("/")):
        given["database"] = database
    # As bytes: the driver encodes a text as Latin-1.
    return {**given, "host": url.hostname, "port": port, "password": unquote(url.password or "").encode()}


def _bad_dsn(problem: str) -> UsageError:
    return UsageError(
        "bad-source-dsn",
        f"--source-dsn {problem}",
        "write mysql://user:password@host:3306/database, reserved characters as %XX; options: ssl_ca, ssl_cert,"
        " ssl_key, ssl_verify_cert, ssl_verify_identity",
    )


def _word(kind: str) -> str:
    """A type's name without its length and attributes: `bigint` of `bigint(20) unsigned`."""
    return re.split(r"[( ]", kind, maxsplit=1)[0]


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def _as_texts(rows: Sequence[Sequence[Any]]) -> Sequence[Sequence[str | None]]:
    return [[value.hex() if isinstance(value, bytes) else value for value in row] for row in rows]


def _six_digits(value: str) -> str:
    """SQL DOUBLE: the value rounded to six significant digits, half to even, as MySQL sends a FLOAT in a snapshot."""
    scaled = (
        "coalesce(CASE WHEN e_ < 0 THEN bround(d_ / pow(10, -e_)) * pow(10, -e_)"
        " ELSE bround(d_ * pow(10, e_)) / pow(10, e_) END, d_)"
    )
    return sql.let("d_", f"CAST({value} AS DOUBLE)", sql.let("e_", "5 - floor(log10(abs(d_)))", scaled))


@contextmanager
def _table(dsn: str, schema: str, table: str, renames: Renames) -> Iterator[SourceTable]:
    with connected(dsn) as connection:
        yield MysqlTable(connection, schema, table, renames)


MYSQL = Source("MySQL or MariaDB", ("mysql", "mariadb"), ("mysql", "mariadb"), _table)
