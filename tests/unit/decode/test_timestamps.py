"""`timestamps: utc`: points in time without a zone become instants, wherever they stand, and nothing else changes."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from tests.support.comparable import identical
from tests.support.decoding import decode_all, events_by_place, plain_change
from tests.support.every_type import EVERY_TYPE
from tests.support.every_type_rows import ROWS, created, expected_row, sent_row

from distributary.decode.options import DecodeOptions, TypeSources
from distributary.types.bounds import Bounds
from distributary.types.from_name import type_of_name
from distributary.types.zones import has_no_zone, has_zone, in_utc

NTZ, UTC = pa.timestamp("us"), pa.timestamp("us", "UTC")
MICROS = 1_700_000_000_123_456


def row_type(options: DecodeOptions, records: list[Any]) -> pa.DataType:
    return decode_all(records, options)[0].events.schema.field("row").type


def test_every_value_of_every_type_keeps_its_digits() -> None:
    options = DecodeOptions("sqlserver", types=TypeSources(timestamps="utc"))
    decoded, _ = decode_all([created(number, sent_row(number)) for number in range(ROWS)], options)
    assert not decoded.rejected.num_rows
    types = decoded.events.schema.field("row").type
    changed = {one.name for one in EVERY_TYPE if "timestamp[us]" in str(one.arrow)}
    assert changed
    for one in EVERY_TYPE:
        found = str(types.field(one.name).type)
        assert "timestamp[us]" not in found
        assert ("timestamp[us, tz=UTC]" in found) == (one.name in changed or "tz=UTC" in str(one.arrow))
    rows = events_by_place(decoded, "row")
    for number in range(ROWS):
        found = rows[0, number]["row"]
        assert [name for name, value in expected_row(number).items() if not identical(found[name], value)] == []


@pytest.mark.parametrize(
    "name",
    [
        "array<timestamp_us>",
        "array<array<timestamp_us>>",
        "map<string,timestamp_us>",
        "struct<timestamp_ntz:timestamp_us,n:int>",
        "map<string,struct<a:array<timestamp_us>>>",
    ],
)
def test_points_in_time_within_others_get_a_zone_too(name: str) -> None:
    plain = type_of_name(name, {}, Bounds())
    kind = in_utc(plain)
    assert has_no_zone(plain.spark)
    assert not has_zone(plain.spark)
    assert not has_no_zone(kind.spark)
    assert has_zone(kind.spark)
    assert kind.arrow == type_of_name(kind.spark, {}, Bounds()).arrow
    value: Any = MICROS
    for part in reversed(name.split("<")[:-1]):
        value = {"array": [value, None], "struct": {"timestamp_ntz": value, "a": value}}.get(
            part.rpartition(",")[2].rpartition(":")[2], {"k": value}
        )
    wire = [plain.restate(value), None]
    found, before = (one.convert(wire) for one in (kind, plain))
    assert found.array.type == kind.arrow
    assert str(found.array.to_pylist()).replace(", tzinfo=zoneinfo.ZoneInfo(key='UTC')", "").replace(
        ", tzinfo=<UTC>", ""
    ) == str(before.array.to_pylist())


def test_other_types_are_the_same_ones() -> None:
    for name in ("timestamp", "date", "struct<timestamp_ntz:int>", "array<string>", "time_us"):
        kind = type_of_name(name, {}, Bounds())
        assert in_utc(kind) is kind
        assert not has_no_zone(kind.spark)


def test_a_type_that_the_config_names_timestamp_ntz_stays_so() -> None:
    records = [plain_change(0, {"id": 0, "at": "2026-01-02T03:04:05", "counted": MICROS, "told": MICROS})]
    types = TypeSources(
        {"id": "bigint", "at": "timestamp_ntz", "counted": "timestamp_us"}, {"told": "timestamp_us"}, timestamps="utc"
    )
    found = row_type(DecodeOptions("sqlserver", types=types), records)
    assert [found.field(name).type for name in ("at", "counted", "told")] == [NTZ, UTC, UTC]
