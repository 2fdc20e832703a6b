"""The plan of one table."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import SecretStr
from pyspark.sql.types import ArrayType, LongType, StringType, StructField
from tests.support.table_contexts import NOW, TOPIC, config, envelope, plan_of, progress, sample, warnings_of

from distributary.config.table import TableSettings
from distributary.consume.topics import TableId
from distributary.errors import TransientError
from distributary.ingest.tables import ConfiguredTable
from distributary.lake.layout import Layout
from distributary.preflight.existing_table import ExistingTable, widened_columns
from distributary.preflight.plan import Plan, halt_shared_paths
from distributary.preflight.plan_warning import Code
from distributary.preflight.skipped_topics import SkippedTopic, skipped_topics
from distributary.preflight.table_plan import ALTER, CONTINUE, CREATE, HALT, UP_TO_DATE, WAIT
from distributary.preflight.table_planner import halted_plan, plan_table

ROW = {"id": 1, "name": "a", "price": 1.5, "paid": True}
COLUMNS = {"id": "bigint", "name": "string", "price": "double", "paid": "boolean"}
SERVICE = {"__op": "string", "__position": "string"}
LAKE = ExistingTable({**COLUMNS, **SERVICE}, has_files=True)


def test_a_topic_without_a_table_makes_one() -> None:
    plan = plan_of(sample(envelope("c", ROW), envelope("u", {**ROW, "more": [1]})))
    assert (plan.action, plan.key, plan.records, plan.form) == (CREATE, ("id",), 2, "envelope")
    assert plan.columns == {**COLUMNS, "more": "string"}
    assert (plan.connector, plan.start, plan.end) == ("sqlserver", {0: 0}, {0: 2})
    assert json.loads(json.dumps(plan.as_json())) == plan.as_json()


def test_the_layout_in_force_is_reported() -> None:
    assert plan_of(sample(envelope("c", ROW))).layout == "auto"
    kept = {"layout": "vectors", "properties": {"delta.enableDeletionVectors": "false"}}
    plan = plan_of(sample(envelope("c", ROW)), kept)
    assert plan.layout == plan.as_json()["layout"] == "rewrite"


NUMBERS = st.integers(-(2**70), 2**70)
VALUES = st.none() | st.booleans() | NUMBERS | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=3)
ROWS = st.dictionaries(st.sampled_from("abcd"), VALUES | st.lists(NUMBERS, max_size=1))


@settings(deadline=None)
@given(st.lists(ROWS, min_size=1, max_size=4))
@pytest.mark.thorough
def test_the_types_that_values_show_make_the_same_table_where_columns_names_them(rows: list[dict[str, Any]]) -> None:
    found = sample(*(envelope("c", {"id": number, **row}, key={"id": number}) for number, row in enumerate(rows)))
    plan = plan_of(found)
    named = plan_of(found, {"columns": dict(plan.by_value)})
    assert plan.columns == plan.by_value
    assert (named.columns, named.untyped, named.key) == (plan.columns, plan.untyped, plan.key)
    assert (named.by_value, named.possible_types) == ({}, {})


def test_whole_numbers_beyond_bigint_make_a_column_of_text_which_keeps_their_digits() -> None:
    number = 2**64 - 1
    found = sample(*(envelope("c", {"id": n, "n": n}, key={"id": n}) for n in (1, number)))
    assert plan_of(found).columns == {"id": "string", "n": "string"}


def test_columns_that_the_table_or_the_connector_tells_are_not_typed_by_their_values() -> None:
    there = plan_of(
        sample(envelope("c", ROW), envelope("u", {**ROW, "more": 1}), taken=1), known=progress(1), lake=LAKE
    )
    assert (there.by_value, there.possible_types) == (
        {"more": "bigint"},
        {"more": "or date, time_ms, time_us, time_ns"},
    )
    result = plan_of(
        sample(envelope("c", {**ROW, "gone": None})), announced={"id": "int", "price": "decimal(9,2)", "gone": "date"}
    )
    assert (result.by_value, result.untyped) == ({"name": "string", "paid": "boolean"}, ())


def test_columns_of_a_schema_are_not_typed_by_their_values() -> None:
    row = {"type": "struct", "field": "after", "fields": [{"field": "id", "type": "int32"}]}
    key, value = envelope("c", {"id": 1})
    described = (key, {"schema": {"type": "struct", "fields": [row]}, "payload": value})
    plan = plan_of(sample(described))
    assert (plan.columns, plan.by_value) == ({"id": "int"}, {})
    # Nor where other records of the topic have no schema: a type that is named would be over the schema's.
    mixed = plan_of(sample(described, envelope("c", {"id": 2, "more": 1}, key={"id": 2})))
    assert (mixed.columns, mixed.by_value) == ({"id": "bigint", "more": "bigint"}, {"more": "bigint"})


def test_connect_schemas_tell_the_types() -> None:
    row = {
        "type": "struct",
        "fields": [
            {"field": "id", "type": "int32"},
            {"field": "at", "type": "int64", "name": "io.debezium.time.MicroTimestamp"},
        ],
    }
    schema = {"type": "struct", "fields": [{**row, "field": "after"}]}
    key, value = envelope("c", {"id": 1, "at": 5})
    plan = plan_of(sample((key, {"schema": schema, "payload": value})))
    assert plan.columns == {"id": "int", "at": "timestamp_ntz"}


def test_a_table_continues_from_its_own_offsets() -> None:
    plan = plan_of(sample(envelope("c", ROW), envelope("u", ROW), taken=1), known=progress(1), lake=LAKE)
    assert (plan.action, plan.start, plan.records, plan.added, plan.columns) == (CONTINUE, {0: 1}, 1, {}, COLUMNS)


def test_5_1_columns_that_are_new_would_be_added() -> None:
    found = sample(envelope("c", ROW), envelope("u", {**ROW, "more": 1}), taken=1)
    plan = plan_of(found, known=progress(1), lake=LAKE)
    assert (plan.action, plan.added, plan.columns) == (ALTER, {"more": "bigint"}, {**COLUMNS, "more": "bigint"})
    ignoring = plan_of(found, {"schema_changes": "ignore"}, known=progress(1), lake=LAKE)
    assert (ignoring.action, ignoring.added) == (CONTINUE, {})


def test_5_1_a_column_that_is_ignored_halts_no_table_by_what_its_hashes_would_be_made_of() -> None:
    def described(kind: str) -> tuple[Any, Any]:
        fields = [{"field": "id", "type": "int64"}, {"field": "more", "type": kind}]
        key, value = envelope("u", {"id": 1, "more": None})
        schema = {"type": "struct", "fields": [{"field": "after", "type": "struct", "fields": fields}]}
        return key, {"schema": schema, "payload": value}

    found = sample(envelope("c", ROW), described("int32"), described("boolean"), taken=1)
    rule = {"mask": {"more": "hash"}, "salt": SecretStr("a salt")}
    assert halted(found, rule, known=progress(1), lake=LAKE) == "mask-changed"
    ignoring = plan_of(found, {**rule, "schema_changes": "ignore"}, known=progress(1), lake=LAKE)
    assert (ignoring.action, ignoring.added) == (CONTINUE, {})


def test_5_1_columns_that_would_be_widened_are_reported() -> None:
    found = sample(envelope("c", ROW), envelope("u", ROW), taken=1)
    narrow = ExistingTable({**COLUMNS, **SERVICE, "id": "int"}, has_files=True)
    wanted = {"columns": {"id": "bigint"}}
    plan = plan_of(found, wanted, known=progress(1), lake=narrow)
    assert (plan.action, plan.added, plan.widened, plan.columns) == (ALTER, {}, {"id": "bigint"}, COLUMNS)
    halting = plan_of(found, {**wanted, "schema_changes": "halt"}, known=progress(1), lake=narrow)
    assert (halting.error or {})["code"] == "schema-changed"


def test_renamed_columns_are_reported_by_the_tables_names() -> None:
    rule = {"rename": {"id": "number", "name": "called"}, "columns": {"id": "int"}}
    plan = plan_of(sample(envelope("c", {**ROW, "gone": None})), rule)
    assert (plan.action, plan.key) == (CREATE, ("number",))
    assert (plan.columns["number"], "called" in plan.columns, "id" in plan.columns) == ("int", True, False)
    assert [w.code for w in plan.warnings].count(Code.NO_TYPE_YET) == 1


def test_a_renamed_column_that_would_halt_the_table_is_reported_with_the_sources_name() -> None:
    behind = sample(envelope("c", ROW), envelope("u", ROW), taken=1)
    stored = ExistingTable({**COLUMNS, **SERVICE, "called": "int"}, has_files=True)
    rule = {"rename": {"name": "called"}, "columns": {"name": "string"}}
    plan = plan_of(behind, rule, known=progress(1, renames={"name": "called"}), lake=stored)
    assert plan.error is not None
    assert "'called' (source: name)" in plan.error["message"]
    assert "{name: int}" in plan.error["fix"]


def test_a_table_that_has_all_is_up_to_date() -> None:
    plan = plan_of(sample(envelope("c", ROW), taken=1), known=progress(1), lake=LAKE)
    assert (plan.action, plan.records, plan.error) == (UP_TO_DATE, 0, None)


def test_properties_and_clustering_that_would_be_set_are_reported_and_other_partitions_warned_of() -> None:
    rule: dict[str, Any] = {"properties": {"delta.enableChangeDataFeed": "true"}, "cluster_by": ("id",)}
    new = plan_of(sample(envelope("c", ROW)), rule)
    assert (new.action, new.properties, new.clustered_by) == (CREATE, rule["properties"], ("id",))
    taken = sample(envelope("c", ROW), taken=1)
    there = plan_of(taken, rule, known=progress(1), lake=LAKE)
    assert (there.action, there.properties, there.clustered_by) == (ALTER, rule["properties"], ("id",))
    has = replace(LAKE, layout=Layout({"delta.enableChangeDataFeed": "true"}, cluster_by=("id",)))
    same = plan_of(taken, rule, known=progress(1), lake=has)
    assert (same.action, same.properties, same.clustered_by, same.warnings) == (UP_TO_DATE, {}, (), ())
    parted = plan_of(taken, {"partition_by": ("name",)}, known=progress(1), lake=has)
    assert (parted.action, [w.code for w in parted.warnings]) == (UP_TO_DATE, [Code.PARTITIONS_DIFFER])
    assert json.loads(json.dumps(there.as_json())) == there.as_json()


def test_a_topic_without_a_record_waits() -> None:
    assert plan_of(sample()).action == WAIT


def halted(*args: Any, **options: Any) -> str:
    plan = plan_of(*args, **options)
    assert plan.action == HALT
    assert plan.error is not None
    assert plan.error["fix"]
    return plan.error["code"]


def test_what_would_halt_the_table_is_reported_beforehand() -> None:
    behind = sample(envelope("c", ROW), envelope("u", ROW), taken=1)
    assert halted(behind, {"partition_by": ("nmae",)}, known=progress(1), lake=LAKE) == "layout-column-unknown"
    assert halted(behind, {"mask": {"name": "redact"}}, known=progress(1), lake=LAKE) == "mask-changed"
    assert halted(sample(envelope("c", ROW)), {"mask": {"id": "redact"}}) == "key-redacted"
    assert halted(behind, {"rename": {"name": "called"}}, known=progress(1), lake=LAKE) == "rename-changed"
    assert halted(sample(envelope("c", ROW)), {"rename": {"name": "id"}}) == "rename-taken"
    typed = ExistingTable({**COLUMNS, "name": "int"}, has_files=True)
    assert halted(sample(envelope("c", ROW, key=None))) == "no-key"
    assert halted(behind, known=progress(1, key=("no",)), lake=LAKE) == "key-changed"
    assert halted(behind, {"mode": "append"}, known=progress(1), lake=LAKE) == "mode-changed"
    assert halted(behind, {"columns": {"name": "string"}}, known=progress(1), lake=typed) == "column-type-changed"
    assert halted(sample(envelope("c", ROW), first=5), known=progress(1), lake=LAKE) == "records-lost"
    assert halted(sample(envelope("c", ROW), topic_id="other"), known=progress(0), lake=LAKE) == "topic-recreated"
    assert halted(sample(envelope("c", ROW)), lake=LAKE) == "not-our-table"
    assert halted(sample(envelope("c", {**ROW, "ID": 1}))) == "columns-differ-in-case"
    assert halted(sample(envelope("c", {**ROW, "__op": 1}))) == "column-name-taken"
    assert halted(sample(envelope("c", ROW, key=None)), {"key": ("no",)}) == "key-column-missing"
    assert halted(sample(envelope("c", ROW)), {"key": ("name",)}) == "key-not-needed"
    more = sample(envelope("u", {**ROW, "more": 1}), first=1)
    assert halted(more, {"schema_changes": "halt"}, known=progress(1), lake=LAKE) == "schema-changed"


def test_records_from_before_and_after_a_column_was_renamed_are_one_table() -> None:
    found = sample(envelope("c", {"id": 1, "name": "a"}), envelope("c", {"id": 2, "full_name": "b"}))
    plan = plan_of(found, {"rename": {"full_name": "name"}})
    assert (plan.action, plan.columns) == (CREATE, {"id": "bigint", "name": "string"})


def test_3_8_without_a_key_append_or_key_is_the_way_out() -> None:
    keyless = sample(envelope("c", ROW, key=None))
    assert plan_of(keyless, {"mode": "append"}).action == CREATE
    assert plan_of(keyless, {"key": ("name",)}).key == ("name",)


def test_a_halt_that_only_later_records_would_bring_is_no_news_for_a_table_that_is_up_to_date() -> None:
    plan = plan_of(sample(envelope("c", ROW, key=None), taken=1), known=progress(1), lake=LAKE)
    assert plan.action == UP_TO_DATE


def test_of_two_topics_for_one_place_the_first_one_counts() -> None:
    plans = [
        halted_plan(
            ConfiguredTable(TableId("dbo", "t", base), f"p.{base}.dbo.t", TableSettings("*.*"), "/lake/dbo/t"), error
        )
        for base in ("a", "b")
        for error in [TransientError("kafka-unreachable", "…")]
    ]
    first, second = halt_shared_paths(plans)
    assert first.error is not None
    assert second.error is not None
    assert (first.error["code"], second.error["code"]) == ("kafka-unreachable", "two-topics-one-table")


def test_a_plan_lists_skipped_topics_in_json_under_the_old_name_too() -> None:
    skipped = SkippedTopic("server1.message", "of-debezium", "the source's logical messages")
    found = Plan((), (skipped,), ()).as_json()
    assert found["skipped_topics"] == found["passed_over"] == [skipped.as_json()]


def test_1_5_topics_that_become_no_table_are_reported_with_the_reason() -> None:
    names = [
        *("server1", "server1.transaction", "__debezium-heartbeat.server1", "server1.message"),
        *("server1.dbo.debezium_signal", "server1.dbo.other", "server1.base.dbo.t", "server1.lone", "another.dbo.t"),
        "server1.dbo.t",
    ]
    found = skipped_topics(config(tables=[{"match": "dbo.t"}]), names, {"server1.dbo.t"})
    assert {topic.topic: topic.code for topic in found} == {
        "server1": "of-debezium",
        "server1.transaction": "of-debezium",
        "__debezium-heartbeat.server1": "of-debezium",
        "server1.message": "of-debezium",
        "server1.dbo.debezium_signal": "signal-table",
        "server1.dbo.other": "no-entry",
        "server1.base.dbo.t": "connector-unknown",
        "server1.lone": "no-table-name",
    }


def test_a_misspelt_mask_is_reported_and_halts_a_table_that_would_publish_the_column() -> None:
    pair = envelope("c", {"id": 1, "email": "a", "name": "n"})
    plan = plan_of(sample(pair), {"mask": {"emial": "redact"}, "own_names": frozenset({("mask", "emial")})})
    assert "unknown-column" in warnings_of(plan)  # by an entry for all tables
    own = {"match": "dbo.t", "mask": {"emial": "redact"}, "own_names": frozenset({("mask", "emial")})}
    halted = plan_of(sample(pair), own)
    assert halted.error is not None
    assert halted.error["code"] == "unknown-column"
    assert "email" in warnings_of(halted)["unknown-column"].detail
    columns = {"id": "bigint", "email": "string", "name": "string"}
    going_on = plan_of(sample(pair, pair, taken=1), own, progress(1), ExistingTable(columns, has_files=True))
    assert going_on.error is None
    assert "c.yaml:6" in warnings_of(going_on)["unknown-column"].detail


def test_points_in_time_that_are_to_be_of_another_type_would_halt_the_table() -> None:
    at = {"id": 1, "at": 1_700_000_000_123_456}
    rule = {"columns": {"id": "bigint", "at": "timestamp_us"}}
    found = sample(envelope("c", at))
    assert plan_of(found, rule).columns == {"id": "bigint", "at": "timestamp_ntz"}
    assert plan_of(found, {**rule, "timestamps": "utc"}).columns == {"id": "bigint", "at": "timestamp"}
    lake = ExistingTable({"id": "bigint", "at": "timestamp_ntz", **SERVICE}, has_files=True)
    halted = plan_of(found, {**rule, "timestamps": "utc"}, known=progress(0), lake=lake)
    assert halted.error is not None
    assert (halted.action, halted.error["code"]) == (HALT, "timestamps-changed")


def test_documents_are_planned_as_a_table_of_two_columns() -> None:
    document = ({"id": "1"}, {"op": "c", "before": None, "after": '{"_id": 1}', "source": {"connector": "mongodb"}})
    settings = TableSettings("*.*", where="c.yaml:6")
    one = ConfiguredTable(TableId("dbo", "t"), TOPIC, settings, "/lake/dbo/t")
    of_documents = config(source={"topic_prefix": "server1", "connector": "mongodb"})
    plan, _ = plan_table(one, of_documents, sample(document), None, None, NOW, lambda _topic: {})
    assert (plan.action, plan.key, plan.error) == (CREATE, ("_id",), None)
    assert {name: kind for name, kind in plan.columns.items() if not name.startswith("__")} == {
        "_id": "string",
        "document": "string",
    }
    assert not plan.by_value


def test_a_type_in_columns_that_the_filled_table_can_not_have_is_reported_while_no_record_waits() -> None:
    applied = sample(envelope("c", ROW), taken=1)
    for found in (applied, sample()):
        plan = plan_of(found, {"columns": {"name": "int", "price": "double"}}, known=progress(1), lake=LAKE)
        warning = warnings_of(plan)["types-differ"]
        assert plan.action in (UP_TO_DATE, HALT)
        assert "column-type-changed" in warning.message
        assert "--rebuild" in warning.fix
        assert warning.detail == "name is string in the table, and int in `columns`"
    fits = {"columns": {"name": "string", "id": "int", "new": "date"}}
    assert "types-differ" not in warnings_of(plan_of(applied, fits, known=progress(1), lake=LAKE))
    ignored = {"columns": {"name": "int", "paid": "string"}, "exclude": ("name",), "mask": {"paid": "redact"}}
    assert "types-differ" not in warnings_of(plan_of(applied, ignored, known=progress(1), lake=LAKE))


def test_columns_that_were_widened_are_reported_with_the_types_that_they_had() -> None:
    widened = replace(LAKE, widened={"id": ("smallint", "int")})
    plan = plan_of(sample(envelope("c", ROW), taken=1), known=progress(1), lake=widened)
    assert plan.as_json()["widened_before"] == {"id": ["smallint", "int"]}


def test_the_types_that_widened_columns_had_are_in_the_metadata_of_delta() -> None:
    changes = [{"fromType": "short", "toType": "integer"}, {"fromType": "integer", "toType": "long"}]
    inner = [{"fromType": "integer", "toType": "long", "fieldPath": "element"}]
    fields = [
        StructField("id", LongType(), metadata={"delta.typeChanges": changes}),
        StructField("name", StringType()),
        StructField("list", ArrayType(LongType()), metadata={"delta.typeChanges": inner}),
    ]
    assert widened_columns(fields) == {"id": ("smallint", "int")}


def typed(kind: str, value: Any) -> tuple[Any, Any]:
    """An event whose schema has that type for the column x."""
    row = {"type": "struct", "fields": [{"field": "id", "type": "int32"}, {"field": "x", "type": kind}]}
    key, payload = envelope("c", {"id": 1, "x": value})
    return key, {"schema": {"type": "struct", "fields": [{**row, "field": "after"}]}, "payload": payload}


def test_records_that_contradict_each_other_before_there_is_a_table_are_not_said_to_contradict_the_table() -> None:
    both = sample(typed("int32", 1), typed("string", "a"))
    plan = plan_of(both)
    assert plan.error is not None
    assert plan.error["code"] == "column-type-changed"
    assert plan.error["message"].startswith("records of the topic have int for the column 'x', others string")
    assert "columns: {x: string}" in plan.error["fix"]
    assert "--rebuild" not in plan.error["fix"]
    assert plan_of(both, {"columns": {"x": "string"}}).action == CREATE
    assert plan_of(both, {"exclude": ("x",)}).action == CREATE
    there = ExistingTable({"id": "int", "x": "int"}, has_files=True)
    filled = plan_of(sample(typed("int32", 1), typed("string", "a"), taken=1), known=progress(1), lake=there)
    assert filled.error is not None
    assert "is int in the table" in filled.error["message"]
