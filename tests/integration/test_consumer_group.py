"""The consumer group for lag tools, on a real Kafka."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

import pytest
import structlog
import yaml
from confluent_kafka import Consumer, KafkaException
from tests.support.kafka import TIMEOUT, committed_offsets, create_topic
from tests.support.waiting import wait_until

from distributary.config import Config, load
from distributary.consume.kafka_client import KafkaClient
from distributary.consume.offsets import Offsets
from distributary.observe.consumer_group import ConsumerGroup


@pytest.fixture
def prefix(kafka: str) -> str:
    """Of a source with two topics of two partitions each."""
    prefix = f"lag{uuid.uuid4().hex[:12]}"
    for table in ("one", "two"):
        create_topic(kafka, f"{prefix}.dbo.{table}", partitions=2)
    return prefix


def config_of(kafka: str, prefix: str, folder: Path, **group: object) -> Config:
    text = {
        "version": 1,
        "kafka": {"bootstrap.servers": kafka},
        "source": {"topic_prefix": prefix},
        "target": {"path": str(folder / "lake")},
        "checkpoint": str(folder / "checkpoint"),
        "tables": [{"match": "*.*"}],
        "consumer_group": group,
    }
    file = folder / "config.yaml"
    file.write_text(yaml.safe_dump(text), encoding="utf-8")
    return load(file)


def wait_for_offsets(kafka: str, group: str, offsets: Mapping[tuple[str, int], int]) -> None:
    """Waits until the group has these, and no other."""

    def are_there() -> bool:
        with suppress(KafkaException):  # a broker that has just started has to find its groups first
            return committed_offsets(kafka, group) == offsets
        return False

    wait_until(are_there, TIMEOUT, f"{offsets} of {group}", every=0.2)


def test_lag_tools_see_what_the_tables_have_taken_in(kafka: str, prefix: str, tmp_path: Path) -> None:
    config = config_of(kafka, prefix, tmp_path)
    group = ConsumerGroup(config, KafkaClient(config.kafka_properties()).commit, pause=0.1)
    group.start()
    group.report(f"{prefix}.dbo.one", {0: 5, 1: 7})
    name = f"distributary-{prefix}"
    wait_for_offsets(kafka, name, {(f"{prefix}.dbo.one", 0): 5, (f"{prefix}.dbo.one", 1): 7})
    group.report(f"{prefix}.dbo.one", {0: 6, 1: 7})
    group.report(f"{prefix}.dbo.two", {1: 1})
    group.report(f"{prefix}.dbo.gone", {0: 3})  # a topic that was deleted meanwhile holds up no other
    group.stop()  # what it was told last is committed before it ends
    assert committed_offsets(kafka, name) == {
        (f"{prefix}.dbo.one", 0): 6,
        (f"{prefix}.dbo.one", 1): 7,
        (f"{prefix}.dbo.two", 1): 1,
    }


def test_a_table_that_is_started_again_from_lower_offsets_is_seen_so(kafka: str, prefix: str, tmp_path: Path) -> None:
    config = config_of(kafka, prefix, tmp_path, name=f"{prefix}-mine")
    for offset in (9, 2):
        group = ConsumerGroup(config, KafkaClient(config.kafka_properties()).commit)
        group.report(f"{prefix}.dbo.one", {0: offset})
        group.start()
        group.stop()
    assert committed_offsets(kafka, f"{prefix}-mine") == {(f"{prefix}.dbo.one", 0): 2}


def test_a_group_that_refuses_is_told_once_and_tried_again(
    kafka: str, prefix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("distributary.observe.consumer_group.PAUSE_AFTER_FAULT", 0.2)
    config = config_of(kafka, prefix, tmp_path)
    name, topic = config.consumer_group_name(), f"{prefix}.dbo.one"
    # Somebody consumes under the same name: Kafka takes offsets from the group's members alone.
    member = Consumer({"bootstrap.servers": kafka, "group.id": name, "enable.auto.commit": False, "log_level": 0})
    member.subscribe([topic])
    wait_until(lambda: member.poll(0.2) is None and member.assignment(), TIMEOUT, "the member's assignment")
    broker, tries = KafkaClient(config.kafka_properties()), []

    def commit(group: str, offsets: Mapping[str, Offsets]) -> None:
        tries.append(offsets)
        broker.commit(group, offsets)

    with structlog.testing.capture_logs() as logs:
        group = ConsumerGroup(config, commit, pause=0.1)
        group.report(topic, {0: 4})
        group.start()
        wait_until(lambda: len(tries) >= 3, TIMEOUT, "three tries")
        member.close()
        wait_for_offsets(kafka, name, {(topic, 0): 4})
        group.stop()
    warnings = [line for line in logs if line["log_level"] == "warning"]
    assert [line["code"] for line in warnings] == ["kafka-group-offsets"]
    assert name in warnings[0]["reason"]
    assert "consumer_group" in warnings[0]["fix"]
    assert [line["event"] for line in logs if line["log_level"] == "info"] == [
        "offsets are committed to the consumer group again"
    ]


def test_a_group_that_is_switched_off_is_never_made(kafka: str, prefix: str, tmp_path: Path) -> None:
    config = config_of(kafka, prefix, tmp_path, enabled=False)
    group = ConsumerGroup(config, KafkaClient(config.kafka_properties()).commit, pause=0.1)
    group.start()
    group.report(f"{prefix}.dbo.one", {0: 5})
    group.stop()  # where there is one, this commits
    assert committed_offsets(kafka, config.consumer_group_name()) == {}
