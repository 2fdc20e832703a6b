"""Further instances of each kind of source: other connectors, forms and types, detected, decoded and applied like the
records of a new table. Each names the rows, or the code of the halt."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from tests.model.source_instance import Change, Instance, check_instance
from tests.support.changes import INT, TEXT, Row
from tests.support.decoding import struct_schema, with_schema
from tests.support.random_share import thorough_but
from tests.support.source_blocks import CONNECTORS, change, db2, mysql, postgresql, slim, source, sqlserver

ROUTED = "__dbz__physicalTableIdentifier"


def routed(at: Callable[..., Row]) -> Instance:
    """Behind a router: a key change whose headers lack the router's field."""

    def key(number: int, table: str) -> Row:
        return {"id": number, ROUTED: table}

    new, old = (("__debezium.newkey", b'{"id":2}'),), (("__debezium.oldkey", b'{"id":1}'),)
    records = [
        Change(key(1, "a"), change("c", at(1), {"id": 1, "v": "x"})),
        Change(key(1, "b"), change("c", at(2), {"id": 1, "v": "y"})),
        Change(key(1, "a"), change("d", at(3), None, {"id": 1, "v": "x"}), new),
        Change(key(1, "a"), None),
        Change(key(2, "a"), change("c", at(3), {"id": 2, "v": "x"}), old),
        Change(key(1, "b"), change("u", at(5), {"id": 1, "v": "z"})),
    ]
    return Instance(records, [(1, "b", "z"), (2, "a", "x")])


def without_before(at: Callable[..., Row]) -> Instance:
    records = [
        Change({"id": 1}, slim("c", at(1), {"id": 1, "v": "a"})),
        Change({"id": 2}, slim("c", at(2), {"id": 2, "v": "b"})),
        Change({"id": 2}, slim("d", at(3))),
        Change({"id": 1}, slim("u", at(4), {"id": 1, "v": "c"})),
    ]
    return Instance(records, [(1, "c")])


def bare(key: Callable[[int], Any]) -> Instance:
    """Keys that are no objects, of rows without an envelope."""
    records = [
        Change(key(1), {"id": 1, "v": "a"}),
        Change(key(2), {"id": 2, "v": "b"}),
        Change(key(1), None),
        Change(key(2), {"id": 2, "v": "c"}),
    ]
    return Instance(records, [(2, "c")], {"key": ["id"]})


def routed_truncate(at: Callable[..., Row], names: Mapping[str, str]) -> Instance:
    """Behind a router, which gave two source tables these names: one is truncated."""

    def key(number: int, table: str) -> Row:
        return {"id": number, ROUTED: names[table]}

    one, two = names
    records = [
        *(Change(key(1, name), change("c", at(n, name="p", table=name), {"id": 1})) for n, name in enumerate(names, 1)),
        Change(None, change("t", at(5, name="p", table=two))),
        Change(key(2, two), change("c", at(6, name="p", table=two), {"id": 2})),
        Change(key(1, one), change("u", at(7, name="p", table=one), {"id": 1})),
    ]
    return Instance(records, [(1, names[one]), (2, names[two])])


def with_struct(row: Row) -> bytes:
    """A row with its schema, in which `source` is a struct."""
    sent = struct_schema({"id": INT, "op": TEXT, "source": struct_schema({"connector": TEXT})})
    return with_schema(sent, json.dumps(row))


def two_tables(at: Callable[..., Row], **other: str) -> Instance:
    records = [Change({"id": 1}, change("c", at(1), {"id": 1}))]
    return Instance(
        [*records, Change({"id": 1}, change("c", {**at(2), **other}, {"id": 1}))], halt="two-tables-one-topic"
    )


def truncated_part(at: Callable[..., Row]) -> Instance:
    """One of two merged source tables is truncated, with rows before and after it; the truncate comes twice."""
    names = ("one", '3:o"ne')
    rows = [change("c", at(1 + index, table=name), {"id": 1, "v": "old"}) for index, name in enumerate(names)]
    truncate = Change(None, change("t", at(5, table=names[1])))
    new = Change({"id": 4}, change("c", at(6, table=names[1]), {"id": 4, "v": "new"}))
    records = [*(Change({"id": 1}, row) for row in rows), truncate, new, truncate]
    left = [(1, "d.dbo.one", "old"), (4, 'd.dbo."3:o\\"ne"', "new")]
    return Instance(records, left, {"merge_sources": True})


def halting(value: Any, code: str, key: Any = None, **rule: Any) -> Instance:
    return Instance([Change(key, value)], rule=rule, halt=code)


UNWRAPPED = {"__file": "binlog.1", "__op": "u"}
INSTANCES: Mapping[str, Instance] = {
    **{f"key fields that the row lacks: {name}": routed(at) for name, at in CONNECTORS.items()},
    "key fields that the row lacks: filtered from the value": Instance(
        [
            Change({"id": 1, "tenant": 7}, change("c", mysql(1), {"id": 1, "v": "x"})),
            Change({"id": 1, "tenant": 8}, change("c", mysql(2), {"id": 1, "v": "y"})),
            Change({"id": 1, "tenant": 7}, change("d", mysql(3), None, {"id": 1, "v": "x"})),
        ],
        [(1, 8, "y")],
    ),
    "key fields that the row lacks: unwrapped": Instance(
        [
            Change({"id": 1, ROUTED: "a"}, {"id": 1, "v": "x", "__file": "b.1", "__pos": 1}),
            Change({"id": 1, ROUTED: "b"}, {"id": 1, "v": "y", "__file": "b.1", "__pos": 2}),
            Change({"id": 1, ROUTED: "a"}, None, (("__file", b"b.1"), ("__pos", b"3"))),
        ],
        [(1, "b", "y")],
    ),
    "columns called as an envelope's: in an envelope": Instance(
        [Change({"op": 1}, change("c", sqlserver(1), {"op": 1, "before": "a", "after": "b", "source": "s"}))],
        [(1, "a", "b", "s")],
    ),
    "columns called as an envelope's: unwrapped, ordered": Instance(
        [
            Change({"id": 1}, {"id": 1, "op": "x", "after": {"a": 1}, **UNWRAPPED, "__pos": 4}),
            Change({"id": 1}, {"id": 1, "op": "y", "after": {"a": 2}, **UNWRAPPED, "__pos": 3}),
        ],
        [(1, "x", '{"a":1}')],
    ),
    "columns called as an envelope's: all of them": Instance(
        [Change({"op": "a"}, {"op": "a", "source": "web", "before": 1, "after": 2})], [("a", "web", 1, 2)]
    ),
    "columns called as an envelope's: an object as `source`, without schema": Instance(
        [
            Change({"id": 1}, {"id": 1, "op": "c", "source": {"page": "/"}, **UNWRAPPED, "__pos": 1}),
            Change({"id": 2}, {"id": 2, "op": "c", "source": {"connector": "USB", "v": 2}, **UNWRAPPED, "__pos": 2}),
            Change({"id": 1}, {"id": 1, "op": "d", "source": None, **UNWRAPPED, "__pos": 3}),
        ],
        [(1, "d", None), (2, "c", '{"connector":"USB","v":2}')],
    ),
    "columns called as an envelope's: a struct as `source`": Instance(
        [
            Change({"id": 1}, with_struct({"id": 1, "op": "c", "source": {"connector": "USB"}})),
            Change({"id": 2}, with_struct({"id": 2, "op": "u", "source": None})),
        ],
        [(1, "c", {"connector": "USB"}), (2, "u", None)],
    ),
    "another form: Vitess": halting(change("c", source("vitess", vgtid="[]"), {"id": 1}), "connector-not-built"),
    "another form: Spanner": halting(change("c", source("spanner"), {"id": 1}), "connector-not-built"),
    "another form: CockroachDB's changefeed": halting({"after": {"id": 1}, "updated": "1.0"}, "not-an-envelope", [1]),
    "two tables in a topic: names that differ in case": two_tables(db2, table="T"),
    "two tables in a topic: another schema": two_tables(sqlserver, schema="sales"),
    "two tables in a topic: another database": two_tables(mysql, db="shard2"),
    "two tables in a topic: merged": Instance(
        [
            Change({"id": 1}, change("c", mysql(1), {"id": 1})),
            Change({"id": 1}, change("c", mysql(2, table="t2"), {"id": 1})),
            Change({"id": 1}, change("d", mysql(3, table="t2"), None, {"id": 1})),
        ],
        [(1, "d.dbo.t")],
        {"merge_sources": True},
    ),
    **{f"two tables in a topic: one is truncated: {name}": truncated_part(at) for name, at in CONNECTORS.items()},
    "two tables in a topic: one is truncated behind a router: PostgreSQL": routed_truncate(
        postgresql, {"t_2024": "p.dbo.t_2024", "ä t": "p.dbo.__t"}
    ),
    "two tables in a topic: one is truncated behind a router: MySQL": routed_truncate(
        lambda at, **more: mysql(at, **{**more, "schema": None}), {"t_1": "p.d.t_1", "t_2": "p.d.t_2"}
    ),
    "two tables in a topic: one is truncated behind a router: SQL Server": routed_truncate(
        sqlserver, {"t1": "p.d.dbo.t1", "t2": "p.d.dbo.t2"}
    ),
    "a composite key with NULL": Instance(
        [
            Change({"a": 1, "b": None}, change("c", mysql(1), {"a": 1, "b": None, "v": "x"})),
            Change({"a": 1, "b": ""}, change("c", mysql(2), {"a": 1, "b": "", "v": "z"})),
            Change({"a": 1, "b": None}, change("d", mysql(3), None, {"a": 1, "b": None, "v": "x"})),
        ],
        [(1, "", "z")],
    ),
    "bare keys: numbers": bare(lambda number: number),
    "bare keys: with schema": bare(lambda number: {"schema": {"type": "int64"}, "payload": number}),
    "bare keys: a Struct as text": bare(lambda number: f"Struct{{id={number}}}".encode()),
    "bare keys: of several columns": Instance(
        [Change(b"Struct{a=1,b=2}", {"a": 1, "b": 2}), Change(b"Struct{a=1,b=2}", None)],
        [(1, 2)],
        {"key": ["a", "b"]},
        rejected={1: "no-key-columns"},
    ),
    "a primary key added later: envelopes": Instance(
        [
            Change(None, change("c", postgresql(1), {"id": 1, "v": "a"})),
            Change(None, change("c", postgresql(2), {"id": 2, "v": "b"})),
            Change({"id": 1}, change("d", postgresql(3), None, {"id": 1, "v": None})),
        ],
        [(2, "b")],
        {"key": ["id"]},
    ),
    "a primary key added later: rows": Instance(
        [
            Change(None, {"id": 1, "v": "a", "__file": "b.1", "__pos": 1}),
            Change({"id": 1}, {"id": 1, "v": "b", "__file": "b.1", "__pos": 2}),
        ],
        [(1, "b")],
        {"key": ["id"]},
    ),
    "a primary key added later: of other columns": Instance(
        [
            Change(None, change("c", postgresql(1), {"id": 1, "v": "a"})),
            Change({"v": "a"}, change("u", postgresql(2), {"id": 1, "v": "a"})),
        ],
        rule={"key": ["id"]},
        halt="key-not-needed",
    ),
    **{f"envelopes without `before`: {name}": without_before(at) for name, at in CONNECTORS.items()},
    "values by reference: each form": Instance(
        [
            Change({"id": 1}, change("c", mysql(1), {"id": 1, "v": "__debezium:s3:ref:v1:b|k"})),
            Change({"id": 2}, change("c", mysql(2), {"id": 2, "v": {"__debezium_claim_check": True, "x": 1}})),
            Change({"id": 3}, change("c", mysql(3), {"id": 3, "v": "__debezium:s3 is a text"})),
        ],
        [(3, "__debezium:s3 is a text")],
        rejected=dict.fromkeys((0, 1), "value-by-reference"),
    ),
}


@pytest.mark.parametrize("instance", thorough_but(14, INSTANCES.values()), ids=INSTANCES)
def test_1_1_each_kind_of_source_fills_its_table_or_halts_it_by_name(tmp_path: Path, instance: Instance) -> None:
    check_instance(tmp_path, instance)
