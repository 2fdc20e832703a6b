"""Which tables the service works on, their names, and that a faulty table does not stop another."""

from __future__ import annotations

import pytest
from tests.support.kafka import create_topic
from tests.support.spark import Bench

from distributary.config import Config
from distributary.errors import TableHalt
from distributary.ingest.tables import find_table, list_tables
from distributary.table_state import TableState
from distributary.workers import table_set
from distributary.workers.table_set import TableSet
from distributary.workers.table_worker import TableWorker


class Tables:
    """A table_set, and the topics of two databases that have a table of one name."""

    def __init__(self, bench: Bench, place: str, connector: str | None) -> None:
        source = {"topic_prefix": bench.prefix, **({"connector": connector} if connector else {})}
        bench.options = {"source": source, "target": {"path": str(bench.folder / "lake"), "table": place}}
        self.topics = [f"{bench.prefix}.{database}.dbo.t" for database in ("a", "b")]
        for topic in self.topics:
            create_topic(bench.kafka, topic)
        self.halted: list[tuple[str, str]] = []
        context = bench.context()
        self.config: Config = context.config
        self.kafka = context.kafka
        self.status = context.status
        self.table_set = TableSet(context, self._halt, lambda _table: None)

    def _halt(self, table: TableWorker, halt: TableHalt) -> None:
        self.halted.append((table.topic, halt.code))

    def plan(self) -> list[str]:
        """Has both come to work; gives what they are called."""
        self.table_set.plan({topic: {0: 1} for topic in self.topics})
        return [table.name for table in self.table_set.tables()]


def test_tables_of_one_name_in_two_databases_are_called_by_their_databases(bench: Bench) -> None:
    tables = Tables(bench, "{database}/{schema}/{table}", "sqlserver")
    assert tables.plan() == ["a.dbo.t", "b.dbo.t"]
    known = list_tables(tables.config, tables.kafka)
    assert [one.name for one in known] == ["a.dbo.t", "b.dbo.t"]
    assert find_table("b.dbo.t", known).topic == tables.topics[1]
    assert not tables.halted


def test_a_table_that_is_halted_since_another_one_has_its_place_is_not_called_like_it(bench: Bench) -> None:
    tables = Tables(bench, "{schema}/{table}", "sqlserver")
    assert tables.plan() == ["dbo.t", tables.topics[1]]
    assert tables.halted == [(tables.topics[1], "two-topics-one-table")]


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (TableHalt("schema-unknown", "the registry has no schema 7", "register it"), "schema-unknown"),
        (OSError("AWS Error SLOW_DOWN during HeadObject operation"), "storage-or-network"),
    ],
)
def test_a_topic_that_can_not_be_looked_at_waits_and_holds_up_no_other(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, error: Exception, code: str
) -> None:
    tables = Tables(bench, "{database}/{schema}/{table}", None)
    broken = True

    def look(topic: str, *_: object) -> str:
        if broken and topic == tables.topics[0]:
            raise error
        return "sqlserver"

    monkeypatch.setattr(table_set, "connector_of_topic", look)
    assert tables.plan() == ["b.dbo.t"]
    assert set(tables.table_set.waiting_topics) == {tables.topics[0]}
    shown = tables.status.table(tables.topics[0])
    assert shown is not None
    assert (shown.state, shown.lag_records, (shown.error or {})["code"]) == (TableState.RETRYING, 1, code)
    broken = False
    assert sorted(tables.plan()) == ["a.dbo.t", "b.dbo.t"]
    assert not tables.table_set.waiting_topics
    assert tables.status.table(tables.topics[0]) is None
