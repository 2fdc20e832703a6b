"""Each warning of `plan` appears when it should, and only then."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest
from tests.support.table_contexts import (
    DELETE,
    HOUR,
    NOW,
    TOPIC,
    config,
    envelope,
    plan_of,
    progress,
    sample,
    warnings_of,
)

from distributary.config.source import Source
from distributary.config.table import TableSettings
from distributary.decode.unwrapped import added_by
from distributary.ingest.topic_format import detect_format
from distributary.preflight.config_warnings import config_warnings
from distributary.preflight.existing_table import ExistingTable
from distributary.preflight.inferred_columns import parse_records
from distributary.preflight.plan_warning import Code
from distributary.preflight.sample import Sample
from distributary.preflight.table_context import TableContext
from distributary.progress.record import SourceSnapshot

ROW = {"id": 1, "text": "a"}
COMPACT = MappingProxyType({"cleanup.policy": "compact"})
PAGE = (Path(__file__).parents[3] / "docs" / "plan-warnings.md").read_text(encoding="utf-8")
NONE: Mapping[str, Any] = MappingProxyType({})


def codes(
    found: Sample,
    settings: Mapping[str, Any] = NONE,
    properties: Mapping[str, str] = MappingProxyType({}),
    known: Any = None,
) -> set[str]:
    """The codes of the warnings, without those that JSON without schema always brings."""
    columns = {"columns": {"id": "int", "text": "string"}, **settings}
    return set(warnings_of(plan_of(found, columns, known, properties=properties)))


def test_an_ordinary_table_has_no_warning() -> None:
    rows = (envelope("c", ROW), envelope("u", ROW, ROW), envelope("d", None, ROW), ({"id": 1}, None))
    assert codes(sample(*rows)) == set()
    assert codes(sample(*(envelope(value["op"], ROW, ROW, connector="postgresql") for _, value in rows[:2]))) == set()


def test_every_code_is_explained_in_the_docs_and_no_other() -> None:
    assert re.findall(r"^## `([a-z-]+)`$", PAGE, re.MULTILINE) == sorted(code.value for code in Code)


def test_1_3_rows_without_a_position_are_ordered_by_their_offsets() -> None:
    assert codes(sample(({"id": 1}, ROW))) == {"order-by-offset"}
    placed = {**ROW, "__commit_lsn": "00000027:00000ac0:0002", "__change_lsn": "00000027:00000ac0:0003"}
    assert codes(sample(({"id": 1}, placed))) == set()


def test_rows_whose_deletes_are_dropped() -> None:
    placed = ({"id": 1}, {**ROW, "__file": "binlog.1", "__pos": 4})
    drop = {"transforms.unwrap.delete.tombstone.handling.mode": "drop"}
    older = {"transforms.u.delete.handling.mode": "none", "transforms.u.drop.tombstones": "true"}
    assert codes(sample(placed), properties=drop) == codes(sample(placed), properties=older) == {"deletes-dropped"}
    assert codes(sample(placed), properties={"delete.tombstone.handling.mode": "rewrite"}) == set()
    assert codes(sample(envelope("c", ROW)), properties=drop) == set()


def test_3_8_rows_without_a_key_have_no_row_before_the_change() -> None:
    placed = (None, {**ROW, "__file": "binlog.1", "__pos": 4})
    assert codes(sample(placed), {"key": ("id",)}) == {"key-from-row"}
    assert codes(sample(envelope("c", ROW, key=None)), {"key": ("id",)}) == set()


def test_columns_that_values_alone_type() -> None:
    found = warnings_of(plan_of(sample(envelope("c", {**ROW, "n": None})), {"columns": {"id": "int"}}))
    assert found["typed-by-value"].detail == "in the sampled records: text: string"
    assert found["no-type-yet"].detail == "n"


def test_decimals_as_double() -> None:
    precise = {"field": "p", "type": "double"}
    rounded = {"field": "r", "type": "double", "parameters": {"__debezium.source.column.type": "numeric"}}
    row = {"field": "after", "type": "struct", "fields": [{"field": "id", "type": "int32"}, precise, rounded]}
    key, value = envelope("c", {"id": 1, "p": 1.0, "r": 1.5})
    found = sample((key, {"schema": {"type": "struct", "fields": [row]}, "payload": value}))
    assert warnings_of(plan_of(found))["decimal-double"].detail == "r"
    result = warnings_of(plan_of(found, properties={"decimal.handling.mode": "double"}))
    assert result["decimal-double"].detail == "p, r"


@pytest.mark.parametrize(
    ("settings", "detail"),
    [
        ({}, "large values of text"),
        (
            {"columns": {"text": "array<double>"}},
            "large values of text; those of text become NULL: Debezium sends no placeholder for them",
        ),
        ({"mode": "append"}, "deletes have the key only; large values that a change did not touch are NULL"),
        ({"exclude": ("text",)}, None),
    ],
)
def test_changes_without_the_row_before_them(settings: Mapping[str, Any], detail: str | None) -> None:
    postgresql: dict[str, Any] = {"connector": "postgresql"}
    for change in (
        envelope("u", ROW, **postgresql),
        envelope("d", None, {"id": 1, "text": None}, **postgresql),
    ):
        found = sample(envelope("c", ROW, **postgresql), change)
        warning = warnings_of(plan_of(found, settings)).get("replica-identity")
        assert (warning.detail if warning else None) == detail
    full = sample(envelope("u", ROW, ROW, **postgresql), envelope("d", None, ROW, **postgresql))
    assert "replica-identity" not in codes(full, settings)
    assert "replica-identity" not in codes(sample(envelope("u", ROW, connector="mysql")), settings)


def test_deletes_whose_key_is_not_in_the_index_of_the_replica_identity() -> None:
    def detail(deleted: Mapping[str, Any], *updates: Any) -> str:
        key = {"id": deleted["id"]}
        found = sample(*updates, envelope("d", None, deleted, key=key, connector="postgresql"))
        warning = warnings_of(plan_of(found)).get("replica-identity")
        return warning.detail if warning else ""

    made_up = {"id": 0, "code": "c5", "v": None}
    assert detail(made_up).startswith("deletes: the index of the replica identity lacks the key")
    row = {"id": 1, "code": "c", "v": "x"}
    assert not detail(made_up, envelope("u", row, row, connector="postgresql"))  # FULL
    for deleted in ({"id": 7, "code": "c5", "v": None}, {"id": 0, "code": "c5", "v": "x"}):
        assert not detail(deleted)
    assert not detail({"id": 0, "code": "", "v": None}).startswith("deletes: the index")


def test_a_key_from_the_row_needs_the_row_before_the_change() -> None:
    found = sample(envelope("u", ROW, key=None, connector="postgresql"))
    assert codes(found, {"key": ("id",)}) == {"replica-identity"}


def test_a_compacted_topic() -> None:
    found = sample(envelope("c", ROW), settings=COMPACT)
    assert codes(found) == {"compacted"}
    assert codes(found, {"mode": "history"}) == codes(found, {"mode": "append"}) == {"compacted-changes"}


def test_a_compacted_topic_without_tombstones() -> None:
    gone = envelope("d", None, ROW)
    off = {"tombstones.on.delete": "false"}
    assert codes(sample(gone, ({"id": 1}, None), settings=COMPACT)) == {"compacted"}
    assert codes(sample(gone, envelope("c", ROW), settings=COMPACT)) == {"compacted", "tombstones-off"}
    assert codes(sample(envelope("c", ROW), settings=COMPACT), properties=off) == {"compacted", "tombstones-off"}
    assert codes(sample(gone, envelope("c", ROW)), properties=off) == set()


def test_a_topic_whose_beginning_is_gone() -> None:
    found = sample(envelope("u", ROW, ROW), first=7)
    assert warnings_of(plan_of(found))["begins-late"].detail == "7 offsets were removed"
    assert "begins-late" not in codes(sample(envelope("r", ROW, snapshot="first"), first=7))
    assert "begins-late" not in codes(sample(envelope("u", ROW), first=7), known=progress(7))
    assert "begins-late" not in codes(sample(envelope("u", ROW), first=7, settings=COMPACT))


@pytest.mark.parametrize(("kept", "warned"), [(2 * HOUR, True), (8 * HOUR, False), (-1, False)])
def test_records_that_retention_removes_soon(kept: int, warned: bool) -> None:
    settings = {**DELETE, "retention.ms": str(kept)}
    found = sample(envelope("u", ROW, ROW), settings=settings, timestamp=NOW - 3 * HOUR)
    assert ("retention-near" in codes(found)) is warned
    taken = sample(envelope("u", ROW, ROW), settings=settings, timestamp=NOW - 3 * HOUR, taken=1)
    assert "retention-near" not in codes(taken, known=progress(1))


def test_a_topic_whose_settings_may_not_be_seen() -> None:
    assert codes(sample(envelope("c", ROW), settings=None)) == {"topic-settings-unknown"}


def test_3_6_truncates_in_a_topic_of_several_partitions() -> None:
    truncate = envelope("t", key=None, connector="mysql")
    row = envelope("c", ROW, connector="mysql")
    sends = {"skipped.operations": "none"}
    assert codes(sample(row, truncate, partitions=2)) == {"truncates-in-partitions"}
    assert codes(sample(row, partitions=2), properties=sends) == {"truncates-in-partitions"}
    assert codes(sample(row, truncate, partitions=1), properties=sends) == set()
    assert codes(sample(row, truncate, partitions=2), {"truncate": "ignore"}) == set()
    assert codes(sample(envelope("c", ROW), partitions=2), properties=sends) == set()  # SQL Server sends none


def test_3_10_orphaned_rows_are_a_warning_once_they_are_counted() -> None:
    known = progress(1, snapshot=SourceSnapshot(position="a", orphaned_rows=2))
    assert codes(sample(envelope("c", ROW), taken=1), known=known) == {"orphaned-rows"}


def context(connector: str, *ops: str) -> TableContext:
    found = sample(*(envelope(op, ROW, connector=connector) for op in ops))
    look = detect_format(found.head, TOPIC, None, added_by({}))
    settings = TableSettings(match="*.*")
    return TableContext(
        Source(topic_prefix="server1"), settings, found, NOW, None, look, tuple(parse_records(found.head, None))
    )


@pytest.mark.parametrize(
    ("connector", "ops", "skipped", "expected"),
    [
        ("postgresql", "c", None, {"truncates-skipped"}),
        ("postgresql", "c", "t", {"truncates-skipped"}),
        ("postgresql", "c", "none", set()),
        ("postgresql", "ct", None, set()),
        ("sqlserver", "c", None, set()),
        ("mysql", "c", "d,u", {"changes-skipped"}),
    ],
)
def test_operations_that_the_connector_leaves_out(
    connector: str, ops: str, skipped: str | None, expected: set[str]
) -> None:
    found = config_warnings(
        config({"skipped.operations": skipped} if skipped else {}), [context(connector, *ops)], {"*.*"}
    )
    assert {warning.code.value for warning in found} == expected


def test_entries_that_no_table_follows() -> None:
    tables = [{"match": "*.*"}, {"match": "dbo.t"}, {"match": "[xy].*"}]
    places = tuple(f"c.yaml:{line}" for line in (7, 8, 9))
    found = config_warnings(config(tables=tables).with_places(places), [], {"*.*"})
    assert [(warning.code.value, warning.message.split(": ")[0]) for warning in found] == [
        ("entry-never-counts", "c.yaml:8"),
        ("entry-never-counts", "c.yaml:9"),
    ]
    alone = config_warnings(config(tables=[{"match": "dbo.t"}]).with_places(places[:1]), [], set())
    assert [warning.code.value for warning in alone] == ["entry-without-topic"]


def test_a_key_of_an_earlier_version_is_named_with_its_place() -> None:
    tables = [{"match": "dbo.t", "commit": "spark"}]
    [warning] = config_warnings(config(tables=tables).with_places(("c.yaml:7",)), [], {"dbo.t"})
    assert warning.code.value == "key-without-effect"
    assert warning.message.startswith("c.yaml:7: `commit` has no effect any more")


def described(connector: str = "mysql", **kinds: Mapping[str, Any]) -> tuple[Any, Any]:
    """A change with the schema of such a row beside it, all NULL but `id`."""
    fields = [{"field": "id", "type": "int32"}, *({"field": name, **kind} for name, kind in kinds.items())]
    row = {"field": "after", "type": "struct", "fields": fields}
    key, value = envelope("c", {"id": 1, **dict.fromkeys(kinds)}, connector=connector)
    return key, {"schema": {"type": "struct", "fields": [row]}, "payload": value}


CONNECT_TIME = {"type": "int64", "name": "org.apache.kafka.connect.data.Timestamp"}
NANOSECONDS = {"type": "int64", "name": "io.debezium.time.NanoTimestamp"}
MICROSECONDS = {"type": "int64", "name": "io.debezium.time.MicroTimestamp"}


def test_times_whose_digits_are_cut() -> None:
    found = sample(described(a=CONNECT_TIME, b=MICROSECONDS, c=CONNECT_TIME))
    assert warnings_of(plan_of(found))["times-cut"].detail == "a, c"
    assert warnings_of(plan_of(found, {"exclude": ("a",)}))["times-cut"].detail == "c"
    assert "times-cut" not in codes(sample(described(b=MICROSECONDS)))
    assert codes(sample(envelope("c", ROW)), properties={"time.precision.mode": "connect"}) == {"times-cut"}


@pytest.mark.parametrize(
    ("version", "warned"),
    [("3.6.1.Final", True), ("2.7.0", True), (None, True), ("3.7.0.Alpha1", False), ("3.10.0.Final", False)],
)
def test_times_in_nanoseconds_that_wrap(version: str | None, warned: bool) -> None:
    key, value = described(a=NANOSECONDS, b=MICROSECONDS)
    value["payload"]["source"]["version"] = version
    warning = warnings_of(plan_of(sample((key, value)))).get("nanoseconds-wrap")
    assert (warning.detail if warning else None) == ("a" if warned else None)


def test_unsigned_numbers_that_wrap() -> None:
    source = "__debezium.source.column.type"
    unsigned = {"type": "int64", "parameters": {source: "BIGINT UNSIGNED ZEROFILL"}}
    small = {"type": "int64", "parameters": {source: "INT UNSIGNED"}}
    found = sample(described(a=unsigned, b=small, c={"type": "int64"}))
    assert warnings_of(plan_of(found))["unsigned-wraps"].detail == "a"
    assert "unsigned-wraps" not in codes(found, properties={"bigint.unsigned.handling.mode": "precise"})


def test_json_of_which_mysql_may_log_parts_alone() -> None:
    json_columns = {"a": {"type": "string", "name": "io.debezium.data.Json"}, "b": {"type": "string"}}
    found = sample(described(connector="mysql", **json_columns))
    assert warnings_of(plan_of(found))["partial-json"].detail == "a"
    assert "partial-json" in codes(found, properties={"binlog_row_value_options": "PARTIAL_JSON"})
    assert "partial-json" not in codes(found, properties={"binlog_row_value_options": ""})
    assert "partial-json" not in codes(found, {"exclude": ("a",)})
    for connector in ("mariadb", "postgresql"):
        assert "partial-json" not in codes(sample(described(connector=connector, **json_columns)))


def test_generated_columns_that_changes_lack() -> None:
    snapshot, changes = {**ROW, "total": 3, "more": None}, ("c", "u")
    for op in changes:
        found = sample(*(envelope(*change, connector="postgresql") for change in (("r", snapshot), (op, ROW, ROW))))
        assert warnings_of(plan_of(found))["generated-columns"].detail == "more, total"
        assert warnings_of(plan_of(found, {"exclude": ("more",)}))["generated-columns"].detail == "total"
    several = (("r", snapshot), ("c", ROW), ("u", snapshot, ROW))  # added or dropped between
    for seen, connector in (
        (several, "postgresql"),
        ((("r", snapshot),), "postgresql"),
        ((("r", snapshot), ("d", None, ROW)), "postgresql"),
        ((("r", snapshot), ("c", ROW)), "mysql"),
    ):
        found = sample(*(envelope(*change, connector=connector) for change in seen))
        assert "generated-columns" not in warnings_of(plan_of(found))


def test_nulls_that_become_defaults() -> None:
    may_be_null, never = {"type": "int32", "default": 5, "optional": True}, {"type": "int32", "default": 5}
    found = sample(described(a=may_be_null, b=never, c={"type": "int32"}))
    assert warnings_of(plan_of(found))["nulls-replaced"].detail == "a"
    assert warnings_of(plan_of(found, {"exclude": ("a",)})) == {}
    assert codes(found, properties={"value.converter.replace.null.with.default": "false"}) == set()


def test_new_columns_whose_defaults_older_rows_do_not_get() -> None:
    never = {"type": "int32", "default": 5}
    found, here = sample(described(a={"type": "int32"}, b=never, c=never)), {"id": "int", "a": "int", "b": "int"}
    lake = ExistingTable({**here, "__op": "string", "__position": "string"}, has_files=True)
    known = progress(0, connector="mysql")
    assert warnings_of(plan_of(found, known=known, lake=lake))["defaults-not-filled"].detail == "c"
    for rule in ({"column_defaults": "fill"}, {"schema_changes": "ignore"}):
        assert "defaults-not-filled" not in warnings_of(plan_of(found, rule, known=known, lake=lake))
    assert "defaults-not-filled" not in warnings_of(plan_of(found))


@pytest.mark.parametrize(
    ("properties", "code", "detail"),
    [
        ({"column.truncate.to.20.chars": "dbo.t.text"}, "values-cut", "column.truncate.to.20.chars"),
        ({"transforms.cut.type": "io.debezium.transforms.EnforceRecordSize"}, "values-cut", "transforms.cut"),
        ({"message.key.columns": "other.t:a;dbo.(t|u):b,c"}, "key-not-unique", "b,c"),
        ({"source.struct.version": "v1"}, "legacy-source-struct", ""),
    ],
)
def test_settings_that_lose_data_wherever_they_are(properties: Mapping[str, str], code: str, detail: str) -> None:
    found = warnings_of(plan_of(sample(envelope("c", ROW)), properties=properties))
    assert found[code].detail == detail
    assert found[code].fix


def test_settings_that_lose_nothing_of_the_table() -> None:
    for properties in (
        {"transforms.a.type": "x.EnforceRecordSize", "transforms.a.strategy": "claim_check"},
        {"message.key.columns": "dbo.u:b;[:c"},
        {"source.struct.version": "v2", "time.precision.mode": "adaptive"},
        {"producer.override.max.in.flight.requests.per.connection": "5"},
    ):
        assert codes(sample(envelope("c", ROW)), properties=properties) == set()


def test_a_producer_that_may_reorder_rows_that_only_their_offsets_order() -> None:
    rows, several = sample(({"id": 1}, ROW)), {"producer.override.max.in.flight.requests.per.connection": "5"}
    assert codes(rows, properties=several) == {"order-by-offset", "producer-reorders"}
    idempotent = {**several, "producer.override.enable.idempotence": "true"}
    assert codes(rows, properties=idempotent) == {"order-by-offset"}
