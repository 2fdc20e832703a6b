"""Tables whose records have no key."""

from __future__ import annotations

from dataclasses import replace

from tests.support.rule_history import Table, at, event

from distributary.rules.event import Event
from distributary.rules.state import RuleSettings


def keyless_rows(*batches: list[Event], partitions: int = 1) -> list[tuple[int, int]]:
    table = Table(RuleSettings("postgresql", "append", keyless=True), partitions)
    for batch in batches:
        table.take(*batch)
    return [one.at for changes in table.changes for one in changes.appended]


def test_4_3_equal_rows_of_one_position_are_kept_as_often_as_one_run_sent_them() -> None:
    before, copied = [event("c", "row", at(1)), event("u", "row", at(2))], [event("c", "same", at(3))] * 3
    for cut in range(4):
        assert len(keyless_rows([*before, *copied[:cut]], copied[cut:])) == 5
        assert len(keyless_rows([*before, *copied[:cut]], [*before, *copied])) == 5


def test_4_3_a_copy_in_another_partition_adds_no_row() -> None:
    rows = [event("c", str(number), at(number), partition=number % 2) for number in range(1, 7)]
    again = [replace(one, partition=1 - one.partition) for one in rows[2:]]
    assert len(keyless_rows([*rows, *again], partitions=2)) == len(rows)
    assert len(keyless_rows(rows[:4], [*rows[4:], *again[:2]], again[2:], partitions=2)) == len(rows)


def test_4_3_a_truncate_that_is_sent_again_adds_one_row() -> None:
    rows = [event("c", "row", at(1)), event("t", None, at(2)), event("c", "row", at(3), partition=1)]
    again = [replace(one, partition=1 - one.partition) for one in rows[1:]]
    assert len(keyless_rows(rows, again, partitions=2)) == 3
