"""Undecodable records of every kind: each goes to quarantine with its reason, the others are applied."""

from __future__ import annotations

import json

import pytest
from tests.support.changes import Topic
from tests.support.kafka import Record
from tests.support.spark import Bench, rows_of

from distributary.errors import TableHalt
from distributary.halt_actions import ResumeAction


def test_6_3_poison_of_every_kind_is_quarantined_with_its_reason(bench: Bench) -> None:
    bench.create()
    worker = bench.take(good(bench, 1).records)
    whole = good(bench, 2).records[0].value or b""
    document = json.loads(whole)
    poison = {
        b'{"op": "u", "after"': "not-json",
        b"\xef\xbb\xbf" + whole: "not-json",
        b"": "not-json",
        b"[" + whole + b"]": "not-json",
        b"\xff\xfe": "not-utf8",
        whole + b" and more": "text-after-json",
        whole + b"\n" + whole: "text-after-json",
        whole.replace(b'"v": 2}', b'"v": 0, "v": 2}'): "ambiguous-json",
        whole.replace(b'"v": 2}', b'"v": "\\ud800"}'): "ambiguous-json",
        json.dumps({**document, "op": "?"}).encode(): "unknown-operation",
        json.dumps({**document, "after": None}).encode(): "no-row",
        json.dumps({**document, "source": {"connector": "sqlserver"}}).encode(): "no-position",
    }
    topic = Topic(bench.topic)
    for value in poison:
        topic.add({"id": 2}, value)
    bench.take(topic.records, worker)  # nothing but poison
    found = [(bytes(value), reason) for value, reason in rows_of(bench.quarantine, "value", "reason")]
    assert sorted(found) == sorted(poison.items())
    assert bench.rows() == [(1, 1)]
    bench.take([*topic.records, *good(bench, 4).records], worker)
    found = [(bytes(value), reason) for value, reason in rows_of(bench.quarantine, "value", "reason")]
    assert sorted(found) == sorted(2 * list(poison.items()))
    assert bench.rows() == [(1, 1), (4, 4)]


def test_6_3_a_position_that_no_log_has_stands_in_the_way_of_no_change(bench: Bench) -> None:
    bench.create()
    topic = good(bench, 1)
    document = json.loads(good(bench, 2).records[0].value or b"")
    for lsn in ("zzzz", "ffffffff:ffffffff:ffffffff", "\U0010ffff"):
        source = {**document["source"], "commit_lsn": lsn, "ts_ms": 9 * 10**18}
        topic.add({"id": 2}, json.dumps({**document, "source": source}).encode())
    worker = bench.take(topic.records)
    later = Topic(bench.topic)
    later.change("c", {"id": 3}, {"id": 3, "v": 3}, at=3)
    later.change("u", {"id": 1}, {"id": 1, "v": 4}, at=4)
    bench.take(later.records, worker)
    assert bench.rows() == [(1, 4), (3, 3)]
    assert rows_of(bench.quarantine, "offset", "reason") == [(n, "bad-position") for n in (1, 2, 3)]
    assert worker.progress is not None
    assert worker.progress.position is not None
    assert worker.progress.position.startswith("000:00000027:00000004:ffff/")


def good(bench: Bench, number: int) -> Topic:
    topic = Topic(bench.topic)
    topic.change("c", {"id": number}, {"id": number, "v": number}, at=number)
    return topic


def test_6_3_a_new_driver_takes_a_batch_of_nothing_but_broken_records(bench: Bench) -> None:
    topic = Topic(bench.create().topic)
    topic.change("c", {"id": 1}, {"id": 1, "v": 1}, at=1)
    bench.take(topic.records)
    bench.take([topic.add({"id": 1}, value) for value in (b"\xff", b'"\xff"')])
    assert bench.rows() == [(1, 1)]
    assert rows_of(bench.quarantine, "offset", "reason") == [(1, "not-utf8"), (2, "not-utf8")]


def test_6_3_a_table_gets_no_more_columns_than_the_limit(bench: Bench) -> None:
    """Schemas that fit alone and not together: the first one's columns are added, the records of the other rejected."""
    bench.options = {"source": {"topic_prefix": bench.prefix, "limits": {"columns": 10}}}
    bench.create()
    topic = good(bench, 1)
    worker = bench.take(topic.records)
    later = Topic(bench.topic)
    for begin in ("a", "b"):
        columns = {"id": "int32", "v": "int32", **{f"{begin}{number}": "int32" for number in range(8)}}
        row = {"id": ord(begin), "v": 0}
        source = {**json.loads(topic.records[0].value or b"")["source"], "change_lsn": f"00000027:00000004:00{begin}0"}
        later.add({"id": row["id"]}, with_columns(columns, {"op": "c", "after": row, "source": source}))
    later.change("u", {"id": 1}, {"id": 1, "v": 5}, at=9)
    bench.take(later.records, worker)
    assert bench.rows("id") == [(1,), (97,)]
    assert rows_of(bench.quarantine, "offset", "reason") == [(2, "beyond-limits")]


def typed(bench: Bench, kind: str, number: int, value: object) -> Record:
    """A change with a schema in which `v` has that type."""
    topic = Topic(bench.topic)
    change = topic.change("u", {"id": 1}, {"id": 1, "v": value}, at=number)
    return topic.with_schema(change, {"id": {"type": "int32"}, "v": {"type": kind, "optional": True}})


def test_6_3_one_record_of_another_type_goes_to_quarantine_and_a_second_one_halts(bench: Bench) -> None:
    bench.create()
    bench.take([typed(bench, "int32", 1, 1)])
    with pytest.raises(TableHalt, match="column-type-changed"):
        bench.take([typed(bench, "string", 2, "12")])  # it may be a change at the source: nothing follows it yet
    bench.take([typed(bench, "int32", 3, 3)])
    assert bench.rows() == [(1, 3)]
    assert rows_of(bench.quarantine, "offset", "reason") == [(1, "needs-decision")]
    for _ in range(2):
        with pytest.raises(TableHalt) as caught:
            bench.take([typed(bench, "string", 4, "14")])
        assert caught.value.code == "column-type-changed"
    assert len(rows_of(bench.quarantine, "offset")) == 1
    bench.rule = {"columns": {"v": "int"}}  # what the halt says: then all of them can be applied
    worker = bench.take([typed(bench, "string", 5, "15")])
    assert bench.rows() == [(1, 15)]
    worker.resume(ResumeAction.REPLAY)
    while worker.has_to_step():
        worker.step()
    assert bench.rows() == [(1, 15)]
    assert rows_of(bench.quarantine, "replayed_at") != [(None,)]


def test_6_3_a_stray_that_still_can_t_be_applied_stays_in_quarantine(bench: Bench) -> None:
    bench.create()
    worker = bench.take([typed(bench, "int32", 1, 1), typed(bench, "string", 2, "12"), typed(bench, "int32", 3, 3)])
    for action in (ResumeAction.REPLAY, ResumeAction.REBUILD):
        worker.resume(action)
        while worker.has_to_step():
            worker.step()
        assert bench.rows() == [(1, 3)]
        found = set(rows_of(bench.quarantine, "offset", "reason", "replayed_at"))
        assert found == {(1, "needs-decision", None)}


def with_columns(columns: dict[str, str], payload: dict[str, object]) -> bytes:
    """A change with the schema of an envelope whose rows have these columns."""
    fields = [{"type": kind, "optional": True, "field": name} for name, kind in columns.items()]
    source = [{"type": "string", "field": name} for name in ("connector", "commit_lsn", "change_lsn")]
    schema = {
        "type": "struct",
        "fields": [
            {"type": "struct", "fields": fields, "optional": True, "field": "after"},
            {"type": "struct", "fields": source, "field": "source"},
            {"type": "string", "field": "op"},
        ],
    }
    return json.dumps({"schema": schema, "payload": payload}).encode()


def test_6_3_documents_that_no_variant_holds_stop_no_table(bench: Bench) -> None:
    bench.rule = {"columns": {"id": "int", "d": "variant"}}
    bench.create()
    topic = Topic(bench.topic)
    for number, text in enumerate(('{"a":1}', '"\\ud800"', "1e400", "[" * 600 + "]" * 600, "1" * 5_000, '{"b":2}')):
        topic.change("c", {"id": number}, {"id": number, "d": text}, at=number + 1)
    worker = bench.take(topic.records)
    later = Topic(bench.topic)
    later.change("u", {"id": 0}, {"id": 0, "d": '{"a":2}'}, at=20)
    bench.take(later.records, worker)
    assert bench.rows("id") == [(0,), (5,)]
    assert {reason for (reason,) in rows_of(bench.quarantine, "reason")} <= {"bad-value", "ambiguous-json"}
