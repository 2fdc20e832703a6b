"""The connector's notifications (Debezium's `notification.enabled.channels: sink`): they report the progress and end of
an incremental snapshot, whose rows do not mark its end."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from distributary.config import Config
from distributary.consume.kafka_client import KafkaClient
from distributary.consume.offsets import Offsets
from distributary.control.signals import Name, parts_of
from distributary.errors import TransientError, UsageError
from distributary.ingest.record_form import parse_payload
from distributary.progress.record import Progress

TOPIC_SETTING = "notification.sink.topic.name"
"""The connector's setting with the topic's name."""
_AT_ONCE = 1_000
_COMPLETED = ("SUCCEEDED", "EMPTY")
"""Statuses of a table that was read. The other statuses are reasons why it was not."""


@dataclass(frozen=True)
class TableRead:
    """The connector has read a table to its end; `rows` is the number of rows, if it reports it."""

    rows: int | None


class Notifications:
    """Those of one snapshot, from now on. `topic`: of the notifications; `id_`: of the signal."""

    def __init__(self, kafka: KafkaClient, topic: str, id_: str) -> None:
        """Raises UsageError if there is no such topic, TransientError if Kafka does not answer."""
        notification_topic = kafka.topics([topic]).get(topic)
        if notification_topic is None:
            raise UsageError(
                "notifications-topic-unknown",
                f"Kafka has no topic {topic}, or this user may not see it",
                f"use the connector's {TOPIC_SETTING}, with `sink` in notification.enabled.channels",
            )
        self._kafka, self._topic, self._id = kafka, notification_topic, id_
        self._next: Offsets = dict(kafka.latest(notification_topic))
        self._completed: dict[Name, TableRead] = {}
        self._is_complete = False

    def poll(self) -> None:
        """Reads what came since the last time. Raises TransientError if the snapshot ended without some table."""
        ends = self._kafka.latest(self._topic)
        if all(self._next.get(p, 0) >= end for p, end in ends.items()):
            return
        for record in self._kafka.records(self._topic, self._next, _AT_ONCE):
            self._next = {**self._next, record.partition: record.offset + 1}
            value, _ = parse_payload(record.value)
            if isinstance(value, dict) and value.get("id") == self._id:
                self._add(value)

    def read_of(self, name: Name) -> TableRead | None:
        """The connector's report on the table of this name in the signal; None until the snapshot of it has ended."""
        for other, read in self._completed.items():
            shorter = min(len(name), len(other))
            if name[-shorter:] == other[-shorter:]:
                return read
        return TableRead(None) if self._is_complete else None

    def _add(self, value: Mapping[str, Any]) -> None:
        kind = value.get("type")
        data = value.get("additional_data")
        data = data if isinstance(data, dict) else {}
        if kind == "COMPLETED":
            self._is_complete = True
        elif kind == "ABORTED":
            raise TransientError(
                "snapshot-aborted",
                "the connector aborted the snapshot",
                "find the cause in the connector's log, and request the snapshot again",
            )
        elif kind == "TABLE_SCAN_COMPLETED":
            table, status = str(data.get("scanned_collection", "")), str(data.get("status", _COMPLETED[0]))
            if status not in _COMPLETED:
                raise TransientError(
                    "table-not-read",
                    f"the connector did not read {table}: {status}",
                    "an incremental snapshot needs a primary key, or surrogate-key in the signal; the connector's log"
                    " has more",
                )
            rows = str(data.get("total_rows_scanned", ""))
            self._completed[parts_of(table)] = TableRead(int(rows) if rows.isdecimal() else None)


class Arrival:
    """Whether the rows of an incremental snapshot are applied: all that a table's topic had when the connector had read
    the table to its end. `names`: the tables' names in the signal, by their topics."""

    def __init__(self, notifications: Notifications, kafka: KafkaClient, names: Mapping[str, Name]) -> None:
        self._notifications, self._kafka, self._names = notifications, kafka, names
        self._was_read: set[str] = set()
        self._ends: dict[str, Offsets] = {}

    def poll(self) -> None:
        """See Notifications.poll."""
        self._notifications.poll()
        for topic, name in self._names.items():
            if topic in self._ends or self._notifications.read_of(name) is None:
                continue
            # One poll later: the rows are sent before the notification, but by way of another partition.
            if topic in self._was_read and (known_topic := self._kafka.topics([topic]).get(topic)) is not None:
                self._ends[topic] = self._kafka.latest(known_topic)
            self._was_read.add(topic)

    def is_complete(self, topic: str, progress: Progress | None) -> bool:
        """Whether the table of the topic has all rows."""
        ends = self._ends.get(topic)
        return ends is not None and progress is not None and all(progress.next.get(p, 0) >= n for p, n in ends.items())


def notifications_topic(config: Config, given: str | None) -> str | None:
    """The topic as given, or as the connector's settings in the config have it; None if neither has it."""
    return given or config.source.connector_properties.get(TOPIC_SETTING)
