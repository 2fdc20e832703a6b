"""The tables of a snapshot request, the destination of the signal, and when the snapshot is complete."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from confluent_kafka import KafkaError
from deltalake import CommitProperties, write_deltalake
from pyarrow import table as arrow
from rich.text import Text
from tests.support import memory_kafka
from tests.support.config_files import config_in
from tests.support.memory_kafka import MemoryClient

from distributary.cli import main
from distributary.config import Config
from distributary.consume import kafka_client
from distributary.consume.kafka_client import Topic
from distributary.consume.kafka_errors import refusal
from distributary.consume.write import not_written
from distributary.control import snapshot_request as request
from distributary.control.notifications import Arrival, Notifications
from distributary.control.pauses import ALL, pauses_path
from distributary.control.signals import BLOCKING, INCREMENTAL
from distributary.control.snapshot_request import (
    SnapshotProgress,
    SnapshotTarget,
    follow,
    snapshot_progress,
    snapshot_targets,
)
from distributary.errors import DistributaryError, TableHalt, TransientError, UsageError
from distributary.progress.record import Progress, SourceSnapshot, first_progress
from distributary.storage.request_files import leave_file

SIGNALS = "p-signal"
NOTIFICATIONS = "p-notifications"


@pytest.fixture
def kafka() -> Iterator[str]:
    address = memory_kafka.new_address()
    for topic in ("p.dbo.a", "p.dbo.customers", SIGNALS):
        memory_kafka.create_topic(address, topic)
    yield address
    memory_kafka.drop_address(address)


def config_of(folder: Path, **more: Any) -> Config:
    source = {"topic_prefix": "p", "connector": "postgresql", "signal_table": "dbo.signals", **more.pop("source", {})}
    return config_in(folder, source={name: value for name, value in source.items() if value is not None}, **more)


def commit(config: Config, name: str, **changes: Any) -> Progress:
    """Commits a record of the table, as the service does."""
    first = first_progress(f"p.dbo.{name}", "id", "postgresql", "upsert", ("id",))
    record = first.next_commit(**{"next": {0: 1}, "records": 1, **changes})
    metadata = CommitProperties(custom_metadata={"userMetadata": record.to_json()})
    place = f"{config.root()}/dbo/{name}".removeprefix("file://")
    write_deltalake(place, arrow({"id": [1]}), mode="append", commit_properties=metadata)
    return record


def code_of(caught: pytest.ExceptionInfo[DistributaryError]) -> str:
    assert caught.value.fix
    return caught.value.code


def test_an_unknown_table_is_reported_with_those_that_are_almost_it(tmp_path: Path, kafka: str) -> None:
    config = config_of(tmp_path)
    with pytest.raises(UsageError) as caught:
        snapshot_targets(config, MemoryClient(kafka), ["db.customer"])
    assert code_of(caught) == "unknown-table"
    assert "did you mean dbo.customers?" in caught.value.fix


def test_a_table_of_the_config_that_has_no_topic_yet_can_be_requested(tmp_path: Path, kafka: str) -> None:
    config = config_of(tmp_path, source={"signal_table": "dbo.signals"}, tables=[{"match": "dbo.*"}])
    there, absent = snapshot_targets(config, MemoryClient(kafka), ["dbo.a", "dbo.Customer"])
    assert there.topic_missing is None
    assert absent.topic_missing is not None
    assert "p.dbo.Customer" in absent.topic_missing
    assert "did you mean dbo.customers?" in absent.topic_missing
    assert absent.table.topic == "p.dbo.Customer"
    assert request.signal_for(config, [absent], INCREMENTAL, None).tables == (("dbo", "Customer"),)


@pytest.mark.parametrize("name", ["sales.orders", "orders", "dbo.signals"])
def test_a_name_that_is_no_table_of_the_config_is_reported(tmp_path: Path, kafka: str, name: str) -> None:
    config = config_of(tmp_path, tables=[{"match": "dbo.*"}])
    with pytest.raises(UsageError) as caught:
        snapshot_targets(config, MemoryClient(kafka), [name])
    assert code_of(caught) == "unknown-table"


@pytest.mark.parametrize(("name", "database"), [("shop.dbo.orders", None), ("dbo.orders", "shop")])
def test_a_table_of_sql_server_without_a_topic_has_its_database(
    tmp_path: Path, kafka: str, name: str, database: str | None
) -> None:
    config = config_of(tmp_path, source={"connector": "sqlserver"})
    (target,) = snapshot_targets(config, MemoryClient(kafka), [name], database)
    assert target.table.topic == "p.shop.dbo.orders"
    assert request.signal_for(config, [target], INCREMENTAL, None, database).tables == (("shop", "dbo", "orders"),)


@pytest.mark.parametrize("name", ["p.dbo.a", ALL])
def test_a_table_that_is_paused_is_reported(tmp_path: Path, kafka: str, name: str) -> None:
    config = config_of(tmp_path)
    leave_file(pauses_path(config), f"{name}.json", {"since": 0, "reason": "restore"})
    with pytest.raises(UsageError, match="restore") as caught:
        snapshot_targets(config, MemoryClient(kafka), ["dbo.a"])
    assert code_of(caught) == "snapshot-of-paused-table"


def test_a_table_that_the_config_pauses_is_reported(tmp_path: Path, kafka: str) -> None:
    config = config_of(tmp_path, tables=[{"match": "dbo.a", "paused": True}, {"match": "dbo.*"}])
    with pytest.raises(UsageError, match="paused: true") as caught:
        snapshot_targets(config, MemoryClient(kafka), ["dbo.a"])
    assert code_of(caught) == "snapshot-of-paused-table"
    assert snapshot_targets(config, MemoryClient(kafka), ["dbo.customers"])


def test_a_table_of_several_tables_is_reported(tmp_path: Path, kafka: str) -> None:
    config = config_of(tmp_path, tables=[{"match": "dbo.*", "merge_sources": True}])
    with pytest.raises(UsageError) as caught:
        snapshot_targets(config, MemoryClient(kafka), ["dbo.a"])
    assert code_of(caught) == "snapshot-of-several-tables"


def test_the_name_by_the_records_comes_before_that_of_the_topic(tmp_path: Path, kafka: str) -> None:
    config = config_of(tmp_path)
    commit(config, "a", source_table="shop.dbo.a$")
    wanted = snapshot_targets(config, MemoryClient(kafka), ["dbo.a", "dbo.customers", "dbo.a"])
    assert request.signal_for(config, wanted, INCREMENTAL, None).tables == (("dbo", "a$"), ("dbo", "customers"))


def test_the_connector_is_taken_from_the_config_or_from_the_table(tmp_path: Path, kafka: str) -> None:
    config = config_of(tmp_path, source={"connector": None})
    wanted = snapshot_targets(config, MemoryClient(kafka), ["dbo.a"])
    with pytest.raises(UsageError) as caught:
        request.signal_for(config, wanted, INCREMENTAL, None)
    assert code_of(caught) == "connector-unknown"
    commit(config, "a")
    wanted = snapshot_targets(config, MemoryClient(kafka), ["dbo.a"])
    signal = request.signal_for(config, wanted, INCREMENTAL, None)
    assert signal.connector == "postgresql"
    assert len(signal.id) <= 42


def test_an_empty_condition_is_reported(tmp_path: Path, kafka: str) -> None:
    config = config_of(tmp_path)
    with pytest.raises(UsageError) as caught:
        request.signal_for(config, snapshot_targets(config, MemoryClient(kafka), ["dbo.a"]), INCREMENTAL, " ")
    assert code_of(caught) == "empty-condition"


def test_the_signal_table_is_given_or_in_the_config_or_a_topic(tmp_path: Path, kafka: str) -> None:
    client = MemoryClient(kafka)
    config = config_of(tmp_path)
    assert request.signal_table_of(config, client, "x.y") == ("x", "y")
    assert request.signal_table_of(config, client, None) == ("dbo", "signals")
    unnamed = config_of(tmp_path, source={"signal_table": None})
    with pytest.raises(UsageError) as caught:
        request.signal_table_of(unnamed, client, None)
    assert code_of(caught) == "signal-table-unknown"
    memory_kafka.create_topic(kafka, "p.dbo.debezium_signal")
    assert request.signal_table_of(unnamed, client, None) == ("dbo", "debezium_signal")


def invoke(monkeypatch: pytest.MonkeyPatch, kafka: str, folder: Path, *args: str) -> Any:
    monkeypatch.setattr(kafka_client, "KafkaClient", lambda _properties: MemoryClient(kafka))
    return CliRunner().invoke(main, ["snapshot", "-c", str(folder / "config.yaml"), *args])


def test_the_command_prints_the_statement(tmp_path: Path, kafka: str, monkeypatch: pytest.MonkeyPatch) -> None:
    config_of(tmp_path)
    result = invoke(monkeypatch, kafka, tmp_path, "dbo.a", "dbo.customers", "--where", "town = 'Ulm'")
    assert result.exit_code == 0, result.stderr
    assert result.stdout.startswith("""INSERT INTO "dbo"."signals" (id, type, data) VALUES ('snapshot-""")
    assert '''"filter": "town = ''Ulm''"''' in result.stdout
    assert len(result.stdout.splitlines()) == 1  # a pipe may lead to the database
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "40")
    shown = invoke(monkeypatch, kafka, tmp_path, "dbo.a", "--where", "town = 'Ulm'")
    statement, following = Text.from_ansi(shown.stdout).plain.splitlines()
    assert "town = " in statement  # a line to copy, on a narrow terminal, too
    assert following.startswith(f"next: distributary status -c {tmp_path}/config.yaml --watch")
    as_json = invoke(monkeypatch, kafka, tmp_path, "dbo.a", "--print", "--output", "json")
    printed = json.loads(as_json.stdout)
    assert printed["data"] == {"data-collections": ["dbo.a"], "type": "incremental"}
    assert printed["id"] in printed["sql"]


def test_the_command_says_that_a_table_has_no_topic_yet(
    tmp_path: Path, kafka: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    config_of(tmp_path)
    result = invoke(monkeypatch, kafka, tmp_path, "dbo.a", "dbo.orders")
    assert result.exit_code == 0, result.stderr
    assert '"data-collections": ["dbo.a", "dbo.orders"]' in result.stdout
    assert len(result.stdout.splitlines()) == 1
    (note,) = result.stderr.splitlines()
    assert "Kafka has no topic p.dbo.orders" in note
    assert "the snapshot creates it" in note
    assert "p.dbo.a " not in note
    as_json = invoke(monkeypatch, kafka, tmp_path, "dbo.a", "dbo.orders", "--output", "json")
    assert json.loads(as_json.stdout)["without_topic"] == ["dbo.orders"]


def test_the_command_writes_the_record(tmp_path: Path, kafka: str, monkeypatch: pytest.MonkeyPatch) -> None:
    config_of(tmp_path)
    result = invoke(monkeypatch, kafka, tmp_path, "dbo.a", "--type", "blocking", "--signal-topic", SIGNALS)
    assert result.exit_code == 0, result.stderr
    client = MemoryClient(kafka)
    (record,) = client.records(client.topics([SIGNALS])[SIGNALS], {0: 0}, 10)
    assert record.key == b"p"
    signal = json.loads(record.value or b"")
    assert signal["type"] == "execute-snapshot"
    assert signal["data"] == {"data-collections": ["dbo.a"], "type": "blocking"}
    assert signal["id"] in result.stdout


@pytest.mark.parametrize(
    ("args", "code"),
    [
        (["dbo.a", "--signal-topic", "none"], "signal-topic-unknown"),
        (["dbo.a", "--signal-topic", SIGNALS, "--print"], "one-at-a-time"),
        (["dbo.a", "--signal-topic", SIGNALS, "--follow"], "follow-needs-blocking"),
        (["nothing", "--signal-topic", SIGNALS], "unknown-table"),
    ],
)
def test_nothing_is_written_after_an_error(
    tmp_path: Path, kafka: str, monkeypatch: pytest.MonkeyPatch, args: list[str], code: str
) -> None:
    config_of(tmp_path)
    result = invoke(monkeypatch, kafka, tmp_path, *args)
    assert (result.exit_code, f"[{code}]" in result.stderr) == (2, True), result.stderr
    assert memory_kafka.end_offsets(kafka, SIGNALS) == {0: 0}


@pytest.mark.parametrize("error", [KafkaError.TOPIC_AUTHORIZATION_FAILED, KafkaError.CLUSTER_AUTHORIZATION_FAILED])
def test_a_right_to_write_that_is_missing_is_reported(error: int) -> None:
    refusal = not_written("signals", KafkaError(error), [])
    assert refusal.code == "kafka-write-not-allowed"
    assert "signals" in refusal.message
    assert "Write" in refusal.fix
    assert not_written("signals", KafkaError(KafkaError._TIMED_OUT), []).code == "kafka-unreachable"


def test_a_topic_that_may_not_be_seen_is_reported(tmp_path: Path, kafka: str) -> None:
    class Refusing(MemoryClient):
        def topics(self, names: Any) -> Any:
            if SIGNALS in names:
                raise refusal("describe topics", KafkaError(KafkaError.TOPIC_AUTHORIZATION_FAILED))
            return super().topics(names)

    client = Refusing(kafka)
    config = config_of(tmp_path)
    signal = request.signal_for(config, snapshot_targets(config, client, ["dbo.a"]), INCREMENTAL, None)
    with pytest.raises(TransientError) as caught:
        request.send(config, client, signal, SIGNALS)
    assert code_of(caught) == "kafka-write-not-allowed"


def test_tables_that_do_not_keep_snapshots_are_not_followed(tmp_path: Path, kafka: str) -> None:
    config = config_of(tmp_path, tables=[{"match": "dbo.a", "mode": "append"}, {"match": "dbo.*"}])
    client = MemoryClient(kafka)
    for name in ("dbo.a", "dbo.customers"):
        if name == "dbo.customers":
            commit(config, "customers", connector="offset")
        with pytest.raises(UsageError) as caught:
            request.check_can_follow(snapshot_targets(config, client, [name]), BLOCKING)
        assert code_of(caught) == "follow-not-for-table"


OLD, NEW = SourceSnapshot(position="1", orphaned_rows=0), SourceSnapshot(position="2", orphaned_rows=4)


@pytest.mark.parametrize(
    ("before", "now", "complete"),
    [
        (None, None, False),
        (None, NEW, True),
        (OLD, OLD, False),
        (OLD, NEW, True),
        (OLD, NEW.model_copy(update={"open": {0: 9}}), False),
        # One that was being read when the new one was asked for, and is complete now, is not the new one.
        (OLD.model_copy(update={"open": {0: 9}}), OLD, False),
        (NEW, None, False),
    ],
)
def test_a_snapshot_is_here_when_a_newer_one_is_complete(
    tmp_path: Path, kafka: str, before: SourceSnapshot | None, now: SourceSnapshot | None, complete: bool
) -> None:
    config = config_of(tmp_path)
    (one,) = snapshot_targets(config, MemoryClient(kafka), ["dbo.a"])
    first = first_progress("p.dbo.a", "id", "postgresql", "upsert", ("id",)).next_commit(records=3)
    wanted = SnapshotTarget(one.table, first.model_copy(update={"snapshot": before}))
    found = snapshot_progress(wanted, first.model_copy(update={"snapshot": now, "records": 8}))
    assert found == SnapshotProgress("dbo.a", 5, complete, 4 if complete else None)
    assert snapshot_progress(one, None) == SnapshotProgress("dbo.a", 0, complete=False)


class Clock:
    """Time that passes where somebody sleeps; `then` is what happens meanwhile."""

    def __init__(self, *then: Any) -> None:
        self.now = 0.0
        self._then = list(then)

    def sleep(self, seconds: float) -> None:
        self.now += seconds
        if self._then:
            self._then.pop(0)()

    def __call__(self) -> float:
        return self.now


def test_following_ends_with_the_snapshot_and_tells_each_step(tmp_path: Path, kafka: str) -> None:
    config = config_of(tmp_path)
    commit(config, "a", snapshot=OLD)
    wanted = snapshot_targets(config, MemoryClient(kafka), ["dbo.a"])
    steps = [lambda: commit(config, "a", records=5, snapshot=OLD), lambda: commit(config, "a", records=9, snapshot=NEW)]
    reported: list[SnapshotProgress] = []
    clock = Clock(lambda: None, *steps)
    found = follow(config, wanted, 60, reported.append, None, clock, clock.sleep)
    assert reported == [
        SnapshotProgress("dbo.a", 0, complete=False),
        SnapshotProgress("dbo.a", 4, complete=False),
        SnapshotProgress("dbo.a", 8, complete=True, orphaned_rows=4),
    ]
    assert found == reported[-1:]


def test_following_ends_when_the_time_is_over(tmp_path: Path, kafka: str) -> None:
    config = config_of(tmp_path)
    commit(config, "a", snapshot=OLD)
    wanted = snapshot_targets(config, MemoryClient(kafka), ["dbo.a"])
    clock = Clock()
    with pytest.raises(TransientError, match=r"after 60 s in: dbo\.a") as caught:
        follow(config, wanted, 60, lambda _: None, None, clock, clock.sleep)
    assert code_of(caught) == "snapshot-not-arrived"


def test_following_ends_where_the_table_halts(tmp_path: Path, kafka: str, monkeypatch: pytest.MonkeyPatch) -> None:
    config = config_of(tmp_path)
    wanted = snapshot_targets(config, MemoryClient(kafka), ["dbo.a"])
    halt = {"table": "dbo.a", "code": "key-changed", "message": "m", "fix": "f"}
    monkeypatch.setattr(request, "read_halts", lambda _config: {"p.dbo.a": halt})
    with pytest.raises(TableHalt, match=r"dbo\.a is halted: m") as caught:
        follow(config, wanted, 60, lambda _: None)
    assert code_of(caught) == "key-changed"


@pytest.mark.parametrize("condition", [[], ["--where", "id > 5"]])
def test_the_command_names_what_follows(
    tmp_path: Path, kafka: str, monkeypatch: pytest.MonkeyPatch, condition: list[str]
) -> None:
    config = config_of(tmp_path)
    commit(config, "a", snapshot=OLD)

    def sleep(_seconds: float) -> None:
        commit(config, "a", records=7, snapshot=NEW)

    monkeypatch.setattr(request, "follow", partial(follow, sleep=sleep))
    args = ["dbo.a", "--type", "blocking", "--signal-topic", SIGNALS, "--follow", *condition]
    result = invoke(monkeypatch, kafka, tmp_path, *args)
    assert result.exit_code == 0, result.stderr
    assert "dbo.a: the snapshot is complete, 6 records since the request" in result.stdout
    assert (f"distributary resume -c {tmp_path}/config.yaml dbo.a --reconcile" in result.stdout) == (not condition)
    assert ("do not reconcile" in result.stdout) == bool(condition)
    assert result.stdout.splitlines()[-1].startswith(f"next: distributary verify -c {tmp_path}/config.yaml ")


def notified(id_: str, kind: str, **data: str) -> dict[str, Any]:
    return {"id": id_, "aggregate_type": "Incremental Snapshot", "type": kind, "additional_data": data}


@pytest.fixture
def notify(kafka: str) -> Callable[[dict[str, Any]], None]:
    """Writes a notification as the connector does."""
    memory_kafka.create_topic(kafka, NOTIFICATIONS)
    return lambda value: MemoryClient(kafka).write(NOTIFICATIONS, b"", json.dumps(value).encode())


def test_an_incremental_snapshot_is_followed_by_the_connectors_notifications(
    tmp_path: Path, kafka: str, notify: Callable[[dict[str, Any]], None]
) -> None:
    config, client = config_of(tmp_path), MemoryClient(kafka)
    commit(config, "a", next={0: 0})
    notify(notified("s", "COMPLETED"))  # an old one
    wanted = snapshot_targets(config, client, ["dbo.a"])
    arrival = Arrival(Notifications(client, NOTIFICATIONS, "s"), client, {"p.dbo.a": ("dbo", "a")})
    reported: list[SnapshotProgress] = []

    def rows_come() -> None:
        for number in range(3):
            client.write("p.dbo.a", b"", str(number).encode())
        notify(notified("another", "ABORTED"))
        notify(notified("s", "TABLE_SCAN_COMPLETED", scanned_collection="db.dbo.b", status="SUCCEEDED"))
        done = {"scanned_collection": "db.dbo.a", "status": "SUCCEEDED", "total_rows_scanned": "3"}
        notify(notified("s", "TABLE_SCAN_COMPLETED", **done))

    steps = [
        lambda: notify(notified("s", "STARTED", data_collections="db.dbo.a")),
        rows_come,
        lambda: commit(config, "a", next={0: 1}, records=2),
        lambda: commit(config, "a", next={0: 3}, records=4),
    ]
    clock = Clock(*steps)
    found = follow(config, wanted, 60, reported.append, arrival, clock, clock.sleep)
    assert reported == [
        SnapshotProgress("dbo.a", 0, complete=False),
        SnapshotProgress("dbo.a", 1, complete=False),
        SnapshotProgress("dbo.a", 3, complete=True),
    ]
    assert found == reported[-1:]


@pytest.mark.parametrize(
    ("notification", "code"),
    [
        (notified("s", "ABORTED"), "snapshot-aborted"),
        (
            notified("s", "TABLE_SCAN_COMPLETED", scanned_collection="dbo.a", status="NO_PRIMARY_KEY"),
            "table-not-read",
        ),
    ],
)
def test_a_snapshot_that_the_connector_could_not_take_ends_the_wait(
    tmp_path: Path, kafka: str, notify: Callable[[dict[str, Any]], None], notification: dict[str, Any], code: str
) -> None:
    config, client = config_of(tmp_path), MemoryClient(kafka)
    wanted = snapshot_targets(config, client, ["dbo.a"])
    arrival = Arrival(Notifications(client, NOTIFICATIONS, "s"), client, {"p.dbo.a": ("dbo", "a")})
    clock = Clock(lambda: notify(notification))
    with pytest.raises(TransientError) as caught:
        follow(config, wanted, 60, lambda _: None, arrival, clock, clock.sleep)
    assert code_of(caught) == code


def test_the_command_follows_an_incremental_snapshot(
    tmp_path: Path, kafka: str, monkeypatch: pytest.MonkeyPatch, notify: Callable[[dict[str, Any]], None]
) -> None:
    config = config_of(tmp_path, source={"connector_properties": {"notification.sink.topic.name": NOTIFICATIONS}})
    commit(config, "a", next={0: 0})

    def sleep(_seconds: float) -> None:
        [signal] = MemoryClient(kafka).records(Topic(SIGNALS, "", (0,)), {0: 0}, 10)
        notify(notified(json.loads(signal.value or b"")["id"], "COMPLETED"))

    monkeypatch.setattr(request, "follow", partial(follow, sleep=sleep))
    result = invoke(monkeypatch, kafka, tmp_path, "dbo.a", "--signal-topic", SIGNALS, "--follow")
    assert result.exit_code == 0, result.stderr
    assert "dbo.a: the snapshot is complete, 0 records since the request" in result.stdout
    assert "do not reconcile" in result.stdout
    unknown = invoke(monkeypatch, kafka, tmp_path, "dbo.a", "--follow", "--notifications-topic", "none")
    assert "notifications-topic-unknown" in unknown.stderr
