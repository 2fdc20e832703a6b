"""Reads the payloads of one schema: by msgspec, and field by field if msgspec refuses a payload ("with care").

msgspec refuses wrong JSON types, text behind the value, NaN, bad Base64, invalid UTF-8 and half characters. A refused
record may still be good: a number may be written as text. So it is read again, field by field.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from distributary import reasons
from distributary.decode.envelope import Change, is_envelope
from distributary.decode.observed_columns import ObservedColumns, columns_of_shape
from distributary.decode.options import DecodeOptions
from distributary.decode.placeholder import Placeholder
from distributary.decode.row_shape import RowShape
from distributary.decode.source_block import Transaction, restate_source, restate_transaction
from distributary.decode.source_order import source_class
from distributary.decode.unwrapped import change_of_row
from distributary.reasons import Rejected
from distributary.types.base import BadValue, ColumnType, WrongKind, text_of
from distributary.types.nested import is_readable, struct_class
from distributary.types.strict_json import Document, Json, parse_object

REFUSED = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""The errors that msgspec raises for an invalid payload."""

FIELD_TYPE = str | int | bool | None
"""The wire type of the fields that ExtractNewRecordState adds to a row."""


def envelope_class(row: Any, no_row: Any, options: DecodeOptions) -> type[msgspec.Struct]:
    """A struct of the fields of an envelope that the options need. `row` is the type of the rows, `no_row` the value of
    a row field that the envelope lacks."""
    source: Any = source_class(options.order)
    fields: list[tuple[str, Any, Any]] = [("op", str | None, None), ("source", source | None, None)]
    fields.append(("ts_ms", int | str | None, None))
    fields.append(("after", row, no_row))
    if options.reads_before:
        fields.append(("before", row, no_row))
    if options.transactions:
        fields.append(("transaction", Transaction | None, None))
    return msgspec.defstruct("Envelope", fields, gc=False)


class RowReader:
    """Reads payloads with the columns `types`: those of the shape's columns that the table has, by the source's names.

    `begin` is the common beginning of the values of its records, None if it does not identify the schema.
    """

    reads_all_without_schema = False
    """Whether it is the reader of all values without a schema."""

    def __init__(
        self, shape: RowShape, types: Mapping[str, ColumnType], options: DecodeOptions, begin: bytes | None = None
    ) -> None:
        self.shape = shape
        self.types = types
        self.begin = begin
        self._options = options
        self._source_class: Any = source_class(options.order)
        self._placeholder = Placeholder(options.placeholder) if options.has_placeholders else None
        self.row_class = struct_class("Row", types)
        self.empty = self.row_class()
        self._is_readable = all(map(is_readable, (*types, *shape.added)))
        self._wire = self._envelope_class()
        self._decoder = msgspec.json.Decoder(self._wire)

    def observed_columns(self) -> ObservedColumns:
        """The columns of the rows that this reader reads, including those that the table lacks."""
        return columns_of_shape(self.shape, is_key=False)

    def _envelope_class(self) -> type[msgspec.Struct]:
        if self._options.unwrapped is not None:
            added = [(f"a{index}", FIELD_TYPE, None) for index in range(len(self.shape.added))]
            names = {f"a{index}": name for index, name in enumerate(self.shape.added) if is_readable(name)}
            return msgspec.defstruct("AddedRow", added, bases=(self.row_class,), rename=names, gc=False)
        return envelope_class(self.row_class | None, None, self._options)

    def read(self, payload: bytes, *, has_old_key: bool = False, headers: Mapping[str, str] | None = None) -> Any:
        """The change (see envelope.Change) in a payload. Raises one of REFUSED, and Rejected."""
        if not self._is_readable:
            raise msgspec.DecodeError("a name that has to be read with care")
        parsed = self._decoder.decode(payload)
        return parsed if self._options.unwrapped is None else self._change_of_row(parsed, has_old_key, headers or {})

    def _change_of_row(self, parsed: Any, has_old_key: bool, headers: Mapping[str, str]) -> Change:
        """The change that a row without an envelope describes."""
        values = msgspec.structs.astuple(parsed)
        added = zip(self.shape.added.values(), values[len(self.types) :], strict=True)
        meta = {**headers, **{meaning: value for meaning, value in added if value is not None}}
        row = self.row_class(*values[: len(self.types)])
        return change_of_row(row, meta, self._options.connector, has_value=True, has_old_key=has_old_key)

    def read_with_care(
        self, payload: bytes, *, has_old_key: bool = False, headers: Mapping[str, str] | None = None
    ) -> Change:
        """The change in a payload that `read` refused, read field by field. Raises Rejected."""
        return self._restate(parse_object(payload, self._options.bounds), has_old_key, headers or {})

    def _restate(self, document: Document, has_old_key: bool, headers: Mapping[str, str]) -> Change:
        """The change in a document (see strict_json). Raises Rejected."""
        if self._options.unwrapped is not None:
            return self._restate_bare_row(document, has_old_key, headers)
        op, source = document.get("op"), document.get("source")
        if op is None and source is None:
            raise Rejected(reasons.NOT_AN_ENVELOPE)
        if not isinstance(source, dict | None) or isinstance(op, list | dict):
            raise Rejected(reasons.WRONG_TYPE)
        change = Change(
            None if op is None else text_of(op), None if source is None else restate_source(source, self._source_class)
        )
        if (ts_ms := document.get("ts_ms")) is not None:
            change.ts_ms = text_of(ts_ms)
        if self._options.transactions and (block := document.get("transaction")) is not None:
            if not isinstance(block, dict):
                raise Rejected(reasons.WRONG_TYPE)
            change.transaction = restate_transaction(block)
        change.after, change.bad, change.unavailable = self.restate_row(document.get("after"))
        if self._options.reads_before:
            restated = self.restate_row(document.get("before"))
            change.before, change.bad_before, change.unavailable_before = restated
        return change

    def _restate_bare_row(self, document: Document, has_old_key: bool, headers: Mapping[str, str]) -> Change:
        if is_envelope(document) and not self.shape.added:
            raise Rejected(reasons.NOT_A_ROW)
        meta: dict[str, Any] = dict(headers)
        for name, meaning in self.shape.added.items():
            if document.get(name) is not None:
                meta[meaning] = text_of(document[name])
        row, bad, unavailable = self.restate_row(document)
        change = change_of_row(row, meta, self._options.connector, has_value=True, has_old_key=has_old_key)
        if change.after is None:
            change.bad_before, change.unavailable_before = bad, unavailable
        else:
            change.bad, change.unavailable = bad, unavailable
        return change

    def restate_row(self, row: Json) -> tuple[Any, Sequence[int], Sequence[int]]:
        """A row of wire values from a JSON object; the indexes of values that can't be restated, and of those that the
        source did not send. Raises Rejected for a value that is no object."""
        if row is None:
            return None, (), ()
        if not isinstance(row, dict):
            raise Rejected(reasons.WRONG_TYPE)
        values, bad, unavailable = restate_values(row, self.types, self._placeholder)
        return self.row_class(*values), bad, unavailable


def restate_values(
    row: Mapping[str, Json], types: Mapping[str, ColumnType], placeholder: Placeholder | None
) -> tuple[list[Any], list[int], list[int]]:
    """Wire values of a JSON object's fields; the indexes of values that can't be restated, and of those that the source
    did not send. Raises Rejected."""
    values: list[Any] = []
    bad: list[int] = []
    unavailable: list[int] = []
    for index, (name, kind) in enumerate(types.items()):
        value = row.get(name)
        if value is not None:
            try:
                value = kind.restate(value)
            except BadValue:
                (unavailable if _stands_in(value, kind, placeholder) else bad).append(index)
                value = None
            except WrongKind:
                if not _stands_in(value, kind, placeholder):
                    raise Rejected(reasons.WRONG_TYPE) from None
                unavailable.append(index)
                value = None
        values.append(value)
    return values, bad, unavailable


def _stands_in(value: Json, kind: ColumnType, placeholder: Placeholder | None) -> bool:
    return placeholder is not None and kind.may_be_unavailable and placeholder.is_json(value)
