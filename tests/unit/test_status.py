from __future__ import annotations

import json
import shlex
import threading
from dataclasses import replace
from pathlib import Path

import pytest
from tests.support.clock import ManualClock

from distributary.observe.status import ServiceStatus
from distributary.observe.table_status import Batch, TableStatus
from distributary.table_state import TableState


def test_a_table_appears_with_its_first_update_and_keeps_what_later_ones_do_not_name() -> None:
    status = ServiceStatus()
    status.update("dbo.orders", state=TableState.UP_TO_DATE, topics=["p.db.dbo.orders"])
    status.update("dbo.orders", records_applied=7)

    table = status.table("dbo.orders")
    assert table is not None
    assert (table.state, table.topics, table.records_applied) == (TableState.UP_TO_DATE, ("p.db.dbo.orders",), 7)
    assert status.table("dbo.customers") is None


def test_unknown_fields_and_states_are_refused_and_change_nothing() -> None:
    status = ServiceStatus()
    status.update("s.t", records_applied=1)
    with pytest.raises(TypeError):
        status.update("s.t", records_aplied=2)
    with pytest.raises(ValueError, match="sleeping"):
        status.update("s.t", state="sleeping")
    assert status.tables() == (TableStatus("s.t", records_applied=1),)


def test_lag_is_what_kafka_holds_beyond_the_tables_offsets() -> None:
    table = TableStatus(
        "s.t",
        next_offsets={"a": {0: 10, 1: 5}},
        target_offsets={"a": {0: 12, 1: 4, 2: 3}, "b": {0: 1}},
    )
    # 2 in a-0; a-1 is past the target; a-2 and b-0 were never read.
    assert table.lag_records == 2 + 0 + 3 + 1


def test_what_was_given_can_be_changed_afterwards_without_changing_the_status() -> None:
    status = ServiceStatus()
    offsets = {"topic": {0: 1}}
    status.update("s.t", next_offsets=offsets)
    offsets["topic"][0] = 99
    assert status.tables()[0].next_offsets == {"topic": {0: 1}}


def test_the_snapshot_is_the_same_after_json() -> None:
    status = ServiceStatus(clock=ManualClock(100.0), wall=lambda: 1700000060.123)
    status.committed("s.t", Batch(at=12.5, records=8, applied=7, quarantined=1, seconds=2.5), freshness_seconds=4.5)
    status.update(
        "s.t",
        topics=["p.s.t"],
        state=TableState.HALTED,
        position="0001",
        next_offsets={"p.s.t": {1: 4, 0: 3}},
        target_offsets={"p.s.t": {0: 3, 1: 6}},
        source_ts=1700000000123,
        error={"code": "topic-reset", "message": "offsets are gone", "fix": "resume"},
        orphaned_rows=2,
    )
    status.mark_ready()
    snapshot = status.snapshot()
    assert json.loads(json.dumps(snapshot)) == snapshot
    assert snapshot["ready"] is True
    assert snapshot["tables"]["s.t"] == {
        "table": "s.t",
        "topics": ["p.s.t"],
        "state": "halted",
        "position": "0001",
        "next_offsets": {"p.s.t": {"0": 3, "1": 4}},
        "target_offsets": {"p.s.t": {"0": 3, "1": 6}},
        "records_applied": 0,
        "quarantined": 0,
        "ambiguous_deletes": 0,
        "undecided": 0,  # former names
        "ghosts": 2,
        "goal_offsets": {"p.s.t": {"0": 3, "1": 6}},
        "last_commit_at": 12.5,
        "source_ts": 1700000000123,
        "error": {"code": "topic-reset", "message": "offsets are gone", "fix": "resume"},
        "orphaned_rows": 2,
        "freshness_seconds": 4.5,
        "last_batch": {"at": 12.5, "records": 8, "applied": 7, "quarantined": 1, "seconds": 2.5},
        "stages": None,
        "compacted_at": None,
        "vacuumed_at": None,
        "catalog_name": None,
        "layout": None,
        "remembered_keys": None,
        "memory_bytes": None,
        "warnings": [],
        "paused": None,
        "lag_records": 2,
        "lag_seconds": 60.0,
        "command": "distributary resume -c FILE s.t",
    }


def test_the_lag_in_seconds_is_the_age_of_the_newest_change_while_the_table_is_behind() -> None:
    behind = TableStatus("s.t", target_offsets={"t": {0: 1}})
    assert behind.lag_seconds(now=50.0) is None  # nothing tells it
    assert replace(behind, source_ts=20_000).lag_seconds(now=50.0) == 30.0
    assert replace(behind, source_ts=60_000).lag_seconds(now=50.0) == 0.0  # the source's clock is ahead
    assert replace(behind, source_ts=20_000, next_offsets={"t": {0: 1}}).lag_seconds(now=50.0) == 0.0


def test_the_command_for_orphaned_rows_names_the_table_as_one_word_of_a_shell() -> None:
    assert TableStatus("s.t").command is None
    table = TableStatus("s.it's; reboot", orphaned_rows=1)
    assert table.command is not None
    assert shlex.split(table.command) == ["distributary", "resume", "-c", "FILE", "s.it's; reboot", "--reconcile"]


def test_the_command_for_a_halted_table_has_the_option_that_its_halt_asks_for() -> None:
    lost = TableStatus("s.t", state=TableState.HALTED, error={"code": "records-lost", "message": "", "fix": ""})
    assert lost.command == "distributary resume -c FILE s.t --accept-loss"


def test_a_commit_without_a_time_leaves_the_freshness_as_it_was() -> None:
    status = ServiceStatus()
    batch = Batch(at=1.0, records=1, applied=1, quarantined=0, seconds=0.5)
    status.committed("s.t", batch, freshness_seconds=3.0)
    assert status.committed("s.t", batch, freshness_seconds=None).freshness_seconds == 3.0


def test_an_error_goes_away_when_it_is_set_to_none() -> None:
    status = ServiceStatus()
    status.update("s.t", error={"code": "c", "message": "m", "fix": "f"})
    assert status.update("s.t", error=None).error is None


def test_live_until_the_loop_is_silent_for_too_long() -> None:
    clock = ManualClock(100.0)
    status = ServiceStatus(clock=clock)
    clock.now += 30
    assert status.live(30)
    clock.now += 0.1
    assert not status.live(30)
    status.heartbeat()
    assert status.live(30)


def test_ready_only_after_it_was_marked_ready() -> None:
    status = ServiceStatus()
    assert not status.ready
    status.mark_ready()
    assert status.ready
    status.mark_ready(False)
    assert not status.ready


def test_what_of_the_config_does_not_count_is_shown_until_it_does() -> None:
    status = ServiceStatus()
    assert "config" not in status.snapshot()
    status.show_config({"faults": [], "waiting": ["kafka"]})
    assert status.snapshot()["config"] == {"faults": [], "waiting": ["kafka"]}
    status.show_config(None)
    assert "config" not in status.snapshot()


def test_why_the_stream_plans_nothing_is_shown_with_the_time_since_when() -> None:
    at = [1000.0]
    status = ServiceStatus(wall=lambda: at[0])
    fault = {"code": "kafka-unreachable", "message": "Kafka does not answer", "fix": "check it"}
    assert "stream" not in status.snapshot()
    status.show_stream(fault)
    at[0] = 1060.0
    status.show_stream({**fault, "code": "kafka-login"})
    assert status.snapshot()["stream"] == {**fault, "code": "kafka-login", "since": 1000.0}
    status.show_stream(None)
    assert "stream" not in status.snapshot()


def test_a_forgotten_table_is_shown_no_more() -> None:
    status = ServiceStatus()
    status.update("s.t")
    status.forget("s.t")
    status.forget("s.never")
    assert status.tables() == ()


@pytest.mark.thorough
def test_threads_that_update_and_read_at_the_same_time_lose_nothing() -> None:
    status = ServiceStatus()
    threads = 8
    start = threading.Barrier(threads)

    def work(number: int) -> None:
        start.wait()
        for count in range(1, 201):
            status.update(f"s.t{number}", records_applied=count)
            status.update("s.shared", **{("records_applied" if number % 2 else "quarantined"): 200})
            json.dumps(status.snapshot())

    workers = [threading.Thread(target=work, args=(number,)) for number in range(threads)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    applied = {table.table: table.records_applied for table in status.tables()}
    assert applied == {"s.shared": 200} | {f"s.t{number}": 200 for number in range(threads)}
    shared = status.table("s.shared")
    assert shared is not None
    assert shared.quarantined == 200


def test_transactions_are_shown_only_where_they_are_reported() -> None:
    status = ServiceStatus()
    assert "transactions" not in status.snapshot()
    shown = {"complete": {"id": "t1", "ts_ms": 1500}, "pending": 2, "waiting_for": ["s.t"]}
    status.show_transactions(shown)
    assert status.snapshot()["transactions"] == shown
    status.show_transactions(None)
    assert "transactions" not in status.snapshot()


def test_the_overview_is_the_snapshot_without_offsets() -> None:
    status = ServiceStatus(clock=ManualClock(100.0), wall=lambda: 1700000060.0)
    status.update("s.t", next_offsets={"p.s.t": {0: 3}}, target_offsets={"p.s.t": {0: 5}}, state=TableState.HALTED)
    whole, overview = status.snapshot(), status.overview()
    for name in ("next_offsets", "target_offsets", "goal_offsets"):
        del whole["tables"]["s.t"][name]
    assert overview == whole
    assert overview["tables"]["s.t"]["lag_records"] == 2


def test_monitoring_md_explains_each_field_of_a_table() -> None:
    shown = TableStatus("s.t").as_json(now=0.0).keys() - {"table"}
    page = (Path(__file__).parents[2] / "docs/monitoring.md").read_text()
    assert not [name for name in shown if f"`{name}`" not in page]


def test_commands_name_the_file_of_the_config_and_the_table() -> None:
    status = ServiceStatus(config_file="/etc/my config.yaml")
    fix = "`distributary resume -c FILE TABLE --rebuild` fills the table again"
    status.update(
        "s.t",
        state=TableState.HALTED,
        error={"code": "key-changed", "message": "the key changed", "fix": fix},
        warnings=({"code": "orphaned-rows", "message": "a row too many", "fix": "distributary resume -c FILE s.t"},),
        paused="distributary pause by x",
    )
    single = status.table_as_json("s.t")
    assert single is not None
    for table in (status.snapshot()["tables"]["s.t"], status.overview()["tables"]["s.t"], single):
        assert table["command"] == "distributary resume -c '/etc/my config.yaml' s.t"
        assert table["error"]["fix"] == fix.replace("FILE TABLE", "'/etc/my config.yaml' s.t")
        assert table["warnings"][0]["fix"] == "distributary resume -c '/etc/my config.yaml' s.t"
    assert single["commands"] == {
        "quarantine_list": "distributary quarantine list -c '/etc/my config.yaml' s.t",
        "quarantine_replay": "distributary quarantine replay -c '/etc/my config.yaml' s.t",
        "unpause": "distributary unpause -c '/etc/my config.yaml' s.t",
    }
