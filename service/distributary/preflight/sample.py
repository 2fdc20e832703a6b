"""A few records of a topic, with what Kafka says of it: where it begins and ends, and how long it keeps records."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from distributary.consume.broker import Broker, Topic
from distributary.consume.offsets import Offsets
from distributary.consume.peek import Record
from distributary.ingest.json_records import as_json
from distributary.ingest.registry import Registry

_NEWEST = 20  # records per partition; columns that came later are in them


@dataclass(frozen=True)
class Sample:
    """`first` and `end` are the offsets that each partition begins and ends with, `start` those from which a table goes
    on. `head` are the records from there on that tell the table's format, `newest` the last ones of each partition.
    `settings` are the topic's own; None where they may not be seen."""

    topic: Topic
    first: Offsets
    start: Offsets
    end: Offsets
    head: tuple[Record, ...] = ()
    newest: tuple[Record, ...] = ()
    settings: Mapping[str, str] | None = None

    @property
    def left(self) -> int:
        """How many offsets are still to be applied."""
        return sum(max(0, end - self.start.get(p, 0)) for p, end in self.end.items())

    @property
    def removed(self) -> int:
        """How many offsets Kafka no longer has."""
        return sum(self.first.values())

    @property
    def cleanup(self) -> tuple[str, ...]:
        """The topic's cleanup.policy: delete, compact, or both; nothing where that is not known."""
        policy = (self.settings or {}).get("cleanup.policy", "")
        return tuple(part.strip() for part in policy.split(",") if part.strip())

    def records(self) -> Iterator[Record]:
        """Each record once, the head first."""
        seen = set()
        for record in (*self.head, *self.newest):
            if (place := (record.partition, record.offset)) not in seen:
                seen.add(place)
                yield record


def sample(
    broker: Broker,
    topic: Topic,
    taken: Mapping[int, int],
    settings: Mapping[str, str] | None,
    registry: Registry | None,
) -> Sample:
    """A sample of the topic, for a table that has applied `taken` (next offset per partition). Its records are as
    JsonConverter would have written them, whatever they are on the wire."""
    first, end = broker.earliest(topic), broker.latest(topic)
    # Where retention ran past the table nothing can be read at the offset that it asks for.
    start = {p: max(taken.get(p, 0), first.get(p, 0)) for p in end}
    newest = {p: max(first.get(p, 0), offset - _NEWEST) for p, offset in end.items()}
    return Sample(
        topic=topic,
        first=first,
        start=start,
        end=end,
        head=tuple(as_json(record, registry) for record in broker.head(topic, start)),
        newest=tuple(as_json(record, registry) for record in broker.records(topic, newest, _NEWEST)),
        settings=settings,
    )
