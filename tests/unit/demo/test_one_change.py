"""The one change that the demo follows from its source to the lake."""

from __future__ import annotations

import io
import json
from itertools import chain

from rich.console import Console

from distributary.demo.comparison import Comparison, Key
from distributary.demo.one_change import OneChange, one_change
from distributary.demo.record import Record, Row, Truth
from distributary.demo.screen import Screen
from distributary.demo.workload import Workload


def all_applied() -> tuple[list[Record], list[Comparison]]:
    """The demo's records, and tables that have applied them all."""
    workload = Workload("demo")
    records = list(chain.from_iterable(chain.from_iterable(wave.records.values()) for wave in workload.waves()))
    return records, [comparison(truth) for truth in workload.truths()]


def comparison(truth: Truth) -> Comparison:
    rows: dict[Key, Row] = {tuple(row[name] for name in truth.key): row for row in truth.on_the_wire()}
    return Comparison(truth, rows, rows, True, (), ())


def followed() -> OneChange:
    found = one_change(*all_applied())
    assert found is not None
    return found


def test_it_is_an_update_whose_row_the_lake_has() -> None:
    change = followed()
    assert change.before != change.after
    for name in change.columns:
        assert change.row[name] == change.after[name]
    event = json.loads(change.event)
    assert event["op"] == "u"
    assert event["before"] != event["after"]
    assert list(event["after"]) == list(change.columns)


def test_a_table_that_has_none_of_it_shows_nothing() -> None:
    records, comparisons = all_applied()
    for one in comparisons:
        one.lake.clear()
    assert one_change(records, comparisons) is None
    assert one_change([], comparisons) is None


def shown(width: int) -> list[str]:
    text = io.StringIO()
    screen = Screen(Console(file=text, width=width, highlight=False))
    screen.one_change(followed())
    screen.try_next([("see it", "distributary status -c 'a b.yaml'")], running=False)
    return text.getvalue().splitlines()


def test_the_row_before_the_event_and_the_row_after_are_shown_in_that_order() -> None:
    lines = shown(400)
    starts = [line.split("  ")[1] for line in lines if line.startswith("  ") and "  # " not in line][:3]
    assert starts == ["row before", "event in Kafka", "row in the lake"]
    assert lines[-2:] == ["  # see it", "  distributary status -c 'a b.yaml'"]


def test_in_a_narrow_terminal_it_continues_below() -> None:
    lines = shown(60)
    assert max(map(len, lines)) <= 60
    assert "".join(followed().event.split()) in "".join("".join(lines).split())
