"""Tables without key: every change once, equal rows as often as one run of the connector sent them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from random import Random

import pytest
from tests.model import gate
from tests.model.applied_table import AppliedTable
from tests.model.case import Case, Kept, appended_row, counted
from tests.model.cuts import Reading
from tests.model.delivery import Again, Arrived, delivered
from tests.model.random_cases import random_case
from tests.model.rules_table import EventReader, RulesTable
from tests.model.source.flavours import FLAVOURS
from tests.model.source.sent import TOMBSTONE, Sent
from tests.support.random_share import Scale, thorough_but

from distributary.rules.event import Event

HISTORIES = 60


def sent_without_keys(case: Case, random: Random) -> Iterator[Sent]:
    """The records of a table without key; if rows can be equal at one position, some are."""
    played = case.happen().played
    one_partition = max(case.delivery.partitions, case.delivery.more) == 1
    for sent in played.sent:
        if sent.op != TOMBSTONE:
            # In several partitions nothing tells equal inserts from copies.
            is_copied = sent.op == "c" and played.connector.name == "postgresql" and one_partition
            equal = sent.op == "r" or is_copied
            for _ in range(random.choice((1, 1, 2, 3)) if equal else 1):
                yield replace(sent, key=None, headers=())


def _end_of_group(stream: list[Sent], after: int) -> int:
    """The first record from `after` on behind which equal snapshot rows are not separated."""
    place = after % max(1, len(stream))
    while place + 1 < len(stream) and stream[place].op == "r" and stream[place + 1].group == stream[place].group:
        place += 1
    return place


def _goes_back(stream: list[Sent], again: Again) -> bool:
    """Whether a repetition begins below the position of the last record: one that begins at the same position can't be
    distinguished from equal rows there."""
    if not stream:
        return False
    changes = [sent for sent in stream[: again.after + 1] if sent.op != "r"]
    first = sorted({sent.group for sent in stream[: again.after + 1]})[-max(1, again.back) :][0]
    places = {(sent.source["txId"], sent.source["lsn"]) for sent in changes if sent.group >= first}
    return len(places) > 1


def read_record(reader: EventReader, quarantined: set[int], record: Arrived) -> tuple[Event, Sent]:
    content = record.sent.before if record.sent.op == "d" else record.sent.after
    event = reader.read(record, quarantined=id(record.sent) in quarantined)
    return replace(event, key=None if content is None else json.dumps(content, sort_keys=True)), record.sent


def expect_every_change_once(flavour: str, histories: int, *, applied: bool = False) -> None:
    """`applied`: the records are decoded, and applied to rows of Arrow."""
    kept = Kept("append")
    for number in range(histories):
        case, random = random_case(flavour, number, kept), Random(number)
        case = replace(case, delivery=replace(case.delivery, first_read=0))
        restarts = tuple(replace(again, only=None, unknowing=True) for again in case.delivery.again)
        if flavour.startswith("postgresql"):
            restarts = restarts[:1]
        if number % 2:
            case = replace(case, delivery=replace(case.delivery, partitions=1, more=1, grown=0))
        stream = list(sent_without_keys(case, random))
        restarts = tuple(replace(again, after=_end_of_group(stream, again.after)) for again in restarts)
        if flavour.startswith("postgresql"):
            restarts = tuple(again for again in restarts if _goes_back(stream, again))
        case = replace(case, delivery=replace(case.delivery, again=restarts))
        arrived = delivered(stream, case.delivery)
        connector = case.happen().played.connector
        name = connector.name
        reader = EventReader(name)
        chosen = random.sample(stream, min(2, len(stream))) if random.random() < 0.3 else []
        quarantined = {id(sent) for sent in chosen if sent.op in "cud" and name != "postgresql"}
        partitions = case.delivery.partitions
        table: gate.Table = RulesTable(name, kept, partitions, keyless=True)
        if applied:
            table = AppliedTable(connector, kept, partitions, keyless=True)
        read = partial(read_record, reader, quarantined)
        reading = Reading(arrived, case.delivery, number)
        aside: list[tuple[Event, Sent]] = []
        for batch in reading.batches([reading.counts(len(arrived))]):
            last = batch.stop is not None
            again = [(replace(event, quarantined=False), sent) for event, sent in aside] if last else []
            aside += table.process(batch, read, reading.partitions, again)
            if number % 3 == 0:
                table.reopen_snapshot_row()
        wanted = counted(map(appended_row, stream))
        assert table.rows() == wanted, f"{flavour}, history {number}: {table.rows() - wanted} {wanted - table.rows()}"


@pytest.mark.parametrize("flavour", thorough_but(3, FLAVOURS))
def test_4_3_a_table_without_key_has_every_change_once(flavour: str, scale: Scale) -> None:
    expect_every_change_once(flavour, scale(HISTORIES, at_least=8))


@pytest.mark.parametrize("flavour", thorough_but(3, FLAVOURS))
def test_4_3_applied_records_without_key_are_every_change_once(flavour: str, scale: Scale) -> None:
    expect_every_change_once(flavour, scale(6, at_least=2), applied=True)


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("flavour", FLAVOURS)
def test_4_3_a_table_without_key_has_every_change_once_in_many_histories(flavour: str) -> None:
    expect_every_change_once(flavour, 50 * HISTORIES)
