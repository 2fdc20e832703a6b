"""Which topics are tables, and of which schema and name."""

from __future__ import annotations

import re

import pytest

from distributary.consume.topics import TableId, is_signal_table, subscription_pattern, table_of


@pytest.mark.parametrize(
    ("topic", "connector", "table"),
    [
        ("p.public.customers", "postgresql", TableId("public", "customers")),
        ("p.public.dotted.name", "postgresql", TableId("public", "dotted.name")),
        ("p.shop.dbo.orders", "sqlserver", TableId("dbo", "orders", "shop")),
        ("p.dbo.orders", "sqlserver", TableId("dbo", "orders")),
        ("p.transaction", "postgresql", None),
        ("p", "postgresql", None),
        ("other.public.customers", "postgresql", None),
        ("__debezium-heartbeat.p", "postgresql", None),
        ("p.message", "postgresql", None),
        ("p.INVENTORY.CUSTOMERS", "oracle", TableId("INVENTORY", "CUSTOMERS")),
        ("p.inventory.customers", "mysql", TableId("inventory", "customers")),
        ("p.message.x", "mysql", TableId("message", "x")),  # a database that is called so
        ("p.public...", "postgresql", None),  # would be the folder above
        ("p.._x", "postgresql", None),
        ("p._quarantine.t", "postgresql", None),
    ],
)
def test_a_topic_is_a_table_or_none(topic: str, connector: str, table: TableId | None) -> None:
    assert table_of(topic, "p", connector) == table


def test_the_subscription_takes_the_configs_tables_with_and_without_a_database() -> None:
    pattern = re.compile(subscription_pattern("my.prefix", ["dbo.cust*", "*.orders"]))
    taken = ["my.prefix.dbo.customers", "my.prefix.shop.dbo.customers", "my.prefix.x.orders"]
    assert all(pattern.match(topic) for topic in taken)
    left = ["my.prefix.dbo.items", "myxprefix.dbo.customers", "my.prefix.transaction", "my.prefix"]
    assert not any(pattern.match(topic) for topic in left)


def test_1_5_topics_that_are_not_tables_are_not_even_subscribed_to() -> None:
    pattern = re.compile(subscription_pattern("p", ["*.*"]))
    for topic in ("p", "p.transaction", "p.message", "__debezium-heartbeat.p", "p-notifications", "heartbeat.p.x"):
        assert not pattern.match(topic), topic
        assert table_of(topic, "p", None) is None, topic


def test_1_5_a_prefix_with_dots_makes_no_table_of_its_own_topics() -> None:
    for topic in ("a.b", "a.b.transaction", "a.b.message", "__debezium-heartbeat.a.b"):
        assert table_of(topic, "a.b", None) is None
    assert table_of("a.b.c.d", "a.b", None) == TableId("c", "d")


@pytest.mark.parametrize("alias", ["src", "src.eu", "eu-1_a"])
def test_1_5_a_mirror_has_its_alias_in_front_of_all_topics(alias: str) -> None:
    prefix = f"{alias}.p"
    pattern = re.compile(subscription_pattern(prefix, ["*.*"]))
    for topic, connector, table in (
        ("public.orders", "postgresql", TableId("public", "orders")),
        ("shop.dbo.orders", "sqlserver", TableId("dbo", "orders", "shop")),
        ("public.__EFMigrationsHistory", "postgresql", TableId("public", "__EFMigrationsHistory")),
        ("public._orders_gho", "mysql", TableId("public", "_orders_gho")),
        ("_meta._t", "oracle", TableId("_meta", "_t")),
    ):
        assert pattern.match(f"{prefix}.{topic}")
        assert table_of(f"{prefix}.{topic}", prefix, connector) == table
        assert table_of(f"p.{topic}", prefix, connector) is None, "the source cluster's own topic"
    others = [
        "heartbeats",
        f"{alias}.heartbeats",
        f"{alias}.checkpoints.internal",
        f"mm2-offset-syncs.{alias}.internal",
    ]
    for topic in (*others, prefix, f"{prefix}.transaction", f"{alias}.__debezium-heartbeat.p"):
        assert not pattern.match(topic)
        assert table_of(topic, prefix, None) is None


def test_1_5_the_signal_table_is_no_table_of_the_lake() -> None:
    assert is_signal_table(TableId("public", "debezium_signal"), None)
    assert is_signal_table(TableId("ops", "sig"), "ops.sig")
    assert is_signal_table(TableId("dbo", "sig", "shop"), "shop.dbo.sig")
    assert is_signal_table(TableId("dbo", "sig", "shop"), "dbo.sig")
    assert is_signal_table(TableId("dbo", "debezium_signal", "shop"), None)
    assert not is_signal_table(TableId("public", "debezium_signal"), "ops.sig")
