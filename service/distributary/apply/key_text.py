"""A key as one text, by which the rules know it, and back.

The text of a key of one column is that of its value. With several columns each value stands behind its length, so that
no two keys have the same text: `2:101:x` is (10, x), and `-` is a null.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Sequence
from hashlib import blake2b
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from distributary.rules.key_parts import NO_VALUE, key_parts


def key_texts(keys: pa.StructArray) -> pa.StringArray:
    """The texts of keys, one STRUCT each; null where there is no key."""
    columns = [_texts(column) for column in keys.flatten()]
    if len(columns) == 1:
        return columns[0]
    return pc.if_else(keys.is_valid(), _lengthened(columns), pa.scalar(None, pa.string()))


def content_texts(rows: pa.StructArray) -> pa.StringArray:
    """A text for each row by which equal rows are known; null where there is no row."""
    contents = _lengthened([_texts(column) for column in rows.flatten()]).to_pylist()
    digests = [blake2b(text.encode(), digest_size=16).hexdigest() for text in contents]
    return pc.if_else(rows.is_valid(), pa.array(digests, pa.string()), pa.scalar(None, pa.string()))


def keys_of(texts: Sequence[str], kind: pa.StructType) -> pa.StructArray:
    """The keys that have those texts; `kind` is the type of the keys that they were made of."""
    fields = list(kind)
    split = [(text,) for text in texts] if len(fields) == 1 else [key_parts(text) for text in texts]
    columns = [
        _values(pa.array([parts[index] for parts in split], pa.string()), field.type)
        for index, field in enumerate(fields)
    ]
    return pa.StructArray.from_arrays(columns, fields=fields)


def _lengthened(columns: Sequence[pa.Array]) -> pa.Array:
    """All columns' texts in one, each behind its length."""
    lengths = [pc.cast(pc.binary_length(column), pa.string()) for column in columns]
    parts = [
        pc.fill_null(pc.binary_join_element_wise(length, column, ":"), NO_VALUE)
        for length, column in zip(lengths, columns, strict=True)
    ]
    return pc.binary_join_element_wise(*parts, "")


def _texts(column: pa.Array) -> pa.Array:
    kind = column.type
    if pa.types.is_floating(kind):
        column = pc.add(column, pa.scalar(0.0, kind))  # -0.0 is the same key as 0.0
    if pa.types.is_timestamp(kind):
        column = column.cast(pa.int64())
    elif pa.types.is_date(kind):
        column = column.cast(pa.int32())
    elif _is_binary(kind):
        return _each(column, lambda value: value.hex())
    elif pa.types.is_nested(kind):
        return _each(column, _nested_text)
    return column.cast(pa.string())


def _values(texts: pa.Array, kind: pa.DataType) -> pa.Array:
    if pa.types.is_timestamp(kind):
        return texts.cast(pa.int64()).cast(kind)
    if pa.types.is_date(kind):
        return texts.cast(pa.int32()).cast(kind)
    if _is_binary(kind):
        return pa.array([None if text is None else bytes.fromhex(text) for text in texts.to_pylist()], kind)
    if pa.types.is_nested(kind):
        return pa.array([None if text is None else _nested_value(text, kind) for text in texts.to_pylist()], kind)
    return texts.cast(kind)


def _is_binary(kind: pa.DataType) -> bool:
    return bool(pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_fixed_size_binary(kind))


def _each(column: pa.Array, text: Callable[[Any], str]) -> pa.Array:
    return pa.array([None if value is None else text(value) for value in _scalars(column)], pa.string())


def _scalars(column: pa.Array) -> list[Any]:
    return list(column) if pa.types.is_nested(column.type) else column.to_pylist()


def _nested_text(value: pa.Scalar) -> str:
    """The bytes of a batch with that value alone. Equal values have equal bytes."""
    batch = pa.record_batch([pa.array([value.as_py()], value.type)], ["v"])
    return str(batch.serialize().to_pybytes().hex())


def _nested_value(text: str, kind: pa.DataType) -> Any:
    schema = pa.schema([("v", kind)])
    return pa.ipc.read_record_batch(pa.py_buffer(bytes.fromhex(text)), schema)["v"][0].as_py()


def key_json(keys: pa.StructArray) -> pa.Array:
    """Each key as JSON for people, null for null. Few of the keys are not null: the old keys of rows that moved."""
    texts: list[str | None] = [None] * len(keys)
    places = pc.indices_nonzero(keys.is_valid())
    keys_at_places = keys.take(places)
    names = [field.name for field in keys.type]
    columns = [_for_people(part).to_pylist() for part in keys_at_places.flatten()]
    for place, values in zip(places.to_pylist(), zip(*columns, strict=True), strict=True):
        texts[place] = json.dumps(dict(zip(names, values, strict=True)), ensure_ascii=False, separators=(",", ":"))
    return pa.array(texts, pa.string())


def _for_people(values: pa.Array) -> pa.Array:
    """The values in types that JSON has; all others as text."""
    kind = values.type
    if pa.types.is_integer(kind) or pa.types.is_boolean(kind) or pa.types.is_string(kind):
        return values
    if pa.types.is_binary(kind):
        texts = [None if value is None else base64.b64encode(value).decode() for value in values.to_pylist()]
        return pa.array(texts, pa.string())
    return values.cast(pa.string())
