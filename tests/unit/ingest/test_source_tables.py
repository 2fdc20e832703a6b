"""Topics with the changes of several source tables."""

from __future__ import annotations

import pytest
from tests.support.table_contexts import envelope, plan_of, progress, sample

from distributary.config.table import TableSettings
from distributary.decode.source_block import SOURCE_TABLE_COLUMN
from distributary.errors import TableHalt
from distributary.ingest.source_tables import check_source_tables, with_source_in_key
from distributary.ingest.topic_format import TopicFormat

ONE, MERGED = TableSettings(match="*.*"), TableSettings(match="*.*", merge_sources=True)
KEYED = TopicFormat("db2", ("id",), has_schema=False)


@pytest.mark.parametrize(
    ("found", "known", "named"),
    [
        ({"s.ORDERS", "s.orders"}, None, "s.ORDERS, s.orders"),  # Db2's names differ in case, the topic's do not
        ({"s.a b"}, "s.a/b", "s.a b, s.a/b"),  # a topic has `_` for either
        ({"x.t"}, "y.t", "x.t, y.t"),
    ],
)
def test_6_2_a_second_source_table_halts_and_both_are_named(found: set[str], known: str | None, named: str) -> None:
    for settings in (ONE, TableSettings(match="*.*", mode="append")):
        with pytest.raises(TableHalt, match="two-tables-one-topic") as halt:
            check_source_tables(found, known, "p.s.t", settings, ("id",))
        assert named in halt.value.message
        assert "merge_sources" in halt.value.fix


def test_the_source_table_of_a_topic_is_the_one_that_its_records_name() -> None:
    assert check_source_tables((), None, "t", ONE, ("id",)) is None
    assert check_source_tables(("a.t",), None, "t", ONE, ("id",)) == "a.t"
    assert check_source_tables((), "a.t", "t", ONE, ("id",)) == "a.t"


def test_several_are_taken_where_the_key_tells_them_apart() -> None:
    both = ("a.t", "b.t")
    assert check_source_tables(both, None, "t", MERGED, ("id", SOURCE_TABLE_COLUMN)) is None
    assert check_source_tables(both, None, "t", ONE, ("id", "__dbz__physicalTableIdentifier")) is None


def test_merged_sources_are_distinguished_by_a_column_of_the_key() -> None:
    assert with_source_in_key(KEYED, ONE) == KEYED
    assert with_source_in_key(KEYED, MERGED).key == ("id", SOURCE_TABLE_COLUMN)
    routed = TopicFormat("db2", ("id", "__shard"), has_schema=False)
    assert with_source_in_key(routed, MERGED) == routed
    keyless = TopicFormat("db2", (), has_schema=False)
    assert with_source_in_key(keyless, MERGED) == keyless
    with pytest.raises(TableHalt, match="merge-without-keys"):
        with_source_in_key(keyless, TableSettings(match="*.*", merge_sources=True, key=("id",)))


def change(table: str, number: int) -> tuple[object, dict[str, object]]:
    key, value = envelope("c", {"id": number}, key={"id": number})
    return key, {**value, "source": {**value["source"], "db": "d", "schema": "dbo", "table": table}}


def test_plan_tells_of_two_source_tables_beforehand() -> None:
    both = sample(change("T", 1), change("t", 1))
    plan = plan_of(both)
    assert plan.error is not None
    assert plan.error["code"] == "two-tables-one-topic"
    known = plan_of(sample(change("t", 1)), known=progress(0, source_table="d.dbo.T"))
    assert known.error is not None
    assert known.error["code"] == "two-tables-one-topic"
    merged = plan_of(both, {"merge_sources": True})
    assert (merged.error, merged.key) == (None, ("id", SOURCE_TABLE_COLUMN))
    assert merged.columns == {"id": "bigint", SOURCE_TABLE_COLUMN: "string"}
