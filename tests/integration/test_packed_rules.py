"""The rules of single rows, many cases to a table (see tests/support/rule_packs.py). Names give the rule's number.

Rules of whole tables (truncates, halts, what is counted) are in test_table_rules.py.
"""

from __future__ import annotations

from typing import Any

from tests.support.changes import Row, Topic, key, row
from tests.support.kafka import Record
from tests.support.rule_cases import NUMBERS, TEXTS, Case
from tests.support.rule_packs import rule_case

NOT_SENT = "__debezium_unavailable_value"

BIG = {"id": "bigint", "v": "string", "big": "string"}
"""A table with a large value, which PostgreSQL sends only where it changed."""

BY_BOTH: list[dict[str, Any]] = [{"columns": TEXTS}, {"columns": NUMBERS}]


def big(id_: int, number: int, value: str | None = None) -> Row:
    """A row with its large value; it is not sent with the id that the row moves to."""
    return row(id_, f"row {number}", big=f"big {number}" if value is None else value)


def started(case: Case, *numbers: int) -> Topic:
    """Rows that were there before, each made by a step of one transaction."""
    topic = case.topic()
    for number in numbers:
        topic.change("c", key(number), row(number, f"row {number}"), at=1, step=number)
    return topic


def started_big(case: Case, *numbers: int) -> Topic:
    """The same with their large values."""
    topic = case.topic()
    for number in numbers:
        topic.change("c", key(number), big(number, number), at=1, step=number + 1)
    return topic


def shifted(case: Case, *numbers: int, tombstones: bool = False) -> Topic:
    """UPDATE t SET id = id + 1 of those rows, in one transaction."""
    topic = case.topic()
    for number in numbers:
        topic.change("d", key(number), at=20, step=number, tx=77, headers={"newkey": key(number + 1)})
        if tombstones:
            topic.tombstone(key(number))
        moved = row(number + 1, f"row {number}")
        topic.change("c", key(number + 1), moved, at=20, step=number, tx=77, headers={"oldkey": key(number)})
    return topic


def shifted_big(case: Case, *numbers: int, sent: int | None = None, tombstones: bool = False) -> Topic:
    """The same of rows with large values; one comes only with the row that is `sent`."""
    topic = case.topic()
    for number in numbers:
        place: dict[str, Any] = {"at": 20, "step": number + 1, "tx": 77}
        topic.change("d", key(number), **place, headers={"newkey": key(number + 1)})
        if tombstones:
            topic.tombstone(key(number))
        moved = big(number + 1, number, None if number == sent else NOT_SENT)
        topic.change("c", key(number + 1), moved, **place, headers={"oldkey": key(number)})
    return topic


def swap(topic: Topic, at: int, first: Row, second: Row) -> None:
    """One transaction swaps the keys 1 and 2 of two rows by way of key 0."""
    for step, (old, new, content) in enumerate(((1, 0, first), (2, 1, second), (0, 2, first)), start=1):
        topic.move(old, new, content, at=at, step=step, tx=at)


def cut_at(records: list[Record], place: int) -> list[list[Record]]:
    """The records in two batches, or in one."""
    return [part for part in (records[:place], records[place:]) if part]


# Order, and records that are sent again


@rule_case("sqlserver")
def test_3_1_to_3_3_changes_tombstones_and_2_2_equal_positions(case: Case) -> None:
    topic = case.topic()
    for number in range(5):
        topic.change("r", key(number), row(number, "snapshot"), at=1)
    topic.change("u", key(0), row(0, "updated"), at=2)
    topic.change("d", key(1), at=3)
    topic.tombstone(key(1))
    topic.change("c", key(1), row(1, "back"), at=4)
    topic.change("d", key(2), at=5)
    topic.tombstone(key(2))
    # The update of a unique column: delete and create of one key with the same three numbers.
    topic.change("d", key(3), at=6)
    topic.change("c", key(3), row(3, "unique"), at=6)
    case.take(topic.records)
    expected = [(0, "updated"), (1, "back"), (3, "unique"), (4, "snapshot")]
    case.expect(expected)
    # 2.4: sent again, cut anywhere, also between the two of one position.
    for again in (topic.records[5:], topic.records[6:8], topic.records[10:12], topic.records[11:12]):
        case.take(again, new_driver=True)
        case.expect(expected)
    # 3.3: a tombstone that comes in the batch after its delete, which is older than the row, is no lone one.
    for again in (topic.records[6:7], topic.records[7:8]):
        case.take(again, new_driver=True)
        case.expect(expected)


@rule_case(variants=[{"connector": "sqlserver"}, {"connector": "postgresql"}])
def test_2_4_an_older_change_of_a_living_row_changes_nothing(case: Case) -> None:
    topic = case.topic()
    topic.change("c", key(1), row(1, "first"), at=1)
    topic.change("u", key(1), row(1, "second"), at=2)
    topic.change("u", key(1), row(1, "third"), at=3)
    case.take(topic.records)
    for again in (topic.records[:1], topic.records[1:2]):
        case.take(again)
        case.expect([(1, "third")])


@rule_case("sqlserver")
def test_3_2_a_late_change_brings_no_deleted_row_back(case: Case) -> None:
    """It comes from another partition: a topic got more of them."""
    topic = case.topic()
    topic.change("c", key(1), row(1, "first"), at=1)
    topic.change("d", key(2), at=9)  # a key that the table never had
    topic.change("d", key(1), at=10)
    case.take(topic.records)
    late = case.topic()
    late.change("u", key(1), row(1, "older"), at=5, partition=1)
    late.change("u", key(2), row(2, "older"), at=6, partition=1)
    late.change("c", key(3), row(3, "older, but its key was never seen"), at=7, partition=1)
    case.take(late.records)
    case.expect([(3,)], "id")


# Snapshot rows of PostgreSQL


@rule_case("postgresql")
def test_2_3_a_snapshot_row_stands_by_its_offset(case: Case) -> None:
    topic = case.topic()
    topic.change("r", key(1), row(1, "read"), at=50)
    topic.change("u", key(1), row(1, "changed"), at=40)  # lower than the snapshot's lsn, yet after it
    case.take(topic.records)
    case.expect([(1, "changed")])
    case.take(topic.records[:1])  # the same snapshot row once more
    case.expect([(1, "changed")])
    again = case.topic()
    again.change("r", key(1), row(1, "read anew"), at=60)
    case.take(again.records)
    case.expect([(1, "read anew")])
    case.take(topic.records[1:])  # a change from before the second snapshot, sent again
    case.expect([(1, "read anew")])


@rule_case("postgresql", variants=[{"at_once": True}, {"at_once": False}])
def test_2_3_a_snapshot_row_of_a_deleted_key_keeps_the_position_of_its_delete(case: Case, *, at_once: bool) -> None:
    topic = case.topic()
    topic.change("c", key(1), row(1, "first"), at=5)
    topic.change("d", key(1), at=10)
    topic.tombstone(key(1))
    topic.change("r", key(1), row(1, "read anew"), at=50)
    case.take(topic.records[:3])
    case.expect([])
    case.take(topic.records[3:])
    case.expect([(1, "read anew")])
    for part in [topic.records] if at_once else [[record] for record in topic.records]:  # 2.4
        case.take(part)
        case.expect([(1, "read anew")])


@rule_case("postgresql")
def test_2_3_snapshot_rows_sent_again_are_known_also_of_deleted_keys(case: Case) -> None:
    topic = case.topic()
    for number in (1, 2):
        topic.change("r", key(number), row(number, "read"), at=50)
    case.take(topic.records)
    more = case.topic()
    more.change("r", key(1), row(1, "read anew"), at=60)
    more.change("d", key(2), at=40)  # lower than the snapshot's lsn, yet after it
    case.take(more.records)
    case.expect([(1, "read anew")])
    for again in (topic.records, topic.records[1:], more.records):
        case.take(again)
        case.expect([(1, "read anew")])


# Key changes


@rule_case("postgresql")
def test_3_4_a_key_change_with_and_without_headers_in_either_order(case: Case) -> None:
    topic = case.topic()
    for number in (1, 2, 3, 4):
        topic.change("r", key(number), row(number, "old"), at=1)
    # New row first (another partition was read first), in a batch of its own.
    case.take(topic.records)
    new = case.topic()
    new.change("c", key(11), row(11, "moved"), at=5, headers={"oldkey": key(1)}, partition=1)
    new.change("c", key(12), row(12, "moved"), at=6, partition=1)
    case.take(new.records)
    old = case.topic()
    old.change("d", key(1), at=5, headers={"newkey": key(11)})
    old.tombstone(key(1))
    old.change("d", key(2), at=6)
    old.tombstone(key(2))
    case.take(old.records)
    case.expect([(11, "moved"), (12, "moved"), (3, "old"), (4, "old")])


@rule_case("postgresql", variants=[{"at_most": 100}, {"at_most": 2}])
def test_2_7_keys_shifted_under_a_deferred_constraint(case: Case, at_most: int) -> None:
    case.take([*started(case, 1, 2, 3).records, *shifted(case, 1, 2, 3, tombstones=True).records], at_most)
    case.expect([(2, "row 1"), (3, "row 2"), (4, "row 3")])


TOOK = [
    {"connector": "postgresql", "deletes": "hard", "at_most": 100},
    {"connector": "postgresql", "deletes": "hard", "at_most": 2},
    {"connector": "postgresql", "deletes": "soft", "at_most": 3},
    {"connector": "oracle", "deletes": "hard", "at_most": 3},
]


@rule_case(variants=[{**how, "there": there, "deleted": n} for how in TOOK for there, n in ((2, 1), (2, 2), (1, 1))])
def test_2_7_and_2_8_the_row_that_took_a_key_stays_when_the_one_before_it_is_deleted(
    case: Case, at_most: int, there: int, deleted: int
) -> None:
    """Where keys are checked at the commit: `UPDATE t SET id = 2 WHERE id = 1`, then a DELETE of the older row. Of so
    many rows that were there so many are deleted: the older one, both of the key, and the only one."""
    topic = started(case, *range(1, there + 1))
    topic.change("d", key(1), at=20, headers={"newkey": key(2)})
    topic.tombstone(key(1))
    topic.change("c", key(2), row(2, "row 1"), at=20, headers={"oldkey": key(1)})
    for step in range(deleted):
        topic.change("d", key(2), at=20, step=2 + step)
        topic.tombstone(key(2))
    for _ in ("sent", "sent again"):
        case.take(topic.records, at_most)
        case.expect_alive([(2, "row 1")] if there > deleted else [])
    case.expect_decided()


@rule_case("postgresql")
def test_2_7_and_2_4_the_delete_of_an_older_row_that_is_sent_again_is_no_second_one(case: Case) -> None:
    case.take(started(case, 1, 2).records)
    shift = shifted(case, 1, 2)
    # The connector starts again behind the delete of key 2, and sends the transaction from its beginning.
    for part in (shift.records[:2], [shift.records[2], *shift.records]):
        case.take(part)
    case.expect([(2, "row 1"), (3, "row 2")])


@rule_case("postgresql", variants=[{"cut": cut} for cut in (0, 2, 7, 8)])
def test_2_7_and_2_8_a_key_that_rows_pass_through_twice_stays_empty(case: Case, cut: int) -> None:
    case.take(started(case, 1, 2).records)
    swaps, moved = case.topic(), {1: "row 1", 2: "row 2"}
    for step, (old, new) in enumerate([(1, 0), (2, 1), (0, 2)] * 2, start=1):  # two swaps in one transaction
        moved[new] = moved.pop(old)
        swaps.move(old, new, row(new, moved[new]), at=20, step=step)
    for part in cut_at(swaps.records, cut):
        case.take(part)
    case.expect([(1, "row 1"), (2, "row 2")])


@rule_case(
    "postgresql",
    variants=[{**by, "cut": cut} for by in BY_BOTH for cut in (0, 4, 6, 8)],
)
def test_2_7_and_2_4_a_row_that_is_sent_again_on_its_way_through_a_key_does_not_stay_there(
    case: Case, cut: int
) -> None:
    """The connector starts again in the middle of a transaction, and sends it from its beginning."""
    first, second = "a", "b"
    topic = case.topic()
    for number, value in enumerate((first, second), start=1):
        topic.change("c", key(number), row(number, value), at=1, step=number)
    case.take(topic.records)
    moves = case.topic()
    swap(moves, 20, row(1, first), row(2, second))
    for part in cut_at([*moves.records[:4], *moves.records], cut):
        case.take(part)
    case.expect([(1, second), (2, first)])


@rule_case("postgresql", variants=[{"at_most": 100}, {"at_most": 2}])
def test_2_7_and_2_4_a_row_that_lies_over_another_stays_when_that_is_sent_again(case: Case, at_most: int) -> None:
    shift = shifted(case, 1, 2).records
    case.take([*started(case, 1, 2).records, *shift[:2], *shift[:3], *shift], at_most)
    case.expect([(2, "row 1"), (3, "row 2")])


MOVES_OVER = [
    ([(2, 2, 3, 200)], [(3, 3, 4, 200), (1, 1, 3, 300), (2, 3, 5, 300)], {3: 1, 4: 3, 5: 2}),
    # UPDATE t SET id = id + 1, twice in one transaction
    (
        [(1, 1, 2, 200), (2, 2, 3, 200)],
        [(3, 3, 4, 200), (1, 2, 3, 200), (2, 3, 4, 200), (3, 4, 5, 200)],
        {3: 1, 4: 2, 5: 3},
    ),
    # one change is sent again
    ([(2, 2, 1, 200), (1, 1, 4, 200)], [(1, 1, 4, 200), (3, 3, 1, 300), (2, 1, 2, 300)], {1: 3, 2: 2, 4: 1}),
    # nothing lies over the row that leaves
    ([], [(2, 2, 4, 200), (1, 1, 2, 300), (1, 2, 5, 300)], {3: 3, 4: 2, 5: 1}),
]
"""Of three rows: which one moves from which key to which, in which transaction, before a cut and after it; and which
row each key has then."""


@rule_case(
    "postgresql",
    variants=[{**by, "moves": number} for by in BY_BOTH for number in range(len(MOVES_OVER))],
)
def test_2_7_and_2_8_a_row_that_lies_over_another_stays_when_others_pass_over_it_in_a_later_batch(
    case: Case, moves: int
) -> None:
    before, after, rows = MOVES_OVER[moves]
    start = case.topic()
    for number in (1, 2, 3):
        start.change("c", key(number), row(number, f"row {number}"), at=1, step=number)
    steps = list(dict.fromkeys([*before, *after]))
    parts = [case.topic(), case.topic()]
    for topic, some in zip(parts, (before, after), strict=True):
        for one in some:
            number, old, new, at = one
            topic.move(old, new, row(new, f"row {number}"), at=at, step=steps.index(one))
    case.take(start.records)
    first, second = (topic.records for topic in parts)
    for part in (first, second, [*first, *second]):
        case.take(part)
    case.expect([(place, f"row {number}") for place, number in rows.items()])


@rule_case("postgresql")
def test_2_7_and_2_4_a_row_that_lay_over_another_leaves_with_the_second_delete_when_it_is_sent_again(
    case: Case,
) -> None:
    moves = case.topic()
    for step, (old, new, value) in enumerate([(2, 3, "row 2"), (3, 4, "row 3"), (3, 1, "row 2")], start=1):
        moves.move(old, new, row(new, value), at=20, step=step, tx=77)
    case.take([*started(case, 2, 3).records, *moves.records[:2]])
    case.take(moves.records)
    case.expect([(1, "row 2"), (4, "row 3")])


@rule_case("postgresql")
def test_2_7_and_2_4_a_key_that_a_row_passed_through_stays_empty_when_that_is_sent_again_in_part(case: Case) -> None:
    topic = case.topic()
    topic.change("c", key(1), row(1, "moves"), at=1)
    case.take(topic.records)
    moves = case.topic()
    for step, (old, new) in enumerate(((1, 2), (2, 3)), start=1):  # one transaction: id = 2, then id = 3
        moves.move(old, new, row(new, "moves"), at=20, step=step)
    case.take(moves.records)
    for part in (moves.records[:2], moves.records[2:]):
        case.take(part)
        case.expect([(3, "moves")])


# Soft deletes


@rule_case(deletes="soft", variants=[{"connector": "sqlserver"}, {"connector": "postgresql"}])
def test_3_2_and_2_4_an_older_change_sent_again_before_the_delete_is_not_the_last_value(case: Case) -> None:
    topic = case.topic()
    topic.change("c", key(1), row(1, "first"), at=1)
    topic.change("u", key(1), row(1, "last"), at=2)
    case.take(topic.records)
    again = case.topic()
    again.change("d", key(1), at=3)
    case.take([topic.records[0], *again.records])
    case.expect([(1, "last", True)], "id", "v", "__deleted")


WHOLE, AMID = 6, 3
"""Where a swap is cut: not at all, or between the two changes of key 0."""


@rule_case(
    deletes="soft",
    variants=[
        {"connector": "postgresql", "first": WHOLE, "second": WHOLE},
        {"connector": "postgresql", "first": WHOLE, "second": AMID},
        {"connector": "postgresql", "first": AMID, "second": WHOLE},
        {"connector": "postgresql", "first": AMID, "second": AMID},
        {"connector": "oracle", "first": AMID, "second": WHOLE},
    ],
)
def test_2_7_and_2_8_a_softly_deleted_row_stays_so_when_another_passes_through_its_key(
    case: Case, first: int, second: int
) -> None:
    columns = ("id", "v", "__deleted", "__op")
    topic = case.topic()
    topic.change("c", key(1), row(1, "a"), at=1)
    topic.change("c", key(2), row(2, "b"), at=2)
    case.take(topic.records)
    for at, cut, values in ((10, first, "ab"), (20, second, "ba")):
        swaps = case.topic()
        swap(swaps, at, row(1, values[0]), row(2, values[1]))
        for part in cut_at(swaps.records, cut):
            case.take(part)
        expected = [(0, values[0], True, "d"), (1, values[1], False, "c"), (2, values[0], False, "c")]
        case.expect(expected, *columns)
    case.take(swaps.records)  # sent again
    case.expect(expected, *columns)


# Values that were not sent


@rule_case("postgresql", columns=BIG, variants=[{"first": "old key"}, {"first": "new key"}, {"first": "together"}])
def test_3_4_a_new_key_takes_what_was_not_sent_from_the_old_one(case: Case, first: str) -> None:
    columns = ("id", "v", "big")
    case.take(started_big(case, 1, 2).records)
    old, new = case.topic(), case.topic()
    for number in (1, 2):
        at, to = 10 * number, number + 10
        old.change("u", key(number), row(number, "0", big=f"changed {number}"), at=at)
        old.change("d", key(number), at=at + 1, headers={"newkey": key(to)})
        old.tombstone(key(number))
        moved = row(to, str(to), big=NOT_SENT)
        new.change("c", key(to), moved, at=at + 1, headers={"oldkey": key(number)}, partition=1)
    new.change("u", key(12), row(12, "13", big=NOT_SENT), at=50, partition=1)
    parts = {"old key": [old.records, new.records], "new key": [new.records, old.records]}
    for part in parts.get(first, [[*old.records, *new.records]]):
        case.take(part)
    expected = [(11, "11", "changed 1"), (12, "13", "changed 2")]
    case.expect(expected, *columns)
    case.take([*new.records, *old.records])
    case.expect(expected, *columns)


@rule_case(
    "postgresql",
    columns=BIG,
    variants=[
        {"deletes": "hard", "cut": 3},
        {"deletes": "soft", "cut": 3},
        {"deletes": "hard", "cut": 6},
        {"deletes": "soft", "cut": 7},
    ],
)
def test_3_4_and_2_8_rows_that_lie_over_one_another_for_a_while_keep_their_own_values(case: Case, cut: int) -> None:
    """UPDATE t SET id = id + 1, cut in two, then the first part and all of it again."""
    case.take(started_big(case, 1, 2, 3).records)
    shift = shifted_big(case, 1, 2, 3, tombstones=True)
    gone = [(1, "row 1", "big 1", True)] if case.keeps_deleted else []
    expected = [*gone, *((number + 1, f"row {number}", f"big {number}", False) for number in (1, 2, 3))]
    for part in cut_at(shift.records, cut):
        case.take(part)
    case.expect_with_deleted(expected, "id", "v", "big")
    case.take([*shift.records[:cut], *shift.records])
    case.expect_with_deleted(expected, "id", "v", "big")


@rule_case("postgresql", columns=BIG)
def test_3_4_and_2_4_a_row_that_lay_below_another_keeps_its_own_values_when_that_is_sent_again(case: Case) -> None:
    """The connector starts anew after the delete of the old row, and sends the transaction from its beginning."""
    case.take(started_big(case, 1, 2).records)
    shift = shifted_big(case, 1, 2).records
    for part in (shift[:2], [shift[1], *shift[:3]], shift[:3], shift):
        case.take(part)
    case.expect([(2, "row 1", "big 1"), (3, "row 2", "big 2")], "id", "v", "big")


@rule_case("postgresql", columns=BIG)
def test_3_4_a_row_that_moved_gets_its_value_in_the_batch_in_which_the_one_below_it_leaves(case: Case) -> None:
    case.take(started_big(case, 1, 2).records)
    old, new, rest = case.topic(), case.topic(), case.topic()
    old.change("d", key(1), at=20, step=1, tx=77, headers={"newkey": key(2)})
    moved = big(2, 1, NOT_SENT)
    new.change("c", key(2), moved, at=20, step=1, tx=77, headers={"oldkey": key(1)}, partition=1)
    rest.change("d", key(2), at=20, step=2, tx=77, headers={"newkey": key(3)}, partition=1)
    moved = big(3, 2, NOT_SENT)
    rest.change("c", key(3), moved, at=20, step=2, tx=77, headers={"oldkey": key(2)}, partition=1)
    case.take(new.records)
    case.take([*old.records, *rest.records])
    case.expect([(2, "row 1", "big 1"), (3, "row 2", "big 2")], "id", "v", "big")


@rule_case("postgresql", columns=BIG)
def test_3_7_an_older_change_sent_again_tells_no_value_that_is_older_than_the_row_s(case: Case) -> None:
    topic = case.topic()
    topic.change("c", key(1), row(1, "first", big="old"), at=1)
    topic.change("u", key(1), row(1, "second", big="new"), at=2)
    case.take(topic.records)
    last = case.topic()
    last.change("u", key(1), row(1, "third", big=NOT_SENT), at=3)
    case.take([*last.records, topic.records[0]])
    case.expect([(1, "third", "new")], "id", "v", "big")


@rule_case("postgresql", columns=BIG, deletes="soft", variants=[{"cut": WHOLE}, {"cut": AMID}])
def test_3_4_and_2_8_a_value_that_was_not_sent_is_not_that_of_a_deleted_row_whose_key_it_passed(
    case: Case, cut: int
) -> None:
    bigs = {"a": row(1, "a", big="of a"), "b": row(2, "b", big="of b")}
    topic = case.topic()
    topic.change("c", key(1), bigs["a"], at=1)
    topic.change("c", key(2), bigs["b"], at=2)
    swap(topic, 10, bigs["a"], bigs["b"])
    for part in cut_at(topic.records, 2 + AMID):
        case.take(part)
    again = case.topic()
    swap(again, 20, {**bigs["b"], "big": NOT_SENT}, {**bigs["a"], "big": NOT_SENT})
    for part in cut_at(again.records, cut):
        case.take(part)
    expected = [(0, "b", "of b", True), (1, "a", "of a", False), (2, "b", "of b", False)]
    case.expect(expected, "id", "v", "big", "__deleted")


BIG_MOVES_OVER: list[tuple[list[tuple[int, int, int | None, int]], list[tuple[int, int, int | None, int]], Row]] = [
    ([(2, 2, 3, 200)], [(3, 3, 4, 200), (1, 1, 3, 300), (2, 3, 5, 300)], {"3": 1, "4": 3, "5": 2}),
    # UPDATE t SET id = id + 1, twice in one transaction
    (
        [(1, 1, 2, 200), (2, 2, 3, 200)],
        [(3, 3, 4, 200), (1, 2, 3, 200), (2, 3, 4, 200), (3, 4, 5, 200)],
        {"3": 1, "4": 2, "5": 3},
    ),
    # one change is sent again
    ([(2, 2, 1, 200), (1, 1, 4, 200)], [(1, 1, 4, 200), (3, 3, 1, 300), (2, 1, 2, 300)], {"1": 3, "2": 2, "4": 1}),
    ([(1, 1, 2, 200)], [(2, 2, 4, 200), (2, 4, 4, 200), (1, 2, 2, 300)], {"2": 1, "3": 3, "4": 2}),
    ([(1, 1, 2, 200)], [(2, 2, None, 200), (1, 2, 2, 300)], {"2": 1, "3": 3}),
    ([(1, 1, 2, 200)], [(2, 2, 4, 200), (1, 2, 5, 300)], {"3": 3, "4": 2, "5": 1}),
    ([(1, 1, 2, 200)], [(2, 2, 4, 200), (2, 2, 4, 200), (1, 2, 5, 300)], {"3": 3, "4": 2, "5": 1}),
]
"""Of three rows: which one moves from which key to which (the same: it is updated; none: it is deleted), in which
transaction, before a cut and after it; and which row each key has then."""


@rule_case(
    "postgresql",
    columns=BIG,
    variants=[
        {"deletes": deletes, "moves": number} for deletes in ("hard", "soft") for number in range(len(BIG_MOVES_OVER))
    ],
)
def test_3_4_and_2_8_a_row_that_lies_over_another_keeps_its_values_when_more_happens_in_a_later_batch(
    case: Case, moves: int
) -> None:
    before, after, rows = BIG_MOVES_OVER[moves]
    start = case.topic()
    for number in (1, 2, 3):
        start.change("c", key(number), big(number, number), at=1, step=number)
    steps = list(dict.fromkeys([*before, *after]))
    parts = [case.topic(), case.topic()]
    for topic, some in zip(parts, (before, after), strict=True):
        for one in some:
            number, old, new, at = one
            place: dict[str, Any] = {"at": at, "step": steps.index(one)}
            if new is None:
                topic.change("d", key(old), **place)
            elif new == old:
                topic.change("u", key(new), big(new, number, NOT_SENT), **place)
            else:
                topic.move(old, new, big(new, number, NOT_SENT), **place)
    case.take(start.records)
    first, second = (topic.records for topic in parts)
    for part in (first, second, [*first, *second]):
        case.take(part)
    expected = [(int(place), f"row {number}", f"big {number}") for place, number in rows.items()]
    case.expect_alive(expected, "id", "v", "big")


@rule_case("postgresql", columns=BIG, variants=[{"deletes": "hard"}, {"deletes": "soft"}])
def test_3_4_and_2_4_what_the_key_had_before_takes_no_value_that_came_with_the_row(case: Case) -> None:
    """The value is older than the key's former row, which is sent again."""
    former, old, new = case.topic(), case.topic(), case.topic()
    old.change("c", key(1), big(1, 1), at=1)
    former.change("c", key(2), big(2, 2), at=2, partition=1)
    former.change("d", key(2), at=10, partition=1)
    new.change("c", key(2), big(2, 1, NOT_SENT), at=20, headers={"oldkey": key(1)}, partition=1)
    old.change("d", key(1), at=20, headers={"newkey": key(2)})
    gone = [(1, "row 1", "big 1", True)] if case.keeps_deleted else []
    case.take([old.records[0], *former.records])
    for records in (new.records, old.records[1:], former.records[:1], [*former.records[1:], *new.records]):
        case.take(records)
    case.expect_with_deleted([*gone, (2, "row 1", "big 1", False)], "id", "v", "big")


@rule_case("postgresql", columns=BIG, deletes="soft")
def test_3_4_and_2_4_a_departure_that_is_sent_again_in_its_own_batch_takes_no_value_of_the_row_that_came_after(
    case: Case,
) -> None:
    moves = shifted_big(case, 0, 1, sent=0)
    case.take([*started_big(case, 0, 1).records, *moves.records[:2]])
    case.take([moves.records[2], *moves.records])
    expected = [(0, "row 0", "big 0", True), (1, "row 0", "big 0", False), (2, "row 1", "big 1", False)]
    case.expect(expected, "id", "v", "big", "__deleted")
