"""Types under `columns` that override those of a schema: the table has the source's values."""

from __future__ import annotations

import base64
from datetime import date, datetime, timezone
from decimal import Decimal
from typing import Any

import pytest
from tests.support.changes import DAY, INSTANT, LONG, TEXT, VARIABLE_SCALE, Row, Topic, decimal
from tests.support.registry import RegistryAddress, in_avro
from tests.support.spark import Bench, rows_of

from distributary.errors import TableHalt

MONEY = decimal(12, 2)
SCHEMA = {
    "id": LONG,
    "amount": MONEY,
    "whole": MONEY,
    "text": MONEY,
    "near": MONEY,
    "any": VARIABLE_SCALE,
    "list": {"type": "array", "items": {**MONEY, "optional": True}},
    "at": {"type": "int64", "name": "io.debezium.time.Timestamp"},
    "day": INSTANT,
    "instant": INSTANT,
    "moment": DAY,
}
COLUMNS = {
    "amount": "decimal(20,4)",
    "whole": "bigint",
    "text": "string",
    "near": "double",
    "any": "decimal(20,4)",
    "list": "array<decimal(20,4)>",
    "at": "timestamp_us",
    "day": "date",
    "instant": "timestamp",
    "moment": "timestamp_ntz",
}
MIDNIGHT = 1_700_006_400_000
"""Milliseconds: 2023-11-15 00:00."""


pytestmark = pytest.mark.bench(partitions=1)


def unscaled(number: int) -> str:
    return base64.b64encode(number.to_bytes(number.bit_length() // 8 + 1, "big", signed=True)).decode()


def money_row(number: int, cents: int, **other: Any) -> Row:
    money = {name: unscaled(cents) for name in ("amount", "text", "near")}
    times = {"at": MIDNIGHT + cents, "day": MIDNIGHT * 1000, "instant": MIDNIGHT * 1000 + cents, "moment": 19676}
    return {
        "id": number,
        **money,
        "whole": unscaled(100 * cents),
        "any": {"scale": 3, "value": unscaled(cents)},
        "list": [unscaled(cents), None],
        **times,
        **other,
    }


def stored(number: int, cents: int) -> tuple[Any, ...]:
    amount = Decimal(cents).scaleb(-2)
    midnight = datetime(2023, 11, 15, tzinfo=timezone.utc)
    return (
        *(number, amount, cents, f"{amount:.2f}", float(amount), amount / 10, [amount, None]),
        *(midnight.replace(tzinfo=None, microsecond=1000 * cents), date(2023, 11, 15)),
        *(midnight.replace(microsecond=cents), midnight.replace(tzinfo=None)),
    )


@pytest.mark.parametrize("form", ["json", "avro"])
def test_5_1_what_columns_names_is_made_of_what_the_schema_tells(
    bench: Bench, registry: RegistryAddress, form: str
) -> None:
    source = {"topic_prefix": bench.prefix, "format": "avro", "schema_registry": {"url": registry.url}}
    bench.options = {"source": source} if form == "avro" else {}
    bench.rule = {"columns": COLUMNS}
    topic = Topic(bench.topic)
    changes: list[tuple[str, int, int, Row]] = [
        *(("c", 1, 123, {}), ("c", 2, 1, {}), ("c", 3, 5, {})),
        # These are read the quick way first, by what the others told.
        *(("u", 1, 124, {}), ("c", 4, 7, {"whole": unscaled(150)}), ("c", 5, 7, {"day": 1}), ("c", 6, 9, {})),
    ]
    for index, (op, number, cents, other) in enumerate(changes):
        topic.with_schema(topic.change(op, {"id": number}, money_row(number, cents, **other), at=index), SCHEMA)
    records = in_avro(topic.records, registry) if form == "avro" else topic.records
    worker = bench.take(records[:3])
    bench.take(records[3:], worker)
    assert bench.rows("id", *COLUMNS) == [stored(1, 124), stored(2, 1), stored(3, 5), stored(6, 9)]
    assert rows_of(bench.quarantine, "offset", "reason") == [(4, "bad-value"), (5, "bad-value")]
    [whole, day] = [message.rpartition(": ")[2] for _, message in rows_of(bench.quarantine, "offset", "message")]
    assert (whole, day) == ("whole", "day")


def test_5_1_a_keys_decimals_stay_what_they_are_where_the_source_gives_them_more_digits(bench: Bench) -> None:
    narrow, wide = {"id": decimal(10, 0), "v": TEXT}, {"id": MONEY, "v": TEXT}
    topic = Topic(bench.topic)
    for number in (5, 500):
        key = {"id": unscaled(number)}
        topic.with_schema(topic.change("c", key, {**key, "v": "old"}, at=number), narrow)
    bench.take(topic.records)
    for index, hundredths in enumerate((500, 550), start=600):
        key = {"id": unscaled(hundredths)}
        topic.with_schema(topic.change("u", key, {**key, "v": "new"}, at=index), wide)
    with pytest.raises(TableHalt, match="column-type-changed") as halt:
        bench.take(topic.records[2:])
    assert "columns: {id: decimal(10,0)}" in halt.value.fix
    bench.rule = {"columns": {"id": "decimal(10,0)"}}
    bench.take([])
    assert bench.rows("id", "v") == [(Decimal(5), "new"), (Decimal(500), "old")]
    assert rows_of(bench.quarantine, "offset", "reason") == [(3, "bad-key")]


def test_5_1_a_type_that_nothing_makes_of_the_schemas_halts_the_table(bench: Bench) -> None:
    bench.rule = {"columns": {"amount": "date"}}
    topic = Topic(bench.topic)
    topic.with_schema(topic.change("c", {"id": 1}, money_row(1, 5), at=1), SCHEMA)
    with pytest.raises(TableHalt, match="no-conversion") as halt:
        bench.take(topic.records)
    assert "'amount'" in halt.value.message
    bench.rule = {"columns": {"amount": "date"}, "exclude": ["amount"]}
    bench.take([])
    assert bench.rows("id") == [(1,)]
