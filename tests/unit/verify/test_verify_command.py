"""The output and the exit code of `distributary verify`."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from distributary.cli import main
from distributary.verify import check
from distributary.verify.report import (
    FAULTS,
    NOT_CHECKED,
    Counts,
    Difference,
    Event,
    Quarantined,
    State,
    TableReport,
    Value,
)

EXAMPLE = Path(__file__).parents[3] / "config" / "example.yaml"
OF_T = TableReport("dbo.t", "p.dbo.t", "/lake/dbo/t", "upsert", State.EQUAL, version=5, offsets={0: (0, 10)})


def faults(**counts: int) -> dict[str, int]:
    return {**dict.fromkeys(FAULTS, 0), **counts}


@pytest.fixture
def reports(monkeypatch: pytest.MonkeyPatch) -> list[TableReport]:
    """What the comparison finds, to be filled by a test."""
    found: list[TableReport] = []

    def verify(_config: Any, _name: Any, _asked: Any, tell: check.ShowProgress) -> Iterator[TableReport]:
        tell("looking")
        yield from found

    monkeypatch.setattr(check, "verify", verify)
    return found


def run(*options: str) -> Result:
    return CliRunner().invoke(main, ["verify", "-c", str(EXAMPLE), *options])


def test_equal_tables_end_with_0(reports: list[TableReport]) -> None:
    reports.append(OF_T)
    result = run()
    assert result.exit_code == 0
    assert "dbo.t: equal" in result.stdout
    assert json.loads(run("--output", "json").stdout)["tables"][0]["version"] == 5


def test_a_difference_ends_with_1_and_is_shown_with_both_values(reports: list[TableReport]) -> None:
    change = Event(1, 7, "000:0001", "u")
    one = Difference('{"id":3}', "different", (Value("v", None, "new"),), change, change, None)
    counts = Counts(9, 9, 6, faults(different=3), {**dict.fromkeys(NOT_CHECKED, 0), "before_topic": 2})
    bad = Quarantined(2, 1, 1, (Event(0, 4, None, "u"),))
    reports += [
        OF_T,
        TableReport(
            "dbo.u", "p.dbo.u", "/lake/dbo/u", "upsert", State.DIFFERENT,
            counts=counts, differences=(one,), quarantined=bad, notes=("something is not known",),
        ),
    ]  # fmt: skip
    result = run()
    assert result.exit_code == 1
    for line in (
        "dbo.u: different, 2 keys not checked",
        "3 with other values",
        "2 not checked: the topic no longer has the records that decide them",
        'different {"id":3}',
        "v: NULL in the lake, 'new' expected",
        "decided by u at p.dbo.u:1:7, position 000:0001",
        "something is not known",
        "records that can't be applied: 2 (p.dbo.u:0:4), of 1 keys, 1 of them without a key that can be read;",
        "and 2 more (--limit)",
    ):
        assert line in result.stdout


def test_a_table_that_can_not_be_verified_ends_with_1_and_shows_why(reports: list[TableReport]) -> None:
    error = {"code": "topic-gone", "message": "the topic is gone", "fix": "make it"}
    reports.append(TableReport("dbo.t", "p.dbo.t", "/lake/dbo/t", "upsert", State.NOT_VERIFIED, error=error))
    result = run()
    assert result.exit_code == 1
    assert "[topic-gone] the topic is gone" in result.stdout


@pytest.mark.parametrize("options", [("--keys", "5"), ("--limit", "-1")])
def test_wrong_options_end_with_2(reports: list[TableReport], options: tuple[str, ...]) -> None:
    reports.append(OF_T)
    assert run(*options).exit_code == 2
