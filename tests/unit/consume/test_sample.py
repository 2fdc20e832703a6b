"""The first records of a topic, from which its format is learnt."""

from __future__ import annotations

from typing import Any

import pytest
from confluent_kafka import TIMESTAMP_CREATE_TIME, KafkaError, TopicPartition

from distributary.consume import sample
from distributary.consume.sample import records_from

AT_MOST = 20


class Message:
    """A record, or the end of a partition."""

    def __init__(self, partition: int, offset: int, *, is_end: bool = False) -> None:
        self._partition, self._offset, self._is_end = partition, offset, is_end

    def error(self) -> KafkaError | None:
        return KafkaError(KafkaError._PARTITION_EOF) if self._is_end else None

    def partition(self) -> int:
        return self._partition

    def offset(self) -> int:
        return self._offset

    def key(self) -> bytes:
        return b"{}"

    value = key

    def headers(self) -> None:
        """None."""

    def timestamp(self) -> tuple[int, int]:
        return TIMESTAMP_CREATE_TIME, 1


class EndlessConsumer:
    """Partition 0 never ends. Partition 1 has a record, and offsets without one behind it."""

    polls = 0

    def __init__(self, _options: Any) -> None:
        self._paused: set[int] = set()
        self._offset = 0

    def assign(self, _partitions: list[TopicPartition]) -> None:
        """Both are read from their start."""

    def pause(self, partitions: list[TopicPartition]) -> None:
        self._paused |= {one.partition for one in partitions}

    def poll(self, _seconds: float) -> Message | None:
        EndlessConsumer.polls += 1
        self._offset += 1
        if self._offset <= 2 * AT_MOST and 0 not in self._paused:
            return Message(0, self._offset)
        if self._offset == 2 * AT_MOST + 1 or (0 in self._paused and self._offset == AT_MOST + 1):
            return Message(1, 0)
        if 0 in self._paused:
            return Message(1, 9, is_end=True)
        return Message(0, self._offset)

    def close(self) -> None:
        """Nothing is open."""


def test_a_partition_of_which_enough_is_read_is_not_read_on_for_another_that_has_too_few(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sample, "Consumer", EndlessConsumer)
    found = records_from({}, "t", {0: 0, 1: 0}, AT_MOST, 2 * AT_MOST, timeout=0.5)
    assert [record.partition for record in found] == [0] * AT_MOST + [1]
    assert EndlessConsumer.polls == AT_MOST + 2
