"""Rules on what stays: deleted rows that are kept, values that the source did not send, snapshot rows sent again.

Each on a real topic and a real Delta table. Names give the rule's number.
"""

from __future__ import annotations

import itertools
import random
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from tests.support.changes import Row, Topic
from tests.support.kafka import Record
from tests.support.spark import Bench

from distributary.errors import TableHalt
from distributary.operate.accept import Accept

_numbers = itertools.count()
NOT_SENT = "__debezium_unavailable_value"


@pytest.fixture
def bench(session: SparkSession, kafka: str, tmp_path: Path) -> Bench:
    """A topic of its own for each test."""
    return Bench(session, kafka, tmp_path, f"stays{next(_numbers)}x{random.randrange(10**9)}.dbo.t")


def row(number: int, value: Any) -> Row:
    return {"id": number, "v": value}


def key(number: int) -> Row:
    return {"id": number}


def postgres(bench: Bench) -> Topic:
    return Topic(bench.topic, connector="postgresql")


@pytest.mark.parametrize(("before", "now"), [({}, {"deletes": "soft"}), ({"truncate": "soft"}, {})])
def test_3_2_a_table_whose_deleted_rows_would_be_kept_otherwise_halts_until_it_is_filled_again(
    bench: Bench, before: Row, now: Row
) -> None:
    bench.rule = before
    topic = Topic(bench.create().topic)
    topic.change("c", key(1), row(1, "first"), at=1)
    bench.take(topic.records)
    topic.change("u", key(1), row(1, "second"), at=2)
    bench.rule = now
    with pytest.raises(TableHalt, match="deletes-changed"):
        bench.take(topic.records[1:])
    assert bench.rows() == [(1, "first")]
    worker = bench.worker()
    worker.resume(Accept.REBUILD)
    bench.take([], worker)
    assert bench.rows("id", "v", *(["__deleted"] if now else [])) == [(1, "second", *([False] if now else []))]


def test_3_2_softly_deleted_rows_stay_with_their_last_values(bench: Bench) -> None:
    bench.rule = {"deletes": "soft"}
    topic = Topic(bench.create().topic)
    for number in (1, 2, 3):
        topic.change("c", key(number), row(number, "first"), at=number)
    topic.change("d", key(3), at=4)  # created and deleted in one slice
    worker = bench.take(topic.records)
    assert bench.rows("id", "v", "__deleted") == [(1, "first", False), (2, "first", False), (3, "first", True)]
    more = Topic(bench.topic)
    more.change("d", key(1), at=10)
    more.tombstone(key(1))
    more.change("u", key(2), row(2, "second"), at=11)
    more.change("d", key(2), at=12)
    more.change("c", key(3), row(3, "back"), at=13)
    more.change("d", key(9), at=20)  # no such row
    bench.take(more.records, worker)
    assert bench.rows("id", "v", "__deleted") == [(1, "first", True), (2, "second", True), (3, "back", False)]
    # Late changes: the last values before the delete, also of a row that only its delete told of.
    late = Topic(bench.topic)
    late.change("u", key(1), row(1, "later"), at=5)
    late.change("u", key(9), row(9, "late"), at=15)
    bench.take(late.records, worker)
    bench.take([*topic.records, *more.records, *late.records], worker)
    assert bench.rows("id", "v", "__deleted") == [
        (1, "later", True), (2, "second", True), (3, "back", False), (9, "late", True),
    ]  # fmt: skip


@pytest.mark.parametrize("cut", [1, 2], ids=["one slice", "two slices"])
def test_2_8_a_lone_tombstone_leaves_the_softly_deleted_row_of_its_slice(bench: Bench, cut: int) -> None:
    bench.rule = {"deletes": "soft"}
    topic = Topic(bench.create().topic)
    topic.change("c", key(1), row(1, "first"), at=1)
    topic.change("c", key(2), row(2, "first"), at=2)
    topic.change("u", key(2), row(2, "second"), at=3)
    topic.change("c", key(3), row(3, "first"), at=4)
    tombstones = Topic(bench.topic)
    for number in (1, 2, 3):
        tombstones.tombstone(key(number))
    tombstones.change("c", key(3), row(3, "back"), at=5)
    worker = None
    for slice_ in [[*topic.records, *tombstones.records]] if cut == 1 else [topic.records, tombstones.records]:
        worker = bench.take(slice_, worker)
    expected = [
        (1, "first", True, "d", 0), (2, "second", True, "d", 2), (3, "back", False, "c", 7),
    ]  # fmt: skip
    assert bench.rows("id", "v", "__deleted", "__op", "__offset") == expected
    # What is older than the row that the tombstone took brings nothing back.
    bench.take(topic.records[1:2], worker)
    assert bench.rows("id", "v", "__deleted", "__op", "__offset") == expected
    bench.take([*topic.records, *tombstones.records], worker)
    assert [r[:3] for r in bench.rows("id", "v", "__deleted")] == [r[:3] for r in expected]


@pytest.mark.parametrize("connector", ["sqlserver", "postgresql"])
def test_3_2_and_2_4_an_older_change_sent_again_before_the_delete_is_not_the_last_value(
    bench: Bench, connector: str
) -> None:
    bench.rule = {"deletes": "soft"}
    topic = Topic(bench.create().topic, connector)
    topic.change("c", key(1), row(1, "first"), at=1)
    topic.change("u", key(1), row(1, "last"), at=2)
    worker = bench.take(topic.records)
    again = Topic(bench.topic, connector)
    again.change("d", key(1), at=3)
    bench.take([topic.records[0], *again.records], worker)
    assert bench.rows("id", "v", "__deleted") == [(1, "last", True)]


def swap(topic: Topic, at: int, first: Row, second: Row) -> None:
    """One transaction swaps the keys 1 and 2 of two rows by way of key 0."""
    for step, (old, new, content) in enumerate(((1, 0, first), (2, 1, second), (0, 2, first)), start=1):
        topic.change("d", key(old), at=at, step=step, tx=at, headers={"newkey": key(new)})
        topic.change("c", key(new), {**content, "id": new}, at=at, step=step, tx=at, headers={"oldkey": key(old)})


def shifted(topic: Topic, *numbers: int, sent: int | None = None, tombstones: bool = False) -> Topic:
    """UPDATE t SET id = id + 1 of those rows, in one transaction; `big` comes with the row that is `sent`."""
    for number in numbers:
        place: dict[str, Any] = {"at": 20, "step": number + 1, "tx": 77}
        topic.change("d", key(number), **place, headers={"newkey": key(number + 1)})
        if tombstones:
            topic.tombstone(key(number))
        values = {**row(number + 1, f"row {number}"), "big": f"big {number}" if number == sent else NOT_SENT}
        topic.change("c", key(number + 1), values, **place, headers={"oldkey": key(number)})
    return topic


def cut_at(records: list[Record], place: int) -> list[list[Record]]:
    """The records in two slices, or in one."""
    return [part for part in (records[:place], records[place:]) if part]


WHOLE, AMID = 6, 3
"""Where a swap is cut: not at all, or between the two changes of key 0."""


@pytest.mark.parametrize(
    ("connector", "first", "second"),
    [
        ("postgresql", WHOLE, WHOLE),
        ("postgresql", WHOLE, AMID),
        ("postgresql", AMID, WHOLE),
        ("postgresql", AMID, AMID),
        ("oracle", AMID, WHOLE),
    ],
)
def test_2_7_and_2_8_a_softly_deleted_row_stays_so_when_another_passes_through_its_key(
    bench: Bench, connector: str, first: int, second: int
) -> None:
    bench.rule = {"deletes": "soft"}
    topic = Topic(bench.create().topic, connector)
    topic.change("c", key(1), row(1, "a"), at=1)
    topic.change("c", key(2), row(2, "b"), at=2)
    worker = bench.take(topic.records)
    for at, cut, values in ((10, first, "ab"), (20, second, "ba")):
        swaps = Topic(bench.topic, connector)
        swap(swaps, at, row(1, values[0]), row(2, values[1]))
        for part in cut_at(swaps.records, cut):
            bench.take(part, worker)
        expected = [(0, values[0], True, "d"), (1, values[1], False, "c"), (2, values[0], False, "c")]
        assert bench.rows("id", "v", "__deleted", "__op") == expected
    bench.take(swaps.records, worker)  # sent again
    assert bench.rows("id", "v", "__deleted", "__op") == expected


@pytest.mark.parametrize("cut", [WHOLE, AMID], ids=["one slice", "two slices"])
def test_3_4_and_2_8_a_value_that_was_not_sent_is_not_that_of_a_deleted_row_whose_key_it_passed(
    bench: Bench, cut: int
) -> None:
    bench.rule = {"deletes": "soft"}
    bigs = {"a": {**row(1, "a"), "big": "of a"}, "b": {**row(2, "b"), "big": "of b"}}
    topic = postgres(bench.create())
    topic.change("c", key(1), bigs["a"], at=1)
    topic.change("c", key(2), bigs["b"], at=2)
    swap(topic, 10, bigs["a"], bigs["b"])
    worker = None
    for part in cut_at(topic.records, 2 + AMID):
        worker = bench.take(part, worker)
    again = postgres(bench)
    swap(again, 20, {**bigs["b"], "big": NOT_SENT}, {**bigs["a"], "big": NOT_SENT})
    for part in cut_at(again.records, cut):
        bench.take(part, worker)
    expected = [(0, "b", "of b", True), (1, "a", "of a", False), (2, "b", "of b", False)]
    assert bench.rows("id", "v", "big", "__deleted") == expected


def test_3_6_a_soft_truncate_marks_what_is_older(bench: Bench) -> None:
    bench.rule = {"truncate": "soft"}
    bench.create(partitions=2)
    topic = postgres(bench)
    topic.change("c", key(1), row(1, "before"), at=10)
    topic.change("c", key(3), row(3, "after"), at=30)
    worker = bench.take(topic.records)
    truncate = postgres(bench)
    truncate.change("t", None, at=20, partition=1)
    bench.take(truncate.records, worker)
    late = postgres(bench)
    late.change("c", key(2), row(2, "late"), at=15)
    late.change("u", key(3), row(3, "later"), at=40)
    bench.take([*late.records, *truncate.records], worker)
    assert bench.rows("id", "v", "__deleted") == [(1, "before", True), (2, "late", True), (3, "later", False)]


def test_3_7_a_value_that_was_not_sent_is_that_of_the_newest_older_change(bench: Bench) -> None:
    topic = postgres(bench.create())
    for number in (1, 2, 3):
        topic.change("c", key(number), {**row(number, number), "big": f"big {number}"}, at=number)
    topic.change("u", key(1), {**row(1, 10), "big": NOT_SENT}, at=10)
    worker = bench.take(topic.records)
    more = postgres(bench)
    more.change("u", key(2), {**row(2, 20), "big": NOT_SENT}, at=20)
    more.change("u", key(3), {**row(3, 30), "big": "bigger"}, at=21)
    more.change("u", key(3), {**row(3, 31), "big": NOT_SENT}, at=22)
    more.change("u", key(4), {**row(4, 40), "big": NOT_SENT}, at=23)  # nothing is known of it
    bench.take(more.records, worker)
    expected = [(1, 10, "big 1"), (2, 20, "big 2"), (3, 31, "bigger"), (4, 40, None)]
    assert bench.rows("id", "v", "big") == expected
    bench.take([*topic.records[1:], *more.records], worker)
    assert bench.rows("id", "v", "big") == expected
    late = postgres(bench)
    late.change("u", key(4), {**row(4, 39), "big": "late"}, at=19)
    late.change("u", key(3), {**row(3, 29), "big": "older than what is known"}, at=18)
    bench.take(late.records, worker)
    assert bench.rows("id", "v", "big") == [*expected[:3], (4, 40, "late")]


@pytest.mark.parametrize("first", ["old key", "new key", "together"])
def test_3_4_a_new_key_takes_what_was_not_sent_from_the_old_one(bench: Bench, first: str) -> None:
    bench.create(partitions=2)
    start = postgres(bench)
    for number in (1, 2):
        start.change("c", key(number), {**row(number, number), "big": f"big {number}"}, at=number)
    worker = bench.take(start.records)
    old, new = postgres(bench), postgres(bench)
    for number in (1, 2):
        at, to = 10 * number, number + 10
        old.change("u", key(number), {**row(number, 0), "big": f"changed {number}"}, at=at)
        old.change("d", key(number), at=at + 1, headers={"newkey": key(to)})
        old.tombstone(key(number))
        moved = {**row(to, to), "big": NOT_SENT}
        new.change("c", key(to), moved, at=at + 1, headers={"oldkey": key(number)}, partition=1)
    new.change("u", key(12), {**row(12, 13), "big": NOT_SENT}, at=50, partition=1)
    parts = {"old key": [old, new], "new key": [new, old], "together": []}[first]
    if not parts:
        bench.take([*old.records, *new.records], worker)
    for part in parts:
        bench.take(part.records, worker)
    expected = [(11, 11, "changed 1"), (12, 13, "changed 2")]
    assert bench.rows("id", "v", "big") == expected
    bench.take([*new.records, *old.records], worker)
    assert bench.rows("id", "v", "big") == expected


@pytest.mark.parametrize(("cut", "deletes"), [(3, "hard"), (3, "soft"), (6, "hard"), (7, "soft")])
def test_3_4_and_2_8_rows_that_lie_over_one_another_for_a_while_keep_their_own_values(
    bench: Bench, cut: int, deletes: str
) -> None:
    """UPDATE t SET id = id + 1, cut in two, then the first part and all of it again."""
    bench.rule = {"deletes": deletes}
    topic = postgres(bench.create())
    for number in (1, 2, 3):
        topic.change("c", key(number), {**row(number, f"row {number}"), "big": f"big {number}"}, at=1, step=number)
    worker = bench.take(topic.records)
    shift = shifted(postgres(bench), 1, 2, 3, tombstones=True)
    gone = [(1, "row 1", "big 1", True)] if deletes == "soft" else []
    expected = [*gone, *((number + 1, f"row {number}", f"big {number}", False) for number in (1, 2, 3))]
    columns = ("id", "v", "big", *(["__deleted"] if deletes == "soft" else []))
    expected_rows = [values[: len(columns)] for values in expected]
    for part in cut_at(shift.records, cut):
        bench.take(part, worker)
    assert bench.rows(*columns) == expected_rows
    bench.take([*shift.records[:cut], *shift.records], worker)
    assert bench.rows(*columns) == expected_rows


def test_3_4_and_2_4_a_row_that_lay_below_another_keeps_its_own_values_when_that_is_sent_again(bench: Bench) -> None:
    """The connector starts anew after the delete of the old row, and sends the transaction from its beginning."""
    topic = postgres(bench.create())
    for number in (1, 2):
        topic.change("c", key(number), {**row(number, f"row {number}"), "big": f"big {number}"}, at=1, step=number)
    worker = bench.take(topic.records)
    shift = shifted(postgres(bench), 1, 2)
    bench.take(shift.records[:2], worker)
    bench.take([shift.records[1], *shift.records[:3]], worker)
    bench.take(shift.records[:3], worker)
    bench.take(shift.records, worker)
    assert bench.rows("id", "v", "big") == [(2, "row 1", "big 1"), (3, "row 2", "big 2")]


@pytest.mark.parametrize("deletes", ["hard", "soft"])
def test_3_6_and_2_4_rows_that_moved_and_were_marked_by_a_truncate_stay_so_when_all_is_sent_again(
    bench: Bench, deletes: str
) -> None:
    bench.rule = {"deletes": deletes, "truncate": "soft"}
    topic = postgres(bench.create())
    for number in (1, 2):
        topic.change("c", key(number), {**row(number, f"row {number}"), "big": f"big {number}"}, at=1, step=number)
    worker = bench.take(topic.records)
    shift = shifted(postgres(bench), 1, 2)
    truncate = postgres(bench)
    truncate.change("t", None, at=30, tx=78)
    old = [(1, "row 1", "big 1", True)] if deletes == "soft" else []
    expected = [*old, (2, "row 1", "big 1", True), (3, "row 2", "big 2", True)]
    for records in (shift.records[:2], shift.records[2:], truncate.records):
        bench.take(records, worker)
    for start in (2, 0):  # sent again
        bench.take([*shift.records[start:], *truncate.records], worker)
    assert bench.rows("id", "v", "big", "__deleted") == expected


def test_3_4_a_row_that_moved_gets_its_value_in_the_slice_in_which_the_one_below_it_leaves(bench: Bench) -> None:
    bench.create(partitions=2)
    topic = postgres(bench)
    for number in (1, 2):
        topic.change("c", key(number), {**row(number, f"row {number}"), "big": f"big {number}"}, at=1, step=number)
    worker = bench.take(topic.records)
    old, new, rest = postgres(bench), postgres(bench), postgres(bench)
    old.change("d", key(1), at=20, step=1, tx=77, headers={"newkey": key(2)})
    moved = {**row(2, "row 1"), "big": NOT_SENT}
    new.change("c", key(2), moved, at=20, step=1, tx=77, headers={"oldkey": key(1)}, partition=1)
    rest.change("d", key(2), at=20, step=2, tx=77, headers={"newkey": key(3)}, partition=1)
    moved = {**row(3, "row 2"), "big": NOT_SENT}
    rest.change("c", key(3), moved, at=20, step=2, tx=77, headers={"oldkey": key(2)}, partition=1)
    bench.take(new.records, worker)
    bench.take([*old.records, *rest.records], worker)
    assert bench.rows("id", "v", "big") == [(2, "row 1", "big 1"), (3, "row 2", "big 2")]


def test_3_7_an_older_change_sent_again_tells_no_value_that_is_older_than_the_row_s(bench: Bench) -> None:
    topic = postgres(bench.create())
    topic.change("c", key(1), {**row(1, "first"), "big": "old"}, at=1)
    topic.change("u", key(1), {**row(1, "second"), "big": "new"}, at=2)
    worker = bench.take(topic.records)
    last = postgres(bench)
    last.change("u", key(1), {**row(1, "third"), "big": NOT_SENT}, at=3)
    bench.take([*last.records, topic.records[0]], worker)
    assert bench.rows("id", "v", "big") == [(1, "third", "new")]


@pytest.mark.parametrize("deletes", ["hard", "soft"])
def test_3_4_and_2_8_a_row_that_lies_over_another_keeps_its_values_when_more_happens_in_a_later_slice(
    bench: Bench, deletes: str
) -> None:
    """Of three rows: which one moves from which key to which (the same: it is updated; none: it is deleted), in which
    transaction, before a cut and after it."""
    bench.rule = {"deletes": deletes}
    cases: list[tuple[list[tuple[int, int, int | None, int]], list[tuple[int, int, int | None, int]], Row]] = [
        ([(2, 2, 3, 200)], [(3, 3, 4, 200), (1, 1, 3, 300), (2, 3, 5, 300)], {"3": 1, "4": 3, "5": 2}),
        # UPDATE t SET id = id + 1, twice in one transaction
        (
            [(1, 1, 2, 200), (2, 2, 3, 200)],
            [(3, 3, 4, 200), (1, 2, 3, 200), (2, 3, 4, 200), (3, 4, 5, 200)],
            {"3": 1, "4": 2, "5": 3},
        ),
        # one change is sent again
        (
            [(2, 2, 1, 200), (1, 1, 4, 200)],
            [(1, 1, 4, 200), (3, 3, 1, 300), (2, 1, 2, 300)],
            {"1": 3, "2": 2, "4": 1},
        ),
        ([(1, 1, 2, 200)], [(2, 2, 4, 200), (2, 4, 4, 200), (1, 2, 2, 300)], {"2": 1, "3": 3, "4": 2}),
        ([(1, 1, 2, 200)], [(2, 2, None, 200), (1, 2, 2, 300)], {"2": 1, "3": 3}),
        ([(1, 1, 2, 200)], [(2, 2, 4, 200), (1, 2, 5, 300)], {"3": 3, "4": 2, "5": 1}),
        ([(1, 1, 2, 200)], [(2, 2, 4, 200), (2, 2, 4, 200), (1, 2, 5, 300)], {"3": 3, "4": 2, "5": 1}),
    ]
    start, before, after = (postgres(bench) for _ in range(3))
    expected = []
    for case, (moves_before, moves_after, rows) in enumerate(cases):
        first = 10 * (case + 1)
        for number in (1, 2, 3):
            values = {**row(first + number, f"row {number}"), "big": f"big {number}"}
            start.change("c", key(first + number), values, at=1, step=number)
        steps = list(dict.fromkeys([*moves_before, *moves_after]))
        for topic, moves in ((before, moves_before), (after, moves_after)):
            for move in moves:
                number, old, new, at = move
                place: dict[str, Any] = {"at": at, "step": steps.index(move)}
                if new is None:
                    topic.change("d", key(first + old), **place)
                    continue
                values = {**row(first + new, f"row {number}"), "big": NOT_SENT}
                keys = key(first + old), key(first + new)
                if new == old:
                    topic.change("u", keys[1], values, **place)
                else:
                    topic.change("d", keys[0], **place, headers={"newkey": keys[1]})
                    topic.change("c", keys[1], values, **place, headers={"oldkey": keys[0]})
        expected += [(first + int(place), f"row {number}", f"big {number}") for place, number in rows.items()]
    bench.create()
    worker = bench.take(start.records)
    columns = ("id", "v", "big", *(["__deleted"] if deletes == "soft" else []))
    for part in (before.records, after.records, [*before.records, *after.records]):
        bench.take(part, worker)
    assert [found[:3] for found in bench.rows(*columns) if found[3:] != (True,)] == sorted(expected)


def test_3_4_and_2_8_a_softly_deleted_row_gets_the_values_that_it_waited_for(bench: Bench) -> None:
    """The new key's create and delete, and the old key's delete, each in any of the slices; of half of the rows an
    update from another partition comes after the delete."""
    bench.rule = {"deletes": "soft"}
    bench.create(partitions=3)
    places = itertools.product(range(3), range(3), (0, 1, 2, 4), (None, 3))
    orders = [(new, gone, old, late) for new, gone, old, late in places if new <= gone]
    start = postgres(bench)
    for number in range(len(orders)):
        start.change("c", key(number), {**row(number, 0), "big": f"big {number}"}, at=1)
    worker = bench.take(start.records)
    slices: list[list[Record]] = [[] for _ in range(5)]
    for number, order in enumerate(orders):
        to = 100 + number
        part = postgres(bench)
        moved = {**row(to, 1), "big": NOT_SENT}
        part.change("c", key(to), moved, at=10, headers={"oldkey": key(number)}, partition=1)
        part.change("d", key(to), at=20, partition=1)
        part.change("d", key(number), at=10, headers={"newkey": key(to)})
        part.change("u", key(to), {**moved, "v": 2}, at=15, partition=2)
        for place, record in zip(order, part.records, strict=True):
            if place is not None:
                slices[place].append(record)
    for records in slices:
        bench.take(records, worker)
    expected = [(number, 0, f"big {number}", True) for number in range(len(orders))]
    for number, (*_, late) in enumerate(orders):
        expected.append((100 + number, 1 if late is None else 2, f"big {number}", True))
    assert bench.rows("id", "v", "big", "__deleted") == sorted(expected, key=repr)
    bench.take([record for records in slices for record in records], worker)
    assert bench.rows("id", "v", "big", "__deleted") == sorted(expected, key=repr)


@pytest.mark.parametrize("deletes", ["hard", "soft"])
def test_3_4_and_2_4_what_the_key_had_before_takes_no_value_that_came_with_the_row(bench: Bench, deletes: str) -> None:
    """The value is older than the key's former row, which is sent again."""
    bench.rule = {"deletes": deletes}
    bench.create(partitions=2)
    former, old, new = postgres(bench), postgres(bench), postgres(bench)
    old.change("c", key(1), {**row(1, "row 1"), "big": "big 1"}, at=1)
    former.change("c", key(2), {**row(2, "row 2"), "big": "big 2"}, at=2, partition=1)
    former.change("d", key(2), at=10, partition=1)
    moved = {**row(2, "row 1"), "big": NOT_SENT}
    new.change("c", key(2), moved, at=20, headers={"oldkey": key(1)}, partition=1)
    old.change("d", key(1), at=20, headers={"newkey": key(2)})
    gone = [(1, "row 1", "big 1", True)] if deletes == "soft" else []
    columns = ("id", "v", "big", *(["__deleted"] if deletes == "soft" else []))
    expected = [values[: len(columns)] for values in (*gone, (2, "row 1", "big 1", False))]
    worker = bench.take([old.records[0], *former.records])
    for records in (new.records, old.records[1:], former.records[:1], [*former.records[1:], *new.records]):
        bench.take(records, worker)
    assert bench.rows(*columns) == expected


def test_3_4_and_2_5_a_change_that_comes_late_knows_more_than_the_old_key(bench: Bench) -> None:
    """It and the old key's delete in either order, after a newer change that came in another partition."""
    bench.create(partitions=3)
    orders = list(itertools.product(range(2), repeat=2))
    first = postgres(bench)
    slices: list[list[Record]] = [[], []]
    for number, places in enumerate(orders):
        to = 100 + number
        first.change("c", key(number), {**row(number, 0), "big": "old"}, at=1)
        moved = {**row(to, 1), "big": NOT_SENT}
        first.change("c", key(to), moved, at=10, headers={"oldkey": key(number)}, partition=1)
        first.change("u", key(to), {**row(to, 3), "big": NOT_SENT}, at=30, partition=2)
        part = postgres(bench)
        part.change("u", key(to), {**row(to, 2), "big": "new"}, at=20, partition=1)
        part.change("d", key(number), at=10, headers={"newkey": key(to)})
        for place, record in zip(places, part.records, strict=True):
            slices[place].append(record)
    worker = bench.take(first.records)
    for records in slices:
        bench.take(records, worker)
    assert bench.rows("id", "v", "big") == [(100 + number, 3, "new") for number in range(len(orders))]


def test_3_4_and_2_4_a_departure_that_is_sent_again_in_its_own_slice_takes_no_value_of_the_row_that_came_after(
    bench: Bench,
) -> None:
    bench.rule = {"deletes": "soft"}
    topic = postgres(bench.create())
    for number in (0, 1):
        topic.change("c", key(number), {**row(number, f"row {number}"), "big": f"big {number}"}, at=1, step=number + 1)
    moves = shifted(postgres(bench), 0, 1, sent=0)
    worker = bench.take([*topic.records, *moves.records[:2]])
    bench.take([moves.records[2], *moves.records], worker)
    expected = [(0, "row 0", "big 0", True), (1, "row 0", "big 0", False), (2, "row 1", "big 1", False)]
    assert bench.rows("id", "v", "big", "__deleted") == expected


def test_3_4_a_chain_of_key_changes_hands_on_what_was_not_sent_however_it_is_cut_and_ordered(bench: Bench) -> None:
    """A row moves twice; each of the three parts of its history comes in any of three slices."""
    bench.create(partitions=3)
    orders = list(itertools.product(range(3), repeat=3))
    start = postgres(bench)
    for number in range(len(orders)):
        start.change("c", key(number), {**row(number, 0), "big": f"big {number}"}, at=1)
    worker = bench.take(start.records)
    slices: list[list[Record]] = [[], [], []]
    for number, order in enumerate(orders):
        moved = [{**row(100 * move + number, move), "big": NOT_SENT} for move in range(3)]
        keys = [key(100 * move + number) for move in range(3)]
        for place in range(3):
            part = postgres(bench)
            if place > 0:
                headers = {"oldkey": keys[place - 1]}
                part.change("c", keys[place], moved[place], at=10 * place, headers=headers, partition=place)
            if place < 2:
                headers = {"newkey": keys[place + 1]}
                part.change("d", keys[place], at=10 * place + 10, headers=headers, partition=place)
            slices[order[place]] += part.records
    for records in slices:
        bench.take(records, worker)
    expected = [(200 + number, 2, f"big {number}") for number in range(len(orders))]
    assert bench.rows("id", "v", "big") == sorted(expected, key=repr)
    bench.take([record for records in slices for record in records], worker)
    assert bench.rows("id", "v", "big") == sorted(expected, key=repr)


def test_2_3_snapshot_rows_sent_again_are_known_also_of_deleted_keys(bench: Bench) -> None:
    topic = postgres(bench.create())
    for number in (1, 2):
        topic.change("r", key(number), row(number, "read"), at=50)
    worker = bench.take(topic.records)
    more = postgres(bench)
    more.change("r", key(1), row(1, "read anew"), at=60)
    more.change("d", key(2), at=40)  # lower than the snapshot's lsn, yet after it
    bench.take(more.records, worker)
    assert bench.rows() == [(1, "read anew")]
    for again in (topic.records, topic.records[1:], more.records):
        bench.take(again, worker)
        assert bench.rows() == [(1, "read anew")]


def test_3_3_a_lone_tombstone_deletes_and_older_changes_stay_away(bench: Bench) -> None:
    topic = Topic(bench.create().topic)
    topic.change("c", key(1), row(1, "first"), at=5)
    topic.change("c", key(2), row(2, "second"), at=6)
    worker = bench.take(topic.records)
    lone = Topic(bench.topic)
    lone.tombstone(key(1))
    bench.take(lone.records, worker)
    assert bench.rows() == [(2, "second")]
    older = Topic(bench.topic)
    older.change("u", key(1), row(1, "older"), at=3)
    bench.take(older.records, worker)
    assert bench.rows() == [(2, "second")]
    bench.take(topic.records[:1], worker)  # an equal position is accepted again
    assert bench.rows() == [(1, "first"), (2, "second")]
