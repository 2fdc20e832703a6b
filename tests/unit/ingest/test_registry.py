"""The registry's errors mean either a retry or a halt."""

from __future__ import annotations

import json
import socket
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.schema_registry import Schema, SchemaReference, SchemaRegistryClient

from distributary.config.source import SchemaRegistry
from distributary.decode.avro.schema import AvroType, NotAnAvroSchema
from distributary.errors import SetupError, TableHalt, TransientError
from distributary.ingest.registry import Registry

NUMBER = json.dumps({"type": "record", "name": "Key", "fields": [{"name": "id", "type": "int"}]})


class Clock:
    """Seconds, as the test sets them."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


def settings(**given: Any) -> SchemaRegistry:
    return SchemaRegistry.model_validate(given)


def test_a_schema_is_found_by_its_number_and_by_its_guid() -> None:
    registry = Registry(settings(url="mock://a"))
    registered = registry._client.register_schema_full_response("s", Schema(NUMBER, "AVRO"))
    by_number = registry.schema(str(registered.schema_id))
    assert isinstance(by_number, AvroType)
    assert by_number.connect.field("id") is not None
    by_guid = registry.schema(str(registered.guid))
    assert isinstance(by_guid, AvroType)
    assert by_guid.connect == by_number.connect


def test_an_unknown_schema_is_waited_for_and_found_once_it_is_there() -> None:
    registry = Registry(settings(url="mock://b"))
    with pytest.raises(TransientError) as caught:
        registry.schema("1")
    assert caught.value.code == "schema-unknown"
    registry._client.register_schema("s", Schema(NUMBER, "AVRO"))
    assert isinstance(registry.schema("1"), AvroType)


def test_a_schema_that_does_not_come_halts_the_table() -> None:
    clock = Clock()
    registry = Registry(settings(url="mock://c"), clock, patience=300)
    for clock.now in (0.0, 299.0):
        with pytest.raises(TransientError):
            registry.schema("7")
    clock.now = 300.0
    with pytest.raises(TableHalt, match=r"schema 7.*5 minutes") as caught:
        registry.schema("7")
    assert caught.value.code == "schema-unknown"
    assert caught.value.fix


def test_each_unknown_schema_has_a_time_of_its_own() -> None:
    clock = Clock()
    registry = Registry(settings(url="mock://d"), clock, patience=300)
    with pytest.raises(TransientError):
        registry.schema("7")
    clock.now = 1000.0
    with pytest.raises(TransientError):
        registry.schema("8")


def test_a_schema_of_another_kind_is_not_readable() -> None:
    registry = Registry(settings(url="mock://e"))
    number = registry._client.register_schema("s", Schema('{"type":"object"}', "JSON"))
    assert isinstance(registry.schema(str(number)), NotAnAvroSchema)


def test_names_of_schemas_that_are_referred_to_are_known() -> None:
    registry = Registry(settings(url="mock://f"))
    client: SchemaRegistryClient = registry._client
    inner = {"type": "record", "name": "a.Inner", "fields": [{"name": "n", "type": "long"}]}
    middle = {"type": "record", "name": "a.Middle", "fields": [{"name": "inner", "type": "a.Inner"}]}
    outer = {"type": "record", "name": "a.Outer", "fields": [{"name": "middle", "type": ["null", "Middle"]}]}
    client.register_schema("inner", Schema(json.dumps(inner), "AVRO"))
    to_inner = [SchemaReference("a.Inner", "inner", 1)]
    client.register_schema("middle", Schema(json.dumps(middle), "AVRO", references=to_inner))
    to_middle = [SchemaReference("a.Middle", "middle", 1)]
    number = client.register_schema("outer", Schema(json.dumps(outer), "AVRO", references=to_middle))
    schema = registry.schema(str(number))
    assert isinstance(schema, AvroType)
    found = schema.connect.field("middle")
    assert found is not None
    assert found.field("inner") is not None


def test_a_registry_that_is_not_there_is_asked_again() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound, but nobody listens
        registry = Registry(settings(url=f"http://127.0.0.1:{taken.getsockname()[1]}"))
        with pytest.raises(TransientError) as caught:
            registry.schema("1")
    assert caught.value.code == "registry-unreachable"


@pytest.mark.parametrize(
    "given",
    [
        {"basic.auth.user.info": "no colon"},
        {"ssl.ca.location": "/no/such/file.pem"},
        {"ssl.key.location": "/no/such/key.pem"},
    ],
    ids=lambda given: next(iter(given)),
)
def test_settings_that_can_not_be_used_end_the_start_without_showing_them(given: dict[str, str]) -> None:
    made = SchemaRegistry.model_construct(url="https://localhost")
    made = made.model_copy(update={name.replace(".", "_"): value for name, value in given.items()})
    with pytest.raises(SetupError) as caught:
        Registry(made)
    assert caught.value.code == "registry-config"
    assert "no colon" not in str(caught.value)


def test_a_file_that_is_no_certificate_is_told(tmp_path: Path) -> None:
    wrong = tmp_path / "ca.pem"
    wrong.write_text("no certificate", "utf-8")
    with pytest.raises(SetupError):
        Registry(settings(url="https://localhost", **{"ssl.ca.location": str(wrong)}))
