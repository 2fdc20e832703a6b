"""Finds the reader of a key or a value by its schema, and remembers the reader. The schema is beside the payload, or
the record names it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, MutableMapping
from dataclasses import replace
from typing import Any, TypeVar

import pyarrow as pa

from distributary import reasons
from distributary.decode.avro.readers import AvroKeyReader, AvroRowReader
from distributary.decode.avro.schema import AvroSchema, NotAnAvroSchema
from distributary.decode.key_reader import KeyReader
from distributary.decode.observed_columns import ObservedColumns, with_source_table
from distributary.decode.options import DecodeOptions
from distributary.decode.plain_reader import PlainReader
from distributary.decode.row_reader import RowReader
from distributary.decode.row_shape import (
    RowShape,
    key_shape_of_schema,
    key_shape_of_type,
    row_shape_of_schema,
    row_shape_of_type,
)
from distributary.decode.table_conflicts import columns_conflict, is_malformed_key, key_changed, sent_key
from distributary.decode.wrapping import is_null, unwrap
from distributary.errors import TableHalt
from distributary.reasons import Rejected, needs_decision
from distributary.rules.position_columns import lowest_position
from distributary.types.base import ColumnType
from distributary.types.record_schema import RecordSchema

_REMEMBERED = 512
_REMEMBERED_BYTES = 16 * 2**20
"""Bytes of schemas' texts. Their readers take a few times as much memory."""
_Reader = TypeVar("_Reader", bound="RowReader | KeyReader")


class Readers:
    """The readers of a table's records, for the columns of `schema`. `unknown_schemas` are addresses of Avro schemas
    that records name and the options lack."""

    def __init__(self, schema: RecordSchema, options: DecodeOptions) -> None:
        self.schema = schema
        self.unknown_schemas: set[str] = set()
        self._unread_schemas: set[str] = set()
        self.source_tables: set[str] = set()
        self.references: list[frozenset[str]] = []
        """The large values that the piece's records need, a set for each of these records."""
        self.plain = PlainReader(schema, options)
        self._options = options
        self._rows: dict[bytes, RowReader | Rejected] = {}
        self._keys: dict[bytes, KeyReader | Rejected] = {}
        self._avro_rows: dict[str, AvroRowReader | Rejected] = {}
        self._avro_keys: dict[str, AvroKeyReader | Rejected] = {}
        self._plain_keys: dict[tuple[str, ...], KeyReader] = {}
        self._bare_key: RowReader | None = None
        self._new = Counter[str]()
        self._used_readers: dict[int, RowReader | KeyReader] = {}
        self._since: dict[int, str] = {}
        self.conflict: TableHalt | None = None
        """The halt that the columns of some record of this piece cause, because they do not fit the config."""

    def start_batch(self) -> None:
        """Counts new schemas from 0 again, and forgets known ones if they are many."""
        self._new.clear()
        self.plain.start_batch()
        self._unread_schemas.clear()
        _forget_many(self._rows, self._keys, self._avro_rows, self._avro_keys, self._plain_keys)

    def start_piece(self) -> None:
        """Forgets the columns, conflicts and unknown schemas of the previous piece."""
        self._used_readers.clear()
        self._since.clear()
        self.conflict = None
        self.unknown_schemas.clear()
        self.source_tables.clear()
        self.references.clear()

    def of_value(self, data: bytes) -> tuple[RowReader, bytes]:
        """The reader of a value, and its payload. Raises Rejected."""
        schema, payload, begin = unwrap(data, self._options.bounds)
        if schema is None:
            return self._use(self.plain), payload
        reader = self._rows.get(schema)
        if reader is None:
            reader = self._made(lambda: self._row_reader(schema, begin), "value")
            self._rows[schema] = reader
        return self._use(reader), payload

    def of_key(self, data: bytes) -> tuple[KeyReader, bytes]:
        """The reader of a key, and its payload. Raises Rejected."""
        schema, payload, begin = unwrap(data, self._options.bounds)
        if schema is None:
            if is_null(payload):
                raise Rejected(reasons.NO_KEY)
            return self._use(self._plain_key(payload)), payload
        reader = self._keys.get(schema)
        if reader is None:
            reader = self._made(lambda: self._key_reader(schema, begin), "key")
            self._keys[schema] = reader
        return self._use(reader), payload

    def of_bare_key(self, schema: str | None) -> RowReader:
        """The reader of rows that have only the column of bare keys, see options.BareKey. Its columns do not count as
        columns of the batch. Raises Rejected."""
        if schema is None:
            return self.plain
        if self._bare_key is None:
            shape = row_shape_of_schema(schema.encode(), self._options)
            self._bare_key = RowReader(shape, self._row_types(shape), self._options)
        return self._bare_key

    def _use(self, reader: _Reader | Rejected) -> _Reader:
        """Remembers that the batch uses the reader, and returns it. Raises the Rejected that was found instead of a
        reader."""
        if isinstance(reader, Rejected):
            raise reader.again()
        self._used_readers[id(reader)] = reader
        return reader

    def note_positions(self, positions: Iterable[str | None], readers: Iterable[RowReader | None]) -> None:
        """Keeps the lowest position of the records of each reader."""
        by_reader: dict[int, list[str]] = {known: [position] for known, position in self._since.items()}
        for position, reader in zip(positions, readers, strict=True):
            if position is not None and reader is not None:
                by_reader.setdefault(id(reader), []).append(position)
        for known, texts in by_reader.items():
            lowest = lowest_position(self._options.connector, pa.array(texts))
            assert lowest is not None
            self._since[known] = lowest

    def observed_columns(self) -> tuple[ObservedColumns, ...]:
        """The columns of the batch's records, one entry for each reader, in the order of their first use."""
        observed = [
            replace(reader.observed_columns(), since=self._since.get(known))
            for known, reader in self._used_readers.items()
        ]
        if self._options.source_in_key:
            observed = [with_source_table(columns) if columns.is_key else columns for columns in observed]
        others = self.plain.columns_of_other_names()
        return tuple(observed if others is None else [*observed, others])

    def note_conflict(self, rejected: Rejected) -> None:
        """Keeps the halt that a rejected record causes, if its columns do not fit the config."""
        self.conflict = self.conflict or rejected.conflict

    def of_avro_value(self, address: str) -> AvroRowReader:
        """The reader of values with the schema at that address. Raises Rejected."""
        return self._of_avro(address, self._avro_rows, self._avro_row_reader, "value")

    def of_avro_key(self, address: str) -> AvroKeyReader:
        """The reader of keys with the schema at that address. Raises Rejected."""
        return self._of_avro(address, self._avro_keys, self._avro_key_reader, "key")

    def _of_avro(
        self,
        address: str,
        known: MutableMapping[str, _Reader | Rejected],
        make: Callable[[AvroSchema], _Reader],
        side: str,
    ) -> _Reader:
        reader = known.get(address)
        if reader is None:
            schema = (self._options.avro or {}).get(address)
            if schema is None or isinstance(schema, NotAnAvroSchema):
                # Not remembered: the caller may have the schema at the next batch, and counts unknown schemas batch by
                # batch.
                if address not in self._unread_schemas:
                    self._count_new(side)
                    self._unread_schemas.add(address)
                if schema is None:
                    self.unknown_schemas.add(address)
                raise Rejected(reasons.NOT_AN_AVRO_SCHEMA, f": {schema or f'{address} is not known'}")
            known_schema = schema
            reader = self._made(lambda: make(known_schema), side)
            known[address] = reader
        return self._use(reader)

    def _made(self, make: Callable[[], _Reader], side: str) -> _Reader | Rejected:
        self._count_new(side)
        try:
            return make()
        except Rejected as rejected:
            return rejected.again()

    def _count_new(self, side: str) -> None:
        """Counts a new schema of the batch. Raises Rejected above the limit."""
        self._new[side] += 1
        if self._new[side] > self._options.bounds.schemas:
            raise Rejected(reasons.BEYOND_LIMITS, f"more than {self._options.bounds.schemas} schemas in a batch")

    def _row_reader(self, schema: bytes, begin: bytes | None) -> RowReader:
        shape = row_shape_of_schema(schema, self._options)
        return RowReader(shape, self._row_types(shape), self._options, begin)

    def _avro_row_reader(self, schema: AvroSchema) -> AvroRowReader:
        shape = row_shape_of_type(schema.connect, self._options)
        return AvroRowReader(shape, self._row_types(shape), schema, self._options)

    def _row_types(self, shape: RowShape) -> dict[str, ColumnType]:
        """The types of the columns that the table has. Raises Rejected, also if the table would get too many
        columns."""
        _check(shape)
        types = {shape.lake[name]: kind.spark for name, kind in shape.types.items()}
        _refuse(columns_conflict(types, self.schema.row, self._options))
        most = self._options.bounds.columns
        new = set(shape.lake.values()) - self.schema.row.keys()
        if new and self._options.adds_columns and len(self.schema.row) + len(new) > most:
            raise Rejected(reasons.BEYOND_LIMITS, f"its table would have more than {most} columns")
        return {name: kind for name, kind in shape.types.items() if shape.lake[name] in self.schema.row}

    def _key_reader(self, schema: bytes, begin: bytes | None) -> KeyReader:
        shape = key_shape_of_schema(schema, self._options)
        self._check_key(shape)
        return KeyReader(shape, self._options, begin)

    def _avro_key_reader(self, schema: AvroSchema) -> AvroKeyReader:
        shape = key_shape_of_type(schema.connect, self._options)
        self._check_key(shape)
        return AvroKeyReader(shape, schema, self._options)

    def _plain_key(self, payload: bytes) -> KeyReader:
        reader = KeyReader.of_names(
            payload, self.schema, self._options, self._plain_keys, lambda: self._count_new("plain key")
        )
        self._check_key(reader.shape)
        return reader

    def _check_key(self, shape: RowShape) -> None:
        """Raises Rejected if the columns are not those of the table's key."""
        _check(shape)
        names, table = tuple(shape.lake.values()), self.schema.row
        if table and (changed := key_changed(sent_key(self._options), names)):
            if is_malformed_key(names, table, self._options):
                raise Rejected(reasons.BAD_KEY)
            _refuse(changed)


def _check(shape: RowShape) -> None:
    """Raises Rejected if the columns do not fit the config."""
    _refuse(shape.conflict)


def _refuse(conflict: TableHalt | None) -> None:
    if conflict is not None:
        raise needs_decision(conflict)


def _forget_many(*remembered: MutableMapping[Any, Any]) -> None:
    for known in remembered:
        if len(known) > _REMEMBERED or sum(map(len, known)) > _REMEMBERED_BYTES:
            known.clear()
