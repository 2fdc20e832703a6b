"""The same rows in each format that a connector may write."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from confluent_kafka.schema_registry import SchemaRegistryClient
from tests.benchmarks.contenders import table_of
from tests.benchmarks.rounds import Rounds, in_turns
from tests.benchmarks.separate_process import Cost, SeparateProcess
from tests.benchmarks.source import ARROW, COLUMNS, Source
from tests.support.avro import AvroWriter
from tests.support.kafka import Record, create_topic, produce
from tests.support.lake import read_table
from tests.support.registry import Registry

TOPICS = {"schema": "server1.dbo.schema", "plain": "server1.dbo.plain", "avro": "server1.dbo.avro"}


def decode(kafka: str, folder: Path, *, rows: int = 100_000, rounds: int = 3) -> Rounds:
    """A snapshot into no table: JSON with its schema, JSON without, Avro by a registry."""
    with registry(folder / "registry") as url:
        result = {"columns": {**COLUMNS, "created": "timestamp_us"}}  # a bare number on the wire
        avro = {"source": {"topic_prefix": "server1", "format": "avro", "schema_registry": {"url": url}}}
        forms = {
            "schema": SeparateProcess("service", kafka),
            "plain": SeparateProcess("service", kafka, result),
            "avro": SeparateProcess("service", kafka, options=avro),
        }
        truth = Source()
        _send(kafka, TOPICS["schema"], truth.snapshot(rows))
        _send(kafka, TOPICS["plain"], Source(schema=False).snapshot(rows))
        _send(kafka, TOPICS["avro"], _in_avro(Source().snapshot(rows), url))

        def play(name: str, number: int, end: int = rows) -> Cost:
            place = folder / f"{name}-{number}"
            forms[name].begin(TOPICS[name], place)
            cost = forms[name].take(end)
            if end == rows:
                found = read_table(table_of(place))
                assert found is not None
                same = found.select(ARROW.names).cast(ARROW).sort_by("id").combine_chunks()
                assert same.equals(truth.truth().combine_chunks()), f"{name}: not what the source has"
            shutil.rmtree(place)
            return cost

        try:
            for name in forms:
                play(name, 0, min(rows, 30_000))  # what compiles and loads classes at first is not to be measured
            return in_turns("decode", list(forms), rounds, play)
        finally:
            for one in forms.values():
                one.end()


def _send(kafka: str, topic: str, records: Iterator[Record]) -> None:
    create_topic(kafka, topic)
    produce(kafka, (record._replace(topic=topic) for record in records))


def _in_avro(records: Iterator[Record], url: str) -> Iterator[Record]:
    writer: Any = AvroWriter(SchemaRegistryClient({"url": url}))
    for record in records:
        key, value = (writer.written(data, side) for data, side in ((record.key, "key"), (record.value, "value")))
        yield record._replace(key=key, value=value)


@contextmanager
def registry(folder: Path) -> Iterator[str]:
    """The URL of a schema registry that runs until the block ends."""
    folder.mkdir(parents=True)
    made = Registry(folder)
    made.start()
    try:
        yield made.url
    finally:
        made.stop()
