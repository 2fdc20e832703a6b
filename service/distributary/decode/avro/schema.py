"""Avro schemas that Kafka Connect's Avro converters write, and the Connect schemas that they stand for.

The converters keep what Connect knows and Avro does not in properties of their own: `connect.name` (the semantic name),
`connect.parameters` and `connect.type` (int8, int16). Where these are switched off, Avro's logical types give the names
that the converters would read from them.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from distributary.types.bounds import Bounds
from distributary.types.connect_schema import LONGEST_NAME, TYPES_PER_COLUMN, ConnectField, ConnectType
from distributary.types.nested import is_readable

Json = Any

_KINDS = {
    "boolean": "boolean", "int": "int32", "long": "int64", "float": "float", "double": "double", "bytes": "bytes",
    "string": "string",
}  # fmt: skip
"""Avro's primitive types, and Connect's for them."""
_LOGICAL = {
    "date": "org.apache.kafka.connect.data.Date",
    "time-millis": "org.apache.kafka.connect.data.Time",
    "timestamp-millis": "org.apache.kafka.connect.data.Timestamp",
}
_DECIMAL = "org.apache.kafka.connect.data.Decimal"
_PRECISION = "connect.decimal.precision"
_NO_PRECISION = 64
"""The converters write this as Avro's precision where Connect's Decimal has none."""
_LONGEST_SYMBOL = 1_000
"""Characters of an enum's symbol. One byte of a record stands for all of them."""
_MAP_ENTRY = "MapEntry"
"""The name of the records that the converter writes for the entries of a map whose keys are no texts. If the map has a
name, the record has the map's name, and this one in `connect.internal.type`."""
_TYPES_PER_COLUMN = 10
"""A schema may expand to this many types for each column that a struct may have. A few names that each use the next one
twice would otherwise expand to more types than fit into memory."""


class NotAnAvroSchema(ValueError):
    """The text is no Avro schema that Kafka Connect's converters write, or is beyond the bounds."""


@dataclass(frozen=True, eq=False)
class AvroType:
    """A type of an Avro schema. `kind` is Avro's (a primitive type, fixed, enum, array, map or record).

    `value_tag` is the byte before a value in a union, None outside of unions, and `null_tag` the byte that stands for
    null instead of a value. `items` is the type of an array's elements or of a map's values, `size` the bytes of a
    fixed value, `symbols` those of an enum. `is_map_entry`: an array of such records is a map. `types` is the number of
    types in it, `height` how deep they are nested. `connect` is the Connect type of its values.
    """

    kind: str
    connect: ConnectType
    value_tag: int | None = None
    null_tag: int | None = None
    items: AvroType | None = None
    fields: tuple[tuple[str, AvroType], ...] = ()
    size: int = 0
    symbols: tuple[str, ...] = ()
    is_map_entry: bool = False
    types: int = 1
    height: int = 0

    def field(self, name: str) -> AvroType | None:
        """The type of a record's field, or None."""
        return next((kind for known, kind in self.fields if known == name), None)


AvroSchema = AvroType
"""A writer's schema: the type of a whole value."""
AvroSchemas = Mapping[str, "AvroSchema | NotAnAvroSchema"]
"""Schemas by their addresses in the registry (see framing.py), and the errors of those that can't be read."""


def parse_avro_schema(text: str, references: Iterable[str] = (), bounds: Bounds | None = None) -> AvroSchema:
    """Parses a schema. `references` are the texts of the schemas whose names it uses, in the order of their use.

    Raises NotAnAvroSchema, and no other error, for any text.
    """
    parser = _Parser(bounds or Bounds())
    try:
        for other in references:
            parser.parse(json.loads(other), "")
        return parser.parse(json.loads(text), "")
    except NotAnAvroSchema:
        raise
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise NotAnAvroSchema(f"not an Avro schema: {type(error).__name__}") from error


class _Parser:
    """One walk through a schema, in which names are defined before they are used."""

    def __init__(self, bounds: Bounds) -> None:
        self._bounds = bounds
        self._known: dict[str, AvroType | None] = {}

    def parse(self, node: Json, namespace: str) -> AvroType:
        if isinstance(node, str):
            return self._primitive(node, {}) if node in _KINDS else self._by_name(node, namespace)
        if isinstance(node, list):
            return self._union(node, namespace)
        if not isinstance(node, dict):
            raise NotAnAvroSchema("a type that is neither a name nor an object nor a union")
        kind = node["type"]
        if kind in ("record", "error"):
            return self._record(node, namespace)
        if kind == "enum":
            return self._named(node, namespace, symbols=_symbols(node["symbols"], self._bounds))
        if kind == "fixed":
            return self._named(node, namespace, size=_fixed_size(node["size"]))
        if kind in ("array", "map"):
            items = self.parse(node["items" if kind == "array" else "values"], namespace)
            connect = ConnectType("map", items=items.connect, keys=ConnectType("string"))
            if kind == "array":
                connect = _entries_as_map(items) or ConnectType("array", items=items.connect)
            connect = _with_semantics(connect, node)
            return self._holding(AvroType(kind, connect, items=items), [items])
        if isinstance(kind, str) and kind in _KINDS:
            return self._primitive(kind, node)
        return self.parse(kind, namespace)

    def _primitive(self, kind: str, node: Mapping[str, Json]) -> AvroType:
        given = node.get("connect.type") or _KINDS[kind]
        if not isinstance(given, str):
            raise NotAnAvroSchema("connect.type is no text")
        return AvroType(kind, _with_semantics(ConnectType(given), node))

    def _by_name(self, name: str, namespace: str) -> AvroType:
        for full in (_full_name(name, namespace), name):
            if full in self._known:
                kind = self._known[full]
                if kind is None:
                    raise NotAnAvroSchema(f"the type {full} holds itself")
                return kind
        raise NotAnAvroSchema(f"the type {name} is not defined")

    def _union(self, branches: list[Json], namespace: str) -> AvroType:
        values = [branch for branch in branches if branch != "null"]
        if len(values) != 1 or len(branches) > 2:
            raise NotAnAvroSchema("a union of several types has no column type")
        branch_type = self.parse(values[0], namespace)
        if branch_type.value_tag is not None:
            raise NotAnAvroSchema("a union in a union")
        # A tag is the branch's number as Avro writes numbers: 0 and 1 are the bytes 0 and 2.
        if len(branches) == 1:
            return replace(branch_type, value_tag=0)
        value_tag = 2 * branches.index(values[0])
        return replace(branch_type, value_tag=value_tag, null_tag=2 - value_tag)

    def _named(
        self, node: Mapping[str, Json], namespace: str, *, size: int = 0, symbols: tuple[str, ...] = ()
    ) -> AvroType:
        kind = node["type"]
        connect = _with_semantics(ConnectType("bytes" if kind == "fixed" else "string"), node)
        kind_of_name = AvroType(kind, connect, size=size, symbols=symbols)
        self._known[_defined_name(node, namespace)] = kind_of_name
        return kind_of_name

    def _record(self, node: Mapping[str, Json], namespace: str) -> AvroType:
        full = _defined_name(node, namespace)
        nodes = node["fields"]
        if len(nodes) > self._bounds.columns:
            raise NotAnAvroSchema(f"more than {self._bounds.columns} columns")
        self._known[full] = None
        inner = full.rpartition(".")[0]
        fields = tuple((_field_name(part["name"]), self.parse(part["type"], inner)) for part in nodes)
        if len(dict(fields)) < len(fields):
            raise NotAnAvroSchema("two fields of one name")
        columns = tuple(
            ConnectField(name, kind.connect, _default(part, kind), kind.null_tag is not None)
            for part, (name, kind) in zip(nodes, fields, strict=True)
        )
        connect = ConnectType("struct", full, fields=columns)
        is_entry = full.rpartition(".")[2] == _MAP_ENTRY or node.get("connect.internal.type") == _MAP_ENTRY
        record = AvroType("record", _with_semantics(connect, node), fields=fields, is_map_entry=is_entry)
        record = self._holding(record, [kind for _, kind in fields])
        self._known[full] = record
        return record

    def _holding(self, outer: AvroType, inner: Iterable[AvroType]) -> AvroType:
        """The type with the number and the nesting of its types. A short text can describe huge types by using
        names."""
        inner = list(inner)
        types = 1 + sum(kind.types for kind in inner)
        height = 1 + max((kind.height for kind in inner), default=0)
        if height > self._bounds.nesting:
            raise NotAnAvroSchema(f"more than {self._bounds.nesting} types in one another")
        if types > TYPES_PER_COLUMN * self._bounds.columns:
            raise NotAnAvroSchema(f"more than {TYPES_PER_COLUMN * self._bounds.columns} types")
        return replace(outer, types=types, height=height)


def _entries_as_map(items: AvroType) -> ConnectType | None:
    """The map that is written as an array of such items, because keys in Avro's maps are always text; None for a real
    array."""
    fields = dict(items.fields)
    if not items.is_map_entry or set(fields) != {"key", "value"}:
        return None
    return ConnectType("map", items=fields["value"].connect, keys=fields["key"].connect, has_entries=True)


def _full_name(name: str, namespace: str) -> str:
    return name if "." in name or not namespace else f"{namespace}.{name}"


def _defined_name(node: Mapping[str, Json], namespace: str) -> str:
    name, space = node["name"], node.get("namespace", namespace)
    if not isinstance(name, str) or not isinstance(space, str | None):
        raise NotAnAvroSchema("a name that is no text")
    return _full_name(name, space or "")


def _field_name(name: Json) -> str:
    if not isinstance(name, str) or not is_readable(name):
        raise NotAnAvroSchema("a field's name that Avro does not allow")
    if len(name) > LONGEST_NAME:
        raise NotAnAvroSchema(f"a name of more than {LONGEST_NAME} characters")
    return name


def _default(node: Mapping[str, Json], kind: AvroType) -> Json | None:
    """The field's default as JsonConverter writes values. The converters also write it beside the type, because a
    default of Avro must have the first type of a union."""
    default, of_type = node.get("default"), node["type"]
    branches = of_type if isinstance(of_type, list) else [of_type]
    of_branches = [branch.get("connect.default") for branch in branches if isinstance(branch, dict)]
    default = next(iter(of_branches), None) if default is None else default
    if kind.kind not in ("bytes", "fixed") or not isinstance(default, str):
        return default
    try:  # each character is a byte
        return base64.b64encode(default.encode("latin-1")).decode()
    except UnicodeEncodeError:
        return None


def _fixed_size(size: Json) -> int:
    if not isinstance(size, int) or isinstance(size, bool) or size < 0:
        raise NotAnAvroSchema("a fixed type without a size")
    return size


def _symbols(symbols: Json, bounds: Bounds) -> tuple[str, ...]:
    if not isinstance(symbols, list) or len(symbols) > bounds.columns:
        raise NotAnAvroSchema("an enum without symbols, or with too many")
    if not all(isinstance(symbol, str) and len(symbol) <= _LONGEST_SYMBOL for symbol in symbols):
        raise NotAnAvroSchema("an enum's symbol that is no text, or is too long")
    return tuple(symbols)


def _with_semantics(connect: ConnectType, node: Mapping[str, Json]) -> ConnectType:
    """The Connect type with the semantic name and the parameters that the converter wrote."""
    logical, given = node.get("logicalType"), node.get("connect.name")
    parameters = {str(key): str(value) for key, value in (node.get("connect.parameters") or {}).items()}
    name = given or (_LOGICAL.get(logical) if isinstance(logical, str) else None)
    if not isinstance(name, str | None):
        raise NotAnAvroSchema("connect.name is no text")
    if name in (None, _DECIMAL) and logical == "decimal":
        name = _DECIMAL
        parameters.setdefault("scale", str(node.get("scale", 0)))
        if node.get("precision", _NO_PRECISION) != _NO_PRECISION:
            parameters.setdefault(_PRECISION, str(node["precision"]))
    return replace(connect, name=name or connect.name, parameters=parameters)
