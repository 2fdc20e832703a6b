"""What small batches of PostgreSQL cost the service if half of the changes leave a large value out, and a tenth of them
change the key. Run by hand; the records are in this process's memory, so that Kafka's share is not in it:

    PYTHONPATH=.:service python -m tests.benchmarks.unavailable_values

Each line is one batch. The rows are compared with the source's at the end.
"""

from __future__ import annotations

import os
import random
import statistics
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from logging import WARNING
from pathlib import Path

import click
import structlog
from tests.benchmarks.separate_process import Cost, cost_of
from tests.support.changes import Topic, key, row
from tests.support.kafka import produce
from tests.support.memory_kafka import drop_address, new_address
from tests.support.spark import Bench, new_bench, running_session

from distributary.decode.options import DEFAULT_PLACEHOLDER

ROWS = 20_000
BATCHES = 30
WARM = 10
"""The first batches, which Java compiles: they are not counted."""
CHANGES = 200
_LARGE = 2_000
"""Characters of the large value."""
_UNSENT_SHARE = 0.5
_MOVED_SHARE = 0.1


class Source:
    """A table of the source, and the records of its changes."""

    def __init__(self, topic: str) -> None:
        self._name, self._random, self._at = topic, random.Random(1), 0
        self.rows: dict[int, tuple[str, str]] = {}

    def snapshot(self) -> Topic:
        """The first rows."""
        topic, self._at = Topic(self._name, "postgresql"), 1
        for number in range(ROWS):
            self.rows[number] = ("first", self._large())
            topic.change("r", key(number), row(number, "first", big=self.rows[number][1]), at=1)
        return topic

    def changes(self) -> Topic:
        """The changes of a batch, each of another row and a transaction of its own."""
        topic = Topic(self._name, "postgresql")
        for number in self._random.sample(sorted(self.rows), CHANGES):
            self._at += 1
            unsent = self._random.random() < _UNSENT_SHARE
            value, large = f"change {self._at}", self.rows[number][1] if unsent else self._large()
            after = row(number, value, big=DEFAULT_PLACEHOLDER if unsent else large)
            if self._random.random() < _MOVED_SHARE:
                del self.rows[number]
                self.rows[ROWS + self._at] = value, large
                topic.move(number, ROWS + self._at, after, at=self._at, tx=self._at)
            else:
                self.rows[number] = value, large
                topic.change("u", key(number), after, at=self._at, tx=self._at)
        return topic

    def _large(self) -> str:
        return self._random.randbytes(_LARGE // 2).hex()


@contextmanager
def bench() -> Iterator[Bench]:
    """A topic with one partition, and its table."""
    with tempfile.TemporaryDirectory() as folder:
        address = new_address()
        for session in running_session():
            yield new_bench(session, address, Path(folder)).create()
        drop_address(address)


def measure(table: Bench) -> list[Cost]:
    """What each batch that counts costs."""
    source, costs = Source(table.topic), list[Cost]()
    worker = table.take(source.snapshot().records)

    def take() -> None:
        table.take([], worker)

    for number in range(BATCHES):
        produce(table.kafka, source.changes().records)
        cost = cost_of(os.getpid(), take)
        if number >= WARM:
            costs.append(cost)
            click.echo(f"{cost.wall:6.3f} s {cost.cpu:6.2f} CPU s")
    assert sorted(table.rows("id", "v", "big")) == sorted((number, *values) for number, values in source.rows.items())
    return costs


if __name__ == "__main__":
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(WARNING))
    with bench() as table:
        found = measure(table)
    wall, cpu = (statistics.median(getattr(one, name) for one in found) for name in ("wall", "cpu"))
    click.echo(f"median of {len(found)} batches of {CHANGES} changes: {wall:.3f} s, {cpu:.2f} CPU s")
