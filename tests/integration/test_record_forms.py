"""Records in unusual formats: without an envelope, without a key, from Oracle, from old versions."""

from __future__ import annotations

import itertools
import json
from typing import Any

import pytest
from tests.support.changes import Row, Topic, changes_without_key_at_first, key, row
from tests.support.kafka import Record, grow_topic
from tests.support.spark import Bench, rows_of

from distributary.errors import TableHalt


class Rows:
    """Makes the records of a topic whose envelopes were taken off."""

    def __init__(self, topic: str) -> None:
        self.topic = topic
        self.records: list[Record] = []

    def add(
        self,
        number: int,
        value: Row | None,
        headers: Row | None = None,
        partition: int = 0,
        timestamp: int | None = None,
    ) -> Record:
        data = None if value is None else json.dumps(value).encode()
        pairs = [(name, str(text).encode()) for name, text in (headers or {}).items()]
        record = Record(self.topic, partition, json.dumps(key(number)).encode(), data, pairs, timestamp)
        self.records.append(record)
        return record


def place(at: int, serial: int = 1) -> Row:
    return {
        "__commit_lsn": f"00000027:{at:08x}:ffff",
        "__change_lsn": f"00000027:{at:08x}:0001",
        "__event_serial_no": serial,
    }


def test_1_3_rows_without_anything_added_are_ordered_by_offset(bench: Bench) -> None:
    rows = Rows(bench.create().topic)
    rows.add(1, row(1, "a"))
    rows.add(2, row(2, "b"))
    rows.add(1, row(1, "c"))
    rows.add(2, None)
    rows.add(3, row(3, None))
    worker = bench.take(rows.records)
    assert bench.rows() == [(1, "c"), (3, None)]
    # Sent again: the last record of each key counts, in one batch or over many.
    for record in rows.records:
        bench.take([record], worker)
    assert bench.rows() == [(1, "c"), (3, None)]
    bench.take([rows.add(2, row(2, "back"))])
    assert bench.rows() == [(1, "c"), (2, "back"), (3, None)]
    assert rows_of(bench.table, "id", "__op") == [(1, "u"), (2, "u"), (3, "u")]
    assert not bench.quarantine.exists()


def test_1_3_offsets_order_a_partition_whatever_the_clock_says_and_the_clock_orders_two(bench: Bench) -> None:
    rows = Rows(bench.create().topic)
    now = 1_790_000_000_000
    rows.add(1, row(1, "first"), timestamp=now)
    rows.add(1, row(1, "clock set back"), timestamp=now - 60_000)
    rows.add(2, row(2, "in its old partition"), timestamp=now)
    worker = bench.take(rows.records)
    assert bench.rows() == [(1, "clock set back"), (2, "in its old partition")]
    # The topic has more partitions now: key 2 moved, and its old partition is read late.
    grow_topic(bench.kafka, bench.topic, 2)
    moved = Rows(bench.topic)
    bench.take([moved.add(2, row(2, "in its new partition"), partition=1, timestamp=now + 20)], worker)
    bench.take([moved.add(2, row(2, "late"), timestamp=now + 10)], worker)
    bench.take([moved.add(1, None, timestamp=now - 50_000)], worker)
    assert bench.rows() == [(2, "in its new partition")]


@pytest.mark.parametrize("flag", ["true", True])
def test_1_3_added_fields_order_rows_and_are_no_columns(bench: Bench, flag: str | bool) -> None:
    rows = Rows(bench.create().topic)
    ts = {"__source_ts_ms": 1_700_000_000_000, "__table": "t"}
    alive = {"__deleted": "false" if flag == "true" else False, **ts}
    rows.add(1, row(1, "a", __mine="kept", **alive, **place(1)))
    rows.add(2, row(2, "b", __mine="kept", **alive, **place(2)))
    rows.add(1, row(1, "c", __mine=None, **alive, **place(3)))
    rows.add(2, row(2, None, __mine=None, __deleted=flag, **ts, **place(4)))
    worker = bench.take(rows.records)
    assert bench.rows("id", "v", "__mine") == [(1, "c", None)]
    # 2.4: an older state that is sent again changes nothing, not even halfway.
    bench.take(rows.records[:2], worker)
    assert bench.rows("id", "v") == [(1, "c")]
    assert {name for name in bench.columns() if name.startswith("__")} == {"__mine"}
    ((position, source_ts),) = rows_of(bench.table, "__position", "__source_ts")
    assert position.startswith("000:00000027:00000003")
    assert source_ts.timestamp() == 1_700_000_000


def test_1_3_operations_that_were_added_with_and_without_a_tombstone_after_a_delete(bench: Bench) -> None:
    rows = Rows(bench.create().topic)
    rows.add(1, row(1, "a", __op="r", **place(1)))
    rows.add(2, row(2, "b", __op="c", **place(2)))
    rows.add(1, row(1, None, __op="d", **place(3)))
    rows.add(1, None)
    rows.add(2, row(2, "z", __op="u", **place(4)))
    rows.add(2, row(2, "!", __op="?", **place(5)))
    rows.add(2, row(2, "nowhere", __op="u"))
    worker = bench.take(rows.records)
    assert rows_of(bench.table, "id", "v", "__op") == [(2, "z", "u")]
    assert rows_of(bench.quarantine, "reason") == [("no-position",), ("unknown-operation",)]
    # 3.3: a tombstone alone deletes.
    bench.take([rows.add(2, None)], worker)
    assert bench.rows() == []


@pytest.mark.parametrize("quote", [str, json.dumps], ids=["simple", "json"])
def test_1_3_added_headers_order_rows_and_null_values(bench: Bench, quote: Any) -> None:
    rows = Rows(bench.create().topic)

    def headers(op: str, at: int) -> Row:
        return {"__op": quote(op), "__file": quote(f"binlog.{at // 10:06d}"), "__pos": str(at % 10)}

    rows.add(1, row(1, "a"), headers("c", 98))
    rows.add(1, row(1, "b"), headers("u", 102))
    rows.add(2, row(2, "x"), headers("c", 103))
    rows.add(2, None, headers("d", 104))  # delete-to-tombstone: the null value has the delete's position
    worker = bench.take(rows.records)
    assert bench.rows() == [(1, "b")]
    bench.take([rows.records[2], rows.records[0]], worker)
    assert bench.rows() == [(1, "b")]
    assert rows_of(bench.table, "__op") == [("u",)]


def test_1_3_rows_with_a_connect_schema(bench: Bench) -> None:
    rows = Rows(bench.create().topic)
    schema = {
        "type": "struct",
        "name": "p.dbo.t.Value",
        "fields": [
            {"type": "int32", "optional": False, "field": "id"},
            {"type": "string", "optional": True, "field": "v"},
            {"type": "string", "optional": True, "field": "__deleted"},
            {"type": "int64", "optional": True, "field": "__lsn"},
        ],
    }
    for number, value, deleted in ((1, "a", "false"), (2, "b", "false"), (1, None, "true")):
        payload = row(number, value, __deleted=deleted, __lsn=number)
        rows.add(number, {"schema": schema, "payload": payload})
    rows.add(2, {"schema": None, "payload": None})
    rows.add(3, {"schema": schema, "payload": row(3, "c", __deleted="false", __lsn=1)})
    bench.take(rows.records)
    assert bench.rows() == [(3, "c")]
    assert bench.columns() == {"id": "int", "v": "string"}


def test_1_3_an_envelope_among_rows_goes_to_quarantine(bench: Bench) -> None:
    rows = Rows(bench.create().topic)
    rows.add(1, row(1, "a"))
    rows.add(1, {"op": "u", "source": {"connector": "db2"}, "before": None, "after": row(1, "x")})
    rows.add(1, {})
    rows.records.append(rows.records[0]._replace(key=b'{"id": 4}', value=b'{"id": 4'))
    rows.add(2, row(2, "b"))
    bench.take(rows.records)
    assert bench.rows() == [(1, "a"), (2, "b")]
    assert sorted(rows_of(bench.quarantine, "reason")) == [("not-a-row",), ("not-a-row",), ("not-json",)]


@pytest.mark.parametrize("cuts", [(), (25,), (2, 30), (1, 25, 50), (5, 52)])
def test_1_3_a_table_whose_records_lose_and_get_back_their_envelope_goes_on(
    bench: Bench, cuts: tuple[int, ...]
) -> None:
    rows = Rows(bench.create().topic)
    lsns = [f"00000027:00000ac0:{index:016x}" for index in range(56)]
    for index, lsn in enumerate(lsns):
        number, value = index % 4, f"at {index}"
        if 25 <= index < 50:
            rows.add(number, row(number, value, __op="u", __commit_lsn=lsn, __change_lsn=None))
        else:
            source = {"connector": "db2", "commit_lsn": lsn, "change_lsn": None, "ts_ms": 1}
            rows.add(number, {"op": "u", "source": source, "before": None, "after": row(number, value), "ts_ms": 1})
    worker = None
    for start, end in itertools.pairwise((0, *cuts, len(lsns))):
        worker = bench.take(rows.records[start:end], worker)
    assert bench.rows() == [(n, f"at {max(index for index in range(56) if index % 4 == n)}") for n in range(4)]
    assert not bench.quarantine.exists()


def test_1_3_a_driver_that_sees_tombstones_first_knows_the_form_from_the_table(bench: Bench) -> None:
    rows = Rows(bench.create().topic)
    rows.add(1, row(1, "a"))
    rows.add(2, row(2, "b"))
    bench.take(rows.records)
    bench.take([rows.add(1, None)])
    assert bench.rows() == [(2, "b")]
    bench.take([rows.add(3, row(3, "c"))])
    assert bench.rows() == [(2, "b"), (3, "c")]


@pytest.mark.parametrize("added", [{}, {"__connector": "postgresql"}], ids=["unknown connector", "postgresql"])
def test_3_7_values_that_were_not_sent_keep_what_the_row_had(bench: Bench, added: Row) -> None:
    rows = Rows(bench.create().topic)
    not_sent = "__debezium_unavailable_value"
    rows.add(1, row(1, "a long text", n=1, tags=["a", "b"], **added))
    rows.add(1, row(1, not_sent, n=2, tags=[not_sent], **added))
    worker = bench.take(rows.records)
    assert bench.rows() == [(1, "a long text", 2, '["a","b"]')]
    bench.take([rows.add(1, row(1, not_sent, n=3, tags=[not_sent], **added))], worker)
    assert bench.rows() == [(1, "a long text", 3, '["a","b"]')]


def test_5_1_whole_numbers_beyond_bigint_are_keys_of_their_own_without_a_schema(bench: Bench) -> None:
    """As doubles all of them would be one number."""
    topic = Topic(bench.create().topic, connector="mysql")
    first, second, third = (2**64 - number for number in (1, 2, 3))
    for index, number in enumerate((first, second, third), start=1):
        topic.change("c", key(number), row(number, "a"), at=index)
    worker = bench.take(topic.records)
    more = Topic(bench.topic, connector="mysql")
    more.change("u", key(first), row(first, "b"), at=11)
    more.change("d", key(second), at=12)
    more.change("c", key(7), row(7, "small"), at=13)
    bench.take(more.records, worker)
    assert bench.rows() == [("18446744073709551613", "a"), ("18446744073709551615", "b"), ("7", "small")]
    assert not bench.quarantine.exists()


def test_3_4_unwrapped_key_changes_with_headers(bench: Bench) -> None:
    rows = Rows(bench.create().topic)
    rows.add(1, row(1, "a"))
    rows.add(1, None, {"__debezium.newkey": json.dumps(key(2))})
    rows.add(2, row(2, "a"), {"__debezium.oldkey": json.dumps(key(1))})
    bench.take(rows.records)
    assert bench.rows() == [(2, "a")]
    assert rows_of(bench.table, "__op") == [("c",)]


def test_2_1_another_servers_binlog_goes_on_where_the_gtid_says_so_and_halts_where_it_does_not(bench: Bench) -> None:
    topic = Topic(bench.create().topic, connector="mysql")

    def change(value: str, server: int, file: int, gtid: str, ts: int) -> Record:
        place = {"server_id": server, "file": f"binlog.{file:06d}", "pos": ts, "row": 0, "gtid": gtid}
        source = {"connector": "mysql", "ts_ms": ts, "snapshot": "false", **place}
        event = {"op": "u", "before": None, "after": row(1, value), "source": source}
        return topic.add(key(1), json.dumps(event).encode())

    origin = "3e11fa47-71ca-11e1-9e33-c80aa9429562"
    first = change("first server", 1, 10, f"{origin}:100", 1_000)
    second = change("second server", 2, 3, f"{origin}:101", 2_000)
    worker = bench.take([first])
    bench.take([second], worker)
    assert bench.rows() == [(1, "second server")]
    bench.take([first], worker)  # 2.4
    bench.take([change("second server again", 2, 3, f"{origin}:102", 3_000)])
    assert bench.rows() == [(1, "second server again")]
    with pytest.raises(TableHalt, match="source-went-back"):
        bench.take([change("nothing orders this", 3, 1, "4e11fa47-71ca-11e1-9e33-c80aa9429562:1", 4_000)])


def test_2_1_oracle_positions_are_numbers_and_a_snapshot_stands_at_its_scn(bench: Bench) -> None:
    topic = Topic(bench.create().topic, connector="oracle")
    topic.change("r", key(1), row(1, "snapshot"), at=5)
    topic.change("r", key(2), row(2, "snapshot"), at=5)
    topic.change("u", key(1), row(1, "nine"), at=9)
    topic.change("u", key(1), row(1, "ten"), at=10)  # as text it would come before 9
    topic.change("d", key(2), at=11)
    topic.tombstone(key(2))
    worker = bench.take(topic.records)
    bench.take([topic.records[1], topic.records[2]], worker)
    assert bench.rows() == [(1, "ten")]
    later = Topic(bench.topic, connector="oracle")
    later.change("r", key(1), row(1, "another snapshot"), at=20)
    later.change("t", None, at=30)
    later.change("c", key(3), row(3, "after the truncate"), at=31)
    bench.take(later.records[:1], worker)
    assert bench.rows() == [(1, "another snapshot")]
    bench.take(later.records[1:], worker)
    assert bench.rows() == [(3, "after the truncate")]


def test_2_7_oracle_keys_shifted_under_a_deferred_constraint(bench: Bench) -> None:
    topic = Topic(bench.create().topic, connector="oracle")
    for number in (1, 2):
        topic.change("c", key(number), row(number, f"row {number}"), at=10, step=number)
    for number in (1, 2):
        step = number * 2
        topic.change("d", key(number), at=20, step=step, headers={"newkey": key(number + 1)})
        topic.tombstone(key(number))
        moved = row(number + 1, f"row {number}")
        topic.change("c", key(number + 1), moved, at=20, step=step + 1, headers={"oldkey": key(number)})
    bench.take(topic.records)
    assert bench.rows() == [(2, "row 1"), (3, "row 2")]


def test_3_8_a_key_in_the_config_makes_rows_of_records_without_key(bench: Bench) -> None:
    bench.rule = {"key": ["id"]}
    topic = Topic(bench.create().topic, connector="postgresql")
    topic.change("r", None, row(1, "a"), at=1)
    topic.change("c", None, row(2, "b"), at=2)
    topic.change("u", None, row(2, "c"), at=3, before=row(2, "b"))
    topic.change("d", None, None, at=4, before=row(1, "a"))
    topic.add(None, None)  # 1.6: follows the delete, and says nothing
    topic.change("c", None, row(4, "d"), at=5)
    topic.change("u", None, row(5, "d"), at=6, before=row(4, "d"))  # the key changes: the old row goes
    worker = bench.take(topic.records)
    assert bench.rows() == [(2, "c"), (5, "d")]
    bench.take(topic.records[1:3], worker)  # 2.4
    assert bench.rows() == [(2, "c"), (5, "d")]
    assert not bench.quarantine.exists()


def test_3_8_records_without_the_columns_of_the_key_go_to_quarantine(bench: Bench) -> None:
    bench.rule = {"key": ["id"]}
    topic = Topic(bench.create().topic, connector="postgresql")
    topic.change("c", None, row(1, "a"), at=1)
    topic.change("d", None, None, at=2)
    topic.change("c", None, {"id": None, "v": "b"}, at=3)
    topic.change("c", None, {"v": "c"}, at=4)
    bench.take(topic.records)
    assert bench.rows() == [(1, "a")]
    assert rows_of(bench.quarantine, "offset", "reason") == [(n, "no-key-columns") for n in (1, 2, 3)]


def test_3_8_a_key_that_no_record_has_halts_the_table(bench: Bench) -> None:
    bench.rule = {"key": ["number"]}
    topic = Topic(bench.create().topic, connector="postgresql")
    topic.change("c", None, row(1, "a"), at=1)
    with pytest.raises(TableHalt, match="key-column-missing"):
        bench.take(topic.records)


def test_3_8_a_key_in_the_config_for_unwrapped_rows(bench: Bench) -> None:
    bench.rule = {"key": ["id"]}
    topic = Topic(bench.create().topic)
    for value in (row(1, "a", __deleted="false"), row(2, "b", __deleted="false"), row(1, None, __deleted="true")):
        topic.add(None, json.dumps(value).encode())
    topic.add(None, None)
    bench.take(topic.records)
    assert bench.rows() == [(2, "b")]


@pytest.mark.parametrize("text", ["{}", "Struct{{id={}}}", '{{"schema":{{"type":"int64"}},"payload":{}}}'])
def test_1_6_rows_with_bare_keys_are_deleted_by_their_tombstones(bench: Bench, text: str) -> None:
    bench.rule = {"key": ["id"]}
    rows = Rows(bench.create().topic)

    def add(number: int, value: Row | None) -> Record:
        return rows.add(number, value)._replace(key=text.format(number).encode())

    worker = bench.take([add(1, row(1, "a")), add(2, row(2, "b")), add(3, row(3, "c"))])
    bench.take([add(2, None)], worker)
    bench.take([add(1, row(1, "a2")), add(3, None), add(3, row(3, "back"))], worker)
    assert bench.rows() == [(1, "a2"), (3, "back")]
    assert not bench.quarantine.exists()


def test_6_3_deletes_of_which_no_key_can_be_read_go_to_quarantine(bench: Bench) -> None:
    bench.rule = {"key": ["id"]}
    rows = Rows(bench.create().topic)

    def add(number: int, value: Row | None) -> Record:
        return rows.add(number, value)._replace(key=json.dumps([number]).encode())

    bench.take([add(1, row(1, "a")), add(2, row(2, "b")), add(2, None)])
    assert bench.rows() == [(1, "a"), (2, "b")]
    assert rows_of(bench.quarantine, "offset", "reason") == [(2, "no-key-columns")]


@pytest.mark.parametrize("cut", [0, 3])
@pytest.mark.parametrize("mode", ["upsert", "history", "append"])
def test_5_4_a_source_table_that_gets_its_primary_key_later_loses_no_row(bench: Bench, mode: str, cut: int) -> None:
    bench.rule = {"mode": mode} | ({} if mode == "append" else {"key": ["id"]})
    topic = changes_without_key_at_first(bench.create().topic)
    for _ in range(2):  # and all of it sent again
        for part in filter(None, (topic.records[:cut], topic.records[cut:])):
            bench.take(part)
        if mode == "append":
            assert bench.rows("id", "v", "__op") == [
                (1, "a", "c"), (1, "b", "u"), (1, None, "d"), (10, "b", "c"), (2, "a", "c"), (2, "c", "u"),
                (3, "a", "c"), (3, None, "d"), (4, "d", "c"),
            ]  # fmt: skip
        else:
            current = rows_of(bench.table, "id", "v", *(["__current"] if mode == "history" else []))
            now = [one[:2] for one in current if mode == "upsert" or one[2]]
            assert now == [(10, "b"), (2, "c"), (4, "d")]
        assert not bench.quarantine.exists()
