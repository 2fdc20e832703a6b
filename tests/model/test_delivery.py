"""Deliveries of small hand-written streams."""

from __future__ import annotations

import json

import pytest
from tests.model.case import Case, Kept
from tests.model.delivery import Again, Arrived, Delivery, delivered
from tests.model.encoding import Form, records
from tests.model.reference.table import reference
from tests.model.source.flavours import Played, play
from tests.model.source.history import Delete, History, Move, Put, Read, Restart, Together, Transaction, Truncate

STEPS = tuple(Transaction(operations) for operations in ((Put(1),), (Put(2), Delete(1)), (Put(1),), (Move(((2, 3),)),)))


def played(flavour: str = "mysql") -> Played:
    return play(flavour, "whole", History((), STEPS))


def names(arrived: list[Arrived]) -> list[str]:
    """Each record's operation with its change's number."""
    return [f"{record.sent.op}{record.sent.group}" for record in arrived]


def deliver(delivery: Delivery, flavour: str = "mysql") -> list[Arrived]:
    return delivered(played(flavour).sent, delivery)


def test_a_plain_delivery_is_what_was_sent() -> None:
    assert names(deliver(Delivery())) == ["c0", "c1", "d2", "x2", "c3", "d4", "x4", "c4"]


def test_2_4_a_restart_sends_the_last_changes_again_from_the_start_of_one() -> None:
    # It stops between the delete of a key change and its create.
    assert names(deliver(Delivery(again=(Again(5, 2),)))) == [
        *("c0", "c1", "d2", "x2", "c3", "d4", "c3", "d4", "x4", "c4"),
    ]


def test_2_4_restarts_overlap() -> None:
    assert names(deliver(Delivery(again=(Again(1, 1), Again(1, 5))))) == [
        *("c0", "c1", "c1", "c0", "c1", "d2", "x2", "c3", "d4", "x4", "c4"),
    ]


def test_a_restart_reads_no_snapshot_row_again() -> None:
    stream = play("mysql", "whole", History((1,), STEPS)).sent
    assert names(delivered(stream, Delivery(again=(Again(1, 9),))))[:4] == ["r0", "u1", "u1", "c2"]


def test_a_repetition_holds_whole_changes() -> None:
    assert names(deliver(Delivery(again=(Again(7, 3, only=1),)))) == [
        *("c0", "c1", "d2", "x2", "c3", "d4", "x4", "c4", "d2", "x2"),
    ]


def test_an_unknowing_restart_does_not_know_the_first_commit_even_of_what_was_not_sent_before() -> None:
    arrived = deliver(Delivery(again=(Again(1, 1, unknowing=True),)), "postgresql")
    levels = {(name, json.loads(record.sent.source["sequence"])[0] is None)
              for name, record in zip(names(arrived), arrived, strict=True) if record.sent.source}  # fmt: skip
    assert {name for name, unknown in levels if unknown} == {"c0", "c1", "d2"}
    assert ("c1", False) in levels


def test_without_tombstones_deletes_stay() -> None:
    assert names(deliver(Delivery(tombstones=False))) == ["c0", "c1", "d2", "c3", "d4", "c4"]


def test_2_5_keys_move_when_the_topic_gets_more_partitions() -> None:
    plain = deliver(Delivery(partitions=2))
    grown = deliver(Delivery(partitions=2, more=5, grown=4))
    assert [record.partition for record in plain[:4]] == [record.partition for record in grown[:4]]
    places: dict[str, set[int]] = {}
    for record in grown:
        places.setdefault(str(record.sent.key), set()).add(record.partition)
    assert max(map(len, places.values())) == 2
    for record in grown:
        assert record.offset == sum(o.partition == record.partition for o in grown[: record.sending])


def test_of_a_compacted_topic_each_key_s_last_record_is_left() -> None:
    assert names(deliver(Delivery(compacted=5))) == ["c1", "c3", "d4", "x4", "c4"]
    assert [record.offset for record in deliver(Delivery(compacted=5))] == [0, 1, 2, 3, 4]


def test_a_held_partition_comes_after_all_else() -> None:
    arrived = deliver(Delivery(partitions=2, pauses=(2, 5), held=1))
    for record in arrived:
        late = record.partition == 1 and record.sending >= 2
        assert record.phase == (3 if late else (record.sending >= 2) + (record.sending >= 5))


def test_kafka_s_clock_never_goes_back_for_changes_that_a_blocking_snapshot_held_up() -> None:
    stream = play("sqlserver", "whole", History((), (*STEPS, Read("blocking", behind=2)))).sent
    entries = [sent.entry for sent in stream]
    assert entries != sorted(entries)
    for rest in range(len(stream)):
        times = [record.timestamp for record in delivered(stream, Delivery(rests=(rest,), again=(Again(9, 5),)))]
        assert times == sorted(times)


def test_every_delivery_fits_every_stream() -> None:
    delivery = Delivery((Again(65000, 99), Again(3, 1, 1)), more=9, grown=77, compacted=50000, pauses=(9, 0), held=4)
    assert delivered((), delivery) == []
    assert delivered(played().sent[:1], delivery)


@pytest.mark.parametrize("mode", ["drop", "tombstone", "rewrite", "rewrite-with-tombstone", "delete-to-tombstone"])
def test_1_3_unwrapped_records_show_deletes_each_in_their_way(mode: str) -> None:
    stream = played()
    found = records(delivered(stream.sent, Delivery()), stream.connector, Form(False, mode))
    values = [None if record.value is None else json.loads(record.value) for record in found]
    deleted = [row.get("__deleted") for row in values if row]
    assert len(found) == {"drop": 4, "rewrite-with-tombstone": 8}.get(mode, 6)
    assert values.count(None) == {"drop": 0, "rewrite": 0}.get(mode, 2)
    assert deleted.count("true") == (2 if mode.startswith("rewrite") else 0)
    if mode != "drop":
        rows = reference(found).rows()
        assert {json.loads(key)["id"] for key in rows} == {row["id"] for row in stream_rows(stream)}


def stream_rows(stream: Played) -> list[dict[str, object]]:
    return [dict(row) for key, row in {str(s.key): s.after for s in stream.sent if s.op != "x"}.items() if row]


def test_cases_are_kept_as_text() -> None:
    together = Together(((Put(1, "long"),), (Truncate(), Delete(2))), (0, -1, 1))
    history = History((1, 2), (*STEPS, together, Restart()))
    case = Case(
        *("oracle", history, "uuid", Delivery((Again(1, 2, 3),), pauses=(1,))),
        *(Form(False, "rewrite", ("op",)), Kept("history")),
    )
    assert Case.from_json(case.to_json()) == case
