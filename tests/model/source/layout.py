"""The tables of histories: their columns, and the values for a key's number."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

Row = Mapping[str, Any]
Key = tuple[Any, ...]

_NAMES = ("k{}", "K{}", " {}", "{} ", "ü{}", "'{}", '"\\{}', "null{}", "{}/,;")
_SPACE = uuid.UUID(int=0)


@dataclass(frozen=True)
class Field:
    """A column: its name, its Connect type, its semantic name (empty for none), and whether it may be NULL."""

    name: str
    type: str
    semantic: str = ""
    optional: bool = False


@dataclass(frozen=True)
class Layout:
    """A table. `numbered` gives a key's values, by column, from the number it has in a history."""

    name: str
    key: tuple[Field, ...]
    numbered: Callable[[int], dict[str, Any]]

    @property
    def fields(self) -> tuple[Field, ...]:
        """All columns, in the table's order: the key is not first, and not in its own order."""
        return (
            Field("v", "string"),
            *reversed(self.key),
            Field("u", "string"),
            Field("big", "string", optional=True),
        )

    def key_of(self, row: Row) -> Key:
        """The values of the key's columns."""
        return tuple(row[part.name] for part in self.key)

    def key_payload(self, row: Row) -> dict[str, Any]:
        """The key as a record has it."""
        return {part.name: row[part.name] for part in self.key}

    def payload(self, row: Row | None) -> dict[str, Any] | None:
        """A row as a record has it: the columns in the table's order."""
        return None if row is None else {part.name: row[part.name] for part in self.fields}


def _whole(number: int) -> dict[str, Any]:
    # Some beyond what a double holds exactly.
    return {"id": number if number % 3 else 2**53 + 1 + number}


def _composite(number: int) -> dict[str, Any]:
    return {"area": f"a{number % 2}", "id": number // 2}


def _text(number: int) -> dict[str, Any]:
    return {"id": _NAMES[number % len(_NAMES)].format(number // len(_NAMES))}


def _uuid(number: int) -> dict[str, Any]:
    return {"id": str(uuid.uuid5(_SPACE, str(number)))}


LAYOUTS = {
    layout.name: layout
    for layout in (
        Layout("whole", (Field("id", "int64"),), _whole),
        Layout("composite", (Field("area", "string"), Field("id", "int32")), _composite),
        Layout("text", (Field("id", "string"),), _text),
        Layout("uuid", (Field("id", "string", "io.debezium.data.Uuid"),), _uuid),
    )
}
