"""Decoding and applying records produces the true rows of simulated databases, in every flavour and mode."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.model import gate
from tests.model.case import Case
from tests.model.random_cases import MODES
from tests.model.source.flavours import FLAVOURS
from tests.support.random_share import Scale, thorough_but


def expect_no_difference(flavour: str, histories: int, seed: int = 0) -> gate.Report:
    report = gate.run([flavour], histories, seed, make_table=gate.applied_table)
    assert not report.failures, "\n".join(f"reading {at}: {found}\n{case}" for case, at, found in report.failures)
    assert len(report.checked) == min(len(MODES), histories)
    return report


@pytest.mark.parametrize("flavour", thorough_but(2, FLAVOURS))
def test_2_8_applied_records_equal_the_books_in_all_cuts(flavour: str, scale: Scale) -> None:
    histories = scale(2 * len(MODES), at_least=1)
    # Each flavour begins at another mode: even with one history each, together they have every mode.
    report = expect_no_difference(flavour, histories, seed=7 + list(FLAVOURS).index(flavour))
    assert report.plain > 0 or histories < len(MODES)


@pytest.mark.slow
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("flavour", FLAVOURS)
def test_2_8_applied_records_equal_the_books_in_all_cuts_of_many_histories(flavour: str) -> None:
    expect_no_difference(flavour, 1000)


@pytest.mark.thorough
@pytest.mark.parametrize("path", sorted(gate.REGRESSIONS.glob("*.json")), ids=lambda path: str(path.stem))
def test_cases_that_once_failed_are_right(path: Path, scale: Scale) -> None:
    case = Case.from_json(path.read_text(encoding="utf-8"))
    for reading in range(scale(3, at_least=1)):
        difference = gate.differs(case, reading, make_table=gate.applied_table)
        assert difference is None, f"reading {reading}: {difference}"
