"""The worked examples of docs/model.md, run as they stand there."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

import pytest
from tests.support.rule_history import Table, at, event

from distributary.rules.deduplicate import Verdict, deduplicate
from distributary.rules.event import Event, Position
from distributary.rules.state import RuleSettings

PAGE = (Path(__file__).parents[3] / "docs" / "model.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"<!-- model: (\w+) -->", PAGE)
OPERATIONS = {"create": "c", "update": "u", "delete": "d", "tombstone": "x"}
# "delete 1, moved to 2"
CHANGE = re.compile(r"(?P<op>\w+) (?P<key>\d+)(?:, moved to (?P<moved_to>\d+))?(?:, moved from (?P<moved_from>\d+))?")


class Line(NamedTuple):
    """One line of an example."""

    event: Event
    value: str
    answer: str
    rows: dict[str, str]


def lines_of(example: str) -> list[Line]:
    [table] = re.findall(rf"<!-- model: {example} -->\n(.*?)\n\n", PAGE, re.DOTALL)
    return [_line(*(cell.strip() for cell in row.split("|")[1:-1])) for row in table.splitlines()[2:]]


def _line(record: str, change: str, position: str, value: str, answer: str, rows: str) -> Line:
    partition, offset = map(int, record.strip("`").split(":"))
    found = CHANGE.fullmatch(change)
    assert found, change
    placed = event(
        OPERATIONS[found["op"]],
        found["key"],
        _position(position),
        partition=partition,
        offset=offset,
        moved_from=found["moved_from"],
        moved_to=found["moved_to"],
        unavailable=value == "not sent",
    )
    named = (row.split(" ", 1) for row in rows.split(", ") if row)
    return Line(placed, value, answer, dict(named))


def _position(text: str) -> Position | None:
    if not text:
        return None
    level, inside = map(int, text.split(":"))
    return at(level, inside)


def rows_of(table: Table, lines: list[Line]) -> dict[str, str]:
    values = {line.event.at: line.value for line in lines}
    return {key: values.get(table.big(key), "NULL") for key in table.pointers()}  # type: ignore[call-overload]


def test_the_page_has_three_examples() -> None:
    assert len(EXAMPLES) == 3


@pytest.mark.parametrize("example", EXAMPLES)
def test_deduplication_answers_as_the_page_says(example: str) -> None:
    lines = lines_of(example)
    judged = deduplicate("postgresql", {}, [line.event for line in lines]).verdicts
    assert [verdict for _, verdict in judged] == [Verdict(line.answer) for line in lines]


@pytest.mark.parametrize("example", EXAMPLES)
def test_each_record_leaves_the_rows_that_the_page_shows(example: str) -> None:
    lines = lines_of(example)
    table = Table(RuleSettings("postgresql"), partitions=1 + max(line.event.partition for line in lines))
    for line in lines:
        table.take(line.event)
        assert rows_of(table, lines) == line.rows, line.event


@pytest.mark.parametrize("example", EXAMPLES)
def test_2_8_one_batch_of_all_records_leaves_the_last_rows(example: str) -> None:
    lines = lines_of(example)
    table = Table(RuleSettings("postgresql"), partitions=1 + max(line.event.partition for line in lines))
    table.take(*(line.event for line in lines))
    assert rows_of(table, lines) == lines[-1].rows
