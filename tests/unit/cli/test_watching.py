"""What a live view puts first, and the throughput that it tells."""

from __future__ import annotations

from distributary.cli.watching import by_urgency, records_a_second
from distributary.operate.overview import BEHIND, HALTED, NEW, UP_TO_DATE, TableOverview


def table(name: str, state: str = UP_TO_DATE, lag: int = 0, records: int = 0) -> TableOverview:
    return TableOverview(name, name, "", state, lag, None, records_applied=records)


def test_what_needs_somebody_comes_first_then_what_is_furthest_behind() -> None:
    tables = [
        table("fresh"), table("new", NEW), table("near", BEHIND, 1), table("far", BEHIND, 20), table("stuck", HALTED),
    ]  # fmt: skip
    assert [one.table for one in by_urgency(tables)] == ["stuck", "far", "near", "new", "fresh"]


def test_throughput_is_what_came_in_between_two_looks() -> None:
    before = [table("a", records=100), table("rebuilt", records=50)]
    after = [table("a", records=160), table("rebuilt", records=10), table("appeared", records=9)]
    assert records_a_second(before, after, 3) == {"a": 20, "rebuilt": 0}
    assert records_a_second(before, after, 0) == {}
