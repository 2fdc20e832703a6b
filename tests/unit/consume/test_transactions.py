"""Parsing the records of the transaction topic."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.support.recorded import Scenario

from distributary.consume.transactions import (
    Begin,
    End,
    boundary,
    possible_topics,
    transaction_id,
    transaction_topic,
)

END: dict[str, Any] = {
    "status": "END",
    "id": "571:53195832",
    "ts_ms": 1486500577125,
    "event_count": 3,
    "data_collections": [
        {"data_collection": "s1.a", "event_count": 2},
        {"data_collection": "s2.a", "event_count": 1},
    ],
}


@pytest.mark.parametrize("wrapped", [False, True])
def test_begin_and_end_with_and_without_a_schema(wrapped: bool) -> None:
    def value(record: dict[str, Any]) -> bytes:
        return json.dumps({"schema": {"type": "struct"}, "payload": record} if wrapped else record).encode()

    # PostgreSQL's ids of one transaction differ behind the colon.
    begin = {"status": "BEGIN", "id": "571:53195829", "event_count": None, "data_collections": None}
    assert boundary(value(begin)) == Begin("571", None)
    assert boundary(value({**begin, "ts_ms": 7})) == Begin("571", 7)
    assert boundary(value(END)) == End("571", 1486500577125, {"s1.a": 2, "s2.a": 1})
    old = {key: of for key, of in END.items() if key != "ts_ms"} | {"data_collections": None}
    assert boundary(value(old)) == End("571", None, {})


@pytest.mark.parametrize(
    "value",
    [
        *(None, b"", b"null", b"{", b"7", b"[]", b'{"payload": null}', b'{"status": "END"}'),
        *(b'{"status": "WAIT", "id": "1"}', b'{"status": "END", "id": "1", "data_collections": [{"event_count": 1}]}'),
    ],
)
def test_other_records_say_nothing(value: bytes | None) -> None:
    assert boundary(value) is None


@pytest.mark.parametrize(
    "id_",
    ["00000025:00000d08:0025", "24DA167-0C0C-11E8-8442-00059A3C7B00:19", "file=mysql-bin.3,pos=154", "0-1-270", "571"],
)
def test_ids_of_the_other_connectors_are_taken_whole(id_: str) -> None:
    assert transaction_id(id_) == id_


def test_the_topic_may_have_another_name() -> None:
    assert transaction_topic("server1", {}) == "server1.transaction"
    assert transaction_topic("server1", {"topic.transaction": "bounds"}) == "server1.bounds"


def test_the_sources_name_of_a_table_and_its_topic() -> None:
    assert possible_topics("public.orders", "p", "postgresql") == ("p.public.orders",)
    assert possible_topics("public.or ders.old", "p", "postgresql") == ("p.public.or_ders.old",)
    assert possible_topics("db.dbo.orders", "p", "sqlserver") == ("p.db.dbo.orders", "p.dbo.orders")
    assert possible_topics("SAMPLE.DB2INST1.ORDERS", "p", "db2") == ("p.DB2INST1.ORDERS",)
    assert possible_topics("ORCL.SHOP.ORDERS", "p", "oracle") == ("p.SHOP.ORDERS",)
    assert possible_topics("shop.orders", "p", None) == ("p.shop.orders",)


def test_recorded_transactions_count_the_changes_that_name_them() -> None:
    """PostgreSQL's: deletes, both halves of a key change and truncates count, tombstones and snapshots do not."""
    scenario = Scenario("pg_full_truncate")
    orders: dict[tuple[str, str], set[int]] = {}
    operations = set()
    ends = []
    for record in scenario.records:
        value = json.loads(record.value or b"null") or {}
        if record.topic == transaction_topic(scenario.prefix, scenario.connector):
            found = boundary(record.value)
            assert found is not None
            ends += [found] if isinstance(found, End) else []
        elif place := value.get("payload", value).get("transaction"):
            of_table = orders.setdefault((transaction_id(place["id"]), record.topic), set())
            of_table.add(place["data_collection_order"])
            operations.add(value.get("payload", value)["op"])
    counted = {
        (end.id, *possible_topics(name, scenario.prefix, "postgresql")): count
        for end in ends
        for name, count in end.counts.items()
    }
    assert {place: set(range(1, count + 1)) for place, count in counted.items()} == orders
    assert len(counted) > 300
    assert operations == {"c", "u", "d", "t"}
