"""Random histories of every source, by the service: its tables must be what the reference says, at every pause.

Many histories share a table, each with keys of its own. One that fails is run again by itself, made smaller, and
shown as JSON: kept in tests/model/regressions it stays a test.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from tests.model.case import Case
from tests.model.packing import packed, part
from tests.model.shrinking import shrunk
from tests.model.source.flavours import FLAVOURS
from tests.model.strategies import ALL, deliveries, histories
from tests.support.histories import Service, drawn

SELECTED = 10
"""Histories of each flavour in `make test`."""

TRIES = 25
"""How often a failing history is run to make it smaller."""


@pytest.fixture
def service(session: SparkSession, kafka: str, tmp_path: Path) -> Service:
    """The service, with a folder of its own."""
    return Service(session, kafka, tmp_path)


@pytest.mark.parametrize("flavour", FLAVOURS)
def test_selected_histories(service: Service, flavour: str) -> None:
    seed = sum(flavour.encode())
    history = packed(drawn(histories(ALL), SELECTED, seed))
    delivery = drawn(deliveries(), 2, seed)[-1]
    check(service, Case(flavour, history, "composite", delivery))


def check(service: Service, case: Case) -> None:
    """The service's table is the reference's; else the smallest failing case that a few tries find is shown."""
    difference = service.difference(case)
    if not difference:
        return
    alone = Case(**{**vars(case), "history": part(case.history, difference.histories()[:1])})
    if not service.difference(alone):
        alone = case
    smallest = shrunk(alone, lambda smaller: bool(service.difference(smaller)), TRIES)
    pytest.fail(str(service.difference(smallest) or difference))
