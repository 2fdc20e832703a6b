"""Reads values without a schema. The fields' names are the columns; their types are from the table and the config."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import msgspec
from msgspec import UNSET, Raw, UnsetType

from distributary import reasons
from distributary.decode.by_value import add_type, type_by_raw
from distributary.decode.envelope import Change, is_envelope
from distributary.decode.observed_columns import ObservedColumns, columns_of_shape
from distributary.decode.options import DecodeOptions
from distributary.decode.row_reader import FIELD_TYPE, RowReader, envelope_class
from distributary.decode.row_shape import announced_type, rename_taken, shape_of_names
from distributary.decode.table_conflicts import name_conflict
from distributary.decode.unwrapped import change_of_row
from distributary.reasons import Rejected, needs_decision
from distributary.types.connect_schema import LONGEST_NAME
from distributary.types.nested import is_readable
from distributary.types.record_schema import RecordSchema
from distributary.types.strict_json import Json, Number, has_field_twice, parse_object

_BLANKS = b" \t\r\n"
_OF_ENVELOPES = frozenset(("op", "source"))
"""The fields of every envelope. If a row has columns of both names, their values decide whether it is an envelope or a
row."""


class PlainReader(RowReader):
    """Reads those columns of a row that the table has. Other fields are skipped, and collected in `shown` with the
    types that the config names or that their values show (Spark's names by the lake's names of columns)."""

    reads_all_without_schema = True

    def __init__(self, schema: RecordSchema, options: DecodeOptions) -> None:
        self._table = schema.row
        names = [[n for n in options.source_names(lake) if n not in options.exclude] for lake in schema.row]
        self._other_names = {other: first for first, *others in filter(None, names) for other in others}
        """The first name of each column by its other names: those from before or after the source renamed it."""
        self._seen: set[str] = set()
        """Of the columns with several names, the names that occur in records."""
        every = dict.fromkeys(name for of_column in names for name in of_column)
        shape = shape_of_names(every, schema.row, options)
        super().__init__(shape, shape.types, options)
        self._envelope_decoder = msgspec.json.Decoder(envelope_class(Raw, Raw(b"null"), options))
        self.shown: dict[str, str] = {}
        self._added: dict[str, str] = {}
        self._ignored: list[str] = []
        self._learned = 0
        self._build_row_decoder()

    def start_batch(self) -> None:
        """Starts counting records with new columns from 0."""
        self._learned = 0

    def observed_columns(self) -> ObservedColumns:
        """The table's columns, and other fields of the records that had a value."""
        first_names = {first for other, first in self._other_names.items() if other in self._seen}
        observed = self._columns(self.types.keys() - self._other_names.keys() - (first_names - self._seen))
        announced = {name: announced_type(name, {}, self._options) for name in self._ignored}
        new = {self._options.lake_name(name): kind for name, kind in announced.items()}
        shown = {lake: kind for lake, kind in self.shown.items() if lake not in observed.types}
        unseen = {*self._other_names, *self._other_names.values()} - self._seen
        names = frozenset((*self.types, *self._ignored)) - unseen
        renames = {name: self._options.lake_name(name) for name in names}
        kinds = {**observed.types, **shown}
        return replace(
            observed,
            types=kinds,
            marks={**observed.marks, **{lake: kind.mark if (kind := new.get(lake)) else None for lake in shown}},
            renames={name: lake for name, lake in renames.items() if name != lake and lake in kinds},
            names=names,
            guessed={lake: kind for lake, kind in shown.items() if new.get(lake) is None},
        )

    def columns_of_other_names(self) -> ObservedColumns | None:
        """The columns that records have under another name than the first; None if there are none."""
        other_names = self._other_names.keys() & self._seen
        return self._columns(other_names) if other_names else None

    def _columns(self, names: Collection[str]) -> ObservedColumns:
        types = {name: kind for name, kind in self.types.items() if name in names}
        lake = {name: self.shape.lake[name] for name in types}
        return columns_of_shape(replace(self.shape, types=types, lake=lake), is_key=False, has_schema=False)

    def _build_row_decoder(self) -> None:
        fields: list[tuple[str, Any, Any]] = []
        names: dict[str, str] = {}
        kinds = [(name, _with_unset(kind.wire)) for name, kind in self.types.items()]
        kinds += [(name, FIELD_TYPE | UnsetType) for name in self._added]
        kinds += [(name, Raw | UnsetType) for name in self._ignored]
        for index, (name, wire) in enumerate(kinds):
            fields.append((f"c{index}", wire, UNSET))
            names[f"c{index}"] = name if is_readable(name) else f"unreadable {index}"
        plain = msgspec.defstruct("PlainRow", fields, rename=names, gc=False, forbid_unknown_fields=True)
        self._is_readable = all(is_readable(name) for name, _ in kinds)
        places = [index for index, (name, _) in enumerate(kinds) if name in _OF_ENVELOPES]
        may_be_envelope = self._options.unwrapped is not None and len(places) == len(_OF_ENVELOPES)
        self._of_envelopes = places if may_be_envelope else []
        self._twins = self._find_twins([name for name, _ in kinds])
        self._row_decoder = msgspec.json.Decoder(plain)

    def read(self, payload: bytes, *, has_old_key: bool = False, headers: Mapping[str, str] | None = None) -> Any:
        """As RowReader.read."""
        if not self._is_readable:
            raise msgspec.DecodeError("a name that has to be read with care")
        if self._options.unwrapped is not None:
            row, meta = self._read_row(payload)
            meta = {**(headers or {}), **meta}
            return change_of_row(row, meta, self._options.connector, has_value=True, has_old_key=has_old_key)
        envelope: Any = self._envelope_decoder.decode(payload)
        change = Change(envelope.op, envelope.source)
        change.ts_ms = envelope.ts_ms
        if (after := bytes(envelope.after)) != b"null":
            change.after = self._read_row(after)[0]
        if self._options.reads_before and (before := bytes(envelope.before)) != b"null":
            change.before = self._read_row(before)[0]
        if self._options.transactions:
            change.transaction = envelope.transaction
        return change

    def _read_row(self, raw: bytes) -> tuple[Any, dict[str, Any]]:
        """The row of wire values of a JSON object, and what was added to it. Raises REFUSED and Rejected."""
        row = self._row_decoder.decode(raw)
        values = msgspec.structs.astuple(row)
        known = len(values) - values.count(UNSET)
        if self._of_envelopes and all(values[place] is not UNSET for place in self._of_envelopes):
            raise msgspec.DecodeError("a row that may be an envelope")
        # A quote with a colon behind it ends a name, unless it is escaped and so within a text. If there are more than
        # fields, a field occurs twice, or there are objects within. Their names may end with a backslash.
        dense = raw.translate(None, _BLANKS)
        names = dense.count(b'":') - dense.count(b'\\":')
        if (names != known or b'\\\\":' in dense) and has_field_twice(parse_object(raw, self._options.bounds)):
            raise Rejected(reasons.AMBIGUOUS)
        if not known and self._options.unwrapped is not None:
            raise Rejected(reasons.NOT_A_ROW)
        for of_column in self._twins:
            self._see([name for place, name in of_column if values[place] is not UNSET])
        columns, added = len(self.types), len(self._added)
        if known == len(values) == columns:
            return row, {}
        for name, value in zip(self._ignored, values[columns + added :], strict=True):
            if value is not UNSET:
                self._note(name, bytes(value))
        if known < len(values):
            values = tuple(None if value is UNSET else value for value in values)
        meta = zip(self._added.values(), values[columns : columns + added], strict=True)
        return self.row_class(*values[:columns]), {meaning: value for meaning, value in meta if value is not None}

    def restate_row(self, row: Json) -> tuple[Any, Sequence[int], Sequence[int]]:
        """As RowReader.restate_row; learns the names of fields that it does not know."""
        if isinstance(row, dict):
            if has_field_twice(row):
                raise Rejected(reasons.AMBIGUOUS)
            if len(row) > self._options.bounds.columns:
                raise Rejected(reasons.BEYOND_LIMITS, f"more than {self._options.bounds.columns} columns")
            self._learn(row)
            for of_column in self._twins:
                self._see([name for _, name in of_column if name in row])
            for name in self._ignored:
                if name in row:
                    self._note(name, msgspec.json.encode(_sample(row[name])))
        return super().restate_row(row)

    def read_with_care(
        self, payload: bytes, *, has_old_key: bool = False, headers: Mapping[str, str] | None = None
    ) -> Change:
        """As RowReader.read_with_care."""
        if self._options.unwrapped is not None:
            document = parse_object(payload, self._options.bounds)
            if is_envelope(document) or not document:
                raise Rejected(reasons.NOT_A_ROW)
            if has_field_twice(document):
                raise Rejected(reasons.AMBIGUOUS)
            self._learn(document)
        return super().read_with_care(payload, has_old_key=has_old_key, headers=headers)

    def _learn(self, row: Mapping[str, Json]) -> None:
        """Learns new names: as fields that the transform added, or as fields to skip. Raises Rejected for too many
        names: nobody would notice that the table lacks their columns."""
        meanings = {} if self._options.unwrapped is None else self._options.unwrapped.fields
        known = {*self.types, *self._added, *self._ignored}
        new = [name for name in row if name not in known]
        if not new:
            return
        bounds = self._options.bounds
        if len(known) + len(new) > 2 * bounds.columns:
            raise Rejected(reasons.BEYOND_LIMITS, f"more than {2 * bounds.columns} columns in the table's records")
        if any(len(name) > LONGEST_NAME for name in new):
            raise Rejected(reasons.BEYOND_LIMITS, f"a name of more than {LONGEST_NAME} characters")
        if self._options.adds_columns:
            fields = [name for name in (*self._ignored, *new) if name not in {*self._options.exclude, *meanings}]
            if len({*self._table, *map(self._options.lake_name, fields)}) > bounds.columns:
                raise Rejected(reasons.BEYOND_LIMITS, f"its table would have more than {bounds.columns} columns")
        self._check_names([name for name in new if name not in meanings])
        self._learned += 1
        if self._learned > bounds.schemas:
            raise Rejected(reasons.BEYOND_LIMITS, f"new columns more than {bounds.schemas} times in a batch")
        for name in new:
            if name in meanings:
                self._added[name] = meanings[name]
            else:
                self._ignored.append(name)
        self.shape = replace(self.shape, added=self._added)
        self._build_row_decoder()

    def _check_names(self, new: Iterable[str]) -> None:
        """Raises Rejected where the table can't have columns of these names."""
        filled = self._options.filled
        if filled is None or not self._options.adds_columns:
            return
        ignored = [name for name in self._ignored if name not in self._options.exclude]
        have = (*self._table, *map(self._options.lake_name, ignored))
        lowered = {name.lower(): name for name in have}
        for name in new:
            if name not in self._options.exclude:
                lake = self._options.lake_name(name)
                if conflict := name_conflict(lake, lowered, filled.reserved):
                    raise needs_decision(conflict)
                lowered[lake.lower()] = lake

    def _find_twins(self, names: Sequence[str]) -> list[list[tuple[int, str]]]:
        """For each column with several of these names its fields, each with place and name."""
        if not self._options.renames:
            return []
        by_lake_name: dict[str, list[tuple[int, str]]] = {}
        for index, name in enumerate(names):
            if name not in self._options.exclude and name not in self._added:
                by_lake_name.setdefault(self._options.lake_name(name), []).append((index, name))
        return [fields for fields in by_lake_name.values() if len(fields) > 1]

    def _see(self, names: Sequence[str]) -> None:
        """Notes which names of one column a record has. Raises Rejected where it has several."""
        self._seen.update(names)
        if len(names) > 1:
            raise needs_decision(rename_taken(self._options.lake_name(names[0])))

    def _note(self, name: str, raw: bytes) -> None:
        if name in self._options.exclude:
            return
        lake = self._options.lake_name(name)
        if kind := announced_type(name, {}, self._options):
            self.shown[lake] = kind.spark
        elif self.shown.get(lake) != "string":
            add_type(self.shown, lake, type_by_raw(raw))


def _sample(value: Json) -> Any:
    """A JSON value as msgspec decodes it; numbers keep their spelling."""
    return Raw(str(value).encode()) if isinstance(value, Number) else "" if isinstance(value, dict | list) else value


def _with_unset(wire: Any) -> Any:
    return wire | UnsetType if wire is Raw else wire | None | UnsetType
