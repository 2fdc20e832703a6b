"""The start of reading a topic, as an operator gives it: offsets, a time, or the first record."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from distributary.errors import UsageError

if TYPE_CHECKING:
    from distributary.consume.kafka_client import KafkaClient, Topic
    from distributary.consume.offsets import Offsets

_ENTRY = re.compile(r"([0-9]+):([0-9]+)")


@dataclass(frozen=True)
class StartingPoint:
    """`offsets` by partition, or a `time` in milliseconds since 1970; neither for the first records that Kafka has."""

    offsets: Mapping[int, int] | None = None
    time: int | None = None

    def of(self, topic: Topic, kafka: KafkaClient) -> Offsets:
        """The offset of each partition. Raises UsageError if the topic can't be read from there."""
        first, end = kafka.earliest(topic), kafka.latest(topic)
        if self.time is not None:
            return kafka.at_time(topic, self.time)
        if self.offsets is None:
            return first
        return checked(self.offsets, topic.name, first, end)


def starting_point(offsets: str | None, time: str | None) -> StartingPoint:
    """Parses an operator's text: `0:1234,1:88`, and ISO 8601 with a zone. Raises UsageError."""
    if offsets is not None and time is not None:
        raise UsageError("one-start", "--from-offsets and --from-time in one command", "give one of them")
    return StartingPoint(
        None if offsets is None else _read_offsets(offsets), None if time is None else _read_time(time)
    )


def checked(offsets: Mapping[int, int], topic: str, first: Offsets, end: Offsets) -> Offsets:
    """The offsets, once it is known that the topic, with these first and next offsets, can be read from there."""
    wrong = [f"partition {p} is none of the topic" for p in sorted(offsets.keys() - end.keys())]
    wrong += [f"partition {p} has no offset given" for p in sorted(end.keys() - offsets.keys())]
    for p in sorted(offsets.keys() & end.keys()):
        if not first[p] <= offsets[p] <= end[p]:
            wrong.append(f"partition {p} has the offsets {first[p]} to {end[p]}, not {offsets[p]}")
    if wrong:
        raise UsageError(
            "no-such-offsets",
            f"{topic} can't be read from these offsets: {'; '.join(wrong)}",
            "give the offset of the first record that is to be applied, for each partition (0:1234,1:88). If Kafka no"
            " longer has it, start from what it has, and have the connector send a snapshot",
        )
    return dict(offsets)


def _read_offsets(text: str) -> dict[int, int]:
    offsets: dict[int, int] = {}
    for part in text.split(","):
        entry = _ENTRY.fullmatch(part.strip())
        if entry is None or int(entry[1]) in offsets:
            raise UsageError(
                "bad-offsets",
                f"--from-offsets {text} is no list of offsets by partition",
                "write partition:offset once for each partition, with commas between: 0:1234,1:88",
            )
        offsets[int(entry[1])] = int(entry[2])
    return offsets


def _read_time(text: str) -> int:
    try:
        # Python 3.10 does not read the Z.
        time = datetime.fromisoformat(text.strip().replace("Z", "+00:00").replace("z", "+00:00"))
    except ValueError:
        time = None
    if time is None or time.tzinfo is None:
        raise UsageError(
            "bad-time",
            f"--from-time {text} is no time with a zone",
            "write it as ISO 8601 does: 2026-01-31T06:00:00Z",
        )
    return int(time.timestamp() * 1000)
