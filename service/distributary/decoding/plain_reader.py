"""Reads values without a schema: the names of a row's fields tell its columns, the table and the config their types."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import msgspec
from msgspec import UNSET, Raw, UnsetType

from distributary.decoding import reasons
from distributary.decoding.by_value import add_type, type_by_raw
from distributary.decoding.envelope import Change
from distributary.decoding.met_columns import MetColumns, columns_of_shape
from distributary.decoding.options import DecodeOptions
from distributary.decoding.reasons import Rejected
from distributary.decoding.record_schema import RecordSchema
from distributary.decoding.row_reader import REFUSED, RowReader
from distributary.decoding.row_shape import rename_taken, shape_of_names, type_told
from distributary.decoding.source_block import Source, Transaction
from distributary.decoding.strict_json import Json, parse_object
from distributary.decoding.types.nested import is_readable
from distributary.decoding.unwrapped import change_of_row
from distributary.errors import TableHalt

_BLANKS = b" \t\r\n"
_TOLD = str | int | bool | None


class PlainReader(RowReader):
    """Reads rows whose columns the table has. Other fields are passed over, and gathered in `shown` with the types that
    the config or their values tell (Spark's names by the lake's names of columns).

    A column that `rename` names may come under the lake's own name too: the source renamed it, or it never had the
    older name. `_own_names` has these names, and the source's of the same column. `conflict`: a record had both.
    """

    def __init__(self, schema: RecordSchema, options: DecodeOptions) -> None:
        source = {lake: sent for sent, lake in options.renames.items() if sent not in options.exclude}
        names = dict.fromkeys(source.get(lake, lake) for lake in schema.row)
        super().__init__(shape_of_names(names, schema.row, options), {}, options)
        self.types = self.shape.types
        self.shown: dict[str, str] = {}
        self.conflict: TableHalt | None = None
        self._added: dict[str, str] = {}
        self._ignored: list[str] = []
        lake_names = {lake: sent for sent, lake in self.shape.lake.items() if sent != lake}
        self._own_names = {
            own: sent
            for own, sent in lake_names.items()
            if options.lake_name(own) == own and own not in options.exclude
        }
        self._renamed_met: set[str] = set()
        self._build()

    def met_columns(self) -> MetColumns:
        """The table's columns, and the fields of records that are none of them yet, as far as values were seen."""
        met = columns_of_shape(self.shape, is_key=False, has_schema=False)
        told = {name: type_told(name, {}, self._options) for name in self._ignored}
        new = {self._options.lake_name(name): kind for name, kind in told.items()}
        shown = {lake: kind for lake, kind in self.shown.items() if lake not in met.types}
        unmet = {sent for sent in self._own_names.values() if sent not in self._renamed_met}
        renames = {name: self._options.lake_name(name) for name in (*self.types, *self._ignored) if name not in unmet}
        return replace(
            met,
            types={**met.types, **shown},
            marks={**met.marks, **{lake: kind.mark if (kind := new.get(lake)) else None for lake in shown}},
            renames={name: lake for name, lake in renames.items() if name != lake and lake in {**met.types, **shown}},
            names=frozenset((*self.types, *self._ignored)) - unmet,
            guessed={lake: kind for lake, kind in shown.items() if new.get(lake) is None},
        )

    def _build(self) -> None:
        super().__init__(self.shape, self.types, self._options)
        fields: list[tuple[str, Any, Any]] = []
        names: dict[str, str] = {}
        kinds = [(name, _with_unset(kind.wire)) for name, kind in self.types.items()]
        kinds += [(name, _TOLD | UnsetType) for name in self._added]
        kinds += [(own, _with_unset(self.types[sent].wire)) for own, sent in self._own_names.items()]
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
        # A text that has these characters only makes the count larger: then the object is looked at.
        if raw.translate(None, _BLANKS).count(b'":') != known and parse_object(raw, self._options.bounds).twice:
            raise Rejected(reasons.AMBIGUOUS)
        if not known and self._options.unwrapped is not None:
            raise Rejected(reasons.NOT_A_ROW)
        columns, added, own = len(self.types), len(self._added), len(self._own_names)
        if own:
            values = self._with_own_names(values)
        if known < len(values):
            values = tuple(None if value is UNSET else value for value in values)
        for name, value in zip(self._ignored, values[columns + added + own :], strict=True):
            if value is not None:
                self._note(name, bytes(value))
        told = zip(self._added.values(), values[columns : columns + added], strict=True)
        return self.row_class(*values[:columns]), {meaning: value for meaning, value in told if value is not None}

    def _with_own_names(self, values: tuple[Any, ...]) -> tuple[Any, ...]:
        """The values with those that came under the lake's name of a column in its place. Raises Rejected."""
        found = list(values)
        begin = len(self.types) + len(self._added)
        places = {name: place for place, name in enumerate(self.types)}
        for number, sent in enumerate(self._own_names.values()):
            at, value = places[sent], values[begin + number]
            if found[at] is not UNSET:
                self._renamed_met.add(sent)
                if value is not UNSET:
                    raise self._both_names(sent)
            elif value is not UNSET:
                found[at] = value
        return tuple(found)

    def _both_names(self, sent: str) -> Rejected:
        conflict = rename_taken(self._options.lake_name(sent))
        self.conflict = self.conflict or conflict
        return Rejected(reasons.BAD_SCHEMA, f": {conflict}", conflict)

    def _under_sent_names(self, row: Mapping[str, Json]) -> Mapping[str, Json]:
        """The same of a JSON object."""
        for own, sent in self._own_names.items():
            if sent in row:
                self._renamed_met.add(sent)
                if own in row:
                    raise self._both_names(sent)
            elif own in row:
                row = {**row, sent: row[own]}
        return row

    def restate_row(self, row: Json) -> tuple[Any, Sequence[int], Sequence[int]]:
        """As RowReader.restate_row; learns the names of fields that it does not know."""
        if isinstance(row, dict):
            if getattr(row, "twice", False):
                raise Rejected(reasons.AMBIGUOUS)
            if len(row) > self._options.bounds.columns:
                raise Rejected(reasons.BEYOND_LIMITS, f"more than {self._options.bounds.columns} columns")
            self._learn(row)
            row = self._under_sent_names(row)
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
        known = {*self.types, *self._added, *self._own_names, *self._ignored}
        self._refuse_twins(row, meanings)
        new = [name for name in row if name not in known]
        if not new or len(known) + len(new) > 2 * self._options.bounds.columns:
            return
        for name in new:
            if name in meanings:
                self._added[name] = meanings[name]
            else:
                self._ignored.append(name)
        self.shape = replace(self.shape, added=self._added)
        self._build()
        for name in self._ignored:
            if name in new:
                self._note(name, msgspec.json.encode(_sample(row[name])))

    def _refuse_twins(self, row: Mapping[str, Json], meanings: Mapping[str, str]) -> None:
        """Raises Rejected where a row has two columns that the lake would call the same."""
        columns = [name for name in row if name not in meanings and name not in self._options.exclude]
        seen: dict[str, str] = {}
        for name in columns:
            if seen.setdefault(self._options.lake_name(name), name) != name:
                raise self._both_names(name)

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
