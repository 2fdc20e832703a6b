from __future__ import annotations

from tests.support.clock import ManualClock

from distributary.observe.rate_history import History


def test_records_of_a_slot_are_summed_and_its_slowest_commit_counts() -> None:
    clock = ManualClock(1_000_000.0)
    history = History(clock, step_seconds=10, points=4)
    history.add("s.t", 5, 2.0)
    history.add("s.t", 6, 7.0)
    history.add("s.t", 1, None)
    clock.now += 20
    history.add("s.t", 3, None)
    assert history.as_json() == {
        "step_seconds": 10,
        "points": 4,
        "until": 1_000_030,
        "tables": {"s.t": {"records": [0, 12, 0, 3], "freshness": [None, 7.0, None, None]}},
    }


def test_what_is_older_than_the_ring_is_forgotten() -> None:
    clock = ManualClock(1_000_000.0)
    history = History(clock, step_seconds=10, points=4)
    history.add("s.t", 5, 2.0)
    clock.now += 30
    assert history.as_json()["tables"]["s.t"]["records"] == [5, 0, 0, 0]
    clock.now += 10
    assert history.as_json()["tables"] == {}
    history.add("s.t", 1, None)
    clock.now += 1_000_000  # a laptop that slept
    history.add("s.t", 2, None)
    assert history.as_json()["tables"]["s.t"]["records"] == [0, 0, 0, 2]


def test_a_clock_that_is_set_back_adds_to_the_newest_slot() -> None:
    clock = ManualClock(1_000_000.0)
    history = History(clock, step_seconds=10, points=4)
    history.add("s.t", 5, None)
    clock.now -= 3600
    history.add("s.t", 2, None)
    assert history.as_json()["tables"]["s.t"]["records"] == [0, 0, 0, 7]


def test_a_forgotten_table_is_reported_no_more() -> None:
    history = History()
    history.add("s.t", 1, 1.0)
    history.forget("s.t")
    history.forget("s.never")
    assert history.as_json()["tables"] == {}
