"""A real MariaDB server with a binlog, from the server programs of this machine."""

from __future__ import annotations

import getpass
import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pymysql
from tests.support.recorded import TruthTable

from distributary.demo.process import ServerProcess, free_ports

START_SECONDS = 60
USER, PASSWORD = "verify", "hidden/pässword"
_LATER_THAN_ALL = 900_000  # the number of its first binlog: what the tests' records come from is before it
_PLACES = os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin", "/usr/local/sbin", "/usr/libexec"])


@dataclass(frozen=True)
class MariaDb:
    """A running server on 127.0.0.1; its users are root without a password, and USER."""

    port: int

    def connect(self) -> pymysql.Connection[Any]:
        """A connection of root where every statement is a transaction of its own, and any date is accepted."""
        return pymysql.connect(
            host="127.0.0.1", port=self.port, user="root", autocommit=True, sql_mode="ALLOW_INVALID_DATES"
        )

    def run(self, *statements: str) -> None:
        """Runs them as root, in the database `dbo`."""
        with self.connect() as connection, connection.cursor() as cursor:
            for statement in ("CREATE DATABASE IF NOT EXISTS dbo", "USE dbo", *statements):
                cursor.execute(statement)

    def load(self, truth: TruthTable) -> None:
        """Makes the table dbo.t anew, with a recorded table's columns and rows."""
        columns = [f"`{column.name}` {column.type} {'NOT' * column.in_key} NULL" for column in truth.columns]
        key = ", ".join(f"`{name}`" for name in truth.key)
        rows = [
            f"({', '.join(_literal(row[column.name], column.type) for column in truth.columns)})" for row in truth.rows
        ]
        self.run(
            "DROP TABLE IF EXISTS t",
            f"CREATE TABLE t ({', '.join(columns)}, PRIMARY KEY ({key})) DEFAULT CHARSET utf8mb4 COLLATE utf8mb4_bin",
            "SET time_zone = '+00:00'",
            f"INSERT INTO t VALUES {', '.join(rows)}",
        )


def _literal(text: str | None, kind: str) -> str:
    if text is None:
        return "NULL"
    word = kind.partition("(")[0]
    if word in ("point", "geometry"):
        return f"ST_GeomFromText('{text}')"
    if word == "bit":
        return str(int(text, 16))
    if "blob" in word or "binary" in word:
        return f"X'{text.removeprefix('0x')}'"
    return f"'{pymysql.converters.escape_string(text)}'"


@contextmanager
def running_mariadb() -> Iterator[MariaDb]:
    """A new server, stopped and removed at the end. Raises FileNotFoundError without MariaDB's programs."""
    # Not in the test's own directory: another user, whom root starts the server as, can't look in there.
    directory = Path(tempfile.mkdtemp(prefix="distributary-mariadb-"))
    try:
        user = getpass.getuser()
        if os.geteuid() == 0:
            found = next(entry for entry in pwd.getpwall() if entry.pw_name in ("mysql", "nobody"))
            os.chown(directory, found.pw_uid, found.pw_gid)
            user = found.pw_name
        common = ["--no-defaults", f"--datadir={directory / 'data'}", f"--user={user}"]
        subprocess.run(
            [_program("mariadb-install-db"), *common, "--auth-root-authentication-method=normal", "--skip-test-db"],
            cwd=directory,
            check=True,
            stdout=subprocess.DEVNULL,
        )
        [port] = free_ports(1)
        settings = ["--bind-address=127.0.0.1", f"--port={port}", f"--socket={directory / 'socket'}"]
        settings += ["--log-bin=binlog", "--server-id=1", "--binlog-format=ROW", "--sync-binlog=0"]
        settings += ["--innodb-flush-log-at-trx-commit=0", "--innodb-buffer-pool-size=32M"]
        settings += ["--character-set-server=utf8mb4", "--default-time-zone=+05:30"]
        server = ServerProcess("MariaDB", [_program("mariadbd"), *common, *settings], directory / "log")
        try:
            mariadb = MariaDb(port)
            server.wait_until(lambda: _answers(mariadb), START_SECONDS)
            mariadb.run(
                f"RESET MASTER TO {_LATER_THAN_ALL}",
                "SET gtid_seq_no = 1000000000",
                f"CREATE USER {USER} IDENTIFIED BY '{PASSWORD}'",
                f"GRANT SELECT ON *.* TO {USER}",
                f"GRANT BINLOG MONITOR ON *.* TO {USER}",
            )
            yield mariadb
        finally:
            server.stop()
    finally:
        shutil.rmtree(directory)


def _answers(mariadb: MariaDb) -> bool:
    try:
        mariadb.connect().close()
    except pymysql.OperationalError:
        return False
    return True


def _program(name: str) -> str:
    # Debian keeps the server off the PATH of other users than root.
    found = shutil.which(name, path=_PLACES)
    if found is None:
        raise FileNotFoundError(f"MariaDB's {name} is not on PATH")
    return found
