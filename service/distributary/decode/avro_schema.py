"""Avro schemas that Kafka Connect's Avro converters wrote, translated into the Connect schemas that they stand for.

The converters keep what Connect knows and Avro does not in properties of their own: `connect.name` (the semantic
name), `connect.parameters`, `connect.type` (int8, int16), `connect.default`. Where those were switched off, Avro's
logical types tell what the converters would read from them.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

from distributary import sql

_KINDS = {
    "boolean": "boolean", "int": "int32", "long": "int64", "float": "float", "double": "double", "bytes": "bytes",
    "string": "string",
}  # fmt: skip
_LOGICAL = {
    "date": "org.apache.kafka.connect.data.Date",
    "time-millis": "org.apache.kafka.connect.data.Time",
    "timestamp-millis": "org.apache.kafka.connect.data.Timestamp",
}
_DECIMAL = "org.apache.kafka.connect.data.Decimal"
_PRECISION = "connect.decimal.precision"
# What the converters write as Avro's precision where Connect's Decimal has none.
_NO_PRECISION = 64


class NotAnAvroSchema(ValueError):
    """The text is no Avro schema that Kafka Connect's converters write."""


@dataclass(frozen=True)
class AvroSchema:
    """A writer's schema: `connect` is the Connect schema as JsonConverter writes it, `plain` the Avro schema of the
    same bytes without logical types, defaults and names of its own. Both are empty where the schema can't be read."""

    connect: str = ""
    plain: str = ""

    @property
    def readable(self) -> bool:
        """Whether records with this schema can be read."""
        return bool(self.plain)

    @cached_property
    def parsed(self) -> Any:
        """The plain schema, parsed."""
        return json.loads(self.plain)

    def valid_text(self, x: str) -> str:
        """BOOLEAN: whether every text within the value `x`, read with this schema, is UTF-8."""
        return _valid_text(x, self.parsed, 0) or "true"


class _Type(NamedTuple):
    connect: dict[str, Any]
    plain: Any


def translated(text: str, references: Iterable[str] = ()) -> AvroSchema:
    """The translation of an Avro schema; `references` are the schemas whose names it uses, in the order of their use.

    Raises NotAnAvroSchema.
    """
    walk = _Walk()
    try:
        for other in references:
            walk.type_of(json.loads(other), "")
        root = walk.type_of(json.loads(text), "")
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        if isinstance(error, NotAnAvroSchema):
            raise
        raise NotAnAvroSchema(f"not an Avro schema: {type(error).__name__}") from error
    return AvroSchema(_text(root.connect), _text(root.plain))


def _text(schema: Any) -> str:
    return json.dumps(schema, separators=(",", ":"), ensure_ascii=False)


class _Walk:
    """One walk through a schema, in which names are defined before they are used.

    In the plain schema every named type gets a new name at each place: it is never referred to.
    """

    def __init__(self) -> None:
        self._defined: dict[str, tuple[Mapping[str, Any], str]] = {}
        self._within: set[str] = set()
        self._named = 0

    def type_of(self, node: Any, namespace: str) -> _Type:
        if isinstance(node, str):
            return self._primitive(node, {}) if node in _KINDS else self._by_name(node, namespace)
        if isinstance(node, list):
            return self._union(node, namespace)
        kind = node["type"]
        if kind in ("record", "error"):
            return self._record(node, namespace)
        if kind == "enum":
            self._define(node, namespace)
            plain = {"type": "enum", "name": self._new_name(), "symbols": node["symbols"]}
            return _Type(_semantic({"type": "string"}, node), plain)
        if kind == "fixed":
            self._define(node, namespace)
            plain = {"type": "fixed", "name": self._new_name(), "size": node["size"]}
            return _Type(_semantic({"type": "bytes"}, node), plain)
        if kind == "array":
            items = self.type_of(node["items"], namespace)
            connect = {"type": "array", "items": items.connect}
            return _Type(_semantic(connect, node), {"type": "array", "items": items.plain})
        if kind == "map":
            values = self.type_of(node["values"], namespace)
            connect = {"type": "map", "keys": {"type": "string", "optional": False}, "values": values.connect}
            return _Type(_semantic(connect, node), {"type": "map", "values": values.plain})
        if isinstance(kind, str) and kind in _KINDS:
            return self._primitive(kind, node)
        return self.type_of(kind, namespace)

    def _primitive(self, kind: str, node: Mapping[str, Any]) -> _Type:
        return _Type(_semantic({"type": node.get("connect.type") or _KINDS[kind]}, node), kind)

    def _by_name(self, name: str, namespace: str) -> _Type:
        full = name if "." in name or not namespace else f"{namespace}.{name}"
        found = self._defined.get(full) or self._defined.get(name)
        if found is None:
            raise NotAnAvroSchema(f"the type {name} is not defined")
        return self.type_of(*found)

    def _union(self, branches: list[Any], namespace: str) -> _Type:
        types = [None if branch == "null" else self.type_of(branch, namespace) for branch in branches]
        values = [t for t in types if t is not None]
        if len(values) != 1:
            raise NotAnAvroSchema("a union of several types has no column type")
        connect = {**values[0].connect, "optional": len(types) > 1}
        return _Type(connect, ["null" if t is None else t.plain for t in types])

    def _record(self, node: Mapping[str, Any], namespace: str) -> _Type:
        full = self._define(node, namespace)
        if full in self._within:
            raise NotAnAvroSchema(f"the type {full} holds itself")
        self._within.add(full)
        name = self._new_name()
        inner = full.rpartition(".")[0]
        fields = [(field, self.type_of(field["type"], inner)) for field in node["fields"]]
        self._within.remove(full)
        connect = {"type": "struct", "name": full, "fields": [_field(field, type_) for field, type_ in fields]}
        plain = [{"name": field["name"], "type": type_.plain} for field, type_ in fields]
        return _Type(_semantic(connect, node), {"type": "record", "name": name, "fields": plain})

    def _define(self, node: Mapping[str, Any], namespace: str) -> str:
        name: str = node["name"]
        space = node.get("namespace", namespace)
        full = name if "." in name or not space else f"{space}.{name}"
        self._defined[full] = (node, namespace)
        return full

    def _new_name(self) -> str:
        self._named += 1
        return f"t{self._named}"


def _field(field: Mapping[str, Any], type_: _Type) -> dict[str, Any]:
    connect: dict[str, Any] = {"optional": False, **type_.connect, "field": field["name"]}
    default = field.get("default")
    return connect if default is None else {**connect, "default": default}


def _semantic(connect: dict[str, Any], node: Mapping[str, Any]) -> dict[str, Any]:
    """The Connect type with the semantic name and the parameters that the converter kept."""
    logical = node.get("logicalType")
    parameters = {str(k): str(v) for k, v in (node.get("connect.parameters") or {}).items()}
    name = node.get("connect.name") or (_LOGICAL.get(logical) if isinstance(logical, str) else None)
    if name in (None, _DECIMAL) and logical == "decimal":
        name = _DECIMAL
        parameters.setdefault("scale", str(node.get("scale", 0)))
        if node.get("precision", _NO_PRECISION) != _NO_PRECISION:
            parameters.setdefault(_PRECISION, str(node["precision"]))
    more: dict[str, Any] = {"name": name} if name else {}
    if parameters:
        more["parameters"] = parameters
    if node.get("connect.default") is not None:
        more["default"] = node["connect.default"]
    return {**connect, **more}


def _valid_text(x: str, plain: Any, depth: int) -> str:
    """The test of one value; empty where it holds no text."""
    if plain == "string":
        return f"coalesce(is_valid_utf8({x}), true)"
    if isinstance(plain, list):
        return _valid_text(x, next(branch for branch in plain if branch != "null"), depth)
    if not isinstance(plain, dict):
        return ""
    item = f"item{depth}_"
    if plain["type"] == "record":
        tests = (_valid_text(f"{x}.{sql.name(f['name'])}", f["type"], depth) for f in plain["fields"])
        return " AND ".join(filter(None, tests))
    if plain["type"] == "array":
        test = _valid_text(item, plain["items"], depth + 1)
        return f"coalesce(forall({x}, {item} -> {test}), true)" if test else ""
    if plain["type"] == "map":
        keys = f"coalesce(forall(map_keys({x}), {item} -> is_valid_utf8({item})), true)"
        test = _valid_text(item, plain["values"], depth + 1)
        return f"{keys} AND coalesce(forall(map_values({x}), {item} -> {test}), true)" if test else keys
    return ""
