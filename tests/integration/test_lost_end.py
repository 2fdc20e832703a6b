"""A Kafka that lost the end of a partition, as by an unclean leader election, and uses its offsets again."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from tests.support.changes import Topic
from tests.support.kafka import connect_anew, end_offsets, produce
from tests.support.spark import new_bench

from distributary.demo.broker import Broker
from distributary.demo.process import free_ports
from distributary.errors import TableHalt
from distributary.halt_actions import ResumeAction

_HEAD = struct.Struct(">qi")  # of a batch in a segment: its first offset, and how many bytes follow


class Cut:
    """A broker of its own, whose partitions can lose their end."""

    def __init__(self, folder: Path) -> None:
        [self._port] = free_ports(1)
        self._folder = folder
        self.broker = Broker.start(folder, port=self._port)

    def lose(self, topic: str, before: int) -> None:
        """Removes the partition's records from that offset on, without a trace of them."""
        self.broker.stop()
        data = self._folder / "data"
        [segment] = (data / f"{topic}-0").glob("*.log")
        content, at = segment.read_bytes(), 0
        while at < len(content):
            first, size = _HEAD.unpack_from(content, at)
            if first >= before:
                break
            at += _HEAD.size + size
        assert 0 < at < len(content)
        segment.write_bytes(content[:at])
        for left in (*segment.parent.glob("*.*index"), *segment.parent.glob("*.snapshot")):
            left.unlink()
        for name in (".kafka_cleanshutdown", "recovery-point-offset-checkpoint", "replication-offset-checkpoint"):
            (data / name).unlink(missing_ok=True)
        self.broker = Broker.start(self._folder, port=self._port)
        connect_anew(self.broker.bootstrap)


@pytest.fixture
def cut(tmp_path: Path) -> Iterator[Cut]:
    found = Cut(tmp_path / "kafka")
    yield found
    found.broker.stop()


@pytest.mark.parametrize("driver", ["the same", "a new one"])
def test_6_4_a_table_does_not_pass_over_records_that_get_the_offsets_of_lost_ones(
    session: SparkSession, cut: Cut, tmp_path: Path, driver: str
) -> None:
    bench = new_bench(session, cut.broker.bootstrap, tmp_path).create()
    topic = Topic(bench.topic)
    for number in range(1, 7):
        produce(bench.kafka, [topic.change("c", {"id": number}, {"id": number, "v": "a"}, at=number)])
    worker = bench.take([])
    assert worker.next_offsets == {0: 6}
    cut.lose(bench.topic, 3)
    assert end_offsets(bench.kafka, bench.topic) == {0: 3}
    again = [topic.change("u", {"id": 1}, {"id": 1, "v": "b"}, at=7)]  # at an offset that was applied
    worker = worker if driver == "the same" else bench.worker()
    with pytest.raises(TableHalt, match="offsets 4 to 5 of partition 0"):
        bench.take(again, worker)
    # The topic grows on behind what was applied, and nothing in it shows any more what it had lost.
    again += [topic.change("u", {"id": n}, {"id": n, "v": "b"}, at=n + 6) for n in range(2, 6)]
    restarted = bench.worker()
    with pytest.raises(TableHalt, match="topic-shorter"):
        bench.take(again[1:], restarted)
    assert bench.rows() == [(number, "a") for number in range(1, 7)]
    restarted.resume(ResumeAction.RESET)
    bench.take([], restarted)
    assert bench.rows() == [*((number, "b") for number in range(1, 6)), (6, "a")]
    assert restarted.next_offsets == {0: 8}
