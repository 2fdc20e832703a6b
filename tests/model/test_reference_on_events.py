"""The reference, fed with events of real connectors, produces the databases' real rows.

As the integration tests do with the service, without a JVM. If both disagree, the service is wrong.
"""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
from tests.model.reference import wire
from tests.model.reference.table import TableRow, reference
from tests.support.comparable import Value
from tests.support.mariadb_types import mariadb_type
from tests.support.postgres_types import postgres_type
from tests.support.random_share import Scale, thorough_but
from tests.support.recorded import Column, Record, Scenario, TruthTable
from tests.support.sent_again import resent
from tests.support.truth import Difference, SourceTypes, compare_rows
from tests.support.wire_limits import limits

OUT_OF_REACH = {
    "pg_extra": {
        "custom_key": "several rows share the records' key",
        "custom_key_default": "a delete has an empty key, a change of the key comes as an update of the new one",
        "ri_index": "a delete has a made-up key, a change of the key comes as an update of the new one",
    },
    "maria_json_schema": {
        "child": "what a foreign key cascades to is not in the log",
        "evo_renamed": "most rows were sent to the topic of the old name",
    },
    "pg_types": {"part": "the rows are in the partitions' topics"},
    "pg_schema_evolution": {
        "evo": "columns that were retyped or added with a default changed without an event",
        "evo_pk": "the key's columns changed",
        "evo_recreate": "a dropped table's rows are not deleted by any event",
        "evo_retype": "columns were retyped without an event",
    },
}
"""Tables whose records do not suffice to make them equal to the truth."""

PLAIN_TYPES = {
    "integer": {"type": "int32"},
    "bigint": {"type": "int64"},
    "boolean": {"type": "boolean"},
    "double precision": {"type": "double"},
    "timestamp with time zone": {"type": "string", "name": "io.debezium.time.ZonedTimestamp"},
}

CASES = [
    (name, table.name)
    for name in (
        *("pg_json_schema", "pg_json_plain", "pg_full_truncate", "pg_incremental", "pg_extra"),
        *("maria_json_schema", "pg_types", "pg_schema_evolution"),
    )
    for table in Scenario(name).tables.values()
    if table.name not in OUT_OF_REACH.get(name, {}) and table.name != "audit_log"
]
_scenarios: dict[str, Scenario] = {}


def scenario(name: str) -> Scenario:
    return _scenarios.setdefault(name, Scenario(name))


def source_types(name: str) -> SourceTypes:
    return mariadb_type if name.startswith("maria") else postgres_type


def difference(name: str, table: str, records: list[Record]) -> Difference:
    """Folds the records of a table's topic and compares the rows with the truth."""
    truth = scenario(name).tables[table]
    found = reference(records).rows().values()
    rows = [values for row in found if (values := _values(row, truth)) is not None]
    names = list(dict.fromkeys(column for row in rows for column in row))
    rows = [{column: row.get(column) for column in names} for row in rows]
    return compare_rows(rows, truth, source_types(name), limits(name), columns=names or None)


def topic(name: str, table: str) -> list[Record]:
    truth = scenario(name).tables[table]
    return list(scenario(name).topic(truth.schema, truth.name))


@pytest.mark.parametrize(("name", "table"), thorough_but(15, CASES, unpack=True))
def test_the_recorded_events_give_the_recorded_truth(name: str, table: str) -> None:
    found = difference(name, table, topic(name, table))
    assert not found, str(found)


@pytest.mark.parametrize(
    ("name", "table"), thorough_but(8, [case for case in CASES if case[0] != "pg_types"], unpack=True)
)
def test_a_suffix_sent_again_changes_nothing(name: str, table: str, scale: Scale) -> None:
    records = topic(name, table)
    for share in (0.35, 0.1, 1.0)[: scale(3, at_least=1)]:
        found = difference(name, table, [*records, *resent(records, share)])
        assert not found, str(found)


@pytest.mark.parametrize(("name", "table"), [("pg_full_truncate", "customers"), ("pg_full_truncate", "order_items")])
def test_partitions_may_come_at_any_pace(name: str, table: str) -> None:
    """Timestamps are moved apart by partition, so that one comes long before the other; truncates are among them."""
    records = topic(name, table)
    for seed in range(3):
        shift = random.Random(seed).sample([0, 10_000_000, 20_000_000], 3)
        moved = [replace(record, timestamp=record.timestamp + shift[record.partition]) for record in records]
        found = difference(name, table, moved)
        assert not found, str(found)


def test_a_lost_record_is_noticed() -> None:
    records = topic("pg_json_schema", "lsn_race")
    assert difference("pg_json_schema", "lsn_race", records[: len(records) // 2])


def test_offset_order_alone_would_lose_rows_of_a_deferred_key() -> None:
    """Guards the recording: without headers the old row's delete can't be distinguished from the new one's."""
    records = [replace(record, headers=()) for record in topic("pg_extra", "shift_ids")]
    assert difference("pg_extra", "shift_ids", records).missing == ["id='3'", "id='5'"]


def _values(row: TableRow, truth: TruthTable) -> dict[str, Value] | None:
    try:
        return wire.row(row.values, row.event.row_schema or _plain_schema(truth))
    except OverflowError:
        return None  # the limits name these rows


def _plain_schema(truth: TruthTable) -> list[dict[str, object]]:
    return [{"field": column.name, **_plain_type(column)} for column in truth.columns]


def _plain_type(column: Column) -> dict[str, object]:
    if column.type.startswith("numeric("):
        precision, scale = column.type.removeprefix("numeric(").removesuffix(")").split(",")
        parameters = {"scale": scale, "connect.decimal.precision": precision}
        return {"type": "bytes", "name": "org.apache.kafka.connect.data.Decimal", "parameters": parameters}
    return {**PLAIN_TYPES.get(column.type, {"type": "string"})}
