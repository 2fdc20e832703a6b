"""Targets of reading: the form in which a reader returns a value, or Skip."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, get_args, get_origin

import msgspec

from distributary.decode.avro.schema import AvroType

_NATIVE: Mapping[str, type] = {
    "int": int, "long": int, "float": float, "double": float, "boolean": bool, "string": str, "enum": str,
    "bytes": bytes, "fixed": bytes,
}  # fmt: skip
"""The Python types of Avro's types."""


@dataclass(frozen=True)
class Skip:
    """A value that is not needed."""


@dataclass(frozen=True)
class AsJson:
    """A value as strict_json parses the JSON that JsonConverter writes of it."""


@dataclass(frozen=True)
class AsWire:
    """A value as msgspec would read it as this type."""

    wire: Any


@dataclass(frozen=True)
class Make:
    """A record, as the result of calling `make` with these fields, given by names and targets. Fields that the record
    lacks are None."""

    make: Callable[..., Any]
    fields: tuple[tuple[str, Target], ...]


Target = Skip | AsJson | AsWire | Make
SKIP, AS_JSON = Skip(), AsJson()


def is_native(kind: AvroType, wire: Any) -> bool:
    """Whether all values of the Avro type have the wire type: whether msgspec would accept them in JSON."""
    origin, choices = get_origin(wire), set(get_args(wire)) - {type(None)}
    if kind.kind in _NATIVE:
        return _NATIVE[kind.kind] in (choices if origin not in (list, dict) and choices else {wire})
    if len(choices) == 1 and type(None) in get_args(wire):
        return is_native(kind, choices.pop())
    if kind.kind == "array":
        assert kind.items is not None
        return origin is list and is_native(kind.items, get_args(wire)[0])
    if kind.kind == "map":
        assert kind.items is not None
        return origin is dict and is_native(kind.items, get_args(wire)[1])
    return isinstance(wire, type) and issubclass(wire, msgspec.Struct) and _is_native_record(kind, wire)


def _is_native_record(kind: AvroType, wire: type[msgspec.Struct]) -> bool:
    for part in msgspec.structs.fields(wire):
        field = kind.field(part.encode_name)
        if part.required and (field is None or field.null_tag is not None):
            return False
        if field is not None and not is_native(field, part.type):
            return False
    return True


def target_of_wire(kind: AvroType, wire: Any) -> Target:
    """The target of a value that is to have a wire type: records become Make. Null is not part of it."""
    choices = [choice for choice in get_args(wire) if choice is not type(None)]
    if get_origin(wire) not in (list, dict) and len(choices) == 1:
        wire = choices[0]
    if kind.kind != "record":
        return AsWire(wire)
    parts = msgspec.structs.fields(wire)
    return Make(wire, tuple((part.encode_name, AsWire(part.type)) for part in parts))
