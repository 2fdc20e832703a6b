"""Versions made from events, slice by slice, in memory. Names give the rule's number."""

from __future__ import annotations

import itertools
import random
import re
from collections.abc import Iterable
from typing import Any

import pytest
from pyspark.sql import SparkSession
from tests.support.versions import Change, HistoryTable

from distributary.merge.versions import with_key_changes

Version = tuple[Any, ...]


def at(number: int) -> str:
    """A position of any connector but PostgreSQL."""
    return f"000:{number:04d}"


def pg(level: int, lsn: int | None = None) -> str:
    """A position of PostgreSQL."""
    return f"000:{level:020d}.{level if lsn is None else lsn:020d}@{0:013d}"


def reference(changes: Iterable[Change], truncates: Iterable[str] = ()) -> list[Version]:
    """The versions of changes that each have a position of their own, in whatever order they are given."""
    ends = [Change("d", c.key, t) for c in {c.key: c for c in changes}.values() for t in truncates]
    versions: list[list[Any]] = []
    living: dict[int | None, list[Any]] = {}
    for change in sorted({*changes, *ends}, key=lambda c: (c.key, c.pos)):
        last = living.get(change.key)
        if last is not None and (change.kind == "d" or last[1] != change.value):
            last[3] = change.pos
            del living[change.key]
        if change.kind != "d" and change.key not in living:
            living[change.key] = [change.key, change.value, change.pos, None]
            versions.append(living[change.key])
    return sorted((tuple(v) for v in versions), key=lambda v: (v[0], v[2], v[3] or "~"))


@pytest.mark.parametrize("connector", ["sqlserver", "postgresql"])
def test_2_5_and_2_8_changes_in_any_order_sent_again_come_to_the_same_versions(
    session: SparkSession, connector: str
) -> None:
    chance = random.Random(connector)
    place = pg if connector == "postgresql" else at
    changes = []
    for number in range(30):
        for where in chance.sample(range(1, 60, 2), 8):
            kind = chance.choice("cuuud")
            value = None if kind == "d" else chance.choice("ab")
            changes.append(Change(kind, number, place(where), value, partition=chance.randrange(2)))
    chance.shuffle(changes)
    truncates = [place(10), place(40), place(26)]
    table = HistoryTable(session, connector)
    cuts = [0, 90, 140, 200, 240]
    for step, (start, end) in enumerate(itertools.pairwise(cuts)):
        told = [Change("t", None, position) for position in truncates[step : step + 1]]
        table.take([*changes[start:end], *told, *chance.sample(changes[:end], 30)])
    assert table.versions() == reference(changes, truncates)


def test_3_3_a_tombstone_by_itself_and_2_7_a_shift_of_all_keys(session: SparkSession) -> None:
    table = HistoryTable(session, "postgresql")
    rows = [Change("c", number, pg(number), f"row {number}") for number in (1, 2, 3, 11, 12, 13)]
    rows.append(Change("u", 12, pg(14), "row 12"))
    table.take(rows)
    shift = []
    for number in (1, 2, 3):  # UPDATE t SET id = id + 1
        shift.append(Change("d", number, pg(20, number), tx="7", new=number + 1))
        shift.append(Change("x", number, None))
        shift.append(Change("c", number + 1, pg(20, number), f"row {number}", tx="7", old=number))
    lone = [Change("x", number, None) for number in (11, 12, 13)]
    table.take([*shift[:5], *lone])
    table.take(shift[5:])
    shifted = [
        (1, "row 1", pg(1), pg(20, 1)),
        (2, "row 2", pg(2), pg(20, 1)),
        (2, "row 1", pg(20, 1), None),
        (3, "row 3", pg(3), pg(20, 2)),
        (3, "row 2", pg(20, 2), None),
        (4, "row 3", pg(20, 3), None),
    ]
    ended = [(11, "row 11", pg(11), pg(11)), (12, "row 12", pg(12), pg(14)), (13, "row 13", pg(13), pg(13))]
    assert table.versions() == [*shifted, *ended]
    # All sent again, cut in the shift; an equal position is accepted after a tombstone.
    table.take([*rows[:4], *shift[:5]])
    assert table.versions() == [*shifted, (11, "row 11", pg(11), None), *ended[1:]]
    table.take([*shift[5:], *lone])
    assert table.versions() == [*shifted, *ended]


@pytest.mark.parametrize("size", [1, 2, 3, 20])
@pytest.mark.parametrize("both", [False, True])
def test_2_7_and_2_8_the_row_that_took_a_key_stays_when_the_one_before_it_is_deleted(
    session: SparkSession, size: int, *, both: bool
) -> None:
    table = HistoryTable(session, "postgresql")
    changes = [
        Change("c", 1, pg(1), "takes it"),
        Change("c", 2, pg(2), "had it"),
        Change("d", 1, pg(20, 1), tx="7", new=2),
        Change("c", 2, pg(20, 1), "takes it", tx="7", old=1),
        Change("d", 2, pg(20, 2), tx="7"),
    ]
    if both:
        changes.append(Change("d", 2, pg(20, 3), tx="7"))
    changes.append(Change("c", 3, pg(30), "other"))
    for start in range(0, len(changes), size):
        table.take(changes[start : start + size])
    expected = [
        (1, "takes it", pg(1), pg(20, 1)),
        (2, "had it", pg(2), pg(20, 1)),
        (2, "takes it", pg(20, 1), pg(20, 3) if both else None),
        (3, "other", pg(30), None),
    ]
    assert table.versions() == expected
    for start in range(0, len(changes), size):  # sent again
        table.take(changes[start : start + size])
        assert table.versions() == expected


def test_a_keys_versions_are_brought_together_only_where_the_key_was_changed(session: SparkSession) -> None:
    columns = "k struct<k0:bigint>, pos string, rank int, n int, kind string, tx string, moved_in boolean"
    events = session.createDataFrame([], f"{columns}, moved_out boolean, held struct<over:boolean>").localCheckpoint()
    looked: Any = with_key_changes(events, "sqlserver", moved=True)
    shortest = session.conf.get("spark.sql.maxPlanStringLength") or ""
    session.conf.set("spark.sql.maxPlanStringLength", "100000")
    try:
        plan = looked._jdf.queryExecution().optimizedPlan().toString()
    finally:
        session.conf.set("spark.sql.maxPlanStringLength", shortest)
    [collected_from] = plan.split("collect_list(")[1:]
    assert re.search(r"Filter .*any_moved", collected_from)


def test_3_7_and_3_4_values_that_were_not_sent_follow_the_rows_they_come_from(session: SparkSession) -> None:
    table = HistoryTable(session, "postgresql")
    chain = [Change("c", 1, pg(1), "long")]
    for number in (1, 2, 3):
        chain.append(Change("d", number, pg(10 * number), new=number + 1))
        chain.append(Change("c", number + 1, pg(10 * number), old=number, missing=True))
    alone = [Change("u", 9, pg(5), missing=True)]
    table.take([*chain, *alone])

    def versions(first: str, *late: Version) -> list[Version]:
        made = [(number, late[-1][1] if late else first, pg(10 * number - 10), pg(10 * number)) for number in (2, 3)]
        start = (1, first, pg(1), late[0][2] if late else pg(10))
        last = (4, late[-1][1] if late else first, pg(30), None)
        return [start, *late, *made, last, (9, None, pg(5), None)]

    assert table.versions() == versions("long")
    table.take([Change("u", 1, pg(4), "longer"), *chain[2:4]])  # the old key's last change comes late
    assert table.versions() == versions("long", (1, "longer", pg(4), pg(10)))
