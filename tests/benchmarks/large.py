"""A few changes all over a larger and larger table: what grows with the rows."""

from __future__ import annotations

import shutil
from pathlib import Path

from tests.benchmarks.apart import Apart, Cost
from tests.benchmarks.contenders import table_of
from tests.benchmarks.rounds import Rounds, in_turns
from tests.benchmarks.source import Source
from tests.support.kafka import create_topic, end_offsets, produce
from tests.support.lake import read_table

TOPIC = "server1.large.t"
_FIRST = 1_000  # rows that come from Kafka, so that the service makes the table; the others are put beside them


def large(
    kafka: str, folder: Path, *, sizes: tuple[int, ...] = (1_000_000, 5_000_000, 20_000_000), changes: int = 1_000,
    rounds: int = 3,
) -> Rounds:  # fmt: skip
    """Updates of rows that lie all over the table, a slice for each round; a first one is not counted."""
    source = Source()
    create_topic(kafka, TOPIC)
    produce(kafka, (r._replace(topic=TOPIC) for r in source.snapshot(_FIRST)))
    filled = end_offsets(kafka, TOPIC)[0]
    one = Apart("service", kafka)
    try:
        for size in sizes:
            one.begin(TOPIC, folder / str(size))
            one.take(filled)
            one.grow(size)
        updates = Source(seed=3)
        updates.rows = {1 + i * (sizes[0] // changes): i for i in range(changes)}
        ends = []
        for _ in range(rounds + 1):
            updates.rows = {key: some + 1 for key, some in updates.rows.items()}
            produce(kafka, (r._replace(topic=TOPIC) for r in updates.touched()))
            ends.append(end_offsets(kafka, TOPIC)[0])

        def play(name: str, number: int) -> Cost:
            one.begin(TOPIC, folder / name)
            if not number:
                one.take(ends[0])
            return one.take(ends[number + 1])

        found = in_turns("large", [str(size) for size in sizes], rounds, play)
    finally:
        one.end()
    for size in sizes:
        table = read_table(table_of(folder / str(size)))
        assert table is not None
        assert table.num_rows == size, f"{table.num_rows} rows of {size}"
        names = dict(zip(table.column("id").to_pylist(), table.column("name").to_pylist(), strict=True))
        assert all(names[key] == f"name {some}" for key, some in updates.rows.items())
        shutil.rmtree(folder / str(size))
    return found
