"""The text of snapshot signals for each connector."""

from __future__ import annotations

import json

import pytest

from distributary.control.signals import BLOCKING, Name, Signal, parts_of, source_name
from distributary.errors import UsageError

ID = "snapshot-1"


def statement(connector: str, table: Name, signal_table: Name, where: str | None = None) -> str:
    return Signal(ID, connector, (table,), where=where).sql(signal_table)


@pytest.mark.parametrize(
    ("connector", "table", "signal_table", "expected"),
    [
        (
            "postgresql",
            ("public", "customers"),
            ("public", "debezium_signal"),
            (
                """INSERT INTO "public"."debezium_signal" (id, type, data) VALUES ('snapshot-1', 'execute-snapshot', """
                """'{"data-collections": ["public.customers"], "type": "incremental", "additional-conditions": """
                """[{"data-collection": "public.customers", "filter": "town = ''Ulm''"}]}');"""
            ),
        ),
        (
            "sqlserver",
            ("shop", "dbo", "customers"),
            ("shop", "dbo", "signals"),
            (
                """INSERT INTO [shop].[dbo].[signals] (id, type, data) VALUES ('snapshot-1', 'execute-snapshot', """
                """'{"data-collections": ["shop.dbo.customers"], "type": "incremental", "additional-conditions": """
                """[{"data-collection": "shop.dbo.customers", "filter": "town = ''Ulm''"}]}');"""
            ),
        ),
        (
            "mysql",
            ("shop", "customers"),
            ("shop", "debezium_signal"),
            (
                """INSERT INTO `shop`.`debezium_signal` (id, type, data) VALUES ('snapshot-1', 'execute-snapshot', """
                """'{"data-collections": ["shop.customers"], "type": "incremental", "additional-conditions": """
                """[{"data-collection": "shop.customers", "filter": "town = ''Ulm''"}]}');"""
            ),
        ),
        (
            "mariadb",
            ("shop", "a`b"),
            ("sh`op", "s"),
            (
                """INSERT INTO `sh``op`.`s` (id, type, data) VALUES ('snapshot-1', 'execute-snapshot', """
                """'{"data-collections": ["shop.a`b"], "type": "incremental", "additional-conditions": """
                """[{"data-collection": "shop.a`b", "filter": "town = ''Ulm''"}]}');"""
            ),
        ),
        (
            "oracle",
            ("PDB1", "SHOP", "ORDERS"),
            ("SHOP", "DEBEZIUM_SIGNAL"),
            (
                """INSERT INTO "SHOP"."DEBEZIUM_SIGNAL" (id, type, data) VALUES ('snapshot-1', 'execute-snapshot', """
                """'{"data-collections": ["PDB1.SHOP.ORDERS"], "type": "incremental", "additional-conditions": """
                """[{"data-collection": "PDB1.SHOP.ORDERS", "filter": "town = ''Ulm''"}]}');"""
            ),
        ),
        (
            "db2",
            ("SHOP", "ORDERS"),
            ("SHOP", 'SIG"NAL'),
            (
                """INSERT INTO "SHOP"."SIG""NAL" (id, type, data) VALUES ('snapshot-1', 'execute-snapshot', """
                """'{"data-collections": ["SHOP.ORDERS"], "type": "incremental", "additional-conditions": """
                """[{"data-collection": "SHOP.ORDERS", "filter": "town = ''Ulm''"}]}');"""
            ),
        ),
    ],
    ids=lambda value: value if isinstance(value, str) and value.isalnum() else "",
)
def test_the_statement_is_in_the_sql_of_the_connectors_database(
    connector: str, table: Name, signal_table: Name, expected: str
) -> None:
    assert statement(connector, table, signal_table, "town = 'Ulm'") == expected


def test_backslashes_are_doubled_where_the_database_reads_them_as_escapes() -> None:
    for connector, times in (("mysql", 2), ("mariadb", 2), ("postgresql", 1), ("oracle", 1), ("db2", 1)):
        found = statement(connector, ("s", "t"), ("s", "sig"), 'name = "x"')
        assert "name = " + "\\" * times + '"x' + "\\" * times + '"' in found


def test_sql_server_keeps_characters_beyond_ascii() -> None:
    assert ", N'{" in statement("sqlserver", ("d", "s", "größe"), ("d", "s", "sig"))
    assert "N'" not in statement("sqlserver", ("d", "s", "size"), ("d", "s", "sig"))
    assert "N'" not in statement("postgresql", ("s", "größe"), ("s", "sig"))


def test_characters_of_a_name_stand_for_themselves() -> None:
    data = Signal(ID, "oracle", (("DB", "SYS", "A$B"), ("DB", "SYS", "C.D")), where="x = 1").data()
    assert data["data-collections"] == [r"DB.SYS.A\$B", r"DB.SYS.C\.D"]
    assert [one["data-collection"] for one in data["additional-conditions"]] == data["data-collections"]


@pytest.mark.parametrize(
    ("connector", "table", "expected"),
    [
        ("postgresql", ("public", "t"), 'SELECT * FROM "public"."t" WHERE id > 5'),
        ("mysql", ("shop", "t"), "SELECT * FROM `shop`.`t` WHERE id > 5"),
        ("mariadb", ("shop", "t"), "SELECT * FROM `shop`.`t` WHERE id > 5"),
        ("sqlserver", ("shop", "dbo", "t"), "SELECT * FROM [shop].[dbo].[t] WHERE id > 5"),
        ("oracle", ("PDB1", "SHOP", "T"), 'SELECT * FROM "SHOP"."T" WHERE id > 5'),
        ("db2", ("SHOP", "T"), 'SELECT * FROM "SHOP"."T" WHERE id > 5'),
    ],
)
def test_a_blocking_snapshot_with_a_condition_has_the_whole_select(connector: str, table: Name, expected: str) -> None:
    assert Signal(ID, connector, (table,), BLOCKING, "id > 5").data() == {
        "data-collections": [".".join(table)],
        "type": "blocking",
        "additional-conditions": [{"data-collection": ".".join(table), "filter": expected}],
    }


def test_a_blocking_snapshot_has_no_condition_on_a_name_that_is_read_in_two_ways() -> None:
    signal = Signal(ID, "oracle", (("DB", "SYS", "A$B"),), BLOCKING, "id > 5")
    with pytest.raises(UsageError, match=r"A\$B can't have a condition") as caught:
        signal.data()
    assert caught.value.code == "name-not-for-condition"
    assert Signal(ID, "oracle", (("DB", "SYS", "A$B"),), BLOCKING).data()["data-collections"] == [r"DB.SYS.A\$B"]


def test_the_record_has_the_same_data() -> None:
    signal = Signal(ID, "postgresql", (("public", "a"), ("public", "b")), where="é = 1")
    result = json.loads(signal.record())
    assert result == {"id": ID, "type": "execute-snapshot", "data": signal.data()}
    assert result["data"]["data-collections"] == ["public.a", "public.b"]


@pytest.mark.parametrize(
    ("connector", "by_topic", "result", "database", "expected"),
    [
        ("postgresql", ("public", "t_1"), "shop.public.t-1", None, ("public", "t-1")),
        ("postgresql", ("public", "t"), None, "shop", ("public", "t")),
        ("mysql", ("shop", "t"), "shop.t", None, ("shop", "t")),
        ("db2", ("SHOP", "T"), "DB.SHOP.T", None, ("SHOP", "T")),
        ("sqlserver", ("shop", "dbo", "t"), None, None, ("shop", "dbo", "t")),
        ("sqlserver", ("dbo", "t"), "shop.dbo.t", None, ("shop", "dbo", "t")),
        ("oracle", ("SHOP", "T"), 'PDB1.SHOP."T.1"', None, ("PDB1", "SHOP", "T.1")),
        ("oracle", ("SHOP", "T"), None, "PDB1", ("PDB1", "SHOP", "T")),
    ],
)
def test_a_table_is_called_as_the_connector_does(
    connector: str, by_topic: Name, result: str | None, database: str | None, expected: Name
) -> None:
    assert source_name(connector, by_topic, result, database) == expected


@pytest.mark.parametrize("connector", ["sqlserver", "oracle"])
def test_a_database_that_is_unknown_is_asked_for(connector: str) -> None:
    with pytest.raises(UsageError) as caught:
        source_name(connector, ("dbo", "t"), None, None)
    assert (caught.value.code, caught.value.fix) == ("database-unknown", "set it: --database NAME")


def test_other_connectors_names_are_not_guessed() -> None:
    with pytest.raises(UsageError) as caught:
        source_name("informix", ("a", "t"), None, None)
    assert caught.value.code == "connector-without-signals"


def test_parts_in_quotes_keep_their_dots() -> None:
    assert parts_of(r'a."b.c"."d\"e"') == ("a", "b.c", 'd"e')
