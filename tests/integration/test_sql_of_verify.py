"""The SQL for SQL Server, Oracle and Db2, which can't be had here, on H2 in its modes for these databases.

H2 has the quotes, types and casts of all three, but not all of their functions: columns of other types are left out.
"""

from __future__ import annotations

import csv
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from sqlalchemy.dialects import mssql, oracle
from tests.support.scripted_connection import ScriptedConnection

from distributary.decode.renames import Renames
from distributary.launch.bundle import Bundle
from distributary.launch.ivy import Artifact
from distributary.launch.java import java
from distributary.verify import db2, sqlserver
from distributary.verify import oracle as oracle_source
from distributary.verify.source import ReadPoint
from distributary.verify.sql_source import Dialect, SqlTable

H2 = Bundle(name="h2-2.2.224", artifacts=(Artifact("com.h2database", "h2", "2.2.224"),))
SCHEMA, TABLE = "da ta", "Or'ders"


class Column(NamedTuple):
    """A column: its type for H2, its declaration after the name, its values as SQL and as text."""

    kind: str
    about: Sequence[Any]
    values: tuple[str, str]
    texts: tuple[str, str]


class Case(NamedTuple):
    """A database: its dialect here and in SQLAlchemy, H2's mode; the columns and those of the key."""

    dialect: Dialect
    quotes: Any
    mode: str
    columns: Mapping[str, Column]
    key: Sequence[str]


NAMES = ("'it''s'", "'ü'"), ("it's", "ü")
PRICES = ("1.50", "-20.00"), ("1.50", "-20.00")
CASES = [
    Case(
        sqlserver.DIALECT,
        mssql.dialect(),  # type: ignore[no-untyped-call]
        "MSSQLServer",
        {
            "pri ce": Column("decimal(10,2)", ("decimal", None, 10, 2, None), *PRICES),
            "N": Column("integer", ("int", None, None, None, None), ("1", "-2"), ("1", "-2")),
            "na me": Column("nvarchar(50)", ("nvarchar", 50, None, None, None), *NAMES),
        },
        ["pri ce", "na me"],
    ),
    Case(
        oracle_source.DIALECT,
        oracle.dialect(),  # type: ignore[no-untyped-call]
        "Oracle",
        {
            "pri ce": Column("number(10,2)", ("NUMBER", "NUMBER", 22, 0, 10, 2), *PRICES),
            'na"me': Column("varchar2(50)", ("VARCHAR2", "VARCHAR2", 200, 50, None, None), *NAMES),
            "AT": Column(
                "timestamp(6)",
                ("TIMESTAMP", "TIMESTAMP(6)", 11, 0, None, 6),
                ("TIMESTAMP '2025-11-13 12:34:56.123456'", "NULL"),
                ("2025-11-13 12:34:56.123456000", ""),
            ),
            "DATA": Column("raw(16)", ("RAW", "RAW", 16, 0, None, None), ("X'00ff'", "NULL"), ("00ff", "")),
        },
        ["pri ce", 'na"me'],
    ),
    Case(
        db2.DIALECT,
        oracle.dialect(),  # type: ignore[no-untyped-call]
        "DB2",
        {
            'na"me': Column("varchar(50)", ("VARCHAR", 50, 0), *NAMES),
            "FLAG": Column("boolean", ("BOOLEAN", 1, 0), ("TRUE", "FALSE"), ("true", "false")),
        },
        ['na"me'],
    ),
]


def text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"


def quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def statements(case: Case, folder: Path) -> list[str]:
    """The statements for all rows, and for the second one by its key, with values in place of parameters."""
    connection = ScriptedConnection(case.quotes, [(name, *column.about) for name, column in case.columns.items()], [])
    nowhere = replace(case.dialect, begin=lambda _ask: "", point=lambda _ask: ReadPoint("", lambda _: "false"))
    table = SqlTable(nowhere, connection, SCHEMA, TABLE, Renames({}))  # type: ignore[arg-type]
    key = [case.columns[name].texts[1] for name in case.key]
    found = []
    for keys in ([], [key]):
        path = folder / f"{case.mode} {len(keys)}"
        path.mkdir()
        if keys:
            table.read_keys(case.columns, case.key, keys, path)
        else:
            table.read(case.columns, path)
        statement = connection.asked[-1]
        for name, value in connection.given[-1].items():
            statement = statement.replace(f":{name}", text(value))
        found.append(statement)
    return found


def script(case: Case, outputs: Sequence[Path], folder: Path) -> str:
    """What makes the table, and writes what the statements give."""
    columns = ", ".join(f"{quoted(name)} {column.kind}" for name, column in case.columns.items())
    name = f"{quoted(SCHEMA)}.{quoted(TABLE)}"
    lines = [f"SET MODE {case.mode}", f"CREATE SCHEMA {quoted(SCHEMA)}", f"CREATE TABLE {name} ({columns})"]
    for row in zip(*(column.values for column in case.columns.values()), strict=True):
        lines += [f"INSERT INTO {name} VALUES ({', '.join(row)})"]
    for path, statement in zip(outputs, statements(case, folder), strict=True):
        lines += [f"CALL CSVWRITE({text(str(path))}, {text(statement)}, 'charset=UTF-8')"]
    lines += [f"DROP SCHEMA {quoted(SCHEMA)} CASCADE", "SET MODE REGULAR"]
    return "".join(f"{line};\n" for line in lines)


def test_the_statements_are_run_by_a_database_that_knows_their_dialects(tmp_path: Path) -> None:
    outputs = {case.mode: [tmp_path / f"{case.mode}-{kind}.csv" for kind in ("all", "key")] for case in CASES}
    path = tmp_path / "script.sql"
    path.write_text("".join(script(case, outputs[case.mode], tmp_path) for case in CASES), encoding="utf-8")
    [jar] = H2.cached().glob("h2*.jar")
    command = [java(), "-Xmx128m", "-Dfile.encoding=UTF-8", "-cp", str(jar), "org.h2.tools.RunScript"]
    done = subprocess.run(
        [*command, "-url", "jdbc:h2:mem:", "-script", str(path)],
        check=False, capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[:2000]
    for case in CASES:
        rows = [list(row) for row in zip(*(column.texts for column in case.columns.values()), strict=True)]
        for output, expected in zip(outputs[case.mode], (rows, rows[1:]), strict=True):
            with output.open(encoding="utf-8", newline="") as file:
                assert list(csv.reader(file))[1:] == expected
