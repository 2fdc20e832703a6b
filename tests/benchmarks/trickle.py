"""The trickle: small batches of changes with keys all over a larger table, from Kafka to the commit.

    PYTHONPATH=service:. python -m tests.benchmarks.trickle [--rows N] [--batches N] [--changes N] [--turn N]

The same batches go to three tables, in turn in one run: `deltalake` and `spark` are the service's worker with that
`commit`, `recipe` is what people copy (the whole message through from_json, the newest change by row_number, a MERGE,
Spark's and Delta's defaults). Each turn of each is some batches long; the first of them is not counted. At the end
every table must be the truth. Results go to tests/benchmarks/results/trickle.json.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import random
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import click
from pyspark.sql import SparkSession
from tests.benchmarks.recipe import Recipe
from tests.support.changes import Topic
from tests.support.kafka import create_topic, end_offsets, produce, running_kafka
from tests.support.lake import read_table
from tests.support.spark import Bench

from distributary.launch.session import open_session

RESULTS = Path(__file__).parent / "results" / "trickle.json"
COLUMNS = {
    "id": "bigint", "name": "string", "mail": "string", "street": "string", "city": "string", "credit": "decimal(18,2)",
    "rate": "double", "active": "boolean", "born": "date", "created": "timestamp_ntz", "visits": "int",
    "note": "string",
}  # fmt: skip
Take = Callable[[], None]


@dataclass
class Source:
    """The source table: makes changes and knows what must come out."""

    seed: int = 7
    rows: dict[int, dict[str, Any]] = field(default_factory=dict)
    at: int = 0

    def __post_init__(self) -> None:
        self._random = random.Random(self.seed)
        self._next = 0

    def fill(self, topic: Topic, count: int) -> None:
        """New rows."""
        for _ in range(count):
            self._create(topic)

    def change(self, topic: Topic, count: int) -> None:
        """65 % updates, 25 % inserts, 10 % deletes with their tombstones."""
        for _ in range(count):
            what = self._random.random()
            if what < 0.25:
                self._create(topic)
                continue
            key = self._key()
            self.at += 1
            if what < 0.35:
                del self.rows[key]
                topic.change("d", {"id": key}, at=self.at)
                topic.tombstone({"id": key})
            else:
                self.rows[key] = self._row(key)
                topic.change("u", {"id": key}, self.rows[key], at=self.at)

    def _create(self, topic: Topic) -> None:
        self.at += 1
        self._next += 1
        self.rows[self._next] = self._row(self._next)
        topic.change("c", {"id": self._next}, self.rows[self._next], at=self.at)

    def _key(self) -> int:
        while True:
            if (key := self._random.randint(1, self._next)) in self.rows:
                return key

    def _row(self, key: int) -> dict[str, Any]:
        some = self._random.randrange(10**9)
        return {
            "id": key, "name": f"name {some}", "mail": f"{some}@example.org", "street": f"street {some % 9999}",
            "city": f"city {some % 500}", "credit": some % 10**7 + 0.25, "rate": some / 7, "active": some % 2 == 0,
            "born": f"19{10 + some % 90}-0{1 + some % 9}-11", "created": f"2024-05-0{1 + some % 9}T10:20:30.123456",
            "visits": some % 1000, "note": f"note {some} " * 4,
        }  # fmt: skip


@dataclass
class Clock:
    """What batches cost: seconds of wall time, and CPU seconds of this process and the JVM beside it."""

    jvm: int
    wall: list[float] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)

    def time(self, work: Take, *, counts: bool) -> None:
        """Does the work."""
        wall, cpu = time.monotonic(), self._cpu()
        work()
        if counts:
            self.wall.append(time.monotonic() - wall)
            self.cpu.append(self._cpu() - cpu)

    def result(self) -> dict[str, float]:
        """Medians."""
        return {
            "batches": len(self.wall),
            "wall_s": round(statistics.median(self.wall), 3),
            "cpu_s": round(statistics.median(self.cpu), 3),
        }

    def _cpu(self) -> float:
        fields = Path(f"/proc/{self.jvm}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
        return time.process_time() + (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@dataclass
class Contender:
    """One way to keep a table, with a topic of its own."""

    name: str
    topic: str
    table: Path
    take: Take
    clock: Clock


def contenders(session: SparkSession, kafka: str, folder: Path, jvm: int) -> Iterator[Contender]:
    """Each with an empty topic."""
    for name in ("deltalake", "spark"):
        bench = Bench(session, kafka, folder / name, f"{name}.dbo.t", {"commit": name, "columns": COLUMNS})
        bench.folder.mkdir()
        bench.create()
        worker = bench.worker()

        def take(bench: Bench = bench, worker: Any = worker) -> None:
            worker.aim(end_offsets(kafka, bench.topic))
            while worker.behind():
                worker.step()

        yield Contender(name, bench.topic, bench.table, take, Clock(jvm))
    create_topic(kafka, "recipe.dbo.t")
    recipe = Recipe(session, kafka, "recipe.dbo.t", folder / "recipe", COLUMNS)
    yield Contender("recipe", recipe.topic, recipe.table, recipe.take, Clock(jvm))


def main() -> None:
    """Runs it and prints what it found."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=400_000)
    parser.add_argument("--batches", type=int, default=30, help="of each contender; the first of each turn beside")
    parser.add_argument("--changes", type=int, default=200)
    parser.add_argument("--turn", type=int, default=10, help="counted batches of a turn")
    parser.add_argument("--without", nargs="*", default=[], help="contenders that are left out")
    parser.add_argument("--results", type=Path, default=RESULTS)
    options = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="trickle"))
    with running_kafka(folder / "kafka") as kafka:
        session = open_session({"spark.master": "local[2]", "spark.driver.memory": "4g"})
        jvm = int(session._jvm.java.lang.ProcessHandle.current().pid())  # type: ignore[union-attr]
        taking = [c for c in contenders(session, kafka, folder, jvm) if c.name not in options.without]
        source = Source()
        _to_all(kafka, taking, lambda topic: source.fill(topic, options.rows))
        for one in taking:
            one.take()
            click.echo(f"{one.name}: filled")
        for _ in range(-(-options.batches // options.turn)):
            batches = [Topic("") for _ in range(options.turn + 1)]
            for batch in batches:
                source.change(batch, options.changes)
            for one in taking:
                for number, batch in enumerate(batches):
                    produce(kafka, [r._replace(topic=one.topic) for r in batch.records])
                    one.clock.time(one.take, counts=number > 0)
                click.echo(f"{one.name}: {one.clock.result()}")
        results = {one.name: {**one.clock.result(), **_shape(one.table)} for one in taking}
        for one in taking:
            _check(one, source)
        told = {
            "rows": options.rows,
            "changes": options.changes,
            "machine": {"cores": os.cpu_count(), "memory_gb": _memory(), "python": platform.python_version()},
            "results": results,
        }
        options.results.write_text(json.dumps(told, indent=2) + "\n", encoding="utf-8")
        click.echo(json.dumps(told, indent=2))
        session.stop()
    shutil.rmtree(folder)


def _to_all(kafka: str, taking: list[Contender], make: Callable[[Topic], None]) -> None:
    topic = Topic("")
    make(topic)
    for one in taking:
        produce(kafka, (record._replace(topic=one.topic) for record in topic.records))


def _check(one: Contender, source: Source) -> None:
    table = read_table(one.table)
    assert table is not None
    names = ["id", "name", "credit", "visits", "note"]
    found = {row[0]: row for row in zip(*(table.column(n).to_pylist() for n in names), strict=True)}
    assert len(found) == table.num_rows == len(source.rows), f"{one.name}: {table.num_rows} rows"
    for key, row in source.rows.items():
        assert tuple(map(str, found[key])) == tuple(str(row[n]) for n in names), f"{one.name}: key {key}"


def _shape(table: Path) -> dict[str, int]:
    files = [f for f in table.rglob("*.parquet") if "_delta_log" not in f.parts]
    return {"files_written": len(files), "newest_bytes": max(files, key=lambda f: f.stat().st_mtime).stat().st_size}


def _memory() -> int:
    return round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30)


if __name__ == "__main__":
    main()
