"""Undecodable records of every kind: each goes to quarantine with its reason, the others are applied."""

from __future__ import annotations

import json

from tests.support.changes import Topic
from tests.support.spark import Bench, rows_of


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
