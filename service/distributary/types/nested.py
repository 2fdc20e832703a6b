"""Arrays, maps and structs, of any types: their parts are converted like columns.

A part that its type can't hold makes the whole value a bad one.
"""

from __future__ import annotations

import types
from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate, chain
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from distributary.types.base import BadValue, ColumnType, Converted, TypeNote, WrongKind
from distributary.types.connect_schema import ConnectField, ConnectType
from distributary.types.strict_json import Json
from distributary.types.text import STRING

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


def map_of(item: ColumnType, key: ColumnType | None = None) -> ColumnType:
    """The type of maps to that type from `key`; from text where it is None.

    On the wire a map from text is an object. Any other is a list of pairs: JsonConverter writes each as a list of two,
    the Avro converter as a record with `key` and `value`.
    """
    kind = STRING if key is None else key
    arrow = pa.map_(kind.arrow, item.arrow)

    def convert(values: Sequence[Any]) -> Converted:
        pairs = [None if value is None else list(value.items() if key is None else value) for value in values]
        lengths = [0 if known is None else len(known) for known in pairs]
        every = [pair for known in pairs if known is not None for pair in known]
        keys, bad_keys = kind.convert([name for name, _ in every])
        items, bad_items = item.convert([part for _, part in every])
        offsets = np.fromiter(accumulate(lengths, initial=0), np.int32, len(values) + 1)
        bad = sorted({*_owners(offsets, bad_keys), *_owners(offsets, bad_items), *_with_twins(offsets, keys)})
        if bad:
            lost = set(bad)
            without = [None if index in lost else value for index, value in enumerate(values)]
            return Converted(convert(without).array, bad)
        # MapArray.from_arrays takes no mask: a null offset is a null map, which must have no items.
        mask = _null_mask(values, ())
        indexes = pa.array(offsets, mask=None if mask is None else np.append(np.asarray(mask), False))
        return Converted(pa.MapArray.from_arrays(indexes, keys, items).cast(arrow), bad)

    def restate(value: Json) -> Any:
        entries = [
            (None if name is None else kind.restate(name), None if part is None else item.restate(part))
            for name, part in (_fields(value) if key is None else _entries(value))
        ]
        if any(name is None for name, _ in entries):
            raise BadValue(value)
        if key is not None:
            return entries
        if len(texts := dict(entries)) < len(entries):
            raise BadValue(value)
        return texts

    pair = types.GenericAlias(tuple, (kind.wire, optional(item.wire)))
    wire: Any = types.GenericAlias(list, (pair,))
    if key is None:
        wire = types.GenericAlias(dict, (str, optional(item.wire)))
    return ColumnType(f"map<{kind.spark},{item.spark}>", arrow, wire, convert, restate, True)


def _fields(value: Json) -> Iterable[tuple[Json, Json]]:
    """The pairs of a map from text. Raises WrongKind."""
    if not isinstance(value, dict):
        raise WrongKind
    return value.items()


def _entries(value: Json) -> Iterable[tuple[Json, Json]]:
    """The pairs of any other map. Raises WrongKind."""
    if not isinstance(value, list):
        raise WrongKind
    pairs = []
    for entry in value:
        if isinstance(entry, dict) and set(entry) == {"key", "value"}:
            pairs.append((entry["key"], entry["value"]))
        elif isinstance(entry, list) and len(entry) == 2:
            pairs.append((entry[0], entry[1]))
        else:
            raise WrongKind
    return pairs


def _with_twins(offsets: Any, keys: pa.Array) -> list[int]:
    """The indexes of maps with a key that occurs twice in them: a Delta map can't hold both."""
    if not len(keys) or pa.types.is_nested(keys.type):
        return []
    owners = np.searchsorted(offsets, np.arange(len(keys)), side="right") - 1
    pairs = pa.table({"owner": pa.array(owners), "key": keys})
    counted = pairs.group_by(["owner", "key"], use_threads=False).aggregate([([], "count_all")])
    return sorted(set(counted.filter(pc.greater(counted["count_all"], 1))["owner"].to_pylist()))


def struct_of(fields: Mapping[str, ColumnType]) -> ColumnType:
    """The type of structs with these fields. Other fields of the value are skipped."""
    arrow = pa.struct([pa.field(name, kind.arrow) for name, kind in fields.items()])
    shape = struct_class("Struct", fields)
    names = list(fields)

    def convert(values: Sequence[Any]) -> Converted:
        nothing = (None,) * len(names)
        rows = [nothing if value is None else msgspec.structs.astuple(value) for value in values]
        columns = zip(*rows, strict=True) if rows else [()] * len(names)
        parts = [kind.convert(column) for kind, column in zip(fields.values(), columns, strict=True)]
        bad = sorted({index for part in parts for index in part.bad})
        mask = _null_mask(values, bad)
        if not names:
            return Converted(pa.array([None if value is None else {} for value in values], arrow), bad)
        arrays = [part.array for part in parts]
        return Converted(pa.StructArray.from_arrays(arrays, fields=list(arrow), mask=mask), bad)

    def restate(value: Json) -> msgspec.Struct:
        if not isinstance(value, dict):
            raise WrongKind
        parts = (value.get(name) for name in names)
        kinds = fields.values()
        return shape(*(None if part is None else kind.restate(part) for kind, part in zip(kinds, parts, strict=True)))

    spark = ",".join(f"{_quoted(name)}:{kind.spark}" for name, kind in fields.items())
    return ColumnType(f"struct<{spark}>", arrow, shape, convert, restate)


def fields_that_differ_in_case(kind: pa.DataType) -> tuple[str, str] | None:
    """Two fields of one struct in a column's type whose names differ only in case, which a Delta table can't hold."""
    fields = [kind.field(index) for index in range(kind.num_fields)] if pa.types.is_nested(kind) else []
    by_lower_name: dict[str, str] = {}
    for field in fields if pa.types.is_struct(kind) else ():
        twin = by_lower_name.setdefault(field.name.lower(), field.name)
        if twin != field.name:
            return twin, field.name
    return next(filter(None, (fields_that_differ_in_case(field.type) for field in fields)), None)


def struct_class(name: str, fields: Mapping[str, ColumnType], *, strict: bool = False) -> type[msgspec.Struct]:
    """A struct of wire values, with the attributes c0, c1 …, that msgspec reads objects with those fields as.

    msgspec can't read fields with quotes, backslashes or control characters in their names (see is_readable). `strict`:
    objects that lack one of the fields, or have others, are refused.
    """
    absent = msgspec.NODEFAULT if strict else None
    attributes = [(f"c{index}", optional(kind.wire), absent) for index, kind in enumerate(fields.values())]
    names = {f"c{index}": field if is_readable(field) else f"unreadable {index}" for index, field in enumerate(fields)}
    return msgspec.defstruct(name, attributes, rename=names, gc=False, forbid_unknown_fields=strict)


def is_readable(name: str) -> bool:
    """Whether msgspec can read a field of that name."""
    return _NEVER_A_NAME.isdisjoint(name)


def optional(wire: Any) -> Any:
    """The type, or null. A raw value may be null in any case."""
    return wire if wire is msgspec.Raw else wire | None


def _owners(offsets: Any, items: Sequence[int]) -> list[int]:
    """The indexes of the values that hold the items at those indexes."""
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
        (ConnectType("map", items=ConnectType("double"), keys=ConnectType("int16")),),
        "a list of pairs in JSON, of records with `key` and `value` in Avro",
        "a key or a value that does not fit its type, and a key that occurs twice: quarantine",
        "`map`, with other keys",
    ),
    TypeNote(
        (ConnectType("struct", fields=_GEOMETRY),),
        "an object in JSON, a record in Avro",
        "a field that does not fit its type: quarantine; fields whose names differ only in case: "
        "`columns-differ-in-case`",
        "`struct` (Geometry, Point …; dates and times of `time.precision.mode: structured`)",
    ),
)
