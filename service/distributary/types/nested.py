"""Arrays, maps with keys of text, and structs, of any types: their parts are converted as columns of their own.

A part that its type can't hold makes the whole value a bad one.
"""

from __future__ import annotations

import types
from collections.abc import Mapping, Sequence
from itertools import accumulate, chain
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa

from distributary.types.base import ColumnType, Converted, TypeNote, WrongKind
from distributary.types.connect_schema import ConnectField, ConnectType
from distributary.types.strict_json import Json

_NEVER_A_NAME = frozenset('"\\') | {chr(code) for code in range(32)}


def array_of(element: ColumnType) -> ColumnType:
    """The type of arrays of that type."""
    arrow = pa.list_(pa.field("element", element.arrow))

    def convert(values: Sequence[Any]) -> Converted:
        lengths = [0 if value is None else len(value) for value in values]
        items, bad_items = element.convert(list(chain.from_iterable(value for value in values if value is not None)))
        offsets = np.fromiter(accumulate(lengths, initial=0), np.int32, len(values) + 1)
        bad = _owners(offsets, bad_items)
        array = pa.ListArray.from_arrays(pa.array(offsets), items, type=arrow, mask=_null_mask(values, bad))
        return Converted(array, bad)

    def restate(value: Json) -> list[Any]:
        if not isinstance(value, list):
            raise WrongKind
        return [None if item is None else element.restate(item) for item in value]

    wire: Any = types.GenericAlias(list, (optional(element.wire),))
    return ColumnType(f"array<{element.spark}>", arrow, wire, convert, restate, True)


def map_of(item: ColumnType) -> ColumnType:
    """The type of maps from text to that type."""
    arrow = pa.map_(pa.string(), item.arrow)

    def convert(values: Sequence[Any]) -> Converted:
        known = [value for value in values if value is not None]
        lengths = [0 if value is None else len(value) for value in values]
        items, bad_items = item.convert(list(chain.from_iterable(value.values() for value in known)))
        names = pa.array(list(chain.from_iterable(known)), pa.string())
        offsets = np.fromiter(accumulate(lengths, initial=0), np.int32, len(values) + 1)
        bad = _owners(offsets, bad_items)
        if bad:
            lost = set(bad)
            without = [None if place in lost else value for place, value in enumerate(values)]
            return Converted(convert(without).array, bad)
        # MapArray.from_arrays takes no mask: a null offset is a null map, which must have no items.
        mask = _null_mask(values, ())
        places = pa.array(offsets, mask=None if mask is None else np.append(np.asarray(mask), False))
        return Converted(pa.MapArray.from_arrays(places, names, items).cast(arrow), bad)

    def restate(value: Json) -> dict[str, Any]:
        if not isinstance(value, dict):
            raise WrongKind
        return {name: None if part is None else item.restate(part) for name, part in value.items()}

    wire: Any = types.GenericAlias(dict, (str, optional(item.wire)))
    return ColumnType(f"map<string,{item.spark}>", arrow, wire, convert, restate, True)


def struct_of(fields: Mapping[str, ColumnType]) -> ColumnType:
    """The type of structs of those fields. What the wire has beside them is passed over."""
    arrow = pa.struct([pa.field(name, kind.arrow) for name, kind in fields.items()])
    shape = struct_class("Struct", fields)
    names = list(fields)

    def convert(values: Sequence[Any]) -> Converted:
        nothing = (None,) * len(names)
        rows = [nothing if value is None else msgspec.structs.astuple(value) for value in values]
        columns = zip(*rows, strict=True) if rows else [()] * len(names)
        found = [kind.convert(column) for kind, column in zip(fields.values(), columns, strict=True)]
        bad = sorted({place for part in found for place in part.bad})
        mask = _null_mask(values, bad)
        if not names:
            return Converted(pa.array([None if value is None else {} for value in values], arrow), bad)
        arrays = [part.array for part in found]
        return Converted(pa.StructArray.from_arrays(arrays, fields=list(arrow), mask=mask), bad)

    def restate(value: Json) -> msgspec.Struct:
        if not isinstance(value, dict):
            raise WrongKind
        parts = (value.get(name) for name in names)
        kinds = fields.values()
        return shape(*(None if part is None else kind.restate(part) for kind, part in zip(kinds, parts, strict=True)))

    spark = ",".join(f"{_quoted(name)}:{kind.spark}" for name, kind in fields.items())
    return ColumnType(f"struct<{spark}>", arrow, shape, convert, restate)


def struct_class(name: str, fields: Mapping[str, ColumnType], *, strict: bool = False) -> type[msgspec.Struct]:
    """A struct of wire values, with the attributes c0, c1 …, that msgspec reads objects with those fields as.

    msgspec takes no field names with quotes, backslashes or control characters: of such fields it reads nothing (see
    is_readable). `strict`: objects with other fields are refused.
    """
    attributes = [(f"c{place}", optional(kind.wire), None) for place, kind in enumerate(fields.values())]
    names = {f"c{place}": field if is_readable(field) else f"unreadable {place}" for place, field in enumerate(fields)}
    return msgspec.defstruct(name, attributes, rename=names, gc=False, forbid_unknown_fields=strict)


def is_readable(name: str) -> bool:
    """Whether msgspec can read a field of that name."""
    return _NEVER_A_NAME.isdisjoint(name)


def optional(wire: Any) -> Any:
    """The same or null. A raw value may be null by itself."""
    return wire if wire is msgspec.Raw else wire | None


def _owners(offsets: Any, items: Sequence[int]) -> list[int]:
    """The places of the values that hold the items at those places."""
    if not len(items):
        return []
    return sorted(set((np.searchsorted(offsets, np.asarray(items), side="right") - 1).tolist()))


def _null_mask(values: Sequence[Any], bad: Sequence[int]) -> pa.Array | None:
    mask = np.fromiter((value is None for value in values), bool, len(values))
    mask[list(bad)] = True
    return pa.array(mask) if mask.any() else None


def _quoted(name: str) -> str:
    """A field's name as Spark's simple strings have it."""
    is_plain = name.isascii() and name.replace("_", "a").isalnum() and not name[0].isdigit()
    return name if is_plain else f"`{name.replace('`', '``')}`"


_TEXT = ConnectType("string")
_GEOMETRY = (ConnectField("x", ConnectType("double")), ConnectField("wkb", ConnectType("bytes")))
NOTES: tuple[TypeNote, ...] = (
    TypeNote(
        (ConnectType("array", items=_TEXT),), "an array", "an element that does not fit its type: quarantine", "`array`"
    ),
    TypeNote(
        (ConnectType("map", items=_TEXT, keys=_TEXT),),
        "an object in JSON, a map in Avro",
        "a value that does not fit its type: quarantine",
        "`map`, with keys of text",
    ),
    TypeNote(
        (ConnectType("struct", fields=_GEOMETRY),),
        "an object in JSON, a record in Avro",
        "a field that does not fit its type: quarantine",
        "`struct` (Geometry, Point …; dates and times of `time.precision.mode: structured`)",
    ),
)
