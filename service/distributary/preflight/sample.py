"""A few records of a topic, with its first and end offsets and its settings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from distributary.consume.kafka_client import KafkaClient, Topic
from distributary.consume.offsets import Offsets
from distributary.consume.sample import SampledRecord
from distributary.ingest.json_records import as_json
from distributary.ingest.registry import Registry

_NEWEST = 20  # records per partition; the oldest alone would not show columns that were added later


@dataclass(frozen=True)
class Sample:
    """A sample of a topic.

    `first` and `end`: the first and the end offset of each partition; `start`: the offsets at which the table
    continues. `head`: records from `start` on, enough to detect the format; `newest`: the last ones of each partition.
    `settings`: the topic's settings, None if this user may not read them.
    """

    topic: Topic
    first: Offsets
    start: Offsets
    end: Offsets
    head: tuple[SampledRecord, ...] = ()
    newest: tuple[SampledRecord, ...] = ()
    settings: Mapping[str, str] | None = None

    @property
    def left(self) -> int:
        """Number of offsets that are not applied yet."""
        return sum(max(0, end - self.start.get(p, 0)) for p, end in self.end.items())

    @property
    def removed(self) -> int:
        """Number of offsets that Kafka has removed."""
        return sum(self.first.values())

    @property
    def cleanup(self) -> tuple[str, ...]:
        """The topic's cleanup.policy: delete, compact, or both; empty if it is not known."""
        policy = (self.settings or {}).get("cleanup.policy", "")
        return tuple(part.strip() for part in policy.split(",") if part.strip())

    def records(self) -> Iterator[SampledRecord]:
        """Each record once, the head first."""
        places = set()
        for record in (*self.head, *self.newest):
            if (place := (record.partition, record.offset)) not in places:
                places.add(place)
                yield record


def sample(
    kafka: KafkaClient,
    topic: Topic,
    next_offsets: Mapping[int, int],
    settings: Mapping[str, str] | None,
    registry: Registry | None,
) -> Sample:
    """A sample of the topic for a table that continues at `next_offsets` (by partition). Records in other formats
    are converted to JSON as Kafka Connect's JsonConverter writes it."""
    first, end = kafka.earliest(topic), kafka.latest(topic)
    # Retention may have removed the record at the table's next offset, and it can't be read there.
    start = {p: max(next_offsets.get(p, 0), first.get(p, 0)) for p in end}
    newest = {p: max(first.get(p, 0), offset - _NEWEST) for p, offset in end.items()}
    return Sample(
        topic=topic,
        first=first,
        start=start,
        end=end,
        head=tuple(as_json(record, registry) for record in kafka.head(topic, start)),
        newest=tuple(as_json(record, registry) for record in kafka.records(topic, newest, _NEWEST)),
        settings=settings,
    )
