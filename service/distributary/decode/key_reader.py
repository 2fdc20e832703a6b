"""Reads keys, and the keys in the headers of a key change, to rows of wire values."""

from __future__ import annotations

import json
from collections.abc import Callable, MutableMapping
from typing import Any

import msgspec

from distributary import reasons
from distributary.decode.by_value import type_by_value
from distributary.decode.observed_columns import ObservedColumns, columns_of_shape
from distributary.decode.options import DecodeOptions
from distributary.decode.row_reader import REFUSED, restate_values
from distributary.decode.row_shape import RowShape, announced_type, key_conflict, lake_names
from distributary.reasons import Rejected
from distributary.types.base import ColumnType, WrongKind
from distributary.types.connect_schema import LONGEST_NAME
from distributary.types.nested import is_readable, struct_class
from distributary.types.record_schema import RecordSchema
from distributary.types.strict_json import Document, Number, has_field_twice, is_deeper, parse_object
from distributary.types.text import STRING

_WRAPPING = frozenset(("schema", "payload"))


class KeyReader:
    """Reads the payloads of keys of one schema, or of keys without a schema that have the same fields. `begin` as
    RowReader has it."""

    reads_all_without_schema = False
    """See RowReader: each set of fields has a reader of its own."""

    def __init__(
        self, shape: RowShape, options: DecodeOptions, begin: bytes | None = None, *, has_schema: bool = True
    ) -> None:
        self.shape = shape
        self._has_schema = has_schema
        self.types = shape.types
        self.begin = begin
        self.row_class = struct_class("Key", shape.types, strict=not has_schema)
        self.empty = self.row_class(*[None] * len(shape.types))
        self.reads_no_other = not has_schema and _WRAPPING.isdisjoint(shape.types)
        """Whether `read` refuses all keys that another reader is to read."""
        self._bounds = options.bounds
        self._is_readable = all(map(is_readable, shape.types))
        self._decoder = msgspec.json.Decoder(self.row_class)

    @classmethod
    def of_names(
        cls,
        payload: bytes,
        schema: RecordSchema,
        options: DecodeOptions,
        known: MutableMapping[tuple[str, ...], KeyReader],
        count_new: Callable[[], None],
    ) -> KeyReader:
        """The reader of a key without a schema: its fields have the table's types, or else types inferred from their
        values. `count_new` is called for names that are not `known` yet.

        Raises Rejected.
        """
        try:
            names = tuple(msgspec.json.decode(payload, type=dict[str, msgspec.Raw]))
        except REFUSED:
            document = parse_object(payload, options.bounds)
            names = tuple(document)
        if names not in known:
            if len(names) > options.bounds.columns:
                raise Rejected(reasons.BEYOND_LIMITS, f"more than {options.bounds.columns} columns")
            if any(len(name) > LONGEST_NAME for name in names):
                raise Rejected(reasons.BEYOND_LIMITS, f"a name of more than {LONGEST_NAME} characters")
            count_new()
            table = {**schema.row, **schema.key}
            types = {name: announced_type(name, table, options) or _shown(payload, name, options) for name in names}
            lake, conflict = lake_names(names, options)
            conflict = conflict or key_conflict(names, options)
            shape = RowShape(types, lake, conflict=conflict, names=frozenset(names))
            known[names] = cls(shape, options, has_schema=False)
        return known[names]

    def observed_columns(self) -> ObservedColumns:
        """The columns of the keys that this reader reads."""
        return columns_of_shape(self.shape, is_key=True, has_schema=self._has_schema)

    def read(self, payload: bytes) -> Any:
        """The key as a row of wire values. Raises one of row_reader.REFUSED; then read_with_care may still read the
        key."""
        if not self._is_readable or payload.count(b":") > len(self.shape.types):
            raise msgspec.DecodeError("a key that has to be read with care")
        return self._decoder.decode(payload)

    def read_with_care(self, payload: bytes) -> tuple[Any, list[int]]:
        """Reads a payload that `read` refused. Returns its row, and the indexes of values that can't be restated.
        Raises Rejected."""
        try:
            document = parse_object(payload, self._bounds)
        except Rejected as rejected:
            raise (Rejected(reasons.BAD_KEY) if rejected.reason is reasons.NOT_JSON else rejected) from None
        if has_field_twice(document):
            raise Rejected(reasons.AMBIGUOUS)
        return self._restate(document)

    def _restate(self, document: Document) -> tuple[Any, list[int]]:
        """A row of wire values, and the indexes of values that can't be restated. Raises Rejected."""
        try:
            values, bad, _ = restate_values(document, self.shape.types, None)
        except Rejected:
            raise Rejected(reasons.BAD_KEY) from None
        return self.row_class(*values), bad

    def read_header(self, data: bytes, own: Any) -> Any:
        """The key in a header, as a row of wire values; None if some part can't be read, or all values are null. Fields
        that the header lacks get the values of the record's `own` key: a transform added them to the key after the
        connector wrote the header.

        SimpleHeaderConverter writes the bare key, and escapes quotes and backslashes in texts and nothing else;
        JsonConverter may put a schema beside it.
        """
        if len(data) > self._bounds.record_bytes or is_deeper(data, self._bounds.nesting):
            return None
        try:
            document = _lenient(data)
            if data.startswith(b'{"schema":{') and isinstance(document, dict):
                document = document.get("payload")
            if not isinstance(document, dict):
                return None
            values, bad, _ = restate_values(document, self.shape.types, None)
        except (ValueError, RecursionError, WrongKind, Rejected):
            return None
        if bad or not any(value is not None for value in values):
            return None
        if own is not None:
            given = zip(self.shape.types, values, msgspec.structs.astuple(own), strict=True)
            values = [value if name in document else other for name, value, other in given]
        return self.row_class(*values)


def _lenient(data: bytes) -> Any:
    decoder = json.JSONDecoder(object_pairs_hook=Document, parse_float=Number, parse_int=Number, strict=False)
    text = data.decode()
    text.encode()
    return decoder.decode(text)


def _shown(payload: bytes, name: str, options: DecodeOptions) -> ColumnType:
    try:
        value = parse_object(payload, options.bounds).get(name)
    except Rejected:
        return STRING
    return type_by_value(value) or STRING
