"""The demo prints what it found."""

from __future__ import annotations

import io
from typing import Any

import pytest
from rich.console import Console

from distributary.demo.comparison import Comparison, Key
from distributary.demo.record import Origin, Row, Truth
from distributary.demo.screen import Screen
from distributary.demo.workload import Workload

ROWS: list[dict[str, Any]] = [{"id": 1, "name": "one"}, {"id": 2, "name": None}, {"id": 3, "name": "[red]x"}]


def found(lake: list[dict[str, Any]], **changes: Any) -> Comparison:
    truth = Truth("s.t", Origin.SIMULATED_DB2, ("id",), ("id", "name"), ROWS, changes.pop("null_arrives_as", {}))
    by_key: dict[Key, Row] = {(row["id"],): row for row in lake}
    source: dict[Key, Row] = {(row["id"],): row for row in truth.on_the_wire()}
    return Comparison(truth, source, by_key, **{"found": True, "columns": (), "repeated": (), **changes})


def shown(*comparisons: Comparison, width: int = 100) -> str:
    text = io.StringIO()
    screen = Screen(Console(file=text, width=width, highlight=False))
    screen.comparisons(comparisons)
    screen.verdict(comparisons)
    return text.getvalue()


def test_equal_tables_are_said_to_be_equal_and_shown_with_their_values() -> None:
    text = shown(found(ROWS))
    assert "3 rows at the source, 3 in the lake, 2 columns: equal\n" in text
    assert "All 1 tables are equal" in text
    assert text.count("[red]x") == 2
    assert text.count("NULL") == 2


@pytest.mark.parametrize(
    ("comparison", "line"),
    [
        (found(ROWS[:2]), "1 row missing in the lake: 3"),
        (found([*ROWS, {"id": 9, "name": "n"}]), "1 row in the lake, not at the source: 9"),
        (found([ROWS[0], {"id": 2, "name": ""}, ROWS[2]]), "row 2, name: source None, lake ''"),
        (found(ROWS, repeated=((2,),)), "1 row more than once in the lake: 2"),
        (found(ROWS, columns=("extra",)), "columns that only one of the two has: extra"),
        (found([], found=False), "there is no such table in the lake"),
    ],
)
def test_what_differs_is_named(comparison: Comparison, line: str) -> None:
    text = shown(found(ROWS), comparison)
    assert line in text
    assert "not equal" in text
    assert "1 of 2 tables differ: s.t" in text
    assert "All" not in text


def test_a_null_that_the_wire_cannot_tell_is_a_footnote() -> None:
    text = shown(found(found([], null_arrives_as={"name": "d"}).truth.on_the_wire(), null_arrives_as={"name": "d"}))
    assert "columns: equal *\n" in text
    assert "* s.t.name is NULL in 1 row of the source" in text


def test_columns_that_do_not_fit_are_counted_and_no_value_is_cut() -> None:
    text = shown(found([{**row, "name": "n" * 60} for row in ROWS]), width=60)
    assert "1 more" in text
    assert "…" not in text


def test_a_wave_says_where_its_events_come_from() -> None:
    text = io.StringIO()
    screen = Screen(Console(file=text, width=100, highlight=False))
    for number, wave in enumerate(Workload("demo").waves(), 1):
        screen.wave(number, wave)
    assert "Wave 1: the first snapshot" in text.getvalue()
    assert "2 truncates" in text.getvalue()
    assert "5 inserts, 1 update, 51 deletes" in text.getvalue()
    for origin in Origin:
        assert text.getvalue().count(origin.value) == 3
