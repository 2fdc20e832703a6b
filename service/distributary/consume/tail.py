"""Follows a topic of one partition, record by record."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from confluent_kafka import Consumer, KafkaError, Message, TopicPartition

from distributary.consume.kafka_errors import refusal
from distributary.decode.envelope import UNREADABLE_HEADERS

NO_GROUP = KafkaError.GROUP_AUTHORIZATION_FAILED
"""Told to a consumer that may not use its group. One that is given its partitions and offsets needs none."""

Headers = tuple[tuple[str, bytes | None], ...]


@dataclass(frozen=True)
class Tailed:
    """A record: its offset, its value, its time in milliseconds since 1970, and its headers."""

    offset: int
    value: bytes | None
    timestamp_ms: int
    headers: Headers = ()


class Tail:
    """Reads the committed records of partition 0 of a topic, from an offset on."""

    def __init__(self, options: Mapping[str, str | int | float | bool], topic: str, offset: int) -> None:
        self._topic = topic
        self._at_end = False
        self._consumer = Consumer(
            {
                **options,
                "group.id": "distributary-tail",
                "enable.auto.commit": False,
                "enable.partition.eof": True,
                "isolation.level": "read_committed",
                # Missing records must be an error, and not be skipped.
                "auto.offset.reset": "error",
            }
        )
        self._consumer.assign([TopicPartition(topic, 0, offset)])

    def read(self, at_most: int, timeout: float) -> tuple[list[Tailed], bool]:
        """The next records, those of at most so many seconds, and whether they are the last ones so far.

        Raises TransientError.
        """
        records: list[Tailed] = []
        until = time.monotonic() + timeout
        while len(records) < at_most and (seconds_left := until - time.monotonic()) > 0:
            message = self._consumer.poll(seconds_left)
            if message is None:
                break
            error = message.error()
            if error is not None:
                if error.code() == KafkaError._PARTITION_EOF:
                    self._at_end = True
                    break
                if error.code() == NO_GROUP:
                    continue
                raise refusal(f"give records of {self._topic}", error)
            self._at_end = False
            offset = message.offset()
            assert offset is not None
            records.append(Tailed(offset, message.value(), message.timestamp()[1], headers_of(message)))
        return records, self._at_end

    def close(self) -> None:
        """Ends it."""
        self._consumer.close()


def headers_of(message: Message) -> Headers:
    """The headers of one of the client's messages; UNREADABLE_HEADERS alone where a name is not UTF-8."""
    try:
        # The client's types allow for more than it gives: a list of pairs of name and bytes.
        pairs: Iterable[Any] | None = message.headers()
        # The client sets an error although it returns something, which Python notices at once or not: the end of a loop
        # over a dict is where it always looks.
        for _ in {}:
            pass
        return tuple((str(pair[0]), pair[1]) for pair in pairs) if pairs else ()
    except (SystemError, UnicodeDecodeError):  # of the client, which then gives none of the record's headers
        return ((UNREADABLE_HEADERS, None),)
