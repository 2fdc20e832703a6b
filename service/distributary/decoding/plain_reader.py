"""Reads values without a schema: the names of a row's fields tell its columns, the table and the config their types."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from msgspec import UNSET, Raw, UnsetType

from distributary.decoding import reasons
from distributary.decoding.by_value import add_type, type_by_raw
from distributary.decoding.envelope import Change
from distributary.decoding.options import DecodeOptions
from distributary.decoding.reasons import Rejected
from distributary.decoding.record_schema import RecordSchema
from distributary.decoding.row_reader import REFUSED, RowReader
from distributary.decoding.row_shape import shape_of_names, type_told
from distributary.decoding.source_block import Source, Transaction
from distributary.decoding.strict_json import Json, parse_object
from distributary.decoding.types.nested import is_readable
from distributary.decoding.unwrapped import change_of_row

_BLANKS = b" \t\r\n"
_TOLD = str | int | bool | None


class PlainReader(RowReader):
    """Reads rows whose columns the table has. Other fields are passed over, and gathered in `shown` with the types that
    the config or their values tell (Spark's names by the lake's names of columns)."""

    def __init__(self, schema: RecordSchema, options: DecodeOptions) -> None:
        source = {lake: sent for sent, lake in options.renames.items()}
        names = dict.fromkeys(source.get(lake, lake) for lake in schema.row)
        super().__init__(shape_of_names(names, schema.row, options), {}, options)
        self.types = self.shape.types
        self.shown: dict[str, str] = {}
        self._added: dict[str, str] = {}
        self._ignored: list[str] = []
        self._build()

    def _build(self) -> None:
        super().__init__(self.shape, self.types, self._options)
        fields: list[tuple[str, Any, Any]] = []
        names: dict[str, str] = {}
        kinds = [(name, _with_unset(kind.wire)) for name, kind in self.types.items()]
        kinds += [(name, _TOLD | UnsetType) for name in self._added]
        kinds += [(name, Raw | UnsetType) for name in self._ignored]
        for place, (name, wire) in enumerate(kinds):
            fields.append((f"c{place}", wire, UNSET))
            names[f"c{place}"] = name if is_readable(name) else f"unreadable {place}"
        plain = msgspec.defstruct("PlainRow", fields, rename=names, gc=False, forbid_unknown_fields=True)
        self._is_readable = all(is_readable(name) for name, _ in kinds)
        self._row_decoder = msgspec.json.Decoder(plain)
        wrapped: list[tuple[str, Any, Any]] = [("op", str | None, None), ("source", Source | None, None)]
        wrapped.append(("after", Raw, Raw(b"null")))
        if self._options.reads_before:
            wrapped.append(("before", Raw, Raw(b"null")))
        if self._options.transactions:
            wrapped.append(("transaction", Transaction | None, None))
        self._envelope_decoder = msgspec.json.Decoder(msgspec.defstruct("RawEnvelope", wrapped, gc=False))

    def read(self, payload: bytes, *, has_old_key: bool = False, headers: Mapping[str, str] | None = None) -> Any:
        """As RowReader.read."""
        if not self._is_readable:
            raise msgspec.DecodeError("a name that has to be read with care")
        if self._options.unwrapped is not None:
            row, told = self._read_row(payload)
            told = {**(headers or {}), **told}
            return change_of_row(row, told, self._options.connector, has_value=True, has_old_key=has_old_key)
        found: Any = self._envelope_decoder.decode(payload)
        change = Change(found.op, found.source)
        if (after := bytes(found.after)) != b"null":
            change.after = self._read_row(after)[0]
        if self._options.reads_before and (before := bytes(found.before)) != b"null":
            change.before = self._read_row(before)[0]
        if self._options.transactions:
            change.transaction = found.transaction
        return change

    def _read_row(self, raw: bytes) -> tuple[Any, dict[str, Any]]:
        """The row of wire values of a JSON object, and what was added to it. Raises REFUSED and Rejected."""
        values = msgspec.structs.astuple(self._row_decoder.decode(raw))
        known = len(values) - values.count(UNSET)
        # More colons behind quotes than fields: a field occurs twice, or a text contains `":`. Only a parser can tell.
        if raw.translate(None, _BLANKS).count(b'":') != known and parse_object(raw, self._options.bounds).twice:
            raise Rejected(reasons.AMBIGUOUS)
        if not known and self._options.unwrapped is not None:
            raise Rejected(reasons.NOT_A_ROW)
        if known < len(values):
            values = tuple(None if value is UNSET else value for value in values)
        columns, added = len(self.types), len(self._added)
        for name, value in zip(self._ignored, values[columns + added :], strict=True):
            if value is not None:
                self._note(name, bytes(value))
        told = zip(self._added.values(), values[columns : columns + added], strict=True)
        return self.row_class(*values[:columns]), {meaning: value for meaning, value in told if value is not None}

    def restate_row(self, row: Json) -> tuple[Any, Sequence[int], Sequence[int]]:
        """As RowReader.restate_row; learns the names of fields that it does not know."""
        if isinstance(row, dict):
            if getattr(row, "twice", False):
                raise Rejected(reasons.AMBIGUOUS)
            if len(row) > self._options.bounds.columns:
                raise Rejected(reasons.BEYOND_LIMITS, f"more than {self._options.bounds.columns} columns")
            self._learn(row)
        return super().restate_row(row)

    def read_with_care(
        self, payload: bytes, *, has_old_key: bool = False, headers: Mapping[str, str] | None = None
    ) -> Change:
        """As RowReader.read_with_care."""
        if self._options.unwrapped is not None:
            document = parse_object(payload, self._options.bounds)
            source = document.get("source")
            is_envelope = document.get("op") is not None and isinstance(source, dict) and "connector" in source
            if is_envelope or not document:
                raise Rejected(reasons.NOT_A_ROW)
            if document.twice:
                raise Rejected(reasons.AMBIGUOUS)
            self._learn(document)
        return super().read_with_care(payload, has_old_key=has_old_key, headers=headers)

    def _learn(self, row: Mapping[str, Json]) -> None:
        """Takes names that are not known yet for added fields, or for fields to pass over."""
        meanings = {} if self._options.unwrapped is None else self._options.unwrapped.fields
        known = {*self.types, *self._added, *self._ignored}
        new = [name for name in row if name not in known]
        if not new or len(known) + len(new) > 2 * self._options.bounds.columns:
            return
        for name in new:
            if name in meanings:
                self._added[name] = meanings[name]
            else:
                self._ignored.append(name)
        self.shape = type(self.shape)(self.shape.types, self.shape.lake, self._added, self.shape.conflict)
        self._build()
        for name in self._ignored:
            if name in new:
                self._note(name, msgspec.json.encode(_sample(row[name])))

    def _note(self, name: str, raw: bytes) -> None:
        if name in self._options.exclude:
            return
        lake = self._options.lake_name(name)
        if told := type_told(name, {}, self._options):
            self.shown[lake] = told.spark
        elif self.shown.get(lake) != "string":
            add_type(self.shown, lake, type_by_raw(raw))


def _sample(value: Json) -> Any:
    """A value as msgspec writes it, numbers as they were written."""
    from distributary.decoding.strict_json import Number

    return Raw(str(value).encode()) if isinstance(value, Number) else "" if isinstance(value, dict | list) else value


def _with_unset(wire: Any) -> Any:
    return wire | UnsetType if wire is Raw else wire | None | UnsetType


__all__ = ["REFUSED", "PlainReader"]
