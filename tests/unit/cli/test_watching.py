"""The order of a live view, and the throughput that it shows."""

from __future__ import annotations

import io
from collections.abc import Iterator

import pytest
from rich.console import Console

from distributary.cli import watching
from distributary.cli.watching import by_urgency, records_a_second, watch
from distributary.control.overview import TableOverview
from distributary.errors import TransientError
from distributary.table_state import TableState


def table(name: str, state: TableState = TableState.UP_TO_DATE, lag: int = 0, records: int = 0) -> TableOverview:
    return TableOverview(name, name, "", state, lag, None, records_applied=records)


def test_what_needs_somebody_comes_first_then_what_is_furthest_behind() -> None:
    tables = [
        table("fresh"), table("new", TableState.NEW), table("near", TableState.BEHIND, 1),
        table("far", TableState.BEHIND, 20), table("stuck", TableState.HALTED),
    ]  # fmt: skip
    assert [one.table for one in by_urgency(tables)] == ["stuck", "far", "near", "new", "fresh"]


def test_throughput_is_what_came_in_between_two_looks() -> None:
    before = [table("a", records=100), table("rebuilt", records=50)]
    after = [table("a", records=160), table("rebuilt", records=10), table("appeared", records=9)]
    assert records_a_second(before, after, 3) == {"a": 20, "rebuilt": 0}
    assert records_a_second(before, after, 0) == {}


def test_a_look_that_fails_ends_nothing_and_what_was_seen_before_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = io.StringIO()
    terminal = Console(file=screen, force_terminal=True, width=120, height=30)
    monkeypatch.setattr(watching, "Console", lambda **_: terminal)
    away = TransientError("kafka-away", "no broker answers", "look whether it runs")
    looks: Iterator[list[TableOverview] | BaseException] = iter([[table("seen")], away, KeyboardInterrupt()])

    def look() -> list[TableOverview]:
        found = next(looks)
        if isinstance(found, BaseException):
            raise found
        return found

    assert watch(look, every=0) == [table("seen")]
    shown = screen.getvalue().rpartition("1 table: ")[2]  # the last view
    assert "[kafka-away] no broker answers" in shown
    assert "look whether it runs" in shown
    assert "seen" in shown
