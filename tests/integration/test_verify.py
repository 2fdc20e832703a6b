"""`verify`: a table that is right is found equal, and each kind of damage is found and named."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from deltalake import DeltaTable, write_deltalake
from pyspark.sql import SparkSession
from tests.model.case import MODES, Case, Kept
from tests.model.packs import pack
from tests.model.strategies import ALL
from tests.support.changes import INT, LONG, TEXT, Row, Topic, key, row
from tests.support.histories import Service
from tests.support.kafka import delete_records
from tests.support.spark import Bench

from distributary.errors import TableHalt
from distributary.halt_actions import ResumeAction
from distributary.ingest.tables import find_table, list_tables
from distributary.verify.check import VerifyOptions, report
from distributary.verify.key_range import KeyRange
from distributary.verify.report import State, TableReport

NOT_SENT = "__debezium_unavailable_value"


# On a real Kafka: `verify` connects to it.
pytestmark = pytest.mark.bench(on_kafka=True)


class Watched(Service):
    """A service whose tables can be looked at."""

    benches: ClassVar[list[Bench]] = []

    def _bench(self, case: Case) -> Bench:
        bench = super()._bench(case)
        self.benches.append(bench)
        return bench


def verified(bench: Bench, keys: str | None = None, limit: int = 20) -> TableReport:
    config = bench.config()
    broker = bench.client(config)
    one = find_table("dbo.t", list_tables(config, broker))
    asked = VerifyOptions(limit, None if keys is None else KeyRange.parse(keys))
    found = report(config, one, bench.session, broker, asked, lambda _: None)
    assert found.error is None, found.error
    return found


def faults(found: TableReport) -> dict[str, int]:
    return {name: count for name, count in found.counts.faults.items() if count}


def not_checked(found: TableReport) -> dict[str, int]:
    return {name: count for name, count in found.counts.not_checked.items() if count}


def eventful(topic: Topic) -> list[list[Any]]:
    """PostgreSQL's records of a table, in batches: all that the rules know of, and records that are sent again."""
    for number in range(1, 13):
        topic.change("r", key(number), row(number, "read", big=f"big {number}"), at=10)
    first = list(topic.records)
    del topic.records[:]
    topic.change("u", key(1), row(1, "new", big=NOT_SENT), at=20)
    topic.change("u", key(1), row(1, "newer", big=NOT_SENT), at=21)
    topic.change("u", key(2), row(2, "new", big="bigger"), at=22)
    topic.change("d", key(3), at=23)
    topic.tombstone(key(3))
    topic.change("d", key(4), at=24, headers={"newkey": key(24)})
    topic.tombstone(key(4))
    topic.change("c", key(24), row(24, "moved", big=NOT_SENT), at=24, headers={"oldkey": key(4)}, partition=1)
    topic.tombstone(key(5))
    topic.change("u", key(30), row(30, "never seen", big=NOT_SENT), at=25)
    second = list(topic.records)
    del topic.records[:]
    topic.change("c", key(40), row(40, "before the truncate", big="b"), at=3)
    topic.change("t", None, at=4, partition=1)  # it comes late
    topic.change("c", key(41), row(41, "after it", big="b"), at=32)
    for index in range(40, 60):
        topic.change("u", key(41), row(41, f"changed {index}", big=NOT_SENT if index % 3 else f"b{index}"), at=index)
    topic.change("c", key(1), row(1, "back", big="b"), at=60)
    topic.change("c", key(42), row(42, "gone", big="b"), at=61)
    topic.change("d", key(42), at=62)
    third = list(topic.records)
    return [[*first, *second], [*third, *second[4:], *third]]


def filled(bench: Bench, connector: str = "postgresql") -> TableReport:
    """The report of a table that has taken it all in."""
    worker = None
    for records in eventful(Topic(bench.create(partitions=2).topic, connector)):
        worker = bench.take(records, worker)
    return verified(bench)


def assert_equal(found: TableReport, rows: int | None = None) -> None:
    assert (found.state, found.differences, not_checked(found)) == (State.EQUAL, (), {})
    assert found.counts.equal == found.counts.lake
    assert found.counts.equal > 0 if rows is None else found.counts.lake == rows
    assert found.notes == ()


def with_id(rows: pa.Table, number: int) -> pa.Table:
    return rows.set_column(0, "id", pa.array([number] * rows.num_rows, pa.int64()))


def differences(found: TableReport) -> dict[str, tuple[str, list[tuple[str, str | None, str | None]]]]:
    """Per key what is wrong with it, and the columns that differ: in the lake, expected."""
    values = {d.key: [(v.column, v.lake, v.expected) for v in d.values] for d in found.differences}
    return {d.key: (d.fault, values[d.key]) for d in found.differences}


def test_2_8_an_upserted_table_is_what_its_topic_says_and_damage_is_named(bench: Bench) -> None:
    found = filled(bench)
    assert_equal(found)
    assert found.counts.expected == found.counts.lake
    before = DeltaTable(bench.table)
    held = before.to_pyarrow_table()
    one = held.filter(pc.equal(held["id"], 24))
    before.delete("id = 1")
    before.update({"v": "'damaged'", "big": "NULL"}, predicate="id = 41")
    write_deltalake(bench.table, pa.concat_tables([one, with_id(one, 50)]), mode="append")
    found = verified(bench)
    assert found.state is State.DIFFERENT
    assert faults(found) == {"missing": 1, "repeated": 1, "different": 1, "unexpected": 1}
    assert differences(found) == {
        '{"id":1}': ("missing", []),
        '{"id":24}': ("repeated", []),
        '{"id":41}': ("different", [("v", "damaged", "changed 59"), ("big", None, "b57")]),
        '{"id":50}': ("unexpected", []),
    }
    places = {d.key: (d.decided_by, d.last_record, d.lake_row) for d in found.differences}
    decided, last, held_from = places['{"id":41}']
    assert decided is not None
    assert decided == held_from
    assert last is not None
    assert (last.position, last.op) == (decided.position, decided.op)
    assert (last.offset or 0) > (decided.offset or 0)  # the first copy counted
    assert (decided.partition, decided.op) == (0, "u")
    assert places['{"id":50}'][:2] == (None, None)


@pytest.mark.slow
@pytest.mark.parametrize("rule", [{}, {"column_defaults": "fill"}, {"column_defaults": "fill", "mode": "history"}])
def test_5_1_rows_with_the_default_of_a_new_column_are_what_the_topic_says(bench: Bench, rule: dict[str, Any]) -> None:
    bench.rule = rule
    older: dict[str, Row] = {"id": LONG, "v": TEXT}
    newer: dict[str, Row] = {**older, "n": {**INT, "optional": False, "default": 5}}
    topic = Topic(bench.create(partitions=2).topic)
    for number in (1, 2, 3):
        topic.with_schema(topic.change("c", key(number), row(number, "a"), at=number), older)
    bench.take(topic.records)
    added = Topic(bench.topic)
    added.with_schema(added.change("u", key(1), row(1, "b", n=7), at=10), newer)
    added.with_schema(added.change("c", key(4), row(4, "late"), at=4, partition=1), older)
    bench.take(added.records)
    assert_equal(verified(bench), 4)
    table = bench.frame().where("v <> 'b'").select("n").distinct()
    assert [tuple(one) for one in table.collect()] == [(5 if rule else None,)]


def test_4_2_the_current_versions_of_a_history_are_compared(bench: Bench) -> None:
    bench.rule = {"mode": "history"}
    assert_equal(filled(bench, "sqlserver"))
    table = DeltaTable(bench.table)
    table.update({"__current": "false"}, predicate="id = 1 AND __current")
    table.update({"__current": "true"}, predicate="id = 41")
    found = verified(bench)
    assert {d.key: d.fault for d in found.differences} == {'{"id":1}': "missing", '{"id":41}': "repeated"}


def test_4_3_every_change_of_an_appended_table_is_compared(bench: Bench) -> None:
    bench.rule = {"mode": "append"}
    assert_equal(filled(bench))
    table = DeltaTable(bench.table)
    held = table.to_pyarrow_table()
    table.delete("id = 1 AND v = 'newer'")
    table.update({"v": "'damaged'"}, predicate="id = 24")
    write_deltalake(bench.table, held.filter(pc.equal(held["id"], 42)), mode="append")
    found = verified(bench)
    assert faults(found) == {"missing": 1, "different": 1, "repeated": 2}
    assert [v.column for d in found.differences for v in d.values] == ["v"]


def test_3_8_a_table_without_key_is_compared_as_it_is_kept(bench: Bench) -> None:
    bench.rule = {"keyless": "append"}
    topic = Topic(bench.create().topic, "postgresql", key=())
    for at in (1, 2, 3):
        topic.change("c", None, {"n": at}, at=at)
    bench.take(topic.records)
    found = verified(bench)
    assert (found.state, found.mode, found.counts.equal) == (State.EQUAL, "append", 3)


def test_3_1_rows_of_several_source_tables_are_compared_by_the_table_too(bench: Bench) -> None:
    bench.rule = {"merge_sources": True}
    topic = Topic(bench.create().topic, "mysql")
    for at, table in ((1, "a"), (2, "b")):
        topic.change("c", {"id": 1}, {"id": 1, "v": table}, at=at, names={"db": "shop", "table": table})
    bench.take(topic.records)
    found = verified(bench)
    assert (found.state, found.counts.equal) == (State.EQUAL, 2)


@pytest.mark.parametrize("routed", [False, True])
def test_3_6_a_truncate_of_one_source_table_removes_its_rows_alone(bench: Bench, *, routed: bool) -> None:
    bench.rule = {"merge_sources": not routed}
    topic = Topic(bench.create().topic, "mysql")

    def change(op: str, table: str, number: int, at: int) -> None:
        names = {"db": "shop", "table": table, "name": "p"}
        key = {"id": number, **({"__dbz__physicalTableIdentifier": f"p.shop.{table}"} if routed else {})}
        topic.change(op, None if op == "t" else key, None if op == "t" else {"id": number}, at=at, names=names)

    for at, table in enumerate(("a", "b"), 1):
        change("c", table, 1, at)
    worker = bench.take(topic.records)
    change("t", "b", 0, 5)
    change("c", "b", 2, 6)
    worker = bench.take(topic.records[2:], worker)
    column = "__dbz__physicalTableIdentifier" if routed else "__physical_table"
    begin = "p.shop" if routed else "shop"
    assert bench.rows("id", column) == [(1, f"{begin}.a"), (2, f"{begin}.b")]
    found = verified(bench)
    assert (found.state, found.counts.equal) == (State.EQUAL, 2)
    change("t", "unknown", 0, 7)
    if routed:
        with pytest.raises(TableHalt, match="truncated-part"):
            bench.take(topic.records[4:], worker)
    else:
        bench.take(topic.records[4:], worker)
    assert len(bench.rows("id")) == 2


def test_4_3_appended_rows_whose_key_is_not_unique_are_each_compared(bench: Bench) -> None:
    bench.rule = {"mode": "append"}
    topic = Topic(bench.create().topic)
    for number in range(6):
        topic.change("r", {"v": "same"}, row(number, "same"), at=5, ts_ms=1_000)
    topic.change("c", {"v": "other"}, row(7, "other"), at=6)
    bench.take([*topic.records, *topic.records])
    assert_equal(verified(bench), 7)
    DeltaTable(bench.table).delete("id = 3")
    assert faults(verified(bench)).get("missing") == 1


@pytest.mark.slow
def test_3_2_a_table_that_keeps_deleted_rows_is_what_its_topic_says(bench: Bench) -> None:
    bench.rule = {"deletes": "soft", "truncate": "soft"}
    assert_equal(filled(bench))
    DeltaTable(bench.table).update({"__deleted": "false"}, predicate="id = 42")
    assert differences(verified(bench)) == {'{"id":42}': ("different", [("__deleted", "false", "true")])}


def test_6_3_a_record_that_waits_is_not_taken_for_another_one_of_a_topic_created_again(bench: Bench) -> None:
    bench.rule = {"columns": {"x": "int"}}
    topic = Topic(bench.create().topic)
    topic.change("c", key(1), row(1, "a", x="no number"), at=1)
    worker = bench.take(topic.records)
    bench.create_again()
    again = Topic(bench.topic)
    for number in (2, 3):
        again.change("c", key(number), row(number, "a", x=1), at=number)
    with pytest.raises(TableHalt, match="topic-recreated"):
        bench.take(again.records, worker)
    worker.resume(ResumeAction.RESET)
    bench.take([], worker)
    found = verified(bench)
    assert_equal(found)
    assert found.quarantined.records == 0


def test_2_6_a_table_with_a_wrong_position_in_its_topic_is_what_the_topic_says(bench: Bench) -> None:
    bench.options = {"trigger": {"max_records": 2}}
    topic = Topic(bench.create().topic)
    topic.change("c", key(1), row(1, "a"), at=1)
    topic.change("d", key(2), at=2)
    topic.change("c", key(3), row(3, "a"), at=30)
    topic.change("c", key(4), row(4, "a"), at=31)
    topic.change("u", key(4), row(4, "b"), at=40)
    topic.change("u", key(3), row(3, "wrong"), at=20, ts_ms=5_680_281_600_000)
    topic.change("c", key(2), row(2, "late"), at=1)  # sent again: the delete is remembered
    topic.change("u", key(1), row(1, "b"), at=41)
    bench.take(topic.records)
    assert bench.rows() == [(1, "b"), (3, "a"), (4, "b")]
    found = verified(bench)
    assert_equal(found, rows=3)
    assert found.quarantined.records == 1
    shutil.rmtree(bench.quarantine)  # as after a purge
    assert verified(bench).counts.lake == 3


def test_6_3_and_6_4_what_the_topic_can_not_tell_is_said(bench: Bench) -> None:
    bench.rule = {"columns": {"x": "int"}}
    topic = Topic(bench.create().topic)
    for number in range(1, 7):
        topic.change("c", key(number), row(number, "a", x=1), at=number)
    topic.change("u", key(3), row(3, "b", x=1), at=11)
    topic.change("u", key(4), row(4, "b", x="no number"), at=12)
    topic.change("d", key(5), at=13)
    worker = bench.take(topic.records)
    found = verified(bench)
    assert_equal(found)
    assert (found.quarantined.records, found.quarantined.keys, found.quarantined.without_key) == (1, 1, 0)
    assert [(place.partition, place.offset) for place in found.quarantined.examples] == [(0, 7)]
    delete_records(bench.kafka, bench.topic, 6)
    bench.take([], worker)
    DeltaTable(bench.table).update({"v": "'damaged'"}, predicate="id < 5")
    found = verified(bench)
    # 1, 2 and 6 have no record left, of 4 there is one in quarantine alone.
    assert not_checked(found) == {"before_topic": 3, "quarantined": 1}
    assert differences(found) == {'{"id":3}': ("different", [("v", "damaged", "b")])}
    assert "the topic has 2 of the 8 records" in found.notes[0]
    # With a range of keys not all records are counted.
    found = verified(bench, keys="2..3", limit=0)
    assert (found.counts.lake, faults(found), not_checked(found)) == (2, {"different": 1}, {"before_topic": 1})
    assert found.differences == ()


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["upsert", *MODES])
@pytest.mark.parametrize("flavour", ["sqlserver_direct", "db2", "postgresql", "mariadb"])
def test_2_8_random_histories_are_found_equal(
    session: SparkSession, kafka: str, tmp_path: Path, flavour: str, mode: str
) -> None:
    """Records sent again, held back and cut anywhere: the table is the reference's, and verify finds nothing in it."""
    kept = MODES.get(mode, Kept())
    wanted = replace(ALL, moves=kept.truncate != "ignore", behind=kept.mode != "history")
    Watched.benches.clear()
    service = Watched(session, kafka, tmp_path)
    assert not service.difference(pack(flavour, 8, 3, kept, wanted))
    [bench] = service.benches
    found = verified(bench)
    assert (faults(found), not_checked(found), found.notes) == ({}, {}, ())
    assert found.counts.equal == found.counts.lake
