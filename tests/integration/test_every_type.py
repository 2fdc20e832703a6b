"""Every type that a column can have in a Connect schema, from JSON and from Avro to the lake."""

from __future__ import annotations

import base64
import json
import random
from typing import Any

import pytest
from tests.support.changes import LONG, TEXT, Row, Topic
from tests.support.comparable import column_values, identical, plain_type
from tests.support.every_type import EVERY_TYPE
from tests.support.every_type_rows import ROWS, SCHEMA, sent_row
from tests.support.kafka import LARGEST_MESSAGE, Record
from tests.support.lake import read_table
from tests.support.registry import RegistryAddress, in_avro
from tests.support.spark import Bench

from distributary.reasons import WRONG_TYPE

pytestmark = pytest.mark.bench(partitions=1)


def records(topic: Topic) -> list[Record]:
    """A row for each number of values, one of NULLs, and an update that brings each row's values a second time."""
    for number in range(ROWS + 1):
        topic.with_schema(topic.change("c", {"id": number}, sent_row(number), at=number), SCHEMA)
    for number in range(ROWS):
        topic.with_schema(topic.change("u", {"id": number}, sent_row(number), at=100 + number), SCHEMA)
    return topic.records


def faults(bench: Bench) -> list[str]:
    """Where the table is not what it must be, in words."""
    table = read_table(bench.table)
    assert table is not None
    numbers = table.column("id").to_pylist()
    found = [] if table.num_rows == ROWS + 1 else [f"{table.num_rows} rows"]
    for one in EVERY_TYPE:
        kind = plain_type(table.schema.field(one.name).type)
        if not kind.equals(plain_type(one.arrow)):
            found.append(f"{one.name} is {kind}, must be {one.arrow}")
            continue
        for number, value in zip(numbers, column_values(table.column(one.name)), strict=True):
            wire, expected = one.values[number] if number < len(one.values) else (None, None)
            if not identical(value, expected):
                found.append(f"{one.name}: {wire!r} became {value!r}, must be {expected!r}")
    return found


def test_5_2_every_type_from_json(bench: Bench) -> None:
    bench.take(records(Topic(bench.topic)))
    assert faults(bench) == []
    assert not bench.quarantine.exists()


def test_5_2_every_type_from_avro(bench: Bench, registry: RegistryAddress) -> None:
    source = {
        "topic_prefix": bench.prefix,
        "format": "avro",
        "schema_registry": {"url": registry.url},
    }
    bench.options = {"source": source}
    bench.take(in_avro(records(Topic(bench.topic)), registry))
    assert faults(bench) == []
    assert not bench.quarantine.exists()


@pytest.mark.parametrize("with_schema", [True, False])
def test_5_2_values_of_twenty_megabytes(kafka_bench: Bench, with_schema: bool) -> None:
    bench = kafka_bench.create(config={"max.message.bytes": str(LARGEST_MESSAGE)})
    bench.rule = {"columns": {"data": "binary"}}
    topic = Topic(bench.topic)
    schema = {"id": LONG, "text": TEXT, "data": {"type": "bytes"}}
    text = "long text " * (2_100_000 if with_schema else 1_900_000)
    data = random.Random(5).randbytes(1_000_000)

    def row(number: int, text: str) -> Row:
        return {"id": number, "text": text, "data": base64.b64encode(data).decode()}

    for index, (number, value) in enumerate([(1, text), (2, "short"), (1, f"{text}!"), (3, text)]):
        record = topic.change("u" if value.endswith("!") else "c", {"id": number}, row(number, value), at=index)
        if with_schema:
            topic.with_schema(record, schema)
    worker = bench.take(topic.records[:2])
    bench.take(topic.records[2:], worker)
    found = {number: (text, data) for number, text, data in bench.rows("id", "text", "data")}
    assert found == {1: (f"{text}!", data), 2: ("short", data), 3: (text, data)}
    assert not bench.quarantine.exists()


def test_5_2_a_text_without_a_schema_may_be_as_long_as_one_with_it(kafka_bench: Bench) -> None:
    bench = kafka_bench.create(config={"max.message.bytes": str(LARGEST_MESSAGE)})
    topic = Topic(bench.topic)
    topic.change("c", {"id": 1}, {"id": 1, "text": "short", "more": 5}, at=1)
    bench.take(topic.records)
    topic.change("u", {"id": 1}, {"id": 1, "text": "x" * 20_000_001, "more": 6}, at=2)
    bench.take(topic.records[1:])  # by a new driver, which learns the columns from this record alone
    assert bench.rows("id", "text", "more") == [(1, "x" * 20_000_001, 6)]
    assert not bench.quarantine.exists()


def _reason(name: str, value: Any) -> tuple[str, str]:
    """Spark reads nothing of a record that has no array or no object where its schema has one: no column is known."""
    schema = SCHEMA[name]
    is_list = schema["type"] == "array" or schema.get("keys", {}).get("type") == "int16"
    kind = list if is_list else {"map": dict, "struct": dict}.get(schema["type"], object)
    return ("bad-value", name) if isinstance(value, kind) else ("wrong-json-type", WRONG_TYPE.message)


def test_5_2_what_a_type_can_not_hold_is_quarantined_and_no_other_value_changed(bench: Bench) -> None:
    topic = Topic(bench.topic)
    records(topic)
    bad: list[tuple[str, Any]] = [(one.name, value) for one in EVERY_TYPE for value in one.bad]
    for number, (name, value) in enumerate(bad):
        row = {**sent_row(number % ROWS), "id": 1000 + number, name: value}
        topic.with_schema(topic.change("c", {"id": 1000 + number}, row, at=1000 + number), SCHEMA)
    bench.take(topic.records)
    found = read_table(bench.quarantine)
    assert found is not None
    quarantined = found.to_pylist()
    first = len(topic.records) - len(bad)
    result = {row["offset"] - first: (row["reason"], row["message"].rpartition(": ")[2]) for row in quarantined}
    other = {one: result.get(number) for number, one in enumerate(map(repr, bad))}
    expected = {repr((name, value)): _reason(name, value) for name, value in bad}
    assert {one: why for one, why in other.items() if why != expected[one]} == {}
    assert faults(bench) == []
    assert json.loads(quarantined[0]["value"])["payload"]["op"] == "c"
