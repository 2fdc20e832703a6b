"""Further instances of bytes that writers put before the JSON of keys and values."""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from tests.model.source_instance import Change, Instance, check_instance
from tests.support.source_blocks import change, mysql, postgresql


def framed(value: Any) -> bytes:
    """Behind the five bytes of a schema registry."""
    return b"\x00\x00\x00\x00\x07" + json.dumps(value).encode()


GLUE_ID = bytes(range(16))
FRAMINGS: Mapping[str, Callable[[Any], bytes]] = {
    "Confluent": framed,
    "Apicurio, eight bytes": lambda value: bytes(8) + b"{" + json.dumps(value).encode(),
    "AWS Glue": lambda value: b"\x03\x00" + GLUE_ID + json.dumps(value).encode(),
    "AWS Glue, compressed": lambda value: b"\x03\x05" + GLUE_ID + zlib.compress(json.dumps(value).encode()),
}


def framed_changes(front: Callable[[Any], bytes]) -> Instance:
    """Envelopes, a key change among them, behind a schema's id; the last key has none."""
    new, old = (("__debezium.newkey", b'{"id":2}'),), (("__debezium.oldkey", b'{"id":1}'),)
    records = [
        Change(front({"id": 1}), front(change("c", postgresql(1), {"id": 1, "v": "a"}))),
        Change(front({"id": 1}), front(change("d", postgresql(2), None, {"id": 1, "v": None})), new),
        Change(front({"id": 1}), None),
        Change(front({"id": 2}), front(change("c", postgresql(2), {"id": 2, "v": "a"})), old),
        Change({"id": 3}, front(change("c", postgresql(4), {"id": 3, "v": "c"}))),
    ]
    return Instance(records, [(2, "a"), (3, "c")])


INSTANCES: Mapping[str, Instance] = {
    "schema ids before JSON: key and value": Instance(
        [
            Change(framed({"id": 1}), framed(change("c", mysql(1), {"id": 1, "v": "a"}))),
            Change(framed({"id": 1}), framed(change("d", mysql(2), None, {"id": 1, "v": "a"}))),
            Change(framed({"id": 2}), framed(change("c", mysql(3), {"id": 2, "v": "b"}))),
        ],
        [(2, "b")],
    ),
    "schema ids before JSON: the key alone": Instance(
        [Change(framed({"id": 1}), change("c", mysql(1), {"id": 1, "v": "a"}))], [(1, "a")]
    ),
    **{f"schema ids before JSON: {name}": framed_changes(front) for name, front in FRAMINGS.items()},
    "schema ids before JSON: headers name the schemas": Instance(
        [Change({"id": 1}, {"id": 1, "v": "a"}, (("apicurio.value.contentId", bytes(7) + b"\x02"),))], [(1, "a")]
    ),
    "schema ids before JSON: Avro behind them": Instance(
        [Change(framed({"id": 1}), b"\x00\x00\x00\x00\x07\x02\x06abc")], halt="schema-id-not-read"
    ),
    "schema ids before JSON: rows and a tombstone": Instance(
        [
            Change(framed({"id": 1}), framed({"id": 1, "v": "a", "__file": "b.1", "__pos": 1})),
            Change(framed({"id": 2}), framed({"id": 2, "v": "b", "__file": "b.1", "__pos": 2})),
            Change(framed({"id": 1}), None, (("__file", b"b.1"), ("__pos", b"3"))),
        ],
        [(2, "b")],
    ),
}


@pytest.mark.parametrize("instance", INSTANCES.values(), ids=INSTANCES)
def test_1_1_json_behind_the_id_of_its_schema_is_read_as_without(tmp_path: Path, instance: Instance) -> None:
    check_instance(tmp_path, instance)
