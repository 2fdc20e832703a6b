"""How a topic is read: batches of any size, partitions at any pace, and new partitions noticed late.

A reading is a function of its seed. Records that the topic has when its table is first read are read in the order of
time. As in the service, a record of a new partition is read only after the growth of the topic was noticed, and after
all records from before the growth.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from random import Random

from tests.model.delivery import Arrived, Delivery, grows_unseen, read_at_first

SIZES = (0, 0, 1, 1, 2, 3, 5, 20)
_MOST_STOPS = 8


@dataclass(frozen=True)
class Batch:
    """Records of one batch. `grown`: the growth of the topic is noticed before it. `settled`: after it, all earlier
    records are read. `stop`: the number of the stop that it reaches. `caught_up`: after it, exactly the records that
    the topic had at some moment are read."""

    records: tuple[Arrived, ...]
    grown: bool = False
    settled: bool = False
    stop: int | None = None
    caught_up: bool = False


class Reading:
    """Reads `arrived` up to each of the `stops`: numbers of records by partition. `notes`: batches note when the topic
    was read to its end."""

    def __init__(self, arrived: Sequence[Arrived], delivery: Delivery, seed: int, *, notes: bool = True) -> None:
        self.partitions = max(delivery.partitions, delivery.more)
        self._random = Random(seed)
        self._logs: list[list[tuple[int, Arrived]]] = [[] for _ in range(self.partitions)]
        sent = 1 + max((record.sending for record in arrived), default=0)
        grown = next((record.sending for record in arrived if record.is_after_growth), sent)
        self._old = [0] * self.partitions
        """How many records each partition has of the time before the topic grew."""
        for number, record in enumerate(arrived):
            self._logs[record.partition].append((number, record))
            self._old[record.partition] += record.sending < grown
        self._numbers = [[number for number, _ in log] for log in self._logs]
        self._at = [0] * self.partitions
        self._noticed = self._settled = grown >= sent or grows_unseen(delivery, arrived)
        self._first = self.counts(read_at_first(delivery, arrived))
        self._sent, self._rests = len(arrived), notes and bool(delivery.rests)
        self._moments_share = self._random.choice((0.05, 0.2, 0.6)) if self._rests else 0.0

    def counts(self, sent: int) -> list[int]:
        """How many of the first `sent` records each partition has."""
        return [bisect_left(numbers, sent) for numbers in self._numbers]

    def some_stops(self) -> list[list[int]]:
        """Random reachable stops: beyond the growth of the topic only after it was noticed. If the delivery has rests,
        also stops at which all sent records are read: there idle partitions count."""
        if self._rests:
            sent = range(self._sent + 1)
            return [self.counts(number) for number in sorted(self._random.sample(sent, min(_MOST_STOPS, len(sent))))]
        return [[self._random.randint(first, len(log)) for first, log in zip(self._first, self._logs, strict=True)]]

    def batches(self, stops: Sequence[Sequence[int]]) -> Iterator[Batch]:
        """The batches, one after the other."""
        for number, stop in enumerate(stops):
            for moment in self._moments(stop):
                yield from self._until(moment)
                yield Batch((), caught_up=True)
            yield from self._until(stop)
            yield Batch((), stop=number)

    def _moments(self, stop: Sequence[int]) -> list[list[int]]:
        """Stops on the way at which all records that the topic had at some moments are read."""
        if not self._rests:
            return []
        ends = [self.counts(sent) for sent in range(1, self._sent + 1)]
        ends = [end for end in ends if all(a <= n <= b for a, n, b in zip(self._at, end, stop, strict=True))]
        return [end for end in ends if self._random.random() < self._moments_share]

    def _until(self, stop: Sequence[int]) -> Iterator[Batch]:
        yield from self._in_order_of_time([min(both) for both in zip(stop, self._first, strict=True)])
        random = self._random
        last = random.randrange(self.partitions) if random.random() < 0.4 else None
        """A partition that is read after all others."""
        size = random.choice((1, 3, 7, 20, 1000))
        while self._at != list(stop):
            limits = [min(end, self._old[p]) if not self._noticed else end for p, end in enumerate(stop)]
            open_ = [p for p in range(self.partitions) if self._at[p] < limits[p]]
            grown = not self._noticed and (not open_ or random.random() < (0.02 if self._rests else 0.2))
            if grown:
                self._noticed = True
                yield Batch((), grown=True)
                continue
            records: list[Arrived] = []
            for p in open_:
                if p == last and open_ != [last]:
                    continue
                count = min(random.choice(SIZES), limits[p] - self._at[p], size)
                records += (record for _, record in self._logs[p][self._at[p] : self._at[p] + count])
                self._at[p] += count
            passed = self._noticed and all(at >= old for at, old in zip(self._at, self._old, strict=True))
            settled = passed and not self._settled and random.random() < 0.5
            self._settled = self._settled or settled
            if records or settled:
                yield Batch(tuple(records), settled=settled)

    def _in_order_of_time(self, stop: Sequence[int]) -> Iterator[Batch]:
        while any(at < end for at, end in zip(self._at, stop, strict=True)):
            size = self._random.choice((1, 3, 7, 20, 1000))
            unread = [self._logs[p][at:end] for p, (at, end) in enumerate(zip(self._at, stop, strict=True))]
            earliest = sorted(number for log in unread for number, _ in log)[: self._random.randint(1, size)]
            counts = [max(at, n) for at, n in zip(self._at, self.counts(earliest[-1] + 1), strict=True)]
            yield Batch(
                tuple(one for log, n, at in zip(unread, counts, self._at, strict=True) for _, one in log[: n - at])
            )
            self._at = counts
