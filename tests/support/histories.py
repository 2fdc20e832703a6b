"""Cases of the model run by the service: real tables, the real worker, either Kafka."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession
from tests.model.case import Case, Happened, Rows, counted, expected
from tests.model.delivery import Delivery
from tests.model.packing import ROOM
from tests.model.reference.event import Event, read
from tests.model.reference.table import Reference
from tests.model.source.flavours import FLAVOURS
from tests.model.source.layout import LAYOUTS
from tests.support.kafka import create_topic, grow_topic, leave_gap, produce
from tests.support.lake import read_table
from tests.support.playback import Playback
from tests.support.recorded import Record
from tests.support.spark import Bench, new_bench

from distributary.errors import DistributaryError


@dataclass(frozen=True)
class Difference:
    """The rows that a table lacks, and those that it has too much, after `records` of a case's records; or the reason
    why the service stopped."""

    case: Case
    records: int
    missing: Rows = field(default_factory=Counter)
    unexpected: Rows = field(default_factory=Counter)
    error: str = ""

    def __bool__(self) -> bool:
        return bool(self.missing or self.unexpected or self.error)

    def histories(self) -> list[int]:
        """The numbers of the packed histories whose rows differ."""
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
        """The first difference from the reference, compared at each of the delivery's pauses and at the end; an empty
        one if there is none."""
        difference = None
        for difference in self.differences(case):
            if difference:
                break
        assert difference is not None
        return difference

    def differences(self, case: Case) -> Iterator[Difference]:
        """As difference(), of every comparison."""
        happened = case.happen()
        bench = self._bench(case)
        partitions = Partitions(bench.kafka, bench.topic, case.delivery)
        records = [replace(record, topic=bench.topic) for record in happened.records()]
        taken: list[Event] = []
        worker = None
        for phase in _phases(happened, records):
            partitions.grow(max(record.partition for record in phase) + 1)
            taken += (read(record, happened.played.connector.name) for record in phase)
            try:
                worker = bench.take(phase, worker)
            except DistributaryError as fault:
                yield Difference(case, len(taken), error=str(fault))
                return
            yield compared(case, taken, table_rows(bench.table, case))

    def _bench(self, case: Case) -> Bench:
        bench = new_bench(self.session, self.kafka, self.folder, **asdict(case.kept))
        bench.options = {"trigger": {"max_records": case.delivery.at_most}}
        if case.form.unwrapped is not None:
            connector = FLAVOURS[case.flavour](LAYOUTS[case.layout]).name
            bench.options["source"] = {"topic_prefix": bench.prefix, "connector": connector}
        return bench


class CommandTable:
    """A case's topic and table under a playback, whose records are sent in two parts. `spoilt`: before every record
    with that number (0: none) there is an unreadable one."""

    def __init__(self, playback: Playback, case: Case, spoilt: int = 0) -> None:
        self.case = case
        self.topic = f"{playback.prefix}.{case.flavour}.t"
        self.sent = 0
        """Records, including unreadable ones."""
        self._playback = playback
        self._spoilt = spoilt
        happened = case.happen()
        records = [replace(record, topic=self.topic) for record in happened.records()]
        self._parts = list(_phases(happened, records))
        self._partitions = Partitions(playback.bootstrap, self.topic, case.delivery)
        self._taken: list[Event] = []

    def send(self, part: int) -> None:
        """Sends the records before the first pause, then all others."""
        until = 1 if part == 0 else len(self._parts)
        records = [record for phase in self._parts[:until] for record in phase]
        self._parts = self._parts[until:]
        if records:
            self._partitions.grow(max(record.partition for record in records) + 1)
            produced = list(self._with_spoilt(records))
            produce(self._playback.bootstrap, produced)
            self.sent += len(produced)
            self._taken += map(read, records)

    @property
    def unreadable(self) -> int:
        """The number of unreadable records that were sent."""
        return self.sent - len(self._taken)

    def _with_spoilt(self, records: list[Record]) -> Iterator[Record]:
        no_key = b"no JSON" if self.case.delivery.compacted else None  # Kafka takes none without into such a topic
        for number, record in enumerate(records, start=1):
            # A delete and its tombstone stay together, as a connector sends them.
            if self._spoilt and number % self._spoilt == 0 and record.value is not None:
                yield replace(record, key=no_key, value=b"no JSON", headers=())
            yield record

    def difference(self) -> Difference:
        """The difference of the table from the reference."""
        return compared(self.case, self._taken, table_rows(self._playback.lake / self.case.flavour / "t", self.case))


class Partitions:
    """A topic that gets more partitions on the way."""

    def __init__(self, kafka: str, topic: str, delivery: Delivery) -> None:
        self._kafka = kafka
        self._topic = topic
        self._count = delivery.partitions
        policy = {"cleanup.policy": "compact"} if delivery.compacted else {}
        create_topic(kafka, topic, self._count, policy)
        if delivery.compacted:
            leave_gap(kafka, topic)

    def grow(self, count: int) -> None:
        """Raises the number of partitions."""
        if count > self._count:
            grow_topic(self._kafka, self._topic, count)
            self._count = count


def compared(case: Case, taken: list[Event], found: Rows) -> Difference:
    """The rows of a table against the reference of the events that it has applied."""
    wanted = without_nulls(expected(Reference(taken), case))
    return Difference(case, len(taken), wanted - found, found - wanted)


def table_rows(place: Path, case: Case) -> Rows:
    """A table's rows in the reference's form: columns that are not NULL, and the service's own columns that the mode
    needs."""
    table = read_table(place)
    rows = [] if table is None else table.to_pylist()
    if case.kept.mode == "history":
        rows = list(_versions(rows, [part.name for part in LAYOUTS[case.layout].key]))
    if case.kept.mode == "append":
        rows = [{**row, "__unavailable": tuple(row["__unavailable"] or ())} for row in rows]
    own = {"history": {"__number", "__current"}, "append": {"__op", "__unavailable"}}.get(case.kept.mode, set())
    own |= {"__deleted"} if case.kept.deletes == "soft" else set()
    return without_nulls(counted({n: v for n, v in row.items() if n in own or n[:2] != "__"} for row in rows))


def _versions(rows: list[dict[str, Any]], key: list[str]) -> Iterator[dict[str, Any]]:
    """A history table's rows with their numbers; checks their times."""
    by_key: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for row in rows:
        by_key.setdefault(tuple(row[name] for name in key), []).append(row)
    for versions in by_key.values():
        versions.sort(key=lambda row: str(row["__start_at"]))
        for number, row in enumerate(versions):
            end, following = row["__end_at"], [later["__start_at"] for later in versions[number + 1 :]]
            assert row["__current"] == (end is None), f"a version that is current has no end: {row}"
            assert end is None or row["__start_at"] <= end, f"a version ends before it begins: {row}"
            assert end is None or not following or end <= following[0], f"versions overlap: {versions}"
            yield {**row, "__number": number}


def without_nulls(rows: Rows) -> Rows:
    """The rows without columns that are NULL: a table without schema has no column that was always NULL."""
    return counted({name: value for name, value in row if value is not None} for row in rows.elements())


def _phases(happened: Happened, records: list[Record]) -> Iterator[list[Record]]:
    """The records between the pauses, those held back at the end."""
    phases = happened.phases()
    for phase in sorted(set(phases)):
        yield [record for record, of in zip(records, phases, strict=True) if of == phase]
