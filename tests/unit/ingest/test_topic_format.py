"""The format of a topic's first records."""

from __future__ import annotations

import json
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import pytest

from distributary.config.table import TableSettings
from distributary.consume.sample import SampledRecord
from distributary.decode.source_block import BY_OFFSET
from distributary.decode.source_order import BY_FIELDS
from distributary.decode.unwrapped import added_by
from distributary.errors import TableHalt
from distributary.ingest.supported import check_supported
from distributary.ingest.topic_format import KnownFormat, TopicFormat, connector_of, detect_format

ANY = added_by({})


def record(value: object, key: object = None, headers: tuple[tuple[str, bytes], ...] = ()) -> SampledRecord:
    encoded = [None if part is None else json.dumps(part).encode() for part in (key, value)]
    return SampledRecord(0, 0, encoded[0], encoded[1], headers)


def look(
    *records: SampledRecord,
    connector: str | None = None,
    known: KnownFormat | None = None,
    properties: Mapping[str, str] = MappingProxyType({}),
) -> TopicFormat:
    return detect_format(records, "t", connector, added_by(properties), known)


def test_a_first_look_tells_connector_and_key() -> None:
    envelope = {"op": "c", "source": {"connector": "db2"}, "after": {}}
    wrapped = {"schema": {"type": "struct"}, "payload": envelope}
    found = look(record(None, {"id": 1}), record(wrapped, {"schema": {"type": "struct"}, "payload": {"id": 1}}))
    assert (found.order, found.key, found.has_schema, found.unwrapped) == ("db2", ("id",), True, None)


def test_columns_called_schema_and_payload_are_not_taken_for_a_schema() -> None:
    envelope = {"op": "c", "source": {"connector": "postgresql"}, "after": {}}
    assert look(record(envelope, {"schema": 1, "payload": "x"})).key == ("schema", "payload")


def test_a_topic_of_truncates_alone_tells_no_key_yet() -> None:
    truncate = {"op": "t", "source": {"connector": "postgresql"}}
    assert look(record(truncate)).only_truncates


@pytest.mark.parametrize(
    ("row", "order", "connector"),
    [
        ({"id": 1}, BY_OFFSET, None),
        ({"id": 1, "__op": "c", "__lsn": 5}, BY_OFFSET, "postgresql"),  # an lsn alone is no order
        ({"id": 1, "__source_sequence": '["1","2"]'}, "postgresql", "postgresql"),
        ({"id": 1, "__commit_lsn": "00000027:00000ac0:0002", "__change_lsn": None}, "sqlserver", "sqlserver"),
        ({"id": 1, "__commit_lsn": "00000027:00000ac0:0000000000000002", "__change_lsn": None}, "db2", "db2"),
        ({"id": 1, "__event_serial_no": 1, "__commit_lsn": "00000027:00000ac0:0002"}, BY_OFFSET, "sqlserver"),
        ({"id": 1, "__file": "binlog.1", "__pos": 4}, "mysql", "mysql"),
        ({"id": 1, "__connector": "mariadb", "__file": "binlog.1", "__pos": 4}, "mariadb", "mariadb"),
        ({"id": 1, "__commit_scn": "7", "__scn": "6"}, "oracle", "oracle"),
        ({"id": 1, "__scn": "6"}, BY_OFFSET, "oracle"),
    ],
)
def test_1_3_the_order_of_unwrapped_rows_is_that_of_the_fields_that_were_added(
    row: dict[str, Any], order: str, connector: str | None
) -> None:
    found = look(record(row, {"id": 1}))
    assert found.unwrapped is not None
    assert (found.order, found.unwrapped.connector, found.key) == (order, connector, ("id",))


def test_1_3_added_headers_tell_order_and_connector_as_fields_do() -> None:
    headers = (("__file", b"binlog.2"), ("__pos", b"7"), ("__other", b"x"))
    found = look(record({"id": 1}, {"id": 1}, headers))
    assert found.unwrapped is not None
    assert (found.order, dict(found.unwrapped.headers)) == ("mysql", {"__file": "file", "__pos": "pos"})
    named = look(record({"id": 1}, {"id": 1}, (("__debezium.context.connectorName", b"postgresql"),)))
    assert named.unwrapped is not None
    assert (named.order, named.unwrapped.connector) == (BY_OFFSET, "postgresql")


def test_1_3_the_settings_of_the_transform_say_what_was_added() -> None:
    renamed = {"transforms.unwrap.add.fields": "op:kind,source.sequence,lsn", "add.fields.prefix": "cdc_"}
    found = look(
        record({"id": 1, "cdc_kind": "c", "cdc_source_sequence": "", "cdc_lsn": 1, "__op": "mine"}), properties=renamed
    )
    assert found.unwrapped is not None
    present = found.unwrapped.present(iter(("id", "cdc_kind", "cdc_source_sequence", "cdc_lsn", "__op", "__deleted")))
    assert present == {"cdc_kind": "op", "cdc_source_sequence": "sequence", "cdc_lsn": "lsn", "__deleted": "deleted"}
    assert found.order == "postgresql"


def test_1_3_other_columns_with_two_underscores_stay_columns() -> None:
    assert not ANY.present(iter(("__v", "__id", "__deleted_at", "_op", "op", "lsn")))
    assert added_by({"add.fields.prefix": ""}).present(iter(("name", "op", "__deleted"))) == {"__deleted": "deleted"}


def test_1_3_a_broken_envelope_is_no_unwrapped_row() -> None:
    for broken in (
        {"op": "c", "after": {"id": 1}},
        {"op": "d", "before": None, "after": None, "ts_ms": 1},
        {"op": "c", "source": {"name": "s"}, "ts_ms": 1},
        {"op": "c", "source": {"name": "s"}, "after": {"id": 1}, "added": 1},
    ):
        with pytest.raises(TableHalt, match="not-an-envelope"):
            look(record(broken, {"id": 1}), connector="postgresql")


AUDIT = {"id": 1, "tbl": "orders", "op": "INSERT", "before": None, "after": '{"id": 7}'}


@pytest.mark.parametrize(
    ("row", "key"),
    [
        (AUDIT, {"id": 1}),
        ({**AUDIT, "before": {"srid": None, "wkb": "AQ=="}}, {"id": 1}),  # a geometry
        (AUDIT, None),  # a table without key
        ({"op": "x", "after": None, "n": 1}, {"op": "x", "n": 1}),
        ({"id": 1, "payload": "x"}, {"id": 1}),
        ({"payload": "x"}, {"payload": "x"}),
        ({"specversion": "1.0", "id": "a", "source": "/s", "type": "t"}, {"id": "a"}),  # a table of stored events
        ({"database": "d", "table": "t", "type": "x", "ts": 1, "data": "{}", "id": 4}, {"id": 4}),
        ({"database": "d", "table": "t", "type": "x", "ts": 1, "data": "{}", "__deleted": "false"}, None),
        ({"data": {"a": 1}, "metadata": {"operation": "x"}}, None),  # JSON columns
        ({"op": "a", "source": "web", "before": 1, "after": 2}, {"op": "a"}),
        ({"id": 1, "op": "x", "source": {"page": "/"}}, {"id": 1}),  # a JSON column, a struct, a composite type
        ({"id": 1, "op": "c", "source": {}}, {"id": 1}),
        ({"id": 1, "op": "c", "source": {"connector": "USB", "version": 2}}, {"id": 1}),
        ({"n": 1, "op": "sale", "source": {"connector": "shop", "ts_ms": 1}}, None),
        ({"n": 1, "op": 5, "source": {"page": "/"}, "ts_ms": 1}, None),
        ({**AUDIT, "source": {"app": "web"}}, {"id": 1}),
        ({**AUDIT, "before": {"id": 7}, "after": {"id": 7}, "source": {"app": "web"}}, {"id": 1}),
    ],
)
def test_1_1_rows_whose_columns_are_called_as_an_envelopes_fields_are_rows(row: object, key: object) -> None:
    assert look(record(row, key)).unwrapped is not None


def test_1_1_an_envelope_of_a_table_whose_key_is_called_as_a_field_of_it_is_one() -> None:
    envelope = {"op": "c", "source": {"connector": "db2"}, "after": {"source": "a"}}
    assert look(record(envelope, {"source": "a"})).unwrapped is None
    with pytest.raises(TableHalt, match="not-an-envelope"):
        look(record({"op": "c", "after": {"op": 1}}, {"op": 1}), connector="db2")


@pytest.mark.parametrize(
    "envelope",
    [
        {"op": "d", "source": {"connector": "db2"}},  # a transform removed the rows
        {"op": "d", "source": {"connector": "db2", "ts_ms": 1}, "added": "x"},  # and one added a field
        {"op": "c", "source": {"connector": "db2"}, "after": {"id": 1}, "added": "x"},
    ],
)
def test_1_1_an_envelope_that_transforms_changed_is_one(envelope: dict[str, Any]) -> None:
    assert look(record(envelope, {"id": 1})).unwrapped is None


CLOUD_EVENT = {
    "id": "name:s;lsn:1", "source": "/debezium/postgresql/s", "specversion": "1.0", "type": "io.debezium.d",
    "time": "2024-01-01T00:00:00Z", "datacontenttype": "application/json", "iodebeziumop": "c", "data": {"id": 1},
}  # fmt: skip


@pytest.mark.parametrize(
    ("value", "key", "code", "named"),
    [
        (CLOUD_EVENT, {"id": 1}, "other-form", "CloudEvents"),
        ({**CLOUD_EVENT, "data": {"payload": {"op": "c"}}}, None, "other-form", "CloudEvents"),
        ({**CLOUD_EVENT, "data": "AAE=", "iodebeziumop": "c"}, None, "other-form", "CloudEvents"),
        (
            {**CLOUD_EVENT, "iodebeziumconnector": "mongodb", "data": {"after": "{}", "before": None}},
            {"id": 1},
            "documents-not-rows",
            "mongodb",
        ),
        (
            {"database": "d", "table": "t", "type": "insert", "ts": 1, "xid": 1, "data": {"id": 1}},
            {"database": "d", "table": "t", "pk.id": 1},
            "other-form",
            "Maxwell",
        ),
        (
            {"database": "d", "table": "t", "type": "INSERT", "isDdl": False, "ts": 2, "data": [{"id": "1"}]},
            None,
            "other-form",
            "Canal",
        ),
        (
            {"table": "D.T", "op_type": "I", "op_ts": "2", "current_ts": "3", "pos": "4", "after": {"ID": 1}},
            None,
            "other-form",
            "Oracle GoldenGate",
        ),
        ({"data": {"id": 1}, "metadata": {"record-type": "data", "operation": "load"}}, None, "other-form", "AWS DMS"),
        ({"payload": {"id": 1}}, {"payload": {"id": 1}}, "payload-without-schema", "payload"),
        (
            {"payload": {"op": "c", "source": {"connector": "TiCDC", "pos": 0}, "after": {"id": 1}}},
            {"payload": {"id": 1}},
            "connector-not-built",
            "TiCDC",
        ),
        (
            {"op": "c", "source": {"connector": "mongodb"}, "after": '{"_id": 1}'},
            {"id": "1"},
            "documents-not-rows",
            "mongodb",
        ),
    ],
)
def test_1_1_records_of_another_form_halt_the_table_by_its_name(
    value: object, key: object, code: str, named: str
) -> None:
    for connector in (None, "mysql"):
        with pytest.raises(TableHalt, match=named) as halt:
            look(record(value, key), connector=connector)
        assert halt.value.code == code
        assert halt.value.fix


WITHIN = {"op": "c", "source": {"connector": "mysql", "file": "b.1", "pos": 4}, "after": {"id": 1}}


@pytest.mark.parametrize(
    ("records", "key"),
    [
        ([record({"payload": WITHIN}, {"payload": {"id": 1}})], ("id",)),
        ([record({"payload": WITHIN}, {"id": 1}), record(None, {"id": 1})], ("id",)),
        ([record({"payload": WITHIN}), record({"payload": WITHIN}), record({"id": 1})], ()),
        ([record(None, {"payload": {"id": 1, "n": 2}})], ("id", "n")),
    ],
)
def test_1_1_an_envelope_under_payload_alone_is_one(records: list[SampledRecord], key: tuple[str, ...]) -> None:
    found = look(*records, connector="mysql")
    assert (found.order, found.key, found.unwrapped, found.in_payload_object) == ("mysql", key, None, True)
    assert connector_of(records, ANY) in ("mysql", None)


def test_1_1_a_row_under_payload_alone_is_one_where_fields_were_added_to_it() -> None:
    found = look(record({"payload": {"id": 1, "__file": "b.1", "__pos": 4}}, {"payload": {"id": 1}}))
    assert (found.order, found.key, found.unwrapped is not None, found.in_payload_object) == (
        "mysql",
        ("id",),
        True,
        True,
    )


@pytest.mark.parametrize("key", [{"payload": 1}, {"payload": "x"}, {"id": 1}, {"payload": {"id": 1}, "n": 1}])
def test_1_1_a_key_column_called_payload_is_one(key: object) -> None:
    assert not look(record(WITHIN, key)).in_payload_object


@pytest.mark.parametrize("connector", ["informix", "cockroachdb", "yashandb", "ibmi"])
def test_2_1_connectors_whose_fields_are_known_are_taken(connector: str) -> None:
    envelope = {"op": "c", "source": {"connector": connector}, "after": {"id": 1}}
    assert look(record(envelope, {"id": 1})).order == connector
    row = look(record({"id": 1}, {"id": 1}), connector=connector)
    assert row.order == BY_OFFSET  # nothing is known of what its rows without envelope have


def test_2_1_any_connector_is_taken_where_the_config_orders_it() -> None:
    for named, order in (("vitess", "vitess"), (None, BY_FIELDS), ("postgresql", "postgresql")):
        envelope = {"op": "c", "source": {"connector": named, "n": 1}, "after": {"id": 1}}
        assert detect_format([record(envelope, {"id": 1})], "t", None, ANY, None, True).order == order
    with pytest.raises(TableHalt, match="connector-not-built") as halt:
        look(record({"op": "c", "source": {"connector": "vitess"}, "after": {"id": 1}}))
    assert "source.order" in halt.value.fix
    odd = record({"op": "c", "source": {"connector": "a'b"}, "after": {"id": 1}})
    with pytest.raises(TableHalt, match="connector-not-built"):
        detect_format([odd], "t", None, ANY, None, True)
    with pytest.raises(TableHalt, match="connector-unknown"):
        detect_format([record("x")], "t", None, ANY, None, True)


def test_1_1_cloud_events_with_the_rows_of_an_envelope_are_envelopes() -> None:
    event = {**CLOUD_EVENT, "iodebeziumconnector": "postgresql", "data": {"after": {"id": 1}, "before": None}}
    found = look(record(event, {"id": 1}), record(None, {"id": 1}))
    assert (found.order, found.key, found.unwrapped, found.cloud_events) == ("postgresql", ("id",), None, True)
    assert connector_of([record(event)], ANY) == "postgresql"
    assert not look(record({"op": "c", "source": {"connector": "db2"}, "after": {}}, {"id": 1})).cloud_events


def test_1_3_the_form_is_that_of_most_records() -> None:
    row, envelope = record({"id": 1}), record({"op": "c", "source": {"connector": "db2"}, "after": {"id": 1}})
    assert look(row, envelope, row).unwrapped is not None
    assert look(envelope, row).unwrapped is None


def test_1_3_tombstones_alone_leave_the_form_to_what_is_known() -> None:
    found = look(record(None, {"id": 1}), known=KnownFormat(BY_OFFSET, unwrapped=True))
    assert found.unwrapped is not None
    assert (found.order, found.is_conclusive) == (BY_OFFSET, False)
    found = look(record(None, {"id": 1}), known=KnownFormat("db2", unwrapped=False))
    assert (found.order, found.unwrapped, found.is_conclusive) == ("db2", None, False)


@pytest.mark.parametrize("known", [KnownFormat("db2", unwrapped=False), KnownFormat(BY_OFFSET, unwrapped=True)])
def test_6_2_where_no_record_is_left_nothing_is_reported_and_nothing_halts(known: KnownFormat) -> None:
    found = look(known=known)
    assert (found.order, found.unwrapped is not None, found.is_conclusive) == (known.order, known.unwrapped, False)
    check_supported(TableSettings(match="*.*"), found)


def test_1_3_a_table_keeps_its_order_and_halts_where_it_can_not() -> None:
    row, envelope = {"id": 1, "__sequence": "[]"}, {"op": "c", "source": {"connector": "postgresql"}, "after": {}}
    assert look(record(row), known=KnownFormat(BY_OFFSET, unwrapped=True)).order == BY_OFFSET
    assert look(record(row), known=KnownFormat("postgresql", unwrapped=False)).order == "postgresql"
    for other, known in (
        (envelope, KnownFormat(BY_OFFSET, unwrapped=True)),
        ({"id": 1}, KnownFormat("db2", unwrapped=False)),
    ):
        with pytest.raises(TableHalt, match="form-changed"):
            look(record(other), known=known)


def test_the_connector_of_a_topic_with_a_database_part_is_known_from_rows_too() -> None:
    assert connector_of([record({"id": 1, "__commit_lsn": "00000027:00000ac0:0002"})], ANY) == "sqlserver"
    assert connector_of([record(None), record({"op": "c", "source": {"connector": "db2"}})], ANY) == "db2"
    assert connector_of([record({"id": 1})], ANY) is None
