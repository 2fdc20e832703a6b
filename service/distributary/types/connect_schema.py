"""Connect schemas as JsonConverter writes them beside the payload, within bounds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from distributary.types.bounds import Bounds

Json = Any
LONGEST_NAME = 1_000
"""Characters: a name lies in the table's schema for good, and databases have 128 or 255."""
TYPES_PER_COLUMN = 10
"""The most types of a schema, for each column that it may have: a column may contain others, and a few Avro names that
each use the next one twice would expand to more types than fit into memory."""


@dataclass(frozen=True)
class ConnectType:
    """One type of a Connect schema. `kind` is Connect's own type (int32, string, struct …), `name` the semantic name
    over it, `items` the type of an array's elements or of a map's values. `has_entries`: a map comes as a list of its
    entries although its keys are texts: the Avro converter does that where they may be null."""

    kind: str
    name: str | None = None
    parameters: Mapping[str, str] = field(default_factory=dict)
    items: ConnectType | None = None
    keys: ConnectType | None = None
    fields: tuple[ConnectField, ...] = ()
    has_entries: bool = False

    def field(self, name: str) -> ConnectType | None:
        """The type of a struct's field, or None."""
        return next((part.type for part in self.fields if part.name == name), None)


@dataclass(frozen=True)
class ConnectField:
    """A named field of a struct. `default` is the default that the schema has, as JsonConverter writes values; None
    where it has none. `optional`: it may be null."""

    name: str
    type: ConnectType
    default: Json | None = None
    optional: bool = False


class NotAConnectSchema(ValueError):
    """The text is no Connect schema."""


class SchemaBeyondLimits(NotAConnectSchema):
    """The schema is larger than the decoder takes."""


def parse_schema(text: bytes, bounds: Bounds) -> ConnectType:
    """The Connect schema in a JSON text. Raises NotAConnectSchema, and no other error, for any text."""
    try:
        document = msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError):
        raise NotAConnectSchema("no JSON") from None
    except RecursionError:
        raise SchemaBeyondLimits(f"more than {bounds.nesting} types in one another") from None
    parsed = _parse(document, bounds, 0)
    if _types_in(parsed) > TYPES_PER_COLUMN * bounds.columns:
        raise SchemaBeyondLimits(f"more than {TYPES_PER_COLUMN * bounds.columns} types")
    return parsed


def _types_in(kind: ConnectType) -> int:
    inner = (kind.items, kind.keys, *(part.type for part in kind.fields))
    return 1 + sum(_types_in(one) for one in inner if one is not None)


def _parse(node: Json, bounds: Bounds, depth: int) -> ConnectType:
    if depth > bounds.nesting:
        raise SchemaBeyondLimits(f"more than {bounds.nesting} types in one another")
    if not isinstance(node, dict):
        raise NotAConnectSchema("a type that is no object")
    kind, name = node.get("type"), node.get("name")
    if not isinstance(kind, str) or not isinstance(name, str | None):
        raise NotAConnectSchema("a type without a name")
    parameters = node.get("parameters") or {}
    if not isinstance(parameters, dict):
        raise NotAConnectSchema("parameters that are no object")
    items = node.get({"array": "items", "map": "values"}.get(kind, ""))
    keys = node.get("keys") if kind == "map" else None
    return ConnectType(
        kind=kind,
        name=name,
        parameters={key: str(value) for key, value in parameters.items() if isinstance(value, str | int)},
        items=None if items is None else _parse(items, bounds, depth + 1),
        keys=None if keys is None else _parse(keys, bounds, depth + 1),
        fields=_fields(node.get("fields") if kind == "struct" else None, bounds, depth),
    )


def _fields(nodes: Json, bounds: Bounds, depth: int) -> tuple[ConnectField, ...]:
    if nodes is None:
        return ()
    if not isinstance(nodes, list):
        raise NotAConnectSchema("fields that are no list")
    if len(nodes) > bounds.columns:
        raise SchemaBeyondLimits(f"more than {bounds.columns} columns")
    fields = []
    for node in nodes:
        name = node.get("field") if isinstance(node, dict) else None
        if not isinstance(name, str):
            raise NotAConnectSchema("a field without a name")
        if len(name) > LONGEST_NAME:
            raise SchemaBeyondLimits(f"a name of more than {LONGEST_NAME} characters")
        optional = node.get("optional") is True
        fields.append(ConnectField(name, _parse(node, bounds, depth + 1), node.get("default"), optional))
    if len({part.name for part in fields}) < len(fields):
        raise NotAConnectSchema("two fields of one name")
    return tuple(fields)


def connect_json(kind: ConnectType) -> dict[str, Json]:
    """The type as JsonConverter writes it, all of it optional: Avro keeps that beside the type."""
    node: dict[str, Json] = {"type": kind.kind, "optional": True}
    if kind.name:
        node["name"] = kind.name
    if kind.parameters:
        node["parameters"] = dict(kind.parameters)
    if kind.items is not None:
        node["items" if kind.kind == "array" else "values"] = connect_json(kind.items)
    if kind.keys is not None:
        node["keys"] = connect_json(kind.keys)
    if kind.kind == "struct":
        node["fields"] = [{**connect_json(part.type), "field": part.name} for part in kind.fields]
    return node
