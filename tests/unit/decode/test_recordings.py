"""What real connectors wrote, decoded: every value against the reference's own reading, and the rows that are left
against what the databases held."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterable, Iterator
from decimal import Decimal
from functools import cache, partial
from typing import Any

import pytest
from tests.model.reference import wire
from tests.model.reference.event import Event, read
from tests.model.reference.rows import PLACEHOLDER, placeholder_forms
from tests.model.reference.table import TableRow, reference
from tests.support.comparable import Value, hashable, identical
from tests.support.decoding import decode_all, events_by_place, options_of
from tests.support.mariadb_types import mariadb_type
from tests.support.postgres_types import postgres_type
from tests.support.recorded import Record, Scenario, TruthTable
from tests.support.truth import SourceTypes, compare_rows
from tests.support.wire_limits import limits

from distributary.decode.decoder import Decoded
from distributary.types.calendar import read_instant
from distributary.types.record_schema import RecordSchema

WITH_SCHEMA = (
    *("pg_json_schema", "pg_full_truncate", "pg_incremental", "pg_extra", "pg_toast", "pg_types", "pg_types_string"),
    *("pg_schema_evolution", "maria_json_schema", "pg_types_iso"),
)
ISO = ("IsoDate", "IsoTime", "IsoTimestamp")
"""The reference leaves these as texts: only the truth has their types."""

OUT_OF_REACH = {
    "pg_extra": {"custom_key", "custom_key_default", "ri_index"},  # keys that are not the rows'
    "maria_json_schema": {"child", "evo_renamed"},  # changes without events
    **{name: {"part"} for name in ("pg_types", "pg_types_iso", "pg_types_string", "pg_types_plain")},  # another topic
    "pg_toast": {"toasty2"},  # arrays that the connector sends as NULL where they are unchanged
    "pg_unwrap": {"text_keys", "num_keys", "order_items", "Mixed_Case-Table", "big_ids", "sensor"},  # not in order
    "pg_unwrap_rewrite": {"lsn_race", "order_items", "Mixed_Case-Table", "big_ids", "sensor"},
    "pg_schema_evolution": {"evo", "evo_pk", "evo_recreate", "evo_retype"},  # changes without events
}
"""Tables that no reading of the records can bring to the truth."""

ADAPTIVE = ("pg_types", "pg_types_plain")
TRUTH = (*WITH_SCHEMA, "pg_json_plain", "pg_types_plain", "pg_unwrap", "pg_unwrap_rewrite")
FORMS = placeholder_forms(PLACEHOLDER)
LONG = ("pg_incremental", "pg_toast", "pg_full_truncate", "pg_types", "pg_types_iso", "pg_types_string")


def recordings(names: Iterable[str]) -> list[Any]:
    """These as parameters, of which the long ones are for thorough runs only."""
    return [pytest.param(name, marks=pytest.mark.thorough if name in LONG else ()) for name in names]


@pytest.fixture(autouse=True)
def long_numbers() -> Iterator[None]:
    """The reference makes text of numbers of 13,503 digits."""
    before = sys.get_int_max_str_digits()
    sys.set_int_max_str_digits(0)
    yield
    sys.set_int_max_str_digits(before)


@cache
def scenario(name: str) -> Scenario:
    return Scenario(name)


@cache
def decoded_table(name: str, table: str) -> tuple[Decoded, RecordSchema]:
    truth = scenario(name).tables[table]
    return decode_all(scenario(name).topic(truth.schema, truth.name), options_of(scenario(name), truth))


@cache
def events_of(name: str, table: str) -> dict[tuple[int, int], dict[str, Any]]:
    """The events of a table by partition and offset."""
    return events_by_place(decoded_table(name, table)[0], "row")


def tables(name: str) -> Iterator[tuple[TruthTable, tuple[Record, ...]]]:
    """The tables of a scenario that have records, with these."""
    for table in scenario(name).tables.values():
        if records := scenario(name).topic(table.schema, table.name):
            yield table, records


def expected(event: Event, absent: set[str]) -> dict[str, Value] | None:
    """The row by the reference, without what was not sent; None where it holds a value that the lake can't."""
    found = {}
    for part in event.row_schema or ():
        column = part["field"]
        if column not in absent:
            try:
                found[column] = wire.value((event.after or {}).get(column), part)
            except (OverflowError, ValueError):
                return None
    return found


def same(ours: Value, theirs: Value, kind: str) -> bool:
    """Whether both are one value, be it one that the table has with a wider type."""
    if isinstance(ours, float) and isinstance(theirs, float) and math.isnan(ours):
        return math.isnan(theirs)
    if kind == "string" and isinstance(theirs, int) and theirs > 10**15:
        return read_instant(ours) == theirs
    if kind == "string" and isinstance(theirs, int):
        return bool(ours == str(theirs))
    if kind == "string" and isinstance(theirs, Decimal):
        return bool(ours == f"{theirs:f}")
    if isinstance(theirs, Decimal) and isinstance(ours, Decimal):
        return ours == theirs
    return identical(ours, theirs)


def semantic(part: dict[str, Any]) -> str:
    inner = part.get("items") or part
    return str(inner.get("name", "")).rpartition(".")[2]


@pytest.mark.parametrize("name", recordings(WITH_SCHEMA))
def test_every_value_is_the_one_that_the_reference_reads(name: str) -> None:
    compared = 0
    for table, records in tables(name):
        decoded, schema = decoded_table(name, table.name)
        events, rejected = events_of(name, table.name), set()
        for place in zip(
            decoded.rejected["partition"].to_pylist(), decoded.rejected["offset"].to_pylist(), strict=True
        ):
            rejected.add(place)
        for record in records:
            event, place = read(record), (record.partition, record.offset)
            absent = unsent(event)
            wanted = expected(event, absent) if event.after is not None else {}
            if name != "pg_types_iso":
                assert (wanted is None) == (place in rejected), (table.name, record)
            if wanted is None or place in rejected:
                continue
            ours = events[place]
            assert ours["operation"] == event.op
            assert (ours["row"] is None) == (event.after is None)
            assert set(ours["unavailable"] or ()) == absent
            for part in event.row_schema or () if event.after is not None else ():
                column = part["field"]
                if column in absent:
                    assert ours["row"][column] is None
                elif semantic(part) not in ISO:
                    assert same(ours["row"][column], wanted[column], schema.row[column]), (
                        table.name,
                        column,
                        ours,
                        wanted,
                    )
                    compared += 1
        assert len(events) + len(rejected) == len(records)
    assert compared


def unsent(event: Event) -> set[str]:
    """The columns whose values were not sent, by the reference."""
    if event.connector != "postgresql":
        return set()
    return {column for column, value in (event.after or {}).items() if any(value == form for form in FORMS)}


@pytest.mark.parametrize("name", recordings(TRUTH))
def test_the_rows_that_are_left_equal_the_source(name: str) -> None:
    for table, records in tables(name):
        if table.name in OUT_OF_REACH.get(name, ()) or not table.key:
            continue
        _, schema = decoded_table(name, table.name)
        events = events_of(name, table.name)
        connector = "postgresql" if name.startswith("pg_unwrap") else None
        rows = [
            values
            for row in reference(records, connector).rows().values()
            if (values := decoded_row(row, records, events)) is not None
        ]
        names = list(schema.row)
        rows = [{column: row.get(column) for column in names} for row in rows]
        found = compare_rows(rows, table, source_types(name), limits(name), names or None)
        assert not found, str(found)


def source_types(name: str) -> SourceTypes:
    if name.startswith("maria"):
        return mariadb_type
    return partial(postgres_type, settings=scenario(name).connector) if name.startswith("pg_types") else postgres_type


def decoded_row(
    row: TableRow, records: tuple[Record, ...], events: dict[tuple[int, int], dict[str, Any]]
) -> dict[str, Value] | None:
    """The decoded values of a row that the reference has found; None where its record was rejected. A value that its
    record does not have is that of an earlier record that has what the reference filled in."""
    event = events.get((row.event.record.partition, row.event.record.offset))
    if event is None or event["row"] is None:
        return None
    values = dict(event["row"])
    for column in event["unavailable"] or ():
        for record in records:
            other = events.get((record.partition, record.offset))
            if other is None or other["row"] is None or column in (other["unavailable"] or ()):
                continue
            after = read(record).after
            if after is not None and after.get(column) == row.values[column]:
                values[column] = other["row"][column]
    return values


@pytest.mark.thorough
def test_nothing_is_rejected_but_timestamps_that_the_lake_can_not_hold() -> None:
    reasons: dict[str, list[str]] = {}
    for name in TRUTH:
        for table, _ in tables(name):
            decoded, _ = decoded_table(name, table.name)
            if decoded.rejected.num_rows:
                reasons[f"{name}.{table.name}"] = decoded.rejected["message"].to_pylist()
    bad = "these columns hold a value that their type can't hold: "
    assert reasons == {
        **{f"{form}.special": [bad + column for column in ("c_ts3", "c_tstz") * 2] for form in ADAPTIVE},
        **{
            f"pg_types_{form}.special": [bad + column for column in ("c_ts", "c_ts3", "c_tstz") * 2]
            for form in ("iso", "string")
        },
    }


@pytest.mark.parametrize("name", recordings([*WITH_SCHEMA, "pg_json_plain", "pg_types_plain"]))
def test_keys_and_places_in_the_log_are_those_that_the_reference_reads(name: str) -> None:
    for table, records in tables(name):
        decoded, _ = decoded_table(name, table.name)
        events = events_by_place(decoded, "key")
        keys: dict[str | None, Any] = {}
        placed = []
        for record in records:
            ours = events.get((record.partition, record.offset))
            if ours is None:
                continue
            event = read(record)
            block = json.loads(record.value or b"{}")
            source = (block.get("payload", block) or {}).get("source") or {}
            key = hashable(ours["key"] or {})
            assert keys.setdefault(event.key, key) == key
            assert ours["transaction"] == event.transaction
            assert ours["source_time"] == source.get("ts_ms")
            assert ours["snapshot_end"] == (event.op == "r" and source["snapshot"].startswith("last"))
            assert (ours["position"] is None) == (event.position is None)
            if event.position is not None and event.position.level is not None and event.op != "r":
                placed.append((ours["position"], event.position.level, event.position.sub_position))
        assert len(set(keys.values())) == len(keys)
        in_order = sorted(placed)
        assert [place[1:] for place in in_order] == sorted(place[1:] for place in in_order)
        assert len({place[0] for place in placed}) == len({place[1:] for place in placed})
