"""The simulated sources send records of the same form as real connectors."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import pytest
from tests.model.delivery import Delivery, delivered
from tests.model.encoding import Form, records
from tests.model.source.database import LONG
from tests.model.source.flavours import FLAVOURS, play
from tests.model.source.history import (
    Delete,
    History,
    Move,
    Operation,
    Put,
    Read,
    Rename,
    Restart,
    Together,
    Transaction,
    Truncate,
)
from tests.model.source.sent import PLACEHOLDER, Sent
from tests.support.recorded import Scenario

SHIFT = Move(((1, 2), (2, 3)))


def sent(flavour: str, *operations: Operation, rows: tuple[int, ...] = (1, 2)) -> list[Sent]:
    """What the connector sends of one transaction."""
    return stream(flavour, History(rows, (Transaction(operations),)))[len(rows) :]


def stream(flavour: str, history: History) -> list[Sent]:
    return list(play(flavour, "composite", history).sent)


def shape(events: list[Sent]) -> list[str]:
    """The operations, each with the key's number."""
    return [f"{event.op}{_number(event)}" for event in events]


def _number(event: Sent) -> str:
    return "" if event.key is None else str(2 * event.key["id"] + int(event.key["area"][1:]))


def places(events: list[Sent], *names: str) -> list[tuple[Any, ...]]:
    return [tuple(event.source[name] for name in names) for event in events if event.source]


@pytest.mark.parametrize("flavour", ["postgresql", "oracle", "db2"])
def test_2_7_a_shift_of_keys_deletes_a_key_after_its_create(flavour: str) -> None:
    events = sent(flavour, SHIFT)
    assert shape(events) == ["d1", "x1", "c2", "d2", "x2", "c3"]
    assert [name for event in events for name, _ in event.headers] == ["newkey", "newkey", "oldkey"] * 2


def test_sqlserver_makes_updates_of_keys_that_are_left_and_filled() -> None:
    events = sent("sqlserver", SHIFT)
    assert shape(events) == ["d1", "x1", "u2", "c3"]
    assert not any(event.headers for event in events)


@pytest.mark.parametrize("flavour", ["mysql", "mariadb"])
def test_the_binary_log_has_moves_in_the_order_that_checked_keys_allow(flavour: str) -> None:
    assert shape(sent(flavour, SHIFT)) == ["d2", "x2", "c3", "d1", "x1", "c2"]


def test_2_2_a_unique_column_is_deleted_and_created_at_one_place() -> None:
    names = ("commit_lsn", "change_lsn", "event_serial_no")
    by_function = sent("sqlserver", Rename((1, 2)))
    assert shape(by_function) == ["d1", "x1", "c1", "d2", "x2", "c2"]
    assert [serial for *_, serial in places(by_function, *names)] == [1, 2, 1, 2]
    directly = sent("sqlserver_direct", Rename((1, 2)))
    assert shape(directly) == ["d1", "x1", "d2", "x2", "c1", "c2"]
    at = places(directly, *names)
    assert at[:2] == at[2:]


def test_postgres_streams_by_commit_and_lsns_go_back() -> None:
    together = Together(((Put(1), Put(2)), (Put(3),)), (0, 1, 1, 0))
    events = stream("postgresql", History((1, 2), (together,)))[2:]
    assert shape(events) == ["c3", "u1", "u2"]
    lsns = [lsn for (lsn,) in places(events, "lsn")]
    assert lsns[1] < lsns[0] < lsns[2]
    levels = [json.loads(text)[0] for (text,) in places(events, "sequence")]
    assert levels[0] is None
    assert levels[1] == levels[2]
    assert int(levels[1]) > lsns[0]


def test_postgres_writes_an_insert_before_the_delete_that_it_waits_for() -> None:
    together = Together(((Delete(1),), (Put(1),)), (0, 1))
    # The first transaction ends with its only operation: a second one keeps it open.
    waiting = Together(((Delete(1), Put(2)), (Put(1),)), (0, 1, 0))
    assert [lsn for (lsn,) in places(stream("postgresql", History((1, 2), (together,)))[2:], "lsn")] != []
    events = stream("postgresql", History((1, 2), (waiting,)))[2:]
    assert shape(events)[:3] == ["d1", "x1", "c1"]
    (deleted,), (created,), *_ = places(events, "lsn")
    assert created < deleted


def test_postgres_does_not_know_the_commit_before_its_start() -> None:
    steps = (Transaction((Put(1),)), Transaction((Put(1),)), Restart(), Transaction((Put(1),)))
    levels = [json.loads(text)[0] for (text,) in places(stream("postgresql", History((), steps)), "sequence")]
    assert [level is None for level in levels] == [True, False, True]


@pytest.mark.parametrize("flavour", ["postgresql", "oracle"])
def test_3_7_an_untouched_large_value_is_not_sent(flavour: str) -> None:
    events = sent(flavour, Put(1, "long"), Put(1), Move(((1, 3),)), Put(3, "short"))
    after = [event.after["big"] for event in events if event.after]
    assert after[0].startswith(LONG)
    assert after[1:3] == [PLACEHOLDER, PLACEHOLDER]
    assert after[3].startswith("short")


def test_full_replica_identity_sends_large_values_and_old_rows() -> None:
    events = sent("postgresql_full", Put(1, "long"), Put(1), Delete(1))
    assert all(event.after["big"].startswith(LONG) for event in events if event.after)
    assert all(event.before and event.before["v"] for event in events if event.op in "ud")


def test_oracle_gives_changes_that_follow_closely_one_number() -> None:
    events = sent("oracle", Put(1), Put(1), Put(1), Put(1), Put(1))
    numbers = [scn for (scn,) in places(events, "scn")]
    assert len(set(numbers)) < len(numbers)
    redo = places(events, "rs_id", "ssn")
    assert len(set(redo)) == len(redo)


@pytest.mark.parametrize("flavour", sorted(FLAVOURS))
def test_3_6_only_some_connectors_send_truncates(flavour: str) -> None:
    kinds = shape(sent(flavour, Put(1), Truncate(), Put(2)))
    assert ("t" in kinds) == (flavour not in ("sqlserver", "sqlserver_direct", "db2"))


@pytest.mark.parametrize("flavour", sorted(FLAVOURS))
def test_positions_of_one_key_only_rise(flavour: str) -> None:
    """Except for PostgreSQL, whose LSNs go back, texts or numbers order each connector's positions."""
    from tests.model.reference.event import position

    events = sent(flavour, *(Put(1) for _ in range(60)))
    found = [position(event.source["connector"], event.source) for event in events]
    ordered = [(place.level or (), place.sub_position) for place in found if place is not None]
    assert all(one < other for one, other in pairwise(ordered))


@pytest.mark.parametrize("flavour", sorted(FLAVOURS))
def test_a_blocking_snapshot_comes_before_what_it_kept_from_being_streamed(flavour: str) -> None:
    history = History((1,), (Transaction((Put(1),)), Transaction((Put(2),)), Read("blocking", None, 1)))
    assert shape(stream(flavour, history)) == ["r1", "u1", "r1", "r2", "c2"]


@pytest.mark.parametrize(
    ("flavour", "scenario", "table"),
    [("postgresql", "pg_json_schema", "public.big_ids"), ("mariadb", "maria_json_schema", "shop.big_ids")],
)
def test_envelopes_have_the_fields_of_recorded_ones(flavour: str, scenario: str, table: str) -> None:
    recorded = next(record for record in Scenario(scenario).topic(*table.split(".")) if record.value)
    real = json.loads(recorded.value or b"")["payload"]
    played = play(flavour, "whole", History((1,), (Transaction((Put(1),)),)))
    (record, *_) = records(delivered(played.sent, Delivery()), played.connector, Form())
    made = json.loads(record.value or b"")
    assert made["payload"].keys() == real.keys()
    lacking = real["source"].keys() - made["payload"]["source"].keys()
    assert lacking <= {"origin", "origin_lsn"}
    assert {part["field"] for part in made["schema"]["fields"]} == made["payload"].keys()
