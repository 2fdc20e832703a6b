"""The target offsets of a table, which the planner's thread moves on and the table's own thread corrects."""

from __future__ import annotations

from distributary.workers.target import Target


def test_a_target_only_moves_on() -> None:
    target = Target()
    assert not target.advance({0: 5})
    assert not target.advance({0: 7, 1: 2})
    assert target.advance({0: 6})  # the topic may have been created again
    assert target.offsets == {0: 7, 1: 2}


def test_the_lag_of_a_partition_that_was_never_read_begins_at_the_first_offset_that_kafka_has() -> None:
    target = Target()
    target.advance({0: 10, 1: 10, 2: 3})
    assert target.lag({0: 4, 2: 8}, {1: 7}) == 6 + 3


def test_a_target_is_limited_to_the_end_of_the_topic() -> None:
    target = Target()
    target.advance({0: 10, 1: 10})
    target.limit({0: 4}, before=target.offsets)
    assert target.offsets == {0: 4, 1: 10}


def test_a_target_that_was_set_while_the_end_was_asked_for_stays() -> None:
    target = Target()
    target.advance({0: 10, 1: 10})
    before = target.offsets
    target.advance({0: 12})
    target.limit({0: 11, 1: 9}, before)
    assert target.offsets == {0: 12, 1: 9}


def test_after_a_resume_the_target_may_lie_before_the_earlier_one() -> None:
    target = Target()
    target.advance({0: 10})
    target.restart({0: 3})
    assert target.offsets == {0: 3}
