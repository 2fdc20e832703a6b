"""The broker from its jars: it returns what was written, and leaves nothing behind when it is stopped."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import uuid
from pathlib import Path
from typing import cast

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from tests.support.kafka import Record, create_topic, end_offsets, produce
from tests.support.memory_kafka import murmur2
from tests.support.waiting import wait_until

from distributary.demo.broker import Broker
from distributary.errors import SetupError

SECONDS = 30


def read(bootstrap: str, topic: str, count: int) -> list[Record]:
    """The first records of a topic, partition by partition."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "read", "auto.offset.reset": "earliest"})
    consumer.assign([TopicPartition(topic, partition, 0) for partition in end_offsets(bootstrap, topic)])
    messages = consumer.consume(count, SECONDS)
    consumer.close()
    records = []
    for message in messages:
        assert message.error() is None
        timestamp = message.timestamp()[1]
        headers = cast("list[tuple[str, bytes | None]]", message.headers() or [])
        records.append(Record(topic, message.partition(), message.key(), message.value(), headers, timestamp))
    return sorted(records, key=lambda record: record.partition or 0)


def listens(bootstrap: str) -> bool:
    host, _, port = bootstrap.rpartition(":")
    with socket.socket() as probe:
        return probe.connect_ex((host, int(port))) == 0


def test_records_keep_place_order_headers_and_time(kafka: str) -> None:
    topic = f"broker.{uuid.uuid4().hex}"
    create_topic(kafka, topic, 2)
    sent = [
        Record(topic, 0, b"k", b"first", [("name", b"value"), ("empty", b""), ("null", None)], 1_000),
        Record(topic, 0, None, None, [], 999),
        Record(topic, 1, b"", b"", [], 2**40),
    ]
    produce(kafka, sent)
    assert end_offsets(kafka, topic) == {0: 2, 1: 1}
    assert read(kafka, topic, 3) == sent


def test_a_key_decides_the_partition_as_with_kafkas_own_clients(kafka: str) -> None:
    topic = f"broker.{uuid.uuid4().hex}"
    create_topic(kafka, topic, 6)
    keys = [b"21", b"foobar", b"a-little-bit-long-string", b'{"id":1}']
    produce(kafka, [Record(topic, key=key, value=b"") for key in keys])
    # murmur2 of the key modulo 6, as Kafka's Java client counts it.
    assert {record.key: record.partition for record in read(kafka, topic, 4)} == {key: murmur2(key) % 6 for key in keys}


def test_topics_are_not_made_by_themselves(tmp_path: Path) -> None:
    with Broker.start(tmp_path) as broker:
        # A producer's question for a topic is what makes it where brokers allow that.
        producer = Producer({"bootstrap.servers": broker.bootstrap})
        assert producer.list_topics("unknown", timeout=SECONDS).topics["unknown"].error is not None
        assert "unknown" not in producer.list_topics(timeout=SECONDS).topics


def test_a_stopped_broker_goes_on_with_its_directory(tmp_path: Path) -> None:
    with Broker.start(tmp_path) as broker:
        create_topic(broker.bootstrap, "kept")
        produce(broker.bootstrap, [Record("kept", value=b"1")])
        port = int(broker.bootstrap.rpartition(":")[2])
    assert not listens(broker.bootstrap)
    with Broker.start(tmp_path, port=port) as again:
        assert again.bootstrap == broker.bootstrap
        assert [record.value for record in read(again.bootstrap, "kept", 1)] == [b"1"]


def test_a_broker_dies_with_the_process_that_started_it(tmp_path: Path) -> None:
    code = (
        "import sys, time, pathlib\n"
        "from distributary.demo.broker import Broker\n"
        "print(Broker.start(pathlib.Path(sys.argv[1])).bootstrap, flush=True)\n"
        "time.sleep(600)\n"
    )
    with subprocess.Popen([sys.executable, "-c", code, str(tmp_path)], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        bootstrap = parent.stdout.readline().strip()
        assert listens(bootstrap)
        os.kill(parent.pid, signal.SIGKILL)
    wait_until(lambda: not listens(bootstrap), SECONDS, "the end of the broker after that of its parent")


def test_a_broker_that_does_not_come_up_quotes_its_log(tmp_path: Path) -> None:
    with pytest.raises(SetupError, match=r"num\.network\.threads") as caught:
        Broker.start(tmp_path, properties={"num.network.threads": "none"})
    assert caught.value.code == "server-not-ready"
