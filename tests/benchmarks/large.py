"""A few scattered changes of larger and larger tables: which costs grow with the number of rows."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path

from tests.benchmarks.rounds import Rounds, in_turns
from tests.benchmarks.separate_process import Cost, SeparateProcess
from tests.benchmarks.source import Source
from tests.support.kafka import create_topic, end_offsets, produce

_FIRST = 1_000  # rows that come from Kafka, so that the service makes the table; the others are put beside them
_WITH_VECTORS = {"properties": {"delta.enableDeletionVectors": "true"}}


def large(
    kafka: str, folder: Path, *, sizes: tuple[int, ...] = (1_000_000, 5_000_000, 20_000_000), changes: int = 1_000,
    rounds: int = 2,
) -> Rounds:  # fmt: skip
    """Updates of rows that lie all over the table, a batch for each round; a first one is not counted. Tables as they
    come, and tables with deletion vectors."""
    kinds = {"": SeparateProcess("service", kafka), " with vectors": SeparateProcess("service", kafka, _WITH_VECTORS)}
    tables = {f"{size}{kind}": (size, one) for size in sizes for kind, one in kinds.items()}
    updates = {size: _spread(size, changes) for size in sizes}
    ends = {size: _fill_topic(kafka, size, updates[size], rounds + 1) for size in sizes}
    try:
        for name, (size, one) in tables.items():
            one.begin(_topic(size), folder / name)
            one.take(ends[size][0])
            one.grow(size)

        def play(name: str, number: int) -> Cost:
            size, one = tables[name]
            one.begin(_topic(size), folder / name)
            if not number:
                one.take(ends[size][1])
            return one.take(ends[size][number + 2])

        found = in_turns("large", list(tables), rounds, play)
        for name, (size, one) in tables.items():
            one.begin(_topic(size), folder / name)
            _check(name, size, updates[size].rows, *one.held(list(updates[size].rows)))
            shutil.rmtree(folder / name)
    finally:
        for one in kinds.values():
            one.end()
    return found


def _topic(size: int) -> str:
    return f"server1.large.of_{size}"


def _spread(size: int, changes: int) -> Source:
    """Rows as far apart as the table allows."""
    source = Source(seed=3)
    source.rows = {1 + i * (size // changes): i for i in range(changes)}
    return source


def _fill_topic(kafka: str, size: int, updates: Source, batches: int) -> list[int]:
    """The first rows, then updates of all of them, so many times; the offset that each ends at."""
    topic = _topic(size)
    create_topic(kafka, topic)
    produce(kafka, (r._replace(topic=topic) for r in Source().snapshot(_FIRST)))
    ends = [end_offsets(kafka, topic)[0]]
    for _ in range(batches):
        updates.rows = {key: some + 1 for key, some in updates.rows.items()}
        produce(kafka, (r._replace(topic=topic) for r in updates.touched()))
        ends.append(end_offsets(kafka, topic)[0])
    return ends


def _check(name: str, size: int, rows: Mapping[int, int], count: int, names: Mapping[int, str]) -> None:
    assert count == size, f"{name}: {count} rows"
    assert names == {key: f"name {some}" for key, some in rows.items()}, f"{name}: not what the source has"
