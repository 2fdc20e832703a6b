"""The simulated databases send what Debezium's connectors send, and their events produce their own rows."""

from __future__ import annotations

import base64
import datetime as dt
import json
import re
from collections.abc import Iterable
from decimal import Decimal
from typing import Any

import pytest

from distributary.demo import recorded
from distributary.demo.connect import BOOLEAN, DATE, INT32, MICRO_TIMESTAMP, STRING, TIMESTAMP, Column, decimal
from distributary.demo.db2 import Db2Table
from distributary.demo.record import Origin, Record, Row, Truth
from distributary.demo.simulated import SimulatedTable
from distributary.demo.sqlserver import SqlServerTable
from distributary.demo.workload import Workload

SQLSERVER_LSN = re.compile(r"[0-9a-f]{8}:[0-9a-f]{8}:[0-9a-f]{4}")
DB2_LSN = re.compile(r"[0-9a-f]{8}:[0-9a-f]{8}:[0-9a-f]{16}")
EPOCH = dt.datetime(1970, 1, 1)  # noqa: DTZ001
COLUMNS = (Column("id", INT32), Column("email", STRING), Column("note", STRING, optional=True))
Tables = tuple[tuple[SimulatedTable, re.Pattern[str]], ...]
JSON_TYPES: dict[str, tuple[type, ...]] = {
    "int16": (int,),
    "int32": (int,),
    "int64": (int,),
    "double": (float, str),  # NaN and the infinities are text
    "string": (str,),
    "bytes": (str,),
    "boolean": (bool,),
    "struct": (dict,),
}


def customer(number: int, email: str = "a@x.org", note: str | None = None) -> Row:
    return {"id": number, "email": email, "note": note}


@pytest.fixture
def sqlserver() -> SqlServerTable:
    table = SqlServerTable("server1", "testDB", "dbo", "customers", COLUMNS, ["id"], unique=["email"])
    table.load([customer(1, "a@x.org"), customer(2, "b@x.org"), customer(3, "c@x.org")])
    return table


@pytest.fixture
def db2() -> Db2Table:
    table = Db2Table("server1", "SAMPLE", "DB2INST1", "CUSTOMERS", COLUMNS, ["id"])
    table.load([customer(1), customer(2), customer(3)])
    return table


def payload(record: Record) -> dict[str, Any]:
    assert record.value is not None
    return dict(json.loads(record.value)["payload"])


def key_values(record: Record) -> Any:
    assert record.key is not None
    return json.loads(record.key)["payload"]


def kinds(records: Iterable[Record]) -> list[tuple[str, Any]]:
    return [
        ("tombstone" if record.value is None else payload(record)["op"], key_values(record)["id"]) for record in records
    ]


def own_headers(record: Record) -> dict[str, bytes]:
    return {name: value for name, value in record.headers if not name.startswith("__debezium.context.")}


def numbers(record: Record) -> tuple[Any, ...]:
    source = payload(record)["source"]
    return source["commit_lsn"], source["change_lsn"], source["event_serial_no"]


def test_topics_are_named_as_each_connector_names_them(sqlserver: SqlServerTable, db2: Db2Table) -> None:
    assert sqlserver.topic == "server1.testDB.dbo.customers"
    assert db2.topic == "server1.DB2INST1.CUSTOMERS"
    for table in (sqlserver, db2):
        (record,) = table.begin().insert(customer(9, "z@x.org")).commit()
        assert record.topic == table.topic
        assert record.key is not None
        assert record.value is not None
        assert json.loads(record.key)["schema"]["name"] == f"{table.topic}.Key"
        schema = json.loads(record.value)["schema"]
        assert schema["name"] == f"{table.topic}.Envelope"
        assert {field["name"] for field in schema["fields"][:2]} == {f"{table.topic}.Value"}


def test_a_snapshot_row_has_the_commit_lsn_alone_and_the_ends_are_marked(
    sqlserver: SqlServerTable, db2: Db2Table
) -> None:
    tables: Tables = ((sqlserver, SQLSERVER_LSN), (db2, DB2_LSN))
    for table, lsn in tables:
        records = table.snapshot()
        assert kinds(records) == [("r", 1), ("r", 2), ("r", 3)]
        sources = [payload(record)["source"] for record in records]
        assert [source["snapshot"] for source in sources] == ["first", "true", "last"]
        assert {source["change_lsn"] for source in sources} == {None}
        assert {source.get("event_serial_no") for source in sources} == {None}
        assert len({source["commit_lsn"] for source in sources}) == 1
        assert lsn.fullmatch(sources[0]["commit_lsn"])
        assert [payload(record)["before"] for record in records] == [None] * 3


def test_changes_of_one_transaction_share_its_commit_and_stand_below_it(
    sqlserver: SqlServerTable, db2: Db2Table
) -> None:
    tables: Tables = ((sqlserver, SQLSERVER_LSN), (db2, DB2_LSN))
    for table, lsn in tables:
        snapshot = payload(table.snapshot()[0])["source"]
        records = table.begin().insert(customer(8, "8")).update(1, note="n").update(2, note="n").commit()
        sources = [payload(record)["source"] for record in records]
        changes = [source["change_lsn"] for source in sources]
        commits = {source["commit_lsn"] for source in sources}
        assert len(commits) == 1
        assert snapshot["commit_lsn"] < min(changes)
        assert changes == sorted(set(changes))
        assert max(changes) < min(commits)
        assert all(lsn.fullmatch(text) for text in [*changes, *commits])
        assert {source["snapshot"] for source in sources} == {"false"}


def test_a_transaction_that_began_first_and_commits_last_has_changes_below_the_other_ones_commit(
    sqlserver: SqlServerTable, db2: Db2Table
) -> None:
    for table in (sqlserver, db2):
        long = table.begin().update(1, note="long")
        (short,) = table.begin().update(2, note="short").commit()
        (late,) = long.commit()
        early, last = payload(short)["source"], payload(late)["source"]
        assert last["change_lsn"] < early["change_lsn"] < early["commit_lsn"] < last["commit_lsn"]
        assert early["ts_ms"] < last["ts_ms"]


def test_sqlserver_numbers_the_events_of_one_log_record(sqlserver: SqlServerTable) -> None:
    inserted, updated, deleted, tombstone = (
        sqlserver.begin().insert(customer(9, "z@x.org")).update(2, note="x").delete(3).commit()
    )
    assert [payload(record)["op"] for record in (inserted, updated, deleted)] == ["c", "u", "d"]
    assert [numbers(record)[2] for record in (inserted, updated, deleted)] == [1, 2, 1]
    assert payload(updated)["before"] == {"id": 2, "email": "b@x.org", "note": None}
    assert payload(updated)["after"] == {"id": 2, "email": "b@x.org", "note": "x"}
    assert payload(deleted)["before"]["email"] == "c@x.org"
    assert payload(deleted)["after"] is None
    assert (tombstone.key, tombstone.value) == (deleted.key, None)


def test_sqlserver_sends_a_key_change_as_two_events_that_nothing_ties_together(sqlserver: SqlServerTable) -> None:
    records = sqlserver.begin().update(1, id=11).commit()
    assert kinds(records) == [("d", 1), ("tombstone", 1), ("c", 11)]
    assert [own_headers(record) for record in records] == [{}, {}, {}]
    deleted, created = numbers(records[0]), numbers(records[2])
    assert deleted[:2] == created[:2]
    assert (deleted[2], created[2]) == (1, 2)


def test_sqlserver_sends_an_update_of_a_unique_column_as_two_events_at_one_position(sqlserver: SqlServerTable) -> None:
    records = sqlserver.begin().update(1, email="new@x.org").commit()
    assert kinds(records) == [("d", 1), ("tombstone", 1), ("c", 1)]
    assert numbers(records[0]) == numbers(records[2])


def test_db2_ties_the_events_of_a_key_change_together_by_headers(db2: Db2Table) -> None:
    records = db2.begin().update(1, id=11).commit()
    assert kinds(records) == [("d", 1), ("tombstone", 1), ("c", 11)]
    assert [own_headers(record) for record in records] == [
        {"__debezium.newkey": b'{"id":11}'},
        {"__debezium.newkey": b'{"id":11}'},
        {"__debezium.oldkey": b'{"id":1}'},
    ]
    assert payload(records[0])["source"] == payload(records[2])["source"]


def test_db2_has_no_serial_number(db2: Db2Table) -> None:
    (record,) = db2.begin().update(1, note="x").commit()
    assert record.value is not None
    assert b"event_serial_no" not in record.value
    assert payload(record)["op"] == "u"


def test_the_envelope_is_the_one_that_a_real_connector_sent(sqlserver: SqlServerTable, db2: Db2Table) -> None:
    real = json.loads(next(r for r in recorded.records("server1", 1) if r.value).value or b"")
    for table in (sqlserver, db2):
        (record,) = table.begin().insert(customer(9, "z@x.org")).commit()
        ours = json.loads(record.value or b"")
        # Before and after are the table's, the source block is the connector's: what is left must be the same.
        assert ours["schema"]["fields"][3:] == real["schema"]["fields"][3:]
        assert list(ours["payload"]) == list(real["payload"])
        assert list(ours["schema"]) == list(real["schema"])
        own, theirs = ours["schema"]["fields"][2], real["schema"]["fields"][2]
        common = [field["field"] for field in own["fields"]].index("change_lsn")
        assert own["fields"][:common] == theirs["fields"][:common]
        assert (own["version"], own["field"]) == (theirs["version"], theirs["field"])
        assert own["name"] == f"io.debezium.connector.{table.connector}.Source"
        assert [name for name, _ in record.headers] == [
            f"__debezium.context.{name}" for name in ("connectorLogicalName", "taskId", "connectorName", "runId")
        ]


@pytest.mark.parametrize(
    ("column", "value", "schema", "wire"),
    [
        (
            Column("c", decimal(12, 2)),
            Decimal("-1.29"),
            {
                "type": "bytes",
                "optional": False,
                "name": "org.apache.kafka.connect.data.Decimal",
                "version": 1,
                "parameters": {"scale": "2", "connect.decimal.precision": "12"},
                "field": "c",
            },
            base64.b64encode((-129).to_bytes(2, "big", signed=True)).decode(),
        ),
        (
            Column("c", decimal(12, 2)),
            Decimal("-1.28"),
            None,
            base64.b64encode(b"\x80").decode(),
        ),
        (
            Column("c", DATE, optional=True),
            dt.date(1969, 12, 31),
            {"type": "int32", "optional": True, "name": "io.debezium.time.Date", "version": 1, "field": "c"},
            -1,
        ),
        (
            Column("c", TIMESTAMP),
            EPOCH + dt.timedelta(days=1, milliseconds=7),
            {"type": "int64", "optional": False, "name": "io.debezium.time.Timestamp", "version": 1, "field": "c"},
            86_400_007,
        ),
        (
            Column("c", MICRO_TIMESTAMP),
            EPOCH - dt.timedelta(microseconds=1),
            {"type": "int64", "optional": False, "name": "io.debezium.time.MicroTimestamp", "version": 1, "field": "c"},
            -1,
        ),
        (Column("c", BOOLEAN), True, {"type": "boolean", "optional": False, "field": "c"}, True),
        (Column("c", STRING, optional=True), None, {"type": "string", "optional": True, "field": "c"}, None),
    ],
)
def test_values_are_written_as_the_json_converter_writes_them(
    column: Column, value: Any, schema: dict[str, Any] | None, wire: Any
) -> None:
    assert column.encode(value) == wire
    if schema is not None:
        assert column.schema() == schema
        assert list(column.schema()) == list(schema)


def test_a_column_that_cannot_be_null_refuses_null() -> None:
    with pytest.raises(ValueError, match="NULL"):
        Column("c", INT32).encode(None)


def test_what_a_database_would_refuse_is_refused(sqlserver: SqlServerTable) -> None:
    with pytest.raises(ValueError, match="already"):
        sqlserver.begin().insert(customer(1))
    with pytest.raises(KeyError):
        sqlserver.begin().delete(99)


@pytest.fixture(scope="module")
def played() -> tuple[list[Record], list[Truth]]:
    workload = Workload("demo")
    records = [record for wave in workload.waves() for part in wave.records.values() for record in part]
    return records, workload.truths()


def test_every_payload_fits_its_schema(played: tuple[list[Record], list[Truth]]) -> None:
    for record in played[0]:
        for part in (record.key, record.value):
            if part is not None:
                document = json.loads(part)
                assert_fits(document["payload"], document["schema"])


def assert_fits(value: Any, schema: dict[str, Any]) -> None:
    if value is None:
        assert schema["optional"]
        return
    assert type(value) in JSON_TYPES[schema["type"]]
    if isinstance(value, dict):
        assert list(value) == [field["field"] for field in schema["fields"]]
        for field in schema["fields"]:
            assert_fits(value[field["field"]], field)


def test_the_workload_has_every_kind_of_event_and_truncates_only_where_connectors_send_them(
    played: tuple[list[Record], list[Truth]],
) -> None:
    seen: dict[str, set[str]] = {}
    for record in played[0]:
        kind = "tombstone" if record.value is None else payload(record)["op"]
        seen.setdefault(record.topic, set()).add(kind)
    for topic in ("demo.shop.dbo.orders", "demo.DB2INST1.ACCOUNTS"):
        assert seen[topic] == {"r", "c", "u", "d", "tombstone"}
    recorded_kinds = set[str]().union(*(found for topic, found in seen.items() if topic.startswith("demo.public.")))
    assert recorded_kinds == {"r", "c", "u", "d", "tombstone", "t"}


@pytest.mark.thorough
def test_the_workload_is_the_same_at_every_run(played: tuple[list[Record], list[Truth]]) -> None:
    again = Workload("demo")
    assert [record for wave in again.waves() for part in wave.records.values() for record in part] == played[0]
    assert list(map(repr, again.truths())) == list(map(repr, played[1]))  # as text: a NaN equals nothing


def test_folding_the_simulated_events_gives_the_simulated_rows(played: tuple[list[Record], list[Truth]]) -> None:
    records, truths = played
    topics = {"dbo.orders": "demo.shop.dbo.orders", "DB2INST1.ACCOUNTS": "demo.DB2INST1.ACCOUNTS"}
    for truth in truths:
        if truth.origin is Origin.RECORDED_POSTGRESQL:
            continue
        state: dict[str, dict[str, Any]] = {}
        for record in (record for record in records if record.topic == topics[truth.table]):
            name = json.dumps(key_values(record))
            if record.value is None or payload(record)["op"] == "d":
                state.pop(name, None)
            else:
                state[name] = decoded(record)
        assert plain(state.values()) == plain(truth.rows)
        assert len(state) > 20


@pytest.mark.thorough
def test_folding_the_recorded_events_gives_the_recorded_tables(played: tuple[list[Record], list[Truth]]) -> None:
    records, truths = played
    for truth in truths:
        if truth.origin is not Origin.RECORDED_POSTGRESQL:
            continue
        state: dict[str, dict[str, Any]] = {}
        mine = [r for r in records if r.topic == f"demo.{truth.table}" and r.value is not None]
        for record in sorted(mine, key=lambda r: (place(r), payload(r)["op"] != "d")):
            if payload(record)["op"] == "t":
                state.clear()
            elif payload(record)["op"] == "d":
                state.pop(json.dumps(key_values(record)), None)
            else:
                state[json.dumps(key_values(record))] = decoded(record)
        assert plain(state.values()) == plain(truth.on_the_wire())
        assert state


def test_a_null_that_the_wire_cannot_tell_is_known_and_counted(played: tuple[list[Record], list[Truth]]) -> None:
    replaced = {truth.table: truth.nulls_replaced() for truth in played[1]}
    assert replaced.pop("public.customers") == {"active": 7}
    assert set(map(len, replaced.values())) == {0}


def plain(rows: Iterable[Row]) -> list[str]:
    """Rows as text in one order, moments in UTC: text, since a NaN equals nothing."""

    def value(one: Any) -> Any:
        return one.astimezone(dt.timezone.utc) if isinstance(one, dt.datetime) and one.tzinfo else one

    return sorted(repr({name: value(one) for name, one in sorted(row.items())}) for row in rows)


def place(record: Record) -> tuple[int, int]:
    first, second = json.loads(payload(record)["source"]["sequence"])
    return int(first or 0), int(second)


def decoded(record: Record) -> dict[str, Any]:
    """The row after the change, read by the schema that the record itself carries."""
    document = json.loads(record.value or b"")
    fields = next(f for f in document["schema"]["fields"] if f["field"] == "after")["fields"]
    after = document["payload"]["after"]
    return {field["field"]: from_wire(after[field["field"]], field) for field in fields}


def from_wire(value: Any, schema: dict[str, Any]) -> Any:
    if value is None:
        return None
    match schema.get("name", schema["type"]):
        case "org.apache.kafka.connect.data.Decimal":
            unscaled = int.from_bytes(base64.b64decode(value), "big", signed=True)
            return Decimal(unscaled).scaleb(-int(schema["parameters"]["scale"]))
        case "io.debezium.time.Date":
            return EPOCH.date() + dt.timedelta(days=value)
        case "io.debezium.time.Timestamp":
            return EPOCH + dt.timedelta(milliseconds=value)
        case "io.debezium.time.MicroTimestamp":
            return EPOCH + dt.timedelta(microseconds=value)
        case "io.debezium.time.ZonedTimestamp":
            whole, _, fraction = value.removesuffix("Z").partition(".")
            moment = dt.datetime.fromisoformat(whole).replace(tzinfo=dt.timezone.utc)
            return moment + dt.timedelta(microseconds=int(fraction.ljust(6, "0")))
        case "double":
            return float(value)
        case _:
            return value
