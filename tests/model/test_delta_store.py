"""Records that are decoded, applied and written to Delta give the true rows, read by another reader."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.model import gate
from tests.model.applied_table import AppliedTable
from tests.model.case import Happened
from tests.model.delta_store import DeltaStore
from tests.model.random_cases import MODES
from tests.model.source.flavours import FLAVOURS
from tests.support.random_share import Scale, thorough_but

from distributary.apply.memory import TableSpec
from distributary.delta.plan_write import RemovalLayout

KINDS = list(RemovalLayout)


class Tables:
    """Makes tables in separate directories, of every layout in turn."""

    def __init__(self, path: Path) -> None:
        self._path, self._count = path, 0

    def make(self, happened: Happened, _by_columns: bool) -> gate.Table:
        """See gate.MakeTable."""
        case = happened.case
        compacted = case.delivery.compacted > 0
        connector, partitions = happened.played.connector, happened.known_partitions()
        return AppliedTable(connector, case.kept, partitions, compacted=compacted, make_store=self._store)

    def _store(self, spec: TableSpec) -> DeltaStore:
        self._count += 1
        path = self._path / str(self._count)
        path.mkdir()
        return DeltaStore(path, spec, KINDS[self._count % len(KINDS)], has_feed=self._count % 2 == 0)


def expect_no_difference(path: Path, flavour: str, histories: int, seed: int) -> None:
    report = gate.run([flavour], histories, seed, make_table=Tables(path).make)
    assert not report.failures, "\n".join(f"reading {at}: {found}\n{case}" for case, at, found in report.failures)
    assert report.checked.total() + report.left_out.total() == histories


@pytest.mark.parametrize("place", thorough_but(1, range(len(FLAVOURS))))
def test_2_8_written_records_equal_the_books_in_all_cuts(tmp_path: Path, place: int, scale: Scale) -> None:
    flavours, histories = list(FLAVOURS), scale(2, at_least=1)
    expect_no_difference(tmp_path, flavours[place], histories, seed=histories * place)


@pytest.mark.slow
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("flavour", FLAVOURS)
def test_2_8_written_records_equal_the_books_in_all_cuts_of_many_histories(tmp_path: Path, flavour: str) -> None:
    expect_no_difference(tmp_path, flavour, 30 * len(MODES), seed=0)
