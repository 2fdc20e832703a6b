"""Tables are the same whether the rows of events are in files of Spark's tasks or not."""

from __future__ import annotations

import pytest
from tests.model import gate
from tests.model.case import Happened
from tests.model.random_cases import MODES
from tests.model.source.flavours import FLAVOURS
from tests.model.task_rows_table import TaskRowsTable
from tests.support.random_share import Scale, thorough_but


def task_rows_table(happened: Happened, _by_columns: bool) -> gate.Table:
    """See gate.MakeTable."""
    case = happened.case
    partitions, compacted = happened.known_partitions(), case.delivery.compacted > 0
    return TaskRowsTable(happened.played.connector, case.kept, partitions, compacted=compacted)


@pytest.mark.parametrize("flavour", thorough_but(1, FLAVOURS))
def test_2_8_rows_in_files_of_tasks_equal_the_books_in_all_cuts(flavour: str, scale: Scale) -> None:
    histories = scale(2 * len(MODES), at_least=2)
    seed = 11 + list(FLAVOURS).index(flavour)
    before = TaskRowsTable.used, TaskRowsTable.read_back
    report = gate.run([flavour], histories, seed, make_table=task_rows_table)
    assert not report.failures, "\n".join(f"reading {at}: {said}\n{case}" for case, at, said in report.failures)
    if histories >= len(MODES):  # a few may have no batch of either kind
        assert TaskRowsTable.used > before[0]
        assert TaskRowsTable.read_back > before[1]
