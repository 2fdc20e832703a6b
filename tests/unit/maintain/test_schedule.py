"""When maintenance of a table is due, also after restarts and failures."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.maintenance import NOW, MemoryRecord, clock_of_schedule

from distributary.config.maintenance import Maintenance
from distributary.maintain.schedule import Done, Due, MaintenanceSchedule, Task, due

HOUR, DAY = 3600.0, 86_400.0
SAYS = Maintenance(compact_after=10, vacuum_every=DAY, keep=7 * DAY)
COMPACT, VACUUM = Due(Task.COMPACT, overdue=False), Due(Task.VACUUM, overdue=False)


@pytest.mark.parametrize(
    ("version", "last", "expected"),
    [
        (9, 0, None),
        (10, 0, COMPACT),
        (39, 0, COMPACT),
        (40, 0, Due(Task.COMPACT, overdue=True)),
        (109, 100, None),
        (110, 100, COMPACT),
        pytest.param(9, 100, None, id="made anew, and small"),
        pytest.param(12, 100, COMPACT, id="made anew, and grown since"),
    ],
)
def test_a_table_is_compacted_after_so_many_commits(version: int, last: int, expected: Due | None) -> None:
    assert due(SAYS, Done(NOW, version=last), version, NOW, NOW) == expected


@pytest.mark.parametrize(("commits", "is_much", "expected"), [(1, True, COMPACT), (1, False, None), (0, True, None)])
def test_a_table_is_compacted_when_much_of_it_is_dead(commits: int, is_much: bool, expected: Due | None) -> None:
    assert due(SAYS, Done(NOW, version=100), 100 + commits, NOW, NOW, needs_compaction=is_much) == expected
    off = replace(SAYS, compact_after=0)
    assert due(off, Done(NOW, version=100), 100 + commits, NOW, NOW, needs_compaction=is_much) is None


@pytest.mark.parametrize(
    ("vacuumed", "changed", "expected"),
    [
        pytest.param(None, 0.0, None, id="the record has only begun"),
        pytest.param(-HOUR, 0.0, None, id="not yet"),
        pytest.param(-DAY, 0.0, VACUUM, id="a day later"),
        pytest.param(-5 * DAY, 0.0, Due(Task.VACUUM, overdue=True), id="overdue"),
        pytest.param(-DAY, None, None, id="nothing is known of it"),
        pytest.param(-2 * DAY, -8.5 * DAY, VACUUM, id="the last change left files that are old enough only now"),
        pytest.param(-2 * DAY, -9.5 * DAY, None, id="they were removed"),
    ],
)
def test_old_files_are_removed_once_a_day_until_none_is_left(
    vacuumed: float | None, changed: float | None, expected: Due | None
) -> None:
    done = Done(NOW, vacuumed_at=None if vacuumed is None else NOW + vacuumed)
    assert due(SAYS, done, 0, None if changed is None else NOW + changed, NOW) == expected


def test_what_is_off_is_never_due() -> None:
    off = Maintenance(compact_after=0, vacuum_every=0.0)
    assert due(off, Done(0.0), 10**6, NOW, NOW) is None


@pytest.mark.thorough
@given(
    compact_after=st.integers(0, 20),
    every=st.sampled_from([0.0, HOUR, DAY]),
    steps=st.lists(st.tuples(st.integers(0, 30), st.floats(0, 3 * DAY)), max_size=60),
)
def test_whatever_the_pace_work_is_bounded_by_what_the_table_did(
    compact_after: int, every: float, steps: list[tuple[int, float]]
) -> None:
    says, clock = Maintenance(compact_after, every, 7 * DAY), clock_of_schedule()
    schedule, record = MaintenanceSchedule(says, MemoryRecord(), clock), MemoryRecord()
    version, changed, commits, compactions, vacuums = 0, NOW, 0, 0, 0
    for count, pause in steps:
        clock.now += pause
        if count:
            version, commits, changed = version + count, commits + count, clock.now
        schedule = MaintenanceSchedule(says, record, clock)  # the service is restarted each time
        schedule.start()
        while (found := schedule.due(version, changed)) is not None:
            if found.task is Task.COMPACT:
                compactions += 1
                version += 1
            else:
                vacuums += 1
            schedule.done(found.task, version)
        assert compactions <= (commits // compact_after if compact_after else 0)
        assert vacuums <= ((clock.now - NOW) // every if every else 0)
        # Nor is anything left undone.
        assert not compact_after or version - record.value["version"] < compact_after
    clock.now += 30 * DAY
    while schedule.due(version, changed) is not None:
        schedule.done(Task.VACUUM, version)
    clock.now += 300 * DAY
    assert schedule.due(version, changed) is None, "a table that does not change is left alone"


def test_nothing_is_due_before_the_record_was_read() -> None:
    assert MaintenanceSchedule(SAYS, MemoryRecord(), clock_of_schedule()).due(10**6, NOW) is None


def test_a_record_is_written_once_when_it_begins() -> None:
    clock, record = clock_of_schedule(), MemoryRecord()
    for _ in range(3):
        MaintenanceSchedule(SAYS, record, clock).start()
        clock.now += HOUR
    assert (record.value["since"], record.writes) == (NOW, 1)


@pytest.mark.parametrize(
    "value",
    ["no record", [1], {"since": "yesterday"}, {"of": "another version"}, {"since": NOW + DAY}, {"since": None}],
)
def test_a_record_that_cant_be_understood_begins_anew(value: Any) -> None:
    record = MemoryRecord(value)
    schedule = MaintenanceSchedule(SAYS, record, clock_of_schedule())
    schedule.start()
    assert record.value["since"] == NOW
    assert schedule.due(10, NOW) == COMPACT


def test_where_the_record_cant_be_reached_the_table_is_looked_after_all_the_same() -> None:
    schedule = MaintenanceSchedule(SAYS, MemoryRecord(fails=True), clock_of_schedule())
    schedule.start()
    assert schedule.due(10, NOW) == COMPACT


def test_after_a_failure_it_is_tried_again_later_and_later() -> None:
    clock = clock_of_schedule()
    schedule = MaintenanceSchedule(SAYS, MemoryRecord(), clock)
    schedule.start()
    pauses = []
    for _ in range(12):
        assert schedule.due(10, NOW) is not None
        pauses.append(schedule.failed(Task.COMPACT))
        assert schedule.due(10, NOW) is None
        clock.now += pauses[-1]
    assert pauses[:3] == [60.0, 120.0, 240.0]
    assert pauses[-1] == 6 * HOUR
    schedule.done(Task.COMPACT, 11)
    assert schedule.failed(Task.COMPACT) == 60.0
    assert schedule.last_done() == {"compacted_at": clock.now, "vacuumed_at": None}


def test_a_table_whose_files_cant_be_compacted_still_loses_its_old_ones() -> None:
    clock = clock_of_schedule()
    schedule = MaintenanceSchedule(SAYS, MemoryRecord(Done(NOW - 2 * DAY).__dict__), clock)
    schedule.start()
    assert schedule.due(10, NOW) == COMPACT
    schedule.failed(Task.COMPACT)
    assert schedule.due(10, NOW) == VACUUM
    schedule.done(Task.VACUUM, 10)
    assert schedule.due(10, NOW) is None
    clock.now += 60
    assert schedule.due(10, NOW) == COMPACT
