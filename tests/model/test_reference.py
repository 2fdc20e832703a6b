"""The simulated source's rows equal the reference's result from its records; other tests compare the service.

Here the first two must agree, in every flavour, however the records were delivered: each is a test of the other.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy
from tests.model.case import MODES, Case, Happened, expected
from tests.model.reference.event import read
from tests.model.reference.table import Reference
from tests.model.source.flavours import FLAVOURS
from tests.model.strategies import cases, unwrapped

# Minutes of random histories.
pytestmark = pytest.mark.slow

LOOKS = 5
"""The number of stops at which the rows are compared."""

REGRESSIONS = sorted((Path(__file__).parent / "regressions").glob("*.json"))

few = settings(max_examples=100, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
many = settings(max_examples=5000, deadline=None, suppress_health_check=list(HealthCheck))


def check(happened: Happened) -> None:
    """Checks that the reference has the source's rows, at the end and whenever only whole transactions were sent."""
    case = happened.case
    truth = happened.truth_after()
    events = [read(record, happened.played.connector.name) for record in happened.records()]
    assert expected(Reference(events), case) == truth[-1], case
    if not case.delivery.compacted and case.form.unwrapped is None:
        boundaries = list(happened.boundaries())
        for sent, entries in boundaries[:: len(boundaries) // LOOKS + 1]:
            found = expected(Reference(events[:sent]), case)
            assert found == truth[entries], f"after {sent} records of {case}"


def look_at(cases: SearchStrategy[Case], how: settings) -> None:
    """Checks cases; one that fails is made smaller and shown."""

    @how
    @given(cases)
    def run(case: Case) -> None:
        happened = case.happen()
        assume(happened.decidable())
        check(happened)

    run()


@pytest.mark.parametrize("path", REGRESSIONS, ids=lambda path: str(path.stem))
def test_cases_that_once_failed(path: Path) -> None:
    check(Case.from_json(path.read_text(encoding="utf-8")).happen())


@pytest.mark.parametrize("flavour", FLAVOURS)
def test_records_lead_to_the_rows_of_the_source(flavour: str) -> None:
    look_at(cases(flavour), few)


@pytest.mark.parametrize("flavour", FLAVOURS)
def test_2_4_so_do_the_records_that_a_compacted_topic_still_has(flavour: str) -> None:
    look_at(cases(flavour, compacted=True), few)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("flavour", ["sqlserver_direct", "postgresql", "mariadb", "oracle"])
def test_4_in_every_mode_records_lead_to_what_the_source_went_through(flavour: str, mode: str) -> None:
    look_at(cases(flavour, MODES[mode]), few)


@pytest.mark.parametrize("flavour", FLAVOURS)
def test_1_3_so_do_bare_rows(flavour: str) -> None:
    look_at(unwrapped(flavour), few)


@pytest.mark.parametrize("flavour", FLAVOURS)
def test_many_records_lead_to_the_rows_of_the_source(flavour: str) -> None:
    every = [
        cases(flavour),
        cases(flavour, compacted=True),
        unwrapped(flavour),
        *(cases(flavour, kept) for kept in MODES.values()),
    ]
    look_at(st.one_of(every), many)
