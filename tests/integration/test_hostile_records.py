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

from distributary.consume.fetch import raw_table
from distributary.consume.sample import Record as Peeked
from distributary.decode.decoder import Decoder
from distributary.decode.options import DecodeOptions, TypeSources
from distributary.types.record_schema import RecordSchema

BATCHES, OF_A_BATCH = 4, 150
FIRST_GOOD = 1_000
TYPED = {name: TYPES[name] for name in ("price", "when", "day")}
ABOVE = 2**40
"""A place in the log above all that mutated records may truthfully name."""


def good(topic: Topic, number: int) -> kafka.Record:
    """A record of a key that no hostile record has."""
    row = {**ROW, "id": number, "text": f"good {number}", "any": None}
    change = topic.change("c", {"id": number}, row, at=ABOVE + 10 * number, ts_ms=1_700_000_000_000)
    return topic.with_schema(change, COLUMNS)


DECODER = Decoder(DecodeOptions("postgresql", types=TypeSources(configured=TYPED)))
DECODED = RecordSchema(TYPES, {"id": "bigint"})


def asks_for_a_decision(record: Record) -> bool:
    """Whether a record is right in form and tells of another table, another type or another key: then the table halts
    until somebody has decided."""
    one = Peeked(0, 0, record.key, record.value, tuple(record.headers), 1)
    decoded = DECODER.decode(raw_table("t", [one]), DECODED)
    found = {(name, kind) for columns in decoded.observed for name, kind in columns.types.items()}
    keys = [set(columns.types) for columns in decoded.observed if columns.is_key]
    has_other_types = any(kind != TYPES.get(name, kind) for name, kind in found if name not in TYPED)
    return bool(decoded.source_tables or decoded.conflict) or has_other_types or any(map(is_other_key, keys))


def is_other_key(key: set[str]) -> bool:
    """Whether these may be the columns of a changed key; malformed ones are not."""
    return key != {"id"} and (key > {"id"} or {name.lower() for name in key} <= TYPES.keys())


def mixed(topic: Topic, hostile: HostileRecords, batch: int) -> Iterator[kafka.Record]:
    """A good record behind every nine hostile ones."""
    for number, one in enumerate(hostile.records(OF_A_BATCH, batch * OF_A_BATCH)):
        if not asks_for_a_decision(one):
            yield kafka.Record(topic.name, 0, one.key, one.value, one.headers, min(one.timestamp, 2**50))
        if number % 9 == 8:
            yield good(topic, FIRST_GOOD + batch * OF_A_BATCH + number)


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
    hostile = HostileRecords(seed)
    for batch in range(BATCHES):
        bench.take(mixed(topic, hostile, batch), worker)
    found = dict(rows_of(bench.table, "id", "text"))
    numbers = [json.loads(record.key or b"")["payload"]["id"] for record in topic.records]
    assert {number: found.get(number) for number in numbers} == {number: f"good {number}" for number in numbers}
    assert worker.lag() == 0
    assert len(rows_of(bench.quarantine, "offset")) > BATCHES * OF_A_BATCH // 4
