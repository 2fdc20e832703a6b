"""Tables that are read through SQLAlchemy: how they are read is tried on SQLite; of SQL Server, Oracle and Db2, which
can't be had here, the statements are compared."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
import sqlalchemy
from sqlalchemy.dialects import mssql, oracle
from tests.support.scripted_connection import ScriptedConnection

from distributary.decode.renames import Renames
from distributary.errors import SetupError, TableHalt, UsageError
from distributary.verify import db2, sqlserver
from distributary.verify import oracle as oracle_source
from distributary.verify.source import ReadPoint
from distributary.verify.source_check import source_of
from distributary.verify.sql_source import Dialect, SqlTable, connected

LITE = Dialect(
    name="SQLite",
    extra="lite",
    connectors=("sqlite",),
    schemes={"lite": "sqlite", "gone": "sqlite+gone"},
    columns="SELECT name, type, type FROM pragma_table_info({table}) WHERE {schema} = 'main'",
    declared=lambda row: str(row[0]),
    texts={"integer": "CAST({} AS TEXT)", "text": "{}", "real": "CAST({} AS TEXT)"},
    comparable={"bigint": ("integer",), "string": ("text",), "double": ("real",)},
    begin=lambda ask: "" if ask("SELECT 1") else "no answer",
    point=lambda ask: ReadPoint(f"place {ask('SELECT 7')[0][0]}", lambda position: f"{position} > 7"),
    values={"text string": "trim({text})"},
)


@pytest.fixture
def lite(tmp_path: Path) -> Iterator[sqlalchemy.Connection]:
    with connected(LITE, f"lite:///{tmp_path / 'a.db'}") as connection:
        with connection.begin():
            connection.exec_driver_sql('CREATE TABLE "or:d{er}" (id integer, "n:{a}me" text, "x" blob, r real)')
            rows = [(n, f"it's {n}: {{x}} %s", b"", n / 8) for n in range(12_000)]
            connection.exec_driver_sql('INSERT INTO "or:d{er}" VALUES (?, ?, ?, ?)', rows)
            connection.exec_driver_sql('INSERT INTO "or:d{er}" VALUES (12000, NULL, NULL, NULL)')
        yield connection


def test_a_table_is_read_in_chunks_whatever_its_names_are(lite: sqlalchemy.Connection, tmp_path: Path) -> None:
    table = SqlTable(LITE, lite, "main", "or:d{er}", Renames({"n:{a}me": "called"}))
    found = table.comparable({"id": "bigint", "called": "string", "x": "binary", "r": "double"})
    assert found.types == {"id": "integer", "called": "text", "r": "real"}
    assert found.left_out == {"x": "blob can't be compared with binary"}
    at = table.read(found.types, tmp_path)
    assert (at.description, at.is_later("p")) == ("place 7", "p > 7")
    rows = [tuple(row.values()) for row in pq.read_table(tmp_path / "rows.parquet").to_pylist()]
    assert len(rows) == 12_001
    assert rows[3] == ("3", "it's 3: {x} %s", "0.375")
    assert rows[-1] == ("12000", None, None)
    assert table.value("called", "c1", "string") == "trim(c1)"
    assert table.value("id", "c0", "bigint") == "try_cast(c0 AS bigint)"
    assert table.is_key("id", "bigint")
    assert not table.is_key("r", "double")


def test_rows_are_found_by_many_keys_of_several_columns(lite: sqlalchemy.Connection, tmp_path: Path) -> None:
    table = SqlTable(LITE, lite, "main", "or:d{er}", Renames({}))
    keys = [[str(n), f"it's {n}: {{x}} %s"] for n in range(0, 1_000, 2)] + [["1", "another"]]
    table.read_keys(["id"], ["id", "n:{a}me"], keys, tmp_path)
    assert [row["c0"] for row in pq.read_table(tmp_path / "rows.parquet").to_pylist()] == [
        str(n) for n in range(0, 1_000, 2)
    ]


def test_a_table_that_is_not_there_is_reported(lite: sqlalchemy.Connection) -> None:
    with pytest.raises(TableHalt, match=r"no table main\.other"):
        SqlTable(LITE, lite, "main", "other", Renames({}))


@pytest.mark.parametrize(
    ("dsn", "error", "code"),
    [
        ("gone://user:secret@host/db", SetupError, "driver-missing"),
        ("lite://user:secret@host:port/db", UsageError, "bad-source-dsn"),
        ("lite:////no/such/secret/place.db", UsageError, "source-unreachable"),
    ],
)
def test_faults_of_a_dsn_do_not_tell_it(dsn: str, error: type[Exception], code: str) -> None:
    with pytest.raises(error) as raised, connected(LITE, dsn):
        pass
    assert getattr(raised.value, "code", None) == code
    assert "secret" not in str(raised.value)


@pytest.mark.parametrize(
    ("dsn", "name"),
    [("mssql://u@h/d", "SQL Server"), ("oracle://u@h/?service_name=s", "Oracle"), ("db2://u@h:50000/d", "Db2")],
)
def test_the_databases_are_known_by_their_dsn(dsn: str, name: str) -> None:
    assert source_of(dsn).name == name


def asked(
    dialect: Any, connection: ScriptedConnection, key: str, tmp_path: Path
) -> tuple[SqlTable, list[str], ReadPoint]:
    table = SqlTable(dialect, connection, "dbo", "Orders", Renames({}))  # type: ignore[arg-type]
    connection.asked.clear()
    columns = list(table.types)
    (tmp_path / "all").mkdir()
    (tmp_path / "keys").mkdir()
    at = table.read(columns, tmp_path / "all")
    table.read_keys([key], [key], [["1.50"]], tmp_path / "keys")
    return table, connection.asked, at


def test_the_statements_for_sql_server(tmp_path: Path) -> None:
    columns = [
        ("id", "decimal", None, 10, 2, None),
        ("at", "datetimeoffset", None, None, None, 7),
        ("when", "datetime2", None, None, None, 3),
        ("data", "varbinary", -1, None, None, None),
        ("flag", "bit", None, None, None, None),
        ("name", "nvarchar", 50, None, None, None),
    ]
    answers = [[(1,)], [], [("0000002700000AC00002",)], [], [("0000002700000AC00002",)], []]
    connection = ScriptedConnection(mssql.dialect(), columns, answers)  # type: ignore[no-untyped-call]
    table, statements, at = asked(sqlserver.DIALECT, connection, "id", tmp_path)
    assert at.description == "LSN 00000027:00000ac0:0002"
    assert at.is_later("p") == "substring(p, 5, 22) > '00000027:00000ac0:0002'"
    assert statements[1] == (
        "SELECT CONVERT(varchar(60), t.[id]),"
        " CONVERT(varchar(30), CAST(SWITCHOFFSET(t.[at], '+00:00') AS datetime2(7)), 121) + 'Z',"
        " CONVERT(varchar(30), t.[when], 121),"
        " CONVERT(varchar(max), CONVERT(varbinary(max), t.[data]), 2),"
        " CONVERT(varchar(20), t.[flag]),"
        " CONVERT(nvarchar(max), t.[name]) FROM [dbo].[Orders] t"
    )
    assert statements[3] == (
        "SELECT CONVERT(varchar(60), t.[id]) FROM [dbo].[Orders] t WHERE (t.[id] = CAST(:k0_0 AS decimal(10,2)))"
    )
    assert table.value("flag", "c4", "boolean") == "(c4 = '1')"
    unread = sqlserver.read_point(lambda _: [(None,)])
    assert unread.is_later("p") == "false"
    assert "not of one moment" in sqlserver.begin(lambda _: [(0,)])


def test_the_statements_for_oracle(tmp_path: Path) -> None:
    columns = [
        ("ID", "NUMBER", "NUMBER", 22, 0, 10, 2),
        ("AT", "TIMESTAMP WITH TIME ZONE", "TIMESTAMP(6) WITH TIME ZONE", 13, 0, None, 6),
        ("NAME", "VARCHAR2", "VARCHAR2", 40, 10, None, None),
        ("DATA", "RAW", "RAW", 16, 0, None, None),
    ]
    answers = [*([[]] * 5), [("123456",)], [], [("123456",)], []]
    connection = ScriptedConnection(oracle.dialect(), columns, answers)  # type: ignore[no-untyped-call]
    table, statements, at = asked(oracle_source.DIALECT, connection, "ID", tmp_path)
    assert at.description == "SCN 123456"
    assert at.is_later("p") == "substring(p, 5, 20) > '00000000000000123456'"
    assert statements[1] == (
        "SELECT TO_CHAR(t.\"ID\", 'TM9', 'NLS_NUMERIC_CHARACTERS=''.,'''),"
        " TO_CHAR(SYS_EXTRACT_UTC(t.\"AT\"), 'YYYY-MM-DD HH24:MI:SS.FF9') || 'Z',"
        ' t."NAME", RAWTOHEX(t."DATA") FROM "dbo"."Orders" t'
    )
    assert statements[3].endswith('WHERE (t."ID" = CAST(:k0_0 AS number(10,2)))')
    assert table.value("ID", "c0", "string").startswith("regexp_replace(c0")
    assert table.value("NAME", "c2", "string") == "try_cast(c2 AS string)"
    assert (
        table.comparable({"ID": "decimal(10,2)", "AT": "timestamp", "NAME": "string", "DATA": "binary"}).left_out == {}
    )


def test_the_statements_for_db2(tmp_path: Path) -> None:
    columns = [
        ("ID", "DECIMAL", 10, 2),
        ("AT", "TIMESTAMP", 10, 6),
        ("CODE", "CHARACTER FOR BIT DATA", 8, 0),
        ("FLAG", "BOOLEAN", 1, 0),
    ]
    lsn = "00000000000027AC0000000000000002"
    answers = [[(lsn,)], [], [(lsn,)], []]
    connection = ScriptedConnection(oracle.dialect(), columns, answers)  # type: ignore[no-untyped-call]
    _, statements, at = asked(db2.DIALECT, connection, "ID", tmp_path)
    assert at.is_later("p") == "substring(p, 5, 34) > '00000000:000027ac:0000000000000002'"
    assert statements[1] == (
        'SELECT VARCHAR(t."ID"), VARCHAR_FORMAT(t."AT", \'YYYY-MM-DD HH24:MI:SS.FF6\'), HEX(t."CODE"),'
        ' CASE WHEN t."FLAG" THEN \'true\' WHEN NOT t."FLAG" THEN \'false\' END FROM "dbo"."Orders" t'
    )
    assert statements[3].endswith('WHERE (t."ID" = CAST(:k0_0 AS decimal(10,2)))')
