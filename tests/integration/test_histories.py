"""Random histories of every source, by the service: its tables must equal the reference at every pause.

Many histories share a table, each with keys of its own. One that fails is run again by itself, made smaller, and
shown as JSON: kept in tests/model/regressions it stays a test.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from tests.model.case import MODES, Case
from tests.model.encoding import POSITIONED, Form
from tests.model.packing import part
from tests.model.packs import pack, unwrapped_pack
from tests.model.shrinking import shrunk
from tests.model.source.flavours import FLAVOURS
from tests.model.strategies import ALL
from tests.support.histories import CommandTable, Difference, Service
from tests.support.playback import Playback

A_PACK = 8
"""Histories in a table of the selection."""

MANY = 504
"""Histories of each flavour in `make test-long`, so many in a table: batches cost the same, whatever is in them."""

A_LARGE_PACK = 72

FIRST_SEED = int(os.environ.get("HISTORIES_SEED", "100"))
"""Where the many begin: another number gives others."""

COMMAND_BATCH = 150

REGRESSIONS = sorted((Path(__file__).parents[1] / "model" / "regressions").glob("*.json"))

TRIES = int(os.environ.get("HISTORIES_TRIES", "12"))
"""How often a failing history is run to make it smaller."""


@pytest.fixture
def service(session: SparkSession, memory_kafka: str, tmp_path: Path) -> Service:
    """The service, with a folder of its own."""
    return Service(session, memory_kafka, tmp_path)


SELECTED = ["sqlserver_direct", "db2", "postgresql", "mariadb"]
"""The sources of the selection: the others are like them."""


@pytest.mark.parametrize("path", REGRESSIONS, ids=lambda path: str(path.stem))
def test_histories_that_once_failed(service: Service, path: Path) -> None:
    difference = service.difference(Case.from_json(path.read_text(encoding="utf-8")))
    assert not difference, str(difference)


@pytest.mark.parametrize("flavour", SELECTED)
def test_4_1_selected_histories(service: Service, flavour: str) -> None:
    check(service, packs(flavour, 1))


@pytest.mark.slow
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("flavour", SELECTED)
def test_4_histories_in_every_mode(service: Service, flavour: str, mode: str) -> None:
    kept = MODES[mode]
    wanted = replace(ALL, moves=kept.truncate != "ignore", behind=kept.mode != "history")
    check(service, [pack(flavour, A_PACK, 2 * SELECTED.index(flavour), kept, wanted)])


@pytest.mark.slow
@pytest.mark.parametrize("added", [False, True], ids=["bare", "with places"])
@pytest.mark.parametrize("mode", ["tombstone", "delete-to-tombstone", "rewrite", "rewrite-with-tombstone"])
@pytest.mark.parametrize("flavour", SELECTED)
def test_1_3_histories_as_bare_rows(service: Service, flavour: str, mode: str, *, added: bool) -> None:
    form = Form(bool(SELECTED.index(flavour) % 2), mode, POSITIONED[flavour.partition("_")[0]] if added else ())
    check(service, [unwrapped_pack(flavour, A_PACK, SELECTED.index(flavour), form)])


@pytest.mark.slow
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("flavour", FLAVOURS)
def test_many_histories(service: Service, flavour: str) -> None:
    check(service, packs(flavour, MANY // A_LARGE_PACK, A_LARGE_PACK, FIRST_SEED))


@pytest.mark.slow
def test_every_source_through_the_command(kafka: str, tmp_path: Path) -> None:
    """All sources in one config, in two runs: the second goes on where the first ended."""
    playback = Playback(kafka, tmp_path, trigger={"max_records": COMMAND_BATCH})
    tables = [CommandTable(playback, case) for case in (next(packs(flavour, 1)) for flavour in FLAVOURS)]
    playback.configure({"match": f"{table.case.flavour}.t"} for table in tables)
    for run in range(2):
        for table in tables:
            table.send(run)
        done = playback.run()
        assert done.exit_code == 0, str(done)
        different = [str(found) for table in tables if (found := table.difference())]
        assert not different, "\n".join(different)


def packs(flavour: str, count: int, size: int = A_PACK, first: int = 0) -> Iterator[Case]:
    """So many packs of so many histories, each from a seed of its own."""
    first += list(FLAVOURS).index(flavour)
    for seed in range(first, first + count):
        yield pack(flavour, size, seed)


def check(service: Service, cases: Iterable[Case]) -> None:
    """The service's tables are the reference's; of one that is not the smallest part that a few tries find is shown."""
    for case in cases:
        difference = service.difference(case)
        if difference:
            pytest.fail(str(smallest(service, difference)))


def smallest(service: Service, difference: Difference) -> Difference:
    """A difference with less around it."""
    case, histories = difference.case, difference.histories()
    for numbers in (histories[:1], histories[1:2], histories):
        alone = replace(case, history=part(case.history, numbers))
        if numbers and (found := service.difference(alone)):
            case, difference = alone, found
            break
    small = shrunk(case, lambda smaller: bool(service.difference(smaller)), TRIES)
    return service.difference(small) or difference
