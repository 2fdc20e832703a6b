"""Kafka Connect schemas as JsonConverter writes them beside the payload."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class ConnectType:
    """One type of a Connect schema.

    `kind` is Connect's own type (int32, string, struct …), `name` the semantic name laid over it, if any.
    """

    kind: str
    name: str | None = None
    parameters: tuple[tuple[str, str], ...] = ()
    items: ConnectType | None = None
    keys: ConnectType | None = None
    fields: tuple[ConnectField, ...] = ()

    def parameter(self, key: str) -> str | None:
        """The parameter of that name, or None."""
        return dict(self.parameters).get(key)

    def field(self, name: str) -> ConnectType | None:
        """The type of a struct's field, or None."""
        return next((f.type for f in self.fields if f.name == name), None)


@dataclass(frozen=True)
class ConnectField:
    """A named field of a struct."""

    name: str
    type: ConnectType


class NotAConnectSchema(ValueError):
    """The text is no Connect schema."""


def parse_schema(text: str) -> ConnectType:
    """The Connect schema that `text` holds.

    Raises NotAConnectSchema.
    """
    try:
        return _parse(json.loads(text))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise NotAConnectSchema(f"not a Connect schema: {type(error).__name__}") from error


def _parse(node: dict[str, Any]) -> ConnectType:
    kind = node["type"]
    if not isinstance(kind, str):
        raise NotAConnectSchema("a schema's type must be text")
    parameters = node.get("parameters") or {}
    items = node.get("items") if kind == "array" else node.get("values") if kind == "map" else None
    return ConnectType(
        kind=kind,
        name=node.get("name"),
        parameters=tuple(sorted((str(k), str(v)) for k, v in parameters.items())),
        items=_parse(items) if items else None,
        keys=_parse(node["keys"]) if kind == "map" else None,
        fields=tuple(ConnectField(f["field"], _parse(f)) for f in node.get("fields", ())),
    )
