"""Hostile records among good ones through a whole table: it goes on, it has all good rows, and nothing else is lost."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator

import pytest
from tests.support import kafka
from tests.support.changes import Topic
from tests.support.hostile import COLUMNS, ROW, TYPES, HostileRecords
from tests.support.recorded import Record
from tests.support.spark import Bench, rows_of

from distributary.consume.record_tables import raw_table
from distributary.consume.sample import SampledRecord
from distributary.decode.decoder import Decoded, Decoder
from distributary.decode.options import DecodeOptions, FilledTable, TypeSources
from distributary.ingest.stray_records import NEAR
from distributary.types.record_schema import RecordSchema

BATCHES, OF_A_BATCH = 4, 150
FIRST_GOOD = 1_000
TYPED = {name: TYPES[name] for name in ("price", "when", "day")}
ABOVE = 2**40
"""A place in the log above all that mutated records may truthfully name."""


def good(topic: Topic, number: int) -> kafka.Record:
    """A record of a key that no hostile record has."""
    row = {**ROW, "id": number, "text": f"good {number}", "any": None}
    change = topic.change("c", {"id": number}, row, at=ABOVE + 10 * number, ts_ms=1_700_000_000_000, names=NAMES)
    return topic.with_schema(change, COLUMNS)


NAMES = {"db": "db", "schema": "public", "table": "t"}
FILLED = FilledTable(("id",), frozenset(("__op",)))
OPTIONS = DecodeOptions("postgresql", types=TypeSources(configured=TYPED), adds_columns=False, filled=FILLED)
DECODER = Decoder(OPTIONS)
DECODED = RecordSchema(TYPES, {"id": "bigint"})


def decode(record: Record) -> Decoded:
    one = SampledRecord(record.partition, record.offset, record.key, record.value, tuple(record.headers), 1)
    return DECODER.decode(raw_table("t", [one]), DECODED)


class Mixed:
    """Makes the records of a topic: a good one behind every nine hostile ones. Of those of other columns or
    keys it leaves out the ones that would halt the table, until somebody has decided; those of another source table
    always would."""

    def __init__(self, topic: Topic, hostile: HostileRecords) -> None:
        self.topic, self._hostile = topic, hostile
        self._offset, self._last_stray = 1, -NEAR
        self.strays = 0

    def batch(self, number: int) -> Iterator[kafka.Record]:
        """The records of a batch."""
        for count, one in enumerate(self._hostile.records(OF_A_BATCH, number * OF_A_BATCH)):
            decoded = decode(one)
            is_stray = "needs-decision" in decoded.rejected["reason"].to_pylist()
            is_of_another_table = not set(decoded.source_tables) <= {"db.public.t"}
            if not is_of_another_table and (not is_stray or self._offset - self._last_stray > NEAR):
                yield kafka.Record(self.topic.name, 0, one.key, one.value, one.headers, min(one.timestamp, 2**50))
                if is_stray and one.value is not None:
                    self._last_stray, self.strays = self._offset, self.strays + 1
                self._offset += 1
            if count % 9 == 8 or count == OF_A_BATCH - 1:  # the last one shows that nothing has changed
                yield good(self.topic, FIRST_GOOD + number * OF_A_BATCH + count)
                self._offset += 1


@pytest.mark.parametrize("seed", [1, 2])
def test_6_3_hostile_records_stop_no_table(make_bench: Callable[..., Bench], seed: int) -> None:
    expect_good_rows(make_bench, seed)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3, 43))
def test_6_3_many_hostile_records_stop_no_table(make_bench: Callable[..., Bench], seed: int) -> None:
    expect_good_rows(make_bench, seed)


def expect_good_rows(make_bench: Callable[..., Bench], seed: int) -> None:
    bench = make_bench({"quarantine": {"max_ratio": 1}}, schema_changes="ignore", columns=TYPED).create()
    topic = Topic(bench.topic, "postgresql")
    worker = bench.take([good(topic, FIRST_GOOD - 1)])
    mixed = Mixed(topic, HostileRecords(seed))
    for batch in range(BATCHES):
        # Every second batch is the first one after a start.
        worker = bench.take(mixed.batch(batch), worker if batch % 2 else None)
    found = dict(rows_of(bench.table, "id", "text"))
    numbers = [json.loads(record.key or b"")["payload"]["id"] for record in topic.records]
    assert {number: found.get(number) for number in numbers} == {number: f"good {number}" for number in numbers}
    assert worker.lag() == 0
    assert len(rows_of(bench.quarantine, "offset")) > BATCHES * OF_A_BATCH // 4
    strays = [offset for offset, reason in rows_of(bench.quarantine, "offset", "reason") if reason == "needs-decision"]
    assert len(strays) == mixed.strays
