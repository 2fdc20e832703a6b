"""A real PostgreSQL server with logical replication, from the server programs of this machine."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psycopg
from psycopg import sql
from tests.support.recorded import Column, TruthTable

from distributary.demo.process import ServerProcess, free_ports

START_SECONDS = 60
USER = "postgres"
_DEBIAN = Path("/usr/lib/postgresql")


@dataclass(frozen=True)
class Postgres:
    """A running server on 127.0.0.1 that takes user `postgres` without a password."""

    port: int
    database: str = USER

    def connect(self) -> psycopg.Connection:
        """A connection where every statement is a transaction of its own unless a block opens a transaction."""
        return psycopg.connect(
            host="127.0.0.1", port=self.port, user=USER, dbname=self.database, autocommit=True, connect_timeout=10
        )

    def table(self, schema: str, name: str) -> TruthTable:
        """A table as it is now: its columns, and `SELECT *` with every value as text."""
        with self.connect() as connection:
            found = connection.execute(_COLUMNS, (f'"{schema}"."{name}"',)).fetchall()
            columns = tuple(Column(*column) for column in found)
            texts = sql.SQL(", ").join(sql.SQL("{}::text").format(sql.Identifier(column.name)) for column in columns)
            rows = connection.execute(
                sql.SQL("SELECT {} FROM {}").format(texts, sql.Identifier(schema, name))
            ).fetchall()
        names = [column.name for column in columns]
        return TruthTable(schema, name, columns, tuple(dict(zip(names, row, strict=True)) for row in rows))


_COLUMNS = """
SELECT attname, format_type(atttypid, atttypmod), coalesce(attnum = ANY (indkey), false)
FROM pg_attribute LEFT JOIN pg_index ON indrelid = attrelid AND indisprimary
WHERE attrelid = %s::regclass AND attnum > 0 AND NOT attisdropped
ORDER BY attnum
"""


@contextmanager
def running_postgres() -> Iterator[Postgres]:
    """A new, empty server, stopped and removed at the end. Raises FileNotFoundError without PostgreSQL's programs."""
    # Not in the test's own directory: the server refuses to run as root, and another user can't look in there.
    directory = Path(tempfile.mkdtemp(prefix="distributary-postgres-"))
    try:
        as_other = _as_other_user(directory)
        data, [port] = directory / "data", free_ports(1)
        initdb = [*as_other, _program("initdb"), "--pgdata", str(data), "--username", USER, "--auth", "trust"]
        subprocess.run(
            [*initdb, "--encoding", "UTF8", "--locale", "C.UTF-8", "--no-sync"],
            cwd=directory,
            check=True,
            stdout=subprocess.DEVNULL,
        )
        settings = {
            "port": port,
            "listen_addresses": "127.0.0.1",
            "unix_socket_directories": "",
            "wal_level": "logical",
            "fsync": "off",
            "timezone": "UTC",
        }
        command = [*as_other, _program("postgres"), "-D", str(data)]
        command += [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]
        # SIGTERM would wait until the last client has gone.
        server = ServerProcess("PostgreSQL", command, directory / "log", directory=directory, stop_signal=signal.SIGINT)
        try:
            postgres = Postgres(port)
            server.wait_until(lambda: _answers(postgres), START_SECONDS)
            yield postgres
        finally:
            server.stop()
    finally:
        shutil.rmtree(directory)


def _answers(postgres: Postgres) -> bool:
    try:
        postgres.connect().close()
    except psycopg.OperationalError:
        return False
    return True


def _as_other_user(directory: Path) -> list[str]:
    """The beginning of a command that must not run as root; that user then owns `directory`."""
    if os.geteuid() != 0:
        return []
    user = next(entry for entry in pwd.getpwall() if entry.pw_name in (USER, "nobody"))
    os.chown(directory, user.pw_uid, user.pw_gid)
    return ["setpriv", f"--reuid={user.pw_uid}", f"--regid={user.pw_gid}", "--clear-groups"]


def _program(name: str) -> str:
    # Debian keeps the server's programs off PATH, one directory for each version.
    versions = sorted(_DEBIAN.glob("*/bin"), key=lambda directory: float(directory.parent.name), reverse=True)
    found = shutil.which(name, path=os.pathsep.join([os.environ.get("PATH", ""), *map(str, versions)]))
    if found is None:
        raise FileNotFoundError(f"PostgreSQL's {name} is neither on PATH nor in {_DEBIAN}")
    return found
