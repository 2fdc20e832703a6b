"""Avro records in one topic: many schemas, broken bytes, ids in headers, and a registry that sometimes fails."""

from __future__ import annotations

import io
import itertools
import json
import ssl
import struct
from collections.abc import Callable, Mapping
from datetime import date
from pathlib import Path
from typing import Any

import pytest
import trustme
from confluent_kafka.schema_registry import Schema, SchemaRegistryClient
from fastavro import parse_schema, schemaless_writer
from tests.support.gate import Gate, standing
from tests.support.kafka import Headers, Record
from tests.support.registry import RegistryAddress
from tests.support.spark import Bench, rows_of

from distributary.errors import TransientError
from distributary.preflight.kafka_checks import registry_answers

SOURCE = {
    "type": "record",
    "name": "Source",
    "fields": [
        {"name": "connector", "type": "string"},
        {"name": "ts_ms", "type": "long"},
        {"name": "snapshot", "type": ["string", "null"], "default": "false"},
        {"name": "commit_lsn", "type": ["null", "string"]},
        {"name": "change_lsn", "type": ["null", "string"]},
        {"name": "event_serial_no", "type": ["null", "long"]},
    ],
}
TEXT = {"v": ["null", "string"]}


def row_schema(columns: Mapping[str, Any]) -> dict[str, Any]:
    fields = [{"name": "id", "type": "int"}, *({"name": name, "type": kind} for name, kind in columns.items())]
    return {"type": "record", "name": "Value", "fields": fields}


def envelope(columns: Mapping[str, Any]) -> dict[str, Any]:
    fields = [
        {"name": "before", "type": ["null", row_schema(columns)]},
        {"name": "after", "type": ["null", "Value"]},
        {"name": "source", "type": SOURCE},
        {"name": "op", "type": "string"},
    ]
    return {"type": "record", "name": "Envelope", "namespace": "server1.dbo.t", "fields": fields}


KEY = {"type": "record", "name": "Key", "fields": [{"name": "id", "type": "int"}]}


class AvroTopic:
    """Makes the records of one topic, and registers their schemas."""

    def __init__(self, name: str, registry: str) -> None:
        self.name = name
        self.client = SchemaRegistryClient.new_client({"url": registry})
        self.places = itertools.count(1)

    def registered(self, side: str, schema: Any) -> int:
        return int(self.client.register_schema(f"{self.name}-{side}", Schema(json.dumps(schema), "AVRO")))

    def key(self, number: int) -> bytes:
        return framed(self.registered("key", KEY), avro(KEY, {"id": number}))

    def body(self, op: str, number: int, columns: Mapping[str, Any], values: Mapping[str, Any]) -> bytes:
        at = next(self.places)
        place = f"00000027:{at:08x}:0001"
        source = {"connector": "sqlserver", "ts_ms": 1_700_000_000_000 + at, "commit_lsn": place, "change_lsn": place}
        row = {"id": number, **values}
        value = {"before": row if op == "d" else None, "after": None if op == "d" else row, "source": source, "op": op}
        return avro(envelope(columns), value)

    def change(self, op: str, number: int, columns: Mapping[str, Any] = TEXT, **values: Any) -> Record:
        schema_id = self.registered("value", envelope(columns))
        return self.record(number, framed(schema_id, self.body(op, number, columns, values)))

    def record(self, number: int, value: bytes | None, headers: Headers = ()) -> Record:
        return Record(self.name, 0, self.key(number), value, headers)


def avro(schema: Any, value: Any) -> bytes:
    written = io.BytesIO()
    schemaless_writer(written, parse_schema(schema), value)
    return written.getvalue()


def framed(schema_id: int, body: bytes) -> bytes:
    return struct.pack(">bI", 0, schema_id) + body


def reasons(bench: Bench) -> dict[int, str]:
    """The reason for each offset in quarantine."""
    return dict(rows_of(bench.quarantine, "offset", "reason"))


@pytest.fixture
def avro_bench(bench: Bench, registry: RegistryAddress) -> Bench:
    return with_registry(bench, url=registry.url)


def with_registry(bench: Bench, **registry: str) -> Bench:
    """The bench, whose topic is created now and has Avro by that registry."""
    bench.options = {"source": {"topic_prefix": bench.prefix, "format": "avro", "schema_registry": registry}}
    return bench.create()


@pytest.fixture
def topic(avro_bench: Bench, registry: RegistryAddress) -> AvroTopic:
    return AvroTopic(avro_bench.topic, registry.url)


def test_5_2_records_of_many_schemas_in_one_batch_all_land_right(avro_bench: Bench, topic: AvroTopic) -> None:
    more = {**TEXT, "n": ["null", {"type": "int", "connect.type": "int16"}]}
    moved = {"at": ["null", {"type": "int", "connect.name": "io.debezium.time.Date"}], **more}
    defaulted = {**moved, "w": ["null", {"type": "enum", "name": "W", "symbols": ["x", "y"]}]}
    avro_bench.take(
        [
            topic.change("c", 1, v="a"),
            topic.change("c", 2, more, v="b", n=2),
            topic.change("c", 3, moved, v="c", n=3, at=0),
            topic.change("c", 4, defaulted, v="d", n=4, at=1, w="y"),
            topic.change("c", 5, v="e"),
            topic.change("u", 1, more, v="f", n=1),
            topic.change("d", 2, moved),
            topic.record(2, None),
        ]
    )
    assert avro_bench.rows("id", "v", "n", "at", "w") == [
        (1, "f", 1, None, None),
        (3, "c", 3, date(1970, 1, 1), None),
        (4, "d", 4, date(1970, 1, 2), "y"),
        (5, "e", None, None, None),
    ]


def test_a_schema_that_comes_later_is_learnt_then(avro_bench: Bench, topic: AvroTopic) -> None:
    worker = avro_bench.take([topic.change("c", number, v="a") for number in range(30)])
    avro_bench.take([topic.change("c", 1, {**TEXT, "n": "long"}, v="b", n=2**40)], worker)
    assert avro_bench.rows("id", "v", "n")[1] == (1, "b", 2**40)


def test_6_3_records_with_a_new_schema_behind_a_stray_one_show_that_it_is_one(
    avro_bench: Bench, topic: AvroTopic
) -> None:
    avro_bench.options = {**avro_bench.options, "trigger": {"max_records": 2}}
    worker = avro_bench.take([topic.change("c", number, v="a") for number in range(4)])
    good, stray = topic.change("c", 4, v="a"), topic.change("c", 5, {"v": ["null", "boolean"]}, v=True)
    later = [topic.change("c", number, {**TEXT, "n": ["null", "long"]}, v="b", n=1) for number in range(6, 9)]
    avro_bench.take([good, stray, *later], worker)
    assert reasons(avro_bench) == {5: "needs-decision"}
    assert [row[0] for row in avro_bench.rows("id")] == [0, 1, 2, 3, 4, 6, 7, 8]


def test_6_3_broken_bytes_are_quarantined_with_the_reason_and_their_neighbours_are_applied(
    avro_bench: Bench, topic: AvroTopic
) -> None:
    good = topic.change("c", 1, v="good")
    schema_id = topic.registered("value", envelope(TEXT))
    whole = topic.body("c", 2, TEXT, {"v": "text"})
    several = topic.registered("other", ["int", "string"])
    huge = b"\x00\x02" + b"\x04" + b"\x02" + avro("long", 1_600_000_000)  # the length of a text that is not there
    broken = {
        "no-schema-id": [b"", b"\x00\x00", b"plain text", b"[1]", b"\x01\x00\x00\x00\x01" + whole],
        "not-avro": [
            framed(schema_id, broken)
            for broken in (whole[:-1], whole + b"\x00", whole[:3], b"\xff" * 20, whole * 2, huge)
        ],
        "not-utf8": [framed(schema_id, whole.replace(b"text", b"t\xffxt"))],
        "no-row": [b'{"op":"c"}'],  # a JSON object is read as JSON
        "not-an-avro-schema": [framed(several, b"\x00\x02")],
    }
    records = [good]
    expected = {}
    for reason, values in broken.items():
        for value in values:
            expected[len(records)] = reason
            records.append(topic.record(2, value))
    for reason, key in (("no-schema-id", b"no"), ("not-avro", topic.key(3) + b"\x00")):
        expected[len(records)] = reason
        records.append(good._replace(key=key))
    records.append(topic.change("c", 9, v="\ufffd is text like any other"))
    avro_bench.take(records)
    assert reasons(avro_bench) == expected
    assert avro_bench.rows() == [(1, "good"), (9, "\ufffd is text like any other")]


def test_schema_ids_in_headers_are_as_good_as_those_in_front(avro_bench: Bench, topic: AvroTopic) -> None:
    def in_headers(number: int, v: str) -> Record:
        ids = {"key": topic.registered("key", KEY), "value": topic.registered("value", envelope(TEXT))}
        headers = [(f"__{side}_schema_id", struct.pack(">bI", 0, schema_id)) for side, schema_id in ids.items()]
        body = topic.body("c", number, TEXT, {"v": v})
        return Record(topic.name, 0, avro(KEY, {"id": number}), body, headers)

    avro_bench.take([in_headers(1, "a"), topic.change("c", 2, v="b"), in_headers(3, "c")])
    assert avro_bench.rows() == [(1, "a"), (2, "b"), (3, "c")]


def test_a_registry_that_is_away_makes_the_table_wait_and_costs_nothing(
    make_bench: Callable[..., Bench], registry: RegistryAddress
) -> None:
    with standing(Gate(registry.root, shut=True)) as gate:
        bench = with_registry(make_bench(), url=f"http://127.0.0.1:{gate.port}/apis/ccompat/v7")
        topic = AvroTopic(bench.topic, registry.url)
        worker = bench.worker()
        with pytest.raises(TransientError, match="503"):
            bench.take([topic.change("c", 1, v="a")], worker)
        gate.shut = False
        bench.take([], worker)
        asked = gate.asked
        bench.take([topic.change("u", 1, v="b")], worker)
        assert gate.asked == asked  # a schema is asked for once
        gate.shut = True
        with pytest.raises(TransientError):
            bench.take([topic.change("u", 1, {**TEXT, "n": "int"}, v="c", n=1)], worker)
        assert bench.rows() == [(1, "b")]
        gate.shut = False
        bench.take([], worker)
    assert bench.rows() == [(1, "c", 1)]


def test_an_id_that_the_registry_does_not_know_makes_the_table_wait(avro_bench: Bench, topic: AvroTopic) -> None:
    worker = avro_bench.take([topic.change("c", 1, v="a")])
    unknown = framed(2**31 - 5, topic.body("c", 2, TEXT, {"v": "b"}))
    with pytest.raises(TransientError, match="does not know the schema 2147483643"):
        avro_bench.take([topic.record(2, unknown)], worker)
    assert avro_bench.rows() == [(1, "a")]


def test_an_address_where_no_registry_is_tells_so(make_bench: Callable[..., Bench], registry: RegistryAddress) -> None:
    bench = with_registry(make_bench(), url=registry.root)
    with pytest.raises(TransientError) as caught:
        bench.take([AvroTopic(bench.topic, registry.url).change("c", 1, v="a")])
    assert caught.value.code == "registry-address"


def test_the_registry_is_asked_over_tls_with_a_password_or_a_token(
    make_bench: Callable[..., Bench], registry: RegistryAddress, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    authority = trustme.CA()
    authority.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(tls)
    monkeypatch.setenv("REGISTRY_USER", "me:secret")
    monkeypatch.setenv("REGISTRY_TOKEN", "a.token")
    with standing(Gate(registry.root, expected="Basic bWU6c2VjcmV0"), tls) as gate:
        at = {"url": f"https://127.0.0.1:{gate.port}/apis/ccompat/v7", "ssl.ca.location": str(tmp_path / "ca.pem")}
        bench = with_registry(make_bench(), **at)
        with pytest.raises(TransientError) as caught:
            bench.take([AvroTopic(bench.topic, registry.url).change("c", 1, v="a")])
        assert caught.value.code == "registry-refused"
        source = bench.options["source"]
        source["schema_registry"] = {**at, "basic.auth.user.info": "${env:REGISTRY_USER}"}
        bench.take([])
        assert bench.rows() == [(1, "a")]
        gate.expected = "Bearer a.token"
        source["schema_registry"] = {**at, "bearer.auth.token": "${env:REGISTRY_TOKEN}"}
        bench.take([AvroTopic(bench.topic, registry.url).change("u", 1, v="b")])
        assert bench.rows() == [(1, "b")]
        found = bench.config().source.schema_registry
        assert found is not None
        assert "answers" in registry_answers(found).message  # as `doctor` asks it
        source["schema_registry"] = {"url": at["url"], "bearer.auth.token": "${env:REGISTRY_TOKEN}"}
        with pytest.raises(TransientError) as caught:  # a certificate that nobody has to trust
            bench.take([AvroTopic(bench.topic, registry.url).change("u", 1, v="c")])
        assert caught.value.code == "registry-unreachable"
