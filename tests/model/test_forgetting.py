"""A table forgets what no unread record can need: its memory does not grow with its history."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cmp_to_key, partial

import pytest
from tests.model.case import Happened
from tests.model.cuts import Reading
from tests.model.random_cases import MODES, random_case
from tests.model.rules_table import EventReader, RulesTable
from tests.model.source.flavours import FLAVOURS
from tests.support.random_share import Scale

from distributary.rules.event import Event, Position
from distributary.rules.event_processor import apply
from distributary.rules.order import compare
from distributary.rules.passed_positions import schedule_partition_change_end
from distributary.rules.state import Row

HISTORIES = 60
_HOUR = 3_600_000_000
_ROUNDS = 3
"""The first batch ends open changes, the second those that waited for them, the third a growth of the topic."""


def later(position: Position, hours: int) -> Position:
    """A position above all others of a log."""
    last = str(4 + hours) * 20
    level, sub_position = (*(position.level or ("",))[:-1], last), (*position.sub_position[:-1], last)
    return replace(
        position,
        level=level,
        sub_position=sub_position,
        transaction=f"later {hours}",
        time=position.time + hours * _HOUR,
    )


def last_changes(table: RulesTable, position: Position) -> Iterator[list[Event]]:
    """Batches with a change of a key of its own in each partition, each batch an hour after the one before."""
    for hours in range(1, _ROUNDS + 1):
        yield [
            Event("c", f"{hours} {p}", p, 10**6 + hours, 10**16 + hours * _HOUR, later(position, hours), f"{hours} {p}")
            for p in range(table.state.partitions)
        ]


def read_all(happened: Happened, seed: int) -> RulesTable:
    """The table of a case, all of whose records were read."""
    case, name = happened.case, happened.played.connector.name
    table = RulesTable(name, case.kept, happened.known_partitions(), compacted=False, by_columns=False)
    reader = EventReader(name)
    reading = Reading(happened.arrived, case.delivery, seed)
    for batch in reading.batches([reading.counts(len(happened.arrived))]):
        table.process(batch, lambda record: (reader.read(record, quarantined=False), record.sent), reading.partitions)
    return table


@pytest.mark.parametrize("flavour", FLAVOURS)
def test_2_5_nothing_is_remembered_of_what_all_partitions_have_passed(flavour: str, scale: Scale) -> None:
    for seed in range(scale(HISTORIES, at_least=len(MODES))):
        case = random_case(flavour, seed, MODES[seed % len(MODES)])
        if case.why_not_truth() is not None or case.delivery.compacted:
            continue
        table = read_all(case.happen(), seed)
        state, connector = table.state, table.rules.connector
        tops = [mark.top for mark in state.marks.values() if mark.top is not None]
        if not tops:
            continue
        highest = max(tops, key=cmp_to_key(partial(compare, connector)))
        if state.partition_change_unread:
            schedule_partition_change_end(connector, state)
        for events in last_changes(table, highest):
            apply(table.rules, state, events, dict[str, Row]().get)
        old = {key for key in state.special if key[0] not in "123"}
        assert (old, state.deleted_keys, state.truncates, state.departures) == (set(), {}, [], {}), f"history {seed}"
