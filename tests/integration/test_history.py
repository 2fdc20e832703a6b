"""`mode: history` on a topic and a real Delta table. Names give the rule's number.

A commit costs seconds, so a test takes many keys at a time: each key has a case of its own.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterable
from typing import Any

import pytest
from tests.support.changes import Row, Topic, key, row
from tests.support.kafka import Record, grow_topic
from tests.support.spark import Bench, rows_of

UNSENT = "__debezium_unavailable_value"

Version = tuple[Any, ...]


pytestmark = pytest.mark.bench(rule={"mode": "history"})


def place(position: str | None) -> Any:
    """The `at` number of a position; for PostgreSQL's snapshot rows `r` and their lsn."""
    if position is None:
        return None
    body = position.removeprefix("000:")
    if "/" in body:
        return int(body.split("/")[0].split(":")[1], 16)
    if "r" in body:
        return f"r{int(body.split('r')[0])}"
    return int(body.split("." if "." in body else "?")[0])


def history(bench: Bench, *more: str) -> list[Version]:
    """key, value, from, to; sorted by key and from."""
    rows = rows_of(bench.table, "id", "v", "__start_at", "__end_at", "__current", *more)
    assert all(current == (end is None) for _, _, _, end, current, *_ in rows)
    found = [(i, v, place(start), place(end), *rest) for i, v, start, end, _, *rest in rows]
    return sorted(found, key=lambda version: (version[0], *(str(place).zfill(20) for place in version[2:4])))


@pytest.mark.parametrize("at_most", [100, pytest.param(3, marks=pytest.mark.slow)])
def test_4_2_every_version_and_no_more_when_sent_again_at_any_cut(bench: Bench, at_most: int) -> None:
    bench.options = {"trigger": {"max_records": at_most}}
    topic = Topic(bench.create().topic)
    topic.change("r", key(1), row(1, "read"), at=1)
    topic.change("u", key(1), row(1, "updated"), at=2)
    topic.change("u", key(1), row(1, "updated"), at=3)  # leaves the row as it was
    topic.change("d", key(1), at=4)
    topic.tombstone(key(1))
    topic.change("c", key(1), row(1, "updated"), at=6)
    # 2.2: an update of a unique column, with and without another value
    topic.change("c", key(2), row(2, "old"), at=7)
    topic.change("d", key(2), at=8)
    topic.change("c", key(2), row(2, "new"), at=8)
    topic.change("d", key(2), at=9)
    topic.change("c", key(2), row(2, "new"), at=9)
    topic.change("d", key(3), at=10)  # 3.2: a key that the table never had
    topic.tombstone(key(3))
    worker = bench.take(topic.records)
    expected = [
        (1, "read", 1, 2),
        (1, "updated", 2, 4),
        (1, "updated", 6, None),
        (2, "old", 7, 8),
        (2, "new", 8, 9),
        (2, "new", 9, None),
    ]
    assert history(bench) == expected
    for cut in (0, 2, 3, 8) if at_most > 3 else (3,):
        bench.take(topic.records[cut:], worker)
        assert history(bench) == expected


def reference(records: Iterable[tuple[int, int, str, Any]]) -> list[Version]:
    """The versions of (key, at, op, value) changes, each known once, in whatever order they are given."""
    versions: list[list[Any]] = []
    living: dict[int, list[Any]] = {}
    for number, at, op, value in sorted(set(records), key=lambda change: change[:2]):
        last = living.get(number)
        if last is not None and (op == "d" or last[1] != value):
            last[3] = at
            del living[number]
        if op != "d" and number not in living:
            living[number] = [number, value, at, None]
            versions.append(living[number])
    return sorted((tuple(version) for version in versions), key=lambda version: (version[0], version[2]))


@pytest.mark.parametrize("seed", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_2_5_and_2_8_partitions_read_in_any_order_come_to_the_same_versions(bench: Bench, seed: int) -> None:
    chance = random.Random(seed)
    begin = Topic(bench.create().topic)
    begin.change("c", key(99), row(99, "a"), at=1, ts_ms=5)
    worker = bench.take(begin.records)
    grow_topic(bench.kafka, bench.topic, 2)
    changes: list[tuple[int, int, str, Any]] = []
    for number in range(25):
        for at in chance.sample(range(2, 41), 7):
            op = chance.choice("cuud")
            changes.append((number, at, op, None if op == "d" else chance.choice("ab")))
    partitions: list[list[Record]] = [[], []]
    for number, at, op, value in sorted(changes, key=lambda change: change[1]):
        source = Topic(bench.topic)
        values = None if op == "d" else row(number, value)
        partition = chance.randrange(2)
        source.change(op, key(number), values, at=at, ts_ms=5, partition=partition)
        partitions[partition] += source.records
    sent: list[Record] = []
    while waiting := [records for records in partitions if records]:
        sent.append(chance.choice(waiting).pop(0))
    for start, end in itertools.pairwise((0, 60, 110, 175)):
        worker = bench.take([*sent[start:end], *sent[max(0, end - 25) : end]], worker)
    assert history(bench) == reference([(99, 1, "c", "a"), *changes])


def test_3_3_a_tombstone_by_itself_ends_a_version_at_its_position(bench: Bench) -> None:
    topic = Topic(bench.create().topic)
    for number in (1, 2, 3):
        topic.change("c", key(number), row(number, "a"), at=number)
    topic.change("u", key(2), row(2, "a"), at=5)
    worker = bench.take(topic.records)
    lone = Topic(bench.topic)
    for number in (1, 2, 3):
        lone.tombstone(key(number))
    bench.take(lone.records, worker)
    # What left the row as it was opened no version, and is not known any more.
    expected = [(1, "a", 1, 1), (2, "a", 2, 2), (3, "a", 3, 3)]
    assert history(bench) == expected
    later = Topic(bench.topic)
    later.change("c", key(3), row(3, "b"), at=9)
    bench.take([*lone.records[:1], *later.records], worker)
    assert history(bench) == [*expected, (3, "b", 9, None)]


def test_2_3_snapshot_rows_of_postgresql_stand_by_their_offset(bench: Bench) -> None:
    topic = Topic(bench.create().topic, connector="postgresql")
    topic.change("r", key(1), row(1, "read"), at=50)
    topic.change("u", key(1), row(1, "changed"), at=40)  # lower than the snapshot's lsn, yet after it
    topic.change("c", key(2), row(2, "same"), at=41)
    topic.change("d", key(3), at=42)
    worker = bench.take(topic.records)
    expected = [(1, "changed", 40, None), (1, "read", "r51", 40), (2, "same", 41, None)]
    assert history(bench) == expected
    bench.take(topic.records[:1], worker)  # sent again
    assert history(bench) == expected
    again = Topic(bench.topic, connector="postgresql")
    again.change("r", key(1), row(1, "read anew"), at=60)
    again.change("r", key(2), row(2, "same"), at=60)
    again.change("r", key(3), row(3, "read"), at=60)
    bench.take([*again.records, *topic.records[1:], *again.records], worker)
    assert history(bench) == [
        (1, "changed", 40, "r61"),
        (1, "read", "r51", 40),
        (1, "read anew", "r61", None),
        (2, "same", 41, None),
        (3, "read", "r61", None),
    ]


@pytest.mark.parametrize("at_most", [100, pytest.param(2, marks=pytest.mark.slow)])
def test_3_4_and_2_7_a_key_change_closes_the_old_key_and_opens_the_new_one(bench: Bench, at_most: int) -> None:
    bench.options = {"trigger": {"max_records": at_most}}
    topic = Topic(bench.create().topic, connector="postgresql")
    for number in (1, 2, 3):
        topic.change("c", key(number), row(number, f"row {number}"), at=1, step=number)
    for number in (1, 2, 3):  # one transaction: UPDATE t SET id = id + 1
        topic.change("d", key(number), at=20, step=number, tx=77, headers={"newkey": key(number + 1)})
        topic.tombstone(key(number))
        moved = row(number + 1, f"row {number}")
        topic.change("c", key(number + 1), moved, at=20, step=number, tx=77, headers={"oldkey": key(number)})
    worker = bench.take(topic.records)
    expected = [
        (1, "row 1", 1, 20, None),
        (2, "row 2", 1, 20, None),
        (2, "row 1", 20, None, '{"id":1}'),
        (3, "row 3", 1, 20, None),
        (3, "row 2", 20, None, '{"id":2}'),
        (4, "row 3", 20, None, '{"id":3}'),
    ]
    assert history(bench, "__moved_from") == expected
    for cut in (3, 6, 8):
        bench.take(topic.records[cut:], worker)
        assert history(bench, "__moved_from") == expected


def test_3_6_a_truncate_ends_what_is_older_whenever_its_record_comes(bench: Bench) -> None:
    bench.create(partitions=4)

    def records(partition: int, *changes: tuple[str, int | None, int]) -> list[Record]:
        topic = Topic(bench.topic, connector="postgresql")
        for op, number, at in changes:
            if number is None:
                topic.change(op, None, at=at, partition=partition)
            else:
                topic.change(op, key(number), row(number, at) if op != "d" else None, at=at, partition=partition)
        return topic.records

    first = records(0, ("c", 1, 10), ("c", 2, 11), ("c", 4, 12), ("d", 4, 13), ("c", 3, 30))
    truncate = records(1, ("t", None, 20))
    worker = bench.take(first)
    bench.take(truncate, worker)
    expected = [(1, "10", 10, 20), (2, "11", 11, 20), (3, "30", 30, None), (4, "12", 12, 13)]
    assert _as_text(history(bench)) == expected
    read = Topic(bench.topic, connector="postgresql")
    read.change("r", key(2), row(2, 11), at=12)  # a snapshot saw the row before the truncate
    bench.take(read.records, worker)
    assert _as_text(history(bench)) == expected
    second = [*records(1, ("t", None, 40)), *records(0, ("c", 1, 50))]
    late = records(2, ("u", 2, 15), ("c", 5, 16), ("c", 6, 25), ("u", 3, 35))
    bench.take(second, worker)
    bench.take([*late, *truncate], worker)
    expected = [
        (1, "10", 10, 20), (1, "50", 50, None),
        (2, "11", 11, 15), (2, "15", 15, 20),
        (3, "30", 30, 35), (3, "35", 35, 40),
        (4, "12", 12, 13),
        (5, "16", 16, 20),
        (6, "25", 25, 40),
    ]  # fmt: skip
    assert _as_text(history(bench)) == expected
    earlier = records(3, ("t", None, 14))  # a late truncate cuts a version in the middle
    bench.take(earlier, worker)
    expected[0] = (1, "10", 10, 14)
    expected[2:4] = [(2, "11", 11, 14), (2, "15", 15, 20)]
    assert _as_text(history(bench)) == expected
    bench.take([*first, *truncate, *second, *late, *earlier], worker)
    assert _as_text(history(bench)) == expected


def _as_text(versions: list[Version]) -> list[Version]:
    return [(i, str(v), *rest) for i, v, *rest in versions]


def test_3_7_and_3_4_values_that_were_not_sent_come_from_the_version_before(bench: Bench) -> None:
    def wide(number: int, v: str, w: str) -> Row:
        return {"id": number, "v": v, "w": w}

    topic = Topic(bench.create().topic, connector="postgresql")
    topic.change("c", key(1), wide(1, "long", "x"), at=1)
    topic.change("u", key(1), wide(1, UNSENT, "y"), at=2)
    topic.change("u", key(1), wide(1, UNSENT, "y"), at=3)
    topic.change("c", key(2), wide(2, "other", "x"), at=4)
    topic.change("u", key(9), wide(9, UNSENT, "x"), at=5)  # nothing known
    # A chain within one batch: 2 to 3 to 4
    for at, number in ((6, 2), (8, 3)):
        topic.change("d", key(number), at=at, headers={"newkey": key(number + 1)})
        moved = wide(number + 1, UNSENT, f"moved {number}")
        topic.change("c", key(number + 1), moved, at=at, headers={"oldkey": key(number)})
    worker = bench.take(topic.records)
    grow_topic(bench.kafka, bench.topic, 2)
    # The new row of 11 comes first, in a batch of its own.
    new = Topic(bench.topic, connector="postgresql")
    new.change("c", key(11), wide(11, UNSENT, "moved"), at=20, headers={"oldkey": key(1)}, partition=1)
    bench.take(new.records, worker)
    first = [
        (1, "long", 1, 2, "x"),
        (1, "long", 2, None, "y"),
        (2, "other", 4, 6, "x"),
        (3, "other", 6, 8, "moved 2"),
        (4, "other", 8, None, "moved 3"),
        (9, None, 5, None, "x"),
    ]
    # What the old key had just before is not known yet.
    assert history(bench, "w") == [*first, (11, None, 20, None, "moved")]
    # The last changes of the old key come afterwards.
    old = Topic(bench.topic, connector="postgresql")
    old.change("u", key(1), wide(1, "longer", "z"), at=15)
    old.change("d", key(1), at=20, headers={"newkey": key(11)})
    bench.take(old.records, worker)
    expected = [
        (1, "long", 1, 2, "x"),
        (1, "long", 2, 15, "y"),
        (1, "longer", 15, 20, "z"),
        (2, "other", 4, 6, "x"),
        (3, "other", 6, 8, "moved 2"),
        (4, "other", 8, None, "moved 3"),
        (9, None, 5, None, "x"),
        (11, "longer", 20, None, "moved"),
    ]
    assert history(bench, "w") == expected
    bench.take([*topic.records, *new.records, *old.records], worker)
    assert history(bench, "w") == expected
