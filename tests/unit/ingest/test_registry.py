"""The registry's errors mean a retry; of a schema that does not come, the records are rejected."""

from __future__ import annotations

import json
import socket
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.schema_registry import Schema, SchemaReference, SchemaRegistryClient, SchemaRegistryError
from tests.support.clock import ManualClock

from distributary.config.source import SchemaRegistry
from distributary.consume.sample import SampledRecord
from distributary.decode.avro.schema import AvroType, NotAnAvroSchema
from distributary.errors import SetupError, TableHalt, TransientError
from distributary.ingest.json_records import check_schemas
from distributary.ingest.registry import KnownSchemas, Registry

NUMBER = json.dumps({"type": "record", "name": "Key", "fields": [{"name": "id", "type": "int"}]})


def settings(**given: Any) -> SchemaRegistry:
    return SchemaRegistry.model_validate(given)


def test_a_schema_is_found_by_its_number_and_by_its_guid() -> None:
    registry = Registry(settings(url="mock://a"))
    registered = registry.client.register_schema_full_response("s", Schema(NUMBER, "AVRO"))
    by_number = registry.schema(str(registered.schema_id))
    assert isinstance(by_number, AvroType)
    assert by_number.connect.field("id") is not None
    by_guid = registry.schema(str(registered.guid))
    assert isinstance(by_guid, AvroType)
    assert by_guid.connect == by_number.connect


def test_who_decodes_with_the_schemas_of_a_table_keeps_those_of_then() -> None:
    """Else records that were decoded ahead without a schema would count as decoded with it, and be rejected."""
    registry = Registry(settings(url="mock://then"))
    number = registry.client.register_schema("a", Schema(json.dumps("string"), "AVRO"))
    known = KnownSchemas(registry)
    then = known.by_address
    assert known.learn([str(number)])
    assert not known.learn([str(number)])
    assert then == {}
    assert known.by_address is not None
    assert set(known.by_address) == {str(number)}


def test_an_unknown_schema_is_waited_for_and_found_once_it_is_there() -> None:
    registry = Registry(settings(url="mock://b"))
    with pytest.raises(TransientError) as caught:
        registry.schema("1")
    assert caught.value.code == "schema-unknown"
    registry.client.register_schema("s", Schema(NUMBER, "AVRO"))
    assert isinstance(registry.schema("1"), AvroType)


def test_6_3_a_schema_that_does_not_come_is_given_up() -> None:
    clock = ManualClock()
    registry = Registry(settings(url="mock://c"), clock, unknown_id_timeout=300)
    for clock.now in (0.0, 299.0):
        with pytest.raises(TransientError):
            registry.schema("7")
    assert not registry.unknown
    clock.now = 300.0
    assert isinstance(registry.schema("7"), NotAnAvroSchema)
    assert registry.unknown == {"7"}


def test_a_schema_that_came_while_nobody_asked_is_found_however_late() -> None:
    clock = ManualClock()
    registry = Registry(settings(url="mock://j"), clock, unknown_id_timeout=300)
    with pytest.raises(TransientError):
        registry.schema("1")
    registry.client.register_schema("s", Schema(NUMBER, "AVRO"))
    clock.now = 10_000.0
    assert isinstance(registry.schema("1"), AvroType)


def test_6_3_each_unknown_schema_has_a_time_of_its_own_that_is_short_after_another_one() -> None:
    """Else whoever writes ids that nobody registered would hold up the table with each of them."""
    clock = ManualClock()
    registry = Registry(settings(url="mock://d"), clock, unknown_id_timeout=300)
    times = {"7": (0.0, 301.0), "8": (302.0, 311.0, 312.0), "9": (400.0, 410.0), "10": (5_000.0, 5_299.0, 5_300.0)}
    for address, asked in times.items():
        for clock.now in asked[:-1]:
            with pytest.raises(TransientError):
                registry.schema(address)
        clock.now = asked[-1]
        assert isinstance(registry.schema(address), NotAnAvroSchema)


def test_6_3_all_unknown_schemas_of_a_batch_are_waited_for_at_once() -> None:
    clock = ManualClock()
    registry = Registry(settings(url="mock://g"), clock, unknown_id_timeout=300)
    known = str(registry.client.register_schema("s", Schema(NUMBER, "AVRO")))
    with pytest.raises(TransientError):
        registry.schemas(["7", "8", known])
    clock.now = 300.0
    found = registry.schemas(["7", "8", known])
    assert [isinstance(schema, NotAnAvroSchema) for schema in found.values()] == [True, True, False]


@pytest.mark.parametrize("address", ["2147483648", "4294967295", "18446744073709551615"])
def test_6_3_a_number_that_no_registry_gives_is_not_asked_for(address: str) -> None:
    registry = Registry(settings(url="mock://h"))
    assert isinstance(registry.schema(address), NotAnAvroSchema)


@pytest.mark.parametrize("status", [400, 404, 422])
def test_6_3_what_an_older_registry_says_of_a_guid_does_not_hold_up_the_table(
    status: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its address was right for others, so that it is the id that is wrong."""
    clock = ManualClock()
    registry = Registry(settings(url="mock://i"), clock, unknown_id_timeout=300)
    known = str(registry.client.register_schema("s", Schema(NUMBER, "AVRO")))

    def refuse(_: str) -> None:
        raise SchemaRegistryError(status, status, "HTTP 404 Not Found")

    monkeypatch.setattr(registry.client, "get_schema_by_guid", refuse)
    guid = "89791762-2336-4186-9674-299b90a802e2"
    with pytest.raises(TransientError) as caught:
        registry.schema(guid)
    assert caught.value.code in ("registry-address", "registry-failed")
    registry.schema(known)
    with pytest.raises(TransientError) as caught:
        registry.schema(guid)
    assert caught.value.code == "schema-unknown"
    clock.now = 300.0
    assert isinstance(registry.schema(guid), NotAnAvroSchema)


def test_6_3_a_new_table_whose_records_all_name_unknown_schemas_halts() -> None:
    """It is another registry, or has lost its schemas: all records would go to quarantine."""
    registry = Registry(settings(url="mock://k"), unknown_id_timeout=0)
    registry.schemas(["7", "8"])
    seven, eight, nine = (SampledRecord(0, 0, None, b"\0" + number.to_bytes(4, "big") + b"x") for number in (7, 8, 9))
    with pytest.raises(TableHalt, match="schema 7, 8"):
        check_schemas([seven, eight, SampledRecord(0, 1, None, None)], registry)
    for other in (nine, SampledRecord(0, 1, None, b"{}"), SampledRecord(0, 1, None, b"x")):
        check_schemas([seven, other], registry)
    check_schemas([], registry)


def test_a_schema_of_another_kind_is_not_readable() -> None:
    registry = Registry(settings(url="mock://e"))
    number = registry.client.register_schema("s", Schema('{"type":"object"}', "JSON"))
    assert isinstance(registry.schema(str(number)), NotAnAvroSchema)


def test_names_of_schemas_that_are_referred_to_are_known() -> None:
    registry = Registry(settings(url="mock://f"))
    client: SchemaRegistryClient = registry.client
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


def record_of(name: str, kind: str) -> str:
    return json.dumps({"type": "record", "name": name, "fields": [{"name": "f", "type": kind}]})


def with_references(registry: Registry, levels: int, width: int) -> str:
    """Registers schemas of which each refers to the one before it, `width` times; the number of the last."""
    before: list[SchemaReference] = []
    number = 0
    for level in range(levels):
        text = record_of(f"R{level}", f"R{level - 1}" if level else "int")
        number = registry.client.register_schema(f"r{level}", Schema(text, "AVRO", before))
        before = [SchemaReference(f"R{level}" if index == 0 else f"A{index}", f"r{level}", 1) for index in range(width)]
    return str(number)


def test_6_3_a_schema_that_is_referred_to_often_is_asked_for_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else twenty schemas that each refer to the one before it twice would be asked for a million times."""
    registry = Registry(settings(url="mock://m"))
    number = with_references(registry, 20, 2)
    asked: list[str] = []
    ask = registry.client.get_version

    def get_version(subject: str, version: int) -> Any:
        asked.append(subject)
        return ask(subject, version)

    monkeypatch.setattr(registry.client, "get_version", get_version)
    assert isinstance(registry.schema(number), AvroType)
    assert sorted(asked) == sorted(f"r{level}" for level in range(19))


@pytest.mark.parametrize("levels", [102, 1_500])
def test_6_3_a_schema_that_refers_to_too_many_others_rejects_its_records(levels: int) -> None:
    """It would else be taken for a registry that does not answer, and asked for again without end."""
    registry = Registry(settings(url=f"mock://n{levels}"))
    found = registry.schema(with_references(registry, levels, 1))
    assert isinstance(found, NotAnAvroSchema)
    assert "more than 100 other schemas" in str(found)


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


def test_a_file_that_is_no_certificate_is_reported(tmp_path: Path) -> None:
    wrong = tmp_path / "ca.pem"
    wrong.write_text("no certificate", "utf-8")
    with pytest.raises(SetupError):
        Registry(settings(url="https://localhost", **{"ssl.ca.location": str(wrong)}))
