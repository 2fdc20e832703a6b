"""From sent records to the topic: records sent again, spread over partitions, compacted.

A delivery is data, so that a failing case can be kept. Its numbers count sent records, modulo their total, so that
every delivery fits every history.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import accumulate
from typing import Any

from tests.model.source.sent import TOMBSTONE, Sent

Json = Any
START_MS = 1_750_000_000_000
"""Kafka's timestamp of the first record."""
REST_MS = 2 * 3_600_000
"""The length of a source's rest."""


@dataclass(frozen=True)
class Again:
    """After record `after` the `back` changes up to it are sent again, and the stream goes on behind them.

    `only`: no more than so many of them (a producer's repetition, not a restart). `unknowing`: a PostgreSQL connector
    that does not know the commit before the first transaction that it sends again.
    """

    after: int
    back: int
    only: int | None = None
    unknowing: bool = False


@dataclass(frozen=True)
class Delivery:
    """How records get to the table.

    `partitions` the topic has at first, `more` from record `grown` on (0: never). The table is first read when
    `first_read` records were sent: it takes those in the order of their time (0: it reads from the start on). Below
    record `compacted` only each key's last record is left in its partition. `pauses`: records before which the service
    has applied all that came earlier. `held`: what comes into this partition, from the first pause on, is applied only
    after all else. `at_most`: records in a batch. `rests`: records before whose transaction two hours pass in which
    nothing happens. What is sent again is no older than the last rest but one; what was sent before a rest,
    only when the connector was down meanwhile.
    """

    again: tuple[Again, ...] = ()
    tombstones: bool = True
    partitions: int = 1
    more: int = 0
    grown: int = 0
    first_read: int = 0
    compacted: int = 0
    pauses: tuple[int, ...] = ()
    held: int | None = None
    at_most: int = 1000
    rests: tuple[int, ...] = ()

    def to_json(self) -> Json:
        """The fields that differ from the plain delivery."""
        plain = asdict(Delivery())
        return {name: value for name, value in asdict(self).items() if value != plain[name]}

    @staticmethod
    def from_json(document: Json) -> Delivery:
        """The inverse of to_json."""
        again = tuple(Again(**entry) for entry in document.get("again", ()))
        places = {name: tuple(document.get(name, ())) for name in ("pauses", "rests")}
        return Delivery(**{**document, "again": again, **places})


@dataclass(frozen=True)
class Arrived:
    """A sent record with its partition and offset. `phase` counts the pauses before the service may see it; `sending`
    counts records in the order in which they were sent. `is_after_growth`: the topic had got more partitions."""

    sent: Sent
    partition: int
    offset: int
    timestamp: int
    phase: int = 0
    sending: int = field(default=0, compare=False)
    is_after_growth: bool = field(default=False, compare=False)


def delivered(stream: Sequence[Sent], delivery: Delivery) -> list[Arrived]:
    """The records of the topic in the order of sending."""
    rested = _Rests(stream, delivery.rests)
    sendings, clocks = _sent_again(rested.stream, delivery.again, rested)
    if not delivery.tombstones:
        kept = [number for number, sent in enumerate(sendings) if sent.op != TOMBSTONE]
        sendings, clocks = [sendings[number] for number in kept], [clocks[number] for number in kept]
    count = max(1, len(sendings))
    grown = delivery.grown % count if delivery.grown else count
    if delivery.first_read:
        # A transaction that is in two partitions, and sent again, is only told apart where the growth was seen.
        grown = _next_transaction(sendings, grown)
    pauses = sorted({pause % count for pause in delivery.pauses} - {0})
    arrived = []
    for number, sent in enumerate(sendings):
        partition = _partition(sent, number, delivery.partitions if number < grown else delivery.more)
        phase = sum(pause <= number for pause in pauses)
        if pauses and phase and partition == delivery.held:
            phase = len(pauses) + 1
        timestamp = START_MS + number + clocks[number] * REST_MS
        arrived.append(Arrived(sent, partition, 0, timestamp, phase, number, number >= grown))
    return _numbered(_compacted(arrived, delivery.compacted % count))


def grows_unseen(delivery: Delivery, arrived: Sequence[Arrived]) -> bool:
    """Whether the topic got more partitions before the table was first read."""
    return any(record.is_after_growth for record in arrived[: read_at_first(delivery, arrived)])


def read_at_first(delivery: Delivery, arrived: Sequence[Arrived]) -> int:
    """How many of the records were there when the table was first read."""
    if not delivery.first_read or not arrived:
        return 0
    first = delivery.first_read % (1 + arrived[-1].sending)
    return sum(record.sending <= first for record in arrived)


def _next_transaction(sendings: Sequence[Sent], number: int) -> int:
    """The first record from `number` on that begins a transaction."""
    while 0 < number < len(sendings) and sendings[number].entry == sendings[number - 1].entry:
        number += 1
    return number


class _Rests:
    """The number of rests before each record; `stream`: the records with their times."""

    def __init__(self, stream: Sequence[Sent], places: Iterable[int]) -> None:
        self._entries = sorted({stream[place % len(stream)].entry for place in places} if stream else ())
        self.stream = [self._later(sent) for sent in stream]

    def before(self, sent: Sent) -> int:
        """The number of rests before a record."""
        return sum(entry <= sent.entry for entry in self._entries)

    def _later(self, sent: Sent) -> Sent:
        count = self.before(sent)
        if not count:
            return sent
        units = {"ts_ms": 1, "ts_us": 1_000, "ts_ns": 1_000_000}
        times = {
            name: sent.source[name] + count * REST_MS * unit for name, unit in units.items() if name in sent.source
        }
        return replace(sent, source={**sent.source, **times})


def _sent_again(stream: Sequence[Sent], repetitions: Iterable[Again], rests: _Rests) -> tuple[list[Sent], list[int]]:
    """The stream with the repeated records, each repetition from the start of a change, and the number of rests before
    each record."""
    sendings: list[Sent] = []
    clocks: list[int] = []
    # Kafka's clock never goes back: what a blocking snapshot kept from being sent comes after its rows.
    clock_at = list(accumulate(map(rests.before, stream), max))
    waiting = sorted(repetitions, key=lambda again: again.after % max(1, len(stream)))
    unknown = -1
    for number, sent in enumerate(stream):
        sendings.append(_without_level(sent) if sent.entry == unknown else sent)
        clocks.append(clock_at[number])
        while waiting and waiting[0].after % len(stream) == number:
            again = waiting.pop(0)
            part = _repeated(stream, number, again)
            clock = clock_at[min(number + 1, len(stream) - 1)]
            part = [one for one in part if rests.before(one) >= clock - 1]
            if again.unknowing and again.only is None and part:
                unknown = part[0].entry
                part = [_without_level(sent) if sent.entry == unknown else sent for sent in part]
            sendings += part
            clocks += [clock] * len(part)
    return sendings, clocks


def _repeated(stream: Sequence[Sent], number: int, again: Again) -> list[Sent]:
    groups = sorted({sent.group for sent in stream[: number + 1]})[-max(1, again.back) :]
    if again.only is not None:
        # A producer repeats whole batches: never a delete's tombstone alone, never a delete without its tombstone.
        whole = groups[: again.only]
        return [sent for sent in stream[: number + 1] if sent.group in whole]
    first = next(index for index, sent in enumerate(stream) if sent.group == groups[0])
    # A restarted connector reads a snapshot's rows anew, if at all: those are other records.
    return [sent for sent in stream[first : number + 1] if sent.op != "r"]


def _without_level(sent: Sent) -> Sent:
    sequence = sent.source.get("sequence")
    if sequence is None or sent.op == "r":
        return sent
    unknown = json.dumps([None, json.loads(sequence)[1]], separators=(",", ":"))
    return replace(sent, source={**sent.source, "sequence": unknown})


def _partition(sent: Sent, number: int, partitions: int) -> int:
    key = f"truncate {number}" if sent.key is None else json.dumps(sent.key)
    return zlib.crc32(key.encode()) % max(1, partitions)


def _compacted(arrived: list[Arrived], until: int) -> list[Arrived]:
    last: dict[tuple[int, str], int] = {}
    for record in arrived[:until]:
        last[record.partition, json.dumps(record.sent.key)] = record.sending
    kept = set(last.values())
    return [record for record in arrived if record.sending >= until or record.sending in kept]


def _numbered(arrived: list[Arrived]) -> list[Arrived]:
    ends: dict[int, int] = {}
    numbered = []
    for record in arrived:
        offset = ends.get(record.partition, 0)
        ends[record.partition] = offset + 1
        numbered.append(replace(record, offset=offset))
    return numbered
