"""Cases of the model run by the service: real Kafka, real tables, the real worker."""

from __future__ import annotations

import itertools
import os
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TypeVar

from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewPartitions
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis.strategies import SearchStrategy
from pyspark.sql import SparkSession
from tests.model.case import Case, Happened, Rows, counted, expected
from tests.model.packing import ROOM
from tests.model.reference.event import Event, read
from tests.model.reference.table import Reference
from tests.support.kafka import TIMEOUT, create_topic, produce
from tests.support.lake import read_table
from tests.support.recorded import Record
from tests.support.spark import Bench

from distributary.errors import DistributaryError

T = TypeVar("T")
_numbers = itertools.count()


def drawn(strategy: SearchStrategy[T], count: int, number: int) -> list[T]:
    """So many values of a strategy, the same ones for the same number."""
    found: list[T] = []

    @seed(number)
    @settings(
        max_examples=count,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(strategy)
    def collect(value: T) -> None:
        found.append(value)

    collect()
    return found[:count]


@dataclass(frozen=True)
class Difference:
    """What a table of the service lacks, and what it has too much, after `records` of a case's records; or why the
    service went no further."""

    case: Case
    records: int
    missing: Rows = field(default_factory=Counter)
    unexpected: Rows = field(default_factory=Counter)
    error: str = ""

    def __bool__(self) -> bool:
        return bool(self.missing or self.unexpected or self.error)

    def histories(self) -> list[int]:
        """The numbers of the packed histories that differ."""
        layout = self.case.happen().played.layout
        of_key = {layout.key_of(layout.numbered(number)): number // ROOM for number in range(200 * ROOM)}
        rows = [dict(row) for row in (*self.missing, *self.unexpected)]
        return sorted({of_key[layout.key_of(row)] for row in rows})

    def __str__(self) -> str:
        rows = [f"  {sign} {dict(row)}" for sign, rows in self._signed() for row in rows]
        return "\n".join([f"after {self.records} records of {self.case}", *rows, self.error])

    def _signed(self) -> list[tuple[str, Rows]]:
        return [("missing", self.missing), ("unexpected", self.unexpected)]


@dataclass(frozen=True)
class Service:
    """Runs cases, each with a topic and a table of its own."""

    session: SparkSession
    kafka: str
    folder: Path

    def difference(self, case: Case) -> Difference:
        """The first difference from the reference, looked for at each of the delivery's pauses and at the end; an
        empty one where there is none."""
        difference = None
        for difference in self.differences(case):
            if difference:
                break
        assert difference is not None
        return difference

    def differences(self, case: Case) -> Iterator[Difference]:
        """As difference(), for every look at the table."""
        happened = case.happen()
        bench = self._bench(case)
        partitions = Partitions(bench, case.delivery.partitions)
        records = [replace(record, topic=bench.topic) for record in happened.records()]
        taken: list[Event] = []
        worker = None
        for phase in _phases(happened, records):
            partitions.grow(max(record.partition for record in phase) + 1)
            taken += map(read, phase)
            try:
                worker = bench.take(phase, worker)
            except DistributaryError as fault:
                yield Difference(case, len(taken), error=str(fault))
                return
            found, wanted = self.rows(bench, case), without_nulls(expected(Reference(taken), case))
            yield Difference(case, len(taken), wanted - found, found - wanted)

    def rows(self, bench: Bench, case: Case) -> Rows:
        """The table's rows: the source's columns that are not NULL."""
        table = read_table(bench.table)
        rows = [] if table is None else table.to_pylist()
        added = {"__deleted"} if case.kept.deletes == "soft" else set()
        return without_nulls(
            counted({n: v for n, v in row.items() if n in added or not n.startswith("__")} for row in rows)
        )

    def _bench(self, case: Case) -> Bench:
        name = f"h{os.getpid()}x{next(_numbers)}"
        folder = self.folder / name
        folder.mkdir(parents=True)
        rule = asdict(case.kept)
        options = {"trigger": {"max_records": case.delivery.at_most}}
        return Bench(self.session, self.kafka, folder, f"{name}.dbo.t", rule, options)


class Partitions:
    """A topic that gets more partitions on the way."""

    def __init__(self, bench: Bench, count: int) -> None:
        self._bench = bench
        self._count = count
        create_topic(bench.kafka, bench.topic, count)

    def grow(self, count: int) -> None:
        """Sees to it that there are so many."""
        if count > self._count:
            admin = AdminClient({"bootstrap.servers": self._bench.kafka})
            admin.create_partitions([NewPartitions(self._bench.topic, count)])[self._bench.topic].result(TIMEOUT)
            self._count = count


def without_nulls(rows: Rows) -> Rows:
    """The rows without columns that are NULL: a table without schema has no column for one that always was."""
    return counted({name: value for name, value in row if value is not None} for row in rows.elements())


def _phases(happened: Happened, records: list[Record]) -> Iterator[list[Record]]:
    """The records between the pauses, those held back at the end."""
    phases = [arrived.phase for arrived in happened.arrived]
    for phase in sorted(set(phases)):
        yield [record for record, of in zip(records, phases, strict=True) if of == phase]


__all__ = ["Difference", "Service", "drawn", "produce"]
