"""The thread that follows the transaction topic: it continues after errors, and stops if the topic is unusable."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType, SimpleNamespace
from typing import Any, cast

import pytest
from structlog.testing import capture_logs
from tests.support.config_files import config_in

from distributary.config import Config
from distributary.consume.kafka_client import KafkaClient, Topic
from distributary.consume.tail import Tailed
from distributary.errors import TransientError
from distributary.observe.status import ServiceStatus
from distributary.storage.json_file import JsonFile
from distributary.transactions import follower
from distributary.transactions.follower import TransactionFollower


class FakeKafka:
    """A Kafka with a transaction topic of so many partitions (0: none), and the topics of `tables`, each of which has
    so many records in its one partition."""

    def __init__(self, partitions: int = 1, tables: Mapping[str, int] = MappingProxyType({})) -> None:
        self.numbers, self.tables = tuple(range(partitions)), tables
        self.faults: list[Exception] = []
        end = {"status": "END", "id": "t1", "ts_ms": 5, "data_collections": []}
        self.values = [json.dumps(value).encode() for value in ({"status": "BEGIN", "id": "t1"}, end)]

    def topics(self, names: list[str]) -> dict[str, Topic]:
        if self.faults:
            raise self.faults.pop()
        return {name: Topic(name, "id", self.numbers) for name in names if self.numbers}

    def partitions(self) -> dict[str, tuple[int, ...]]:
        return {"p.transaction": self.numbers, **dict.fromkeys(self.tables, (0,))}

    def earliest(self, topic: Topic) -> dict[int, int]:
        return dict.fromkeys(topic.partitions, 0)

    def latest(self, topic: Topic) -> dict[int, int]:
        return {0: self.tables[topic.name]}

    def tail(self, _topic: str, offset: int) -> FakeTail:
        return FakeTail(self.values, offset)


class FakeTail:
    def __init__(self, values: list[bytes], offset: int) -> None:
        self.values, self.offset = values, offset

    def read(self, _at_most: int, _timeout: float) -> tuple[list[Tailed], bool]:
        records = [Tailed(o, value, 0) for o, value in enumerate(self.values) if o >= self.offset]
        self.offset = len(self.values)
        return records, True

    def close(self) -> None:
        pass


class FakeNote:
    def __init__(self, value: Any = None) -> None:
        self.value, self.writes = value, 0

    def read(self) -> Any:
        return self.value

    def write(self, value: Any) -> None:
        self.value, self.writes = value, self.writes + 1


@pytest.fixture
def config(tmp_path: Path) -> Config:
    return config_in(tmp_path)


@pytest.fixture
def status() -> ServiceStatus:
    return ServiceStatus()


@pytest.fixture(autouse=True)
def fast(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(follower, "_READ_SECONDS", 0.01)
    monkeypatch.setattr(follower, "_RETRY_AFTER", 0.02)


def follow(
    config: Config,
    kafka: FakeKafka,
    status: ServiceStatus,
    note: FakeNote,
    tables: Mapping[str, Any] = MappingProxyType({}),
) -> tuple[TransactionFollower, threading.Event]:
    found = threading.Event()
    return (
        TransactionFollower(config, cast(KafkaClient, kafka), cast(JsonFile, note), status, lambda: tables, found),
        found,
    )


def wait_until(fulfilled: Callable[[], bool]) -> None:
    until = time.monotonic() + 20
    while not fulfilled():
        assert time.monotonic() < until
        time.sleep(0.01)


SHOWN = {"complete": {"id": "t1", "ts_ms": 5, "versions": {}, "exact": True}, "pending": 0, "waiting_for": []}


def test_faults_are_reported_with_a_code_and_it_continues(config: Config, status: ServiceStatus) -> None:
    kafka, note = FakeKafka(), FakeNote()
    kafka.faults = [RuntimeError("at the second look"), TransientError("kafka-unreachable", "at the first look")]
    with capture_logs() as logs:
        following, found = follow(config, kafka, status, note)
        following.start()
        wait_until(lambda: status.transactions == SHOWN)
        following.stop(to_the_end=False)
    assert [entry["code"] for entry in logs if entry["log_level"] == "warning"] == [
        "kafka-unreachable",
        "unexpected-error",
    ]
    assert found.is_set()
    assert note.value["next"] == 2


def test_an_unordered_topic_is_reported_once_and_left_alone(config: Config, status: ServiceStatus) -> None:
    with capture_logs() as logs:
        following, found = follow(config, FakeKafka(partitions=2), status, FakeNote())
        following.start()
        following.stop(to_the_end=True)
    assert [entry["code"] for entry in logs if entry["log_level"] == "warning"] == ["transactions-unordered"]
    assert not found.is_set()
    assert status.transactions is None


def test_without_such_a_topic_nothing_is_shown_until_there_is_one(config: Config, status: ServiceStatus) -> None:
    kafka = FakeKafka(partitions=0)
    following, found = follow(config, kafka, status, FakeNote())
    following.start()
    time.sleep(0.1)
    assert status.transactions is None
    assert not found.is_set()
    kafka.numbers = (0,)
    wait_until(lambda: status.transactions == SHOWN)
    following.stop(to_the_end=True)


@pytest.mark.parametrize("noted", ["text", {"topic_id": "id"}, {"topic_id": "of the topic before", "next": 2}])
def test_a_note_that_can_not_be_used_means_from_the_beginning(
    config: Config, status: ServiceStatus, noted: Any
) -> None:
    following, _ = follow(config, FakeKafka(), status, FakeNote(noted))
    following.start()
    following.stop(to_the_end=True)
    assert status.transactions == SHOWN


@pytest.mark.parametrize(("version", "result"), [(7, {"p.s.t": 7}), (9, {"p.s.t": 7}), (3, {})])
def test_3_9_a_claim_is_saved_again_where_only_its_versions_change(
    config: Config, status: ServiceStatus, version: int, result: dict[str, int]
) -> None:
    """A table that was filled again has lower versions, which must not be taken for those of the claim."""
    claim = {"topic_id": "id", "next": 2, "complete": {"id": "t1", "ts_ms": 5}, "held": {"p.s.t": {"0": 5}}}
    note = FakeNote({**claim, "versions": {"p.s.t": 7}})
    progress = SimpleNamespace(next={0: 5}, last={}, connector="postgresql", snapshot_ts_ms=None)
    head = SimpleNamespace(version=version, progress=progress)
    cursor = SimpleNamespace(first={0: 0}, head=head)
    table = SimpleNamespace(name="s.t", cursor=cursor, progress=progress)
    following, _ = follow(config, FakeKafka(tables={"p.s.t": 5}), status, note, {"p.s.t": table})
    following.start()
    following.stop(to_the_end=True)
    assert note.value == {**claim, "versions": result, **({} if result else {"exact": False})}
    assert note.writes == (result == {})
    assert status.transactions is not None
    versions = {"s.t": 7} if result else {}
    assert status.transactions["complete"] == {"id": "t1", "ts_ms": 5, "versions": versions, "exact": False}
