"""The rules produce the true rows of simulated databases, in every flavour and mode (see gate.py)."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.model import gate
from tests.model.case import Case, Kept
from tests.model.random_cases import MODES, random_case
from tests.model.source.flavours import FLAVOURS
from tests.support.random_share import Scale

HISTORIES = 4000
"""The number of cases of all flavours together; in the long run of each flavour."""

REGRESSIONS = sorted((gate.REGRESSIONS.parent).glob("**/*.json"))


def expect_no_difference(flavour: str, histories: int) -> None:
    report = gate.run([flavour], histories)
    assert not report.failures, "\n".join(f"reading {seed}: {found}\n{case}" for case, seed, found in report.failures)
    assert report.checked.total() + report.left_out.total() == histories
    assert report.left_out.total() < 0.05 * histories + 2
    assert len(report.checked) == len(MODES) or (histories == len(MODES) and report.left_out)
    assert report.stops > report.checked.total()
    if histories >= 2 * len(MODES):  # not every history has a rest or a replay
        assert report.replayed > 0
        assert report.rested > 0


@pytest.mark.parametrize("flavour", FLAVOURS)
def test_2_8_the_rules_equal_the_books_in_all_cuts(flavour: str, scale: Scale) -> None:
    expect_no_difference(flavour, scale(HISTORIES // len(FLAVOURS), at_least=len(MODES)))


@pytest.mark.slow
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("flavour", FLAVOURS)
def test_2_8_the_rules_equal_the_books_in_all_cuts_of_many_histories(flavour: str) -> None:
    expect_no_difference(flavour, HISTORIES)


def in_mode(path: Path, kept: Kept) -> Any:
    """A case as a parameter: in the mode in which it failed in all runs, in the other modes in thorough ones."""
    failed = Case.from_json(path.read_text(encoding="utf-8")).kept == kept
    return pytest.param(path, kept, marks=() if failed else pytest.mark.thorough, id=f"{kept}-{path.stem}")


@pytest.mark.parametrize(("path", "kept"), [in_mode(path, kept) for kept in MODES for path in REGRESSIONS])
def test_cases_that_once_failed_are_right_in_every_mode(path: Path, kept: Kept, scale: Scale) -> None:
    text = path.read_text(encoding="utf-8")
    case = replace(Case.from_json(text), kept=kept)
    if case.why_not_truth() is not None:
        assert kept != Case.from_json(text).kept
        return
    for reading in (json.loads(text).get("reading", 0), *range(scale(5, at_least=0))):
        difference = gate.differs(case, reading)
        assert difference is None, f"reading {reading}: {difference}"


def test_the_gate_sees_a_row_that_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    case = random_case("mysql", 0, MODES[0])
    monkeypatch.setattr("tests.model.rules_table.RulesTable.rows", lambda _: Counter())
    assert gate.differs(case, 0) is not None


def test_the_gate_reports_an_error_of_the_rules_as_a_difference(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise KeyError("lost")

    case = random_case("mysql", 0, MODES[0])
    monkeypatch.setattr("tests.model.rules_table.RulesTable.process", fail)
    difference = gate.differs(case, 0)
    assert difference is not None
    assert difference.place == "KeyError('lost')"
