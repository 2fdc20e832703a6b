"""JsonValue keys processed as columns give the same table and memory as processed one by one, batch by batch."""

from __future__ import annotations

import json
from functools import partial
from random import Random

import pytest
from tests.model.cuts import Reading
from tests.model.delivery import Arrived
from tests.model.random_cases import MODES, random_case
from tests.model.rules_table import EventReader, RulesTable
from tests.model.source.flavours import FLAVOURS
from tests.model.source.sent import Sent
from tests.support.random_share import Scale, thorough_but

from distributary.rules.codec import to_json_value
from distributary.rules.event import Event

HISTORIES = 42


def memory(table: RulesTable) -> str:
    plain = to_json_value(table.state)
    for name in ("special", "deleted_keys", "departures", "reads"):
        plain[name] = sorted(plain[name], key=repr)
    return json.dumps(plain, indent=1, sort_keys=True)


def read_record(reader: EventReader, quarantined: set[int], record: Arrived) -> tuple[Event, Sent]:
    return reader.read(record, quarantined=id(record.sent) in quarantined), record.sent


@pytest.mark.parametrize("flavour", thorough_but(4, FLAVOURS))
def test_columns_leave_the_same_table_and_memory_as_the_walk(flavour: str, scale: Scale) -> None:
    # Each flavour begins at another mode: even with three histories each, together they have every mode.
    expect_equal(flavour, scale(HISTORIES, at_least=3), first=3 * list(FLAVOURS).index(flavour))


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("flavour", FLAVOURS)
def test_columns_leave_the_same_table_and_memory_as_the_walk_in_many_histories(flavour: str) -> None:
    expect_equal(flavour, 50 * HISTORIES)


def expect_equal(flavour: str, histories: int, first: int = 0) -> None:
    settled = 0
    for number in range(first, first + histories):
        case = random_case(flavour, number, MODES[number % len(MODES)])
        if case.why_not_truth() is not None:
            continue
        happened, delivery, random = case.happen(), case.delivery, Random(number)
        name = happened.played.connector.name
        reader = EventReader(name)
        chosen = random.sample(happened.arrived, min(2, len(happened.arrived)))
        quarantined = (
            {id(record.sent) for record in chosen if record.sent.op in "cud"} if random.random() < 0.3 else set()
        )
        walked, table = (
            RulesTable(
                name,
                case.kept,
                delivery.partitions,
                compacted=delivery.compacted > 0,
                by_columns=by_columns,
                deletes_are_null=number % 3 == 0,
            )
            for by_columns in (False, True)
        )
        read = partial(read_record, reader, quarantined)
        reading = Reading(happened.arrived, delivery, number)
        for batch in reading.batches([reading.counts(len(happened.arrived))]):
            for one in (walked, table):
                one.process(batch, read, reading.partitions)
            assert memory(walked) == memory(table), f"history {number}"
            assert walked.full_content() == table.full_content(), f"history {number}"
        settled += table.plain
    assert settled > histories or histories < len(MODES)
