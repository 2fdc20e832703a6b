"""Table properties, partitions and clustering by the config: rows are the same as without, in every mode."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from tests.support.changes import Row, Topic, key
from tests.support.kafka import produce
from tests.support.spark import Bench

from distributary.errors import TableHalt
from distributary.halt_actions import ResumeAction
from distributary.preflight.existing_table import read_existing_table

MODES = ["upsert", "history", "append"]
DELETION_VECTORS = {"delta.enableDeletionVectors": True}
LAYOUTS: dict[str, dict[str, Any]] = {
    "mapped": {"properties": {"delta.columnMapping.mode": "name"}},
    "parted": {"partition_by": ["p"], "properties": {"delta.enableChangeDataFeed": True}},
    "clustered": {"cluster_by": ["p", "id"], "properties": DELETION_VECTORS},
}


pytestmark = pytest.mark.bench(partitions=1)


def beside(bench: Bench, name: str, rule: dict[str, Any]) -> Bench:
    """Another table of the same topic."""
    folder = bench.folder / name.replace(" ", "-")
    folder.mkdir()
    return replace(bench, folder=folder, rule=rule)


def partitioned_row(number: int, value: str, part: str | None) -> Row:
    return {"id": number, "v": value, "p": part}


def changes(name: str) -> Topic:
    """Rows that change, move to another partition and to none, go, come back, and change their key."""
    topic = Topic(name)
    for number in range(1, 7):
        topic.change("c", key(number), partitioned_row(number, "first", "a" if number % 2 else None), at=number)
    topic.change("u", key(1), partitioned_row(1, "moved", "b"), at=11)
    topic.change("u", key(2), partitioned_row(2, "moved from none", "a b/ü"), at=12)
    topic.change("u", key(3), partitioned_row(3, "moved to none", None), at=13)
    topic.change("d", key(4), at=14)
    topic.tombstone(key(4))
    topic.change("d", key(5), at=15, tx=9, headers={"newkey": key(50)})
    topic.change("c", key(50), partitioned_row(50, "another key", "b"), at=15, step=2, tx=9, headers={"oldkey": key(5)})
    topic.change("u", key(6), partitioned_row(6, "stays", None), at=16)
    topic.change("c", key(4), partitioned_row(4, "back", "a"), at=21)
    topic.change("u", key(1), partitioned_row(1, "again", "a"), at=22)
    return topic


def everything(session: SparkSession, bench: Bench) -> list[str]:
    """All rows with all columns but those of Kafka's place, as Spark reads them."""
    rows = session.read.format("delta").load(str(bench.table))
    return as_json(rows)


def as_json(rows: DataFrame) -> list[str]:
    found = rows.drop("__topic").select(F.to_json(F.struct("*"))).collect()
    return sorted(row[0] for row in found)


def detail(session: SparkSession, bench: Bench) -> dict[str, Any]:
    return session.sql(f"DESCRIBE DETAIL delta.`{bench.table}`").collect()[0].asDict()


@pytest.mark.parametrize("mode", MODES)
def test_tables_are_the_same_whatever_their_layout(session: SparkSession, bench: Bench, mode: str) -> None:
    plain = beside(bench, "plain", {"mode": mode})
    tables = {name: beside(bench, name, {"mode": mode, **rule}) for name, rule in LAYOUTS.items()}
    records = changes(bench.topic).records
    workers: dict[str, Any] = dict.fromkeys(["plain", *tables])
    for part in (records[:6], records[6:]):
        produce(bench.kafka, part)
        for name, one in {"plain": plain, **tables}.items():
            workers[name] = one.take([], workers[name])
    expected = everything(session, plain)
    assert expected
    assert {name: everything(session, one) for name, one in tables.items()} == dict.fromkeys(tables, expected)
    assert detail(session, tables["parted"])["partitionColumns"] == ["p"]
    assert detail(session, tables["clustered"])["clusteringColumns"] == ["p", "id"]
    changed = session.read.format("delta").option("readChangeFeed", "true").option("startingVersion", 0)
    feed = changed.load(str(tables["parted"].table))
    result = as_json(feed.where("_change_type IN ('insert', 'update_postimage')"))
    assert {json.loads(one)["__position"] for one in result} >= {json.loads(one)["__position"] for one in expected}
    for name, properties in ((name, rule.get("properties", {})) for name, rule in LAYOUTS.items()):
        assert {n: "true" if v is True else v for n, v in properties.items()}.items() <= (
            detail(session, tables[name])["properties"].items()
        )


def versions(bench: Bench) -> int:
    return len(list((bench.table / "_delta_log").glob("*.json")))


def test_a_table_that_is_there_is_altered_once_and_what_the_config_says_no_more_stays(
    session: SparkSession, bench: Bench
) -> None:
    topic = changes(bench.topic)
    bench.take(topic.records[:6])
    bench.rule = {
        "properties": {"delta.enableChangeDataFeed": True, "delta.checkpointInterval": 7},
        "cluster_by": ["v"],
    }
    before = versions(bench)
    bench.take(topic.records[6:14])
    assert versions(bench) == before + 3  # the properties, the clustering, the batch
    bench.take([])
    assert versions(bench) == before + 3
    bench.rule = {"properties": {"delta.checkpointInterval": 8}, "cluster_by": ["p"]}
    bench.take(topic.records[14:])
    found = detail(session, bench)
    assert found["clusteringColumns"] == ["p"]
    assert (
        found["properties"].items() >= {"delta.enableChangeDataFeed": "true", "delta.checkpointInterval": "8"}.items()
    )
    plain = beside(bench, "plain", {})
    plain.take([])
    assert everything(session, bench) == everything(session, plain)
    known = read_existing_table(str(bench.table))
    assert known is not None
    assert known.layout.cluster_by == ("p",)
    assert known.layout.properties["delta.checkpointInterval"] == "8"


def test_other_partitions_wait_until_the_table_is_filled_again(session: SparkSession, bench: Bench) -> None:
    topic = changes(bench.topic)
    bench.take(topic.records[:6])
    bench.rule = {"partition_by": ["p"]}
    worker = bench.take(topic.records[6:])
    rows = everything(session, bench)
    assert detail(session, bench)["partitionColumns"] == []
    worker.resume(ResumeAction.REBUILD)
    bench.take([], worker)
    assert detail(session, bench)["partitionColumns"] == ["p"]
    assert [json.loads(one)["v"] for one in everything(session, bench)] == [json.loads(one)["v"] for one in rows]


@pytest.mark.parametrize(
    ("rule", "code"),
    [
        ({"partition_by": ["P"]}, "layout-column-unknown"),
        ({"cluster_by": ["p", "none"]}, "layout-column-unknown"),
        ({"properties": {"delta.enabelChangeDataFeed": True}}, "layout-refused"),
        ({"properties": {"delta.enableChangeDataFeed": "maybe"}}, "layout-refused"),
    ],
)
def test_what_can_not_be_halts_the_table_new_or_not(bench: Bench, rule: dict[str, Any], code: str) -> None:
    topic = changes(bench.topic)
    bench.rule = rule
    with pytest.raises(TableHalt) as new:
        bench.take(topic.records[:6])
    bench.rule = {}
    bench.take([])
    bench.rule = rule
    with pytest.raises(TableHalt) as there:
        bench.take(topic.records[6:])
    assert (new.value.code, there.value.code) == (code, code)
    bench.rule = {}
    bench.take([])
    assert [value for _, value, _ in bench.rows()].count("again") == 1
