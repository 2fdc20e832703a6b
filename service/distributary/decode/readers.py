"""Finds the reader of a key or a value by the schema that it has beside it or names, and remembers it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, MutableMapping
from typing import Any, TypeVar

from distributary.decode import reasons
from distributary.decode.avro.readers import AvroKeyReader, AvroRowReader
from distributary.decode.avro.schema import AvroSchema, NotAnAvroSchema
from distributary.decode.key_reader import KeyReader
from distributary.decode.met_columns import MetColumns, with_source_table
from distributary.decode.options import DecodeOptions
from distributary.decode.plain_reader import PlainReader
from distributary.decode.reasons import Rejected
from distributary.decode.record_schema import RecordSchema, wider
from distributary.decode.row_reader import RowReader
from distributary.decode.row_shape import (
    RowShape,
    key_shape_of_schema,
    key_shape_of_type,
    row_shape_of_schema,
    row_shape_of_type,
)
from distributary.decode.types.base import ColumnType
from distributary.decode.wrapping import is_null, unwrap
from distributary.errors import TableHalt

_REMEMBERED = 512
_Reader = TypeVar("_Reader", bound="RowReader | KeyReader")


class Readers:
    """The readers of a table's records, for the columns of `schema`. What records have and it does not is gathered in
    `unread` and `unread_key`: Spark types by the lake's names; also columns that records have with other types, and the
    type that holds both. `unknown_schemas` are addresses of Avro schemas that records name and the options do not have.
    """

    def __init__(self, schema: RecordSchema, options: DecodeOptions) -> None:
        self.schema = schema
        self.unread: dict[str, str] = {}
        self.unread_key: dict[str, str] = {}
        self.unknown_schemas: set[str] = set()
        self.source_tables: set[str] = set()
        """Those of the batch."""
        self.plain = PlainReader(schema, options)
        self._options = options
        self._rows: dict[bytes, RowReader | Rejected] = {}
        self._keys: dict[bytes, KeyReader | Rejected] = {}
        self._avro_rows: dict[str, AvroRowReader | Rejected] = {}
        self._avro_keys: dict[str, AvroKeyReader | Rejected] = {}
        self._plain_keys: dict[tuple[str, ...], KeyReader] = {}
        self._new = Counter[str]()
        self._met: dict[int, RowReader | KeyReader] = {}
        self.conflict: TableHalt | None = None
        """Why the config can't have the columns of some record of this batch."""

    def start_batch(self) -> None:
        """Resets the unread columns, the unknown schemas and the count of new schemas."""
        self._new.clear()
        self.plain.start_batch()
        self._met.clear()
        self.conflict = None
        self.unread.clear()
        self.unread_key.clear()
        self.unknown_schemas.clear()
        self.source_tables.clear()
        _forget_many(self._rows, self._keys, self._avro_rows, self._avro_keys, self._plain_keys)
        for reader in (*self._rows.values(), *self._avro_rows.values()):
            if isinstance(reader, RowReader):
                self._gather(reader.shape, self.schema.row, self.unread)
        for key_reader in (*self._keys.values(), *self._avro_keys.values()):
            if isinstance(key_reader, KeyReader):
                self._gather(key_reader.shape, self.schema.key, self.unread_key)

    def of_value(self, data: bytes) -> tuple[RowReader, bytes]:
        """The reader of a value, and its payload. Raises Rejected."""
        schema, payload, begin = unwrap(data, self._options.bounds)
        if schema is None:
            return self._used(self.plain), payload
        found = self._rows.get(schema)
        if found is None:
            found = self._made(lambda: self._row_reader(schema, begin), "value")
            self._rows[schema] = found
        return self._used(found), payload

    def of_key(self, data: bytes) -> tuple[KeyReader, bytes]:
        """The reader of a key, and its payload. Raises Rejected."""
        schema, payload, begin = unwrap(data, self._options.bounds)
        if schema is None:
            if is_null(payload):
                raise Rejected(reasons.NO_KEY)
            return self._used(self._plain_key(payload)), payload
        found = self._keys.get(schema)
        if found is None:
            found = self._made(lambda: self._key_reader(schema, begin), "key")
            self._keys[schema] = found
        return self._used(found), payload

    def _used(self, found: _Reader | Rejected) -> _Reader:
        """The reader, noted as one of the batch's. Raises Rejected where there is none."""
        if isinstance(found, Rejected):
            raise found
        self._met[id(found)] = found
        return found

    def met(self) -> tuple[MetColumns, ...]:
        """The columns of the batch's records, one entry for each reader, as first used."""
        met = [reader.met_columns() for reader in self._met.values()]
        if self._options.source_in_key:
            met = [with_source_table(one) if one.is_key else one for one in met]
        others = self.plain.met_other_names()
        return tuple(met if others is None else [*met, others])

    def note_conflict(self, rejected: Rejected) -> None:
        """Keeps why the config can't have the columns of a record that was rejected."""
        self.conflict = self.conflict or rejected.conflict

    def of_avro_value(self, address: str) -> AvroRowReader:
        """The reader of values that name the schema with that address. Raises Rejected."""
        return self._of_avro(address, self._avro_rows, self._avro_row_reader, "value")

    def of_avro_key(self, address: str) -> AvroKeyReader:
        """The same of keys."""
        return self._of_avro(address, self._avro_keys, self._avro_key_reader, "key")

    def _of_avro(
        self,
        address: str,
        known: MutableMapping[str, _Reader | Rejected],
        make: Callable[[AvroSchema], _Reader],
        side: str,
    ) -> _Reader:
        found = known.get(address)
        if found is None:
            schema = (self._options.avro or {}).get(address)
            if schema is None:
                # Not remembered: the caller may know the schema with the next batch.
                self.unknown_schemas.add(address)
                raise Rejected(reasons.NOT_AN_AVRO_SCHEMA, f": {address} is not known")
            if isinstance(schema, NotAnAvroSchema):
                raise Rejected(reasons.NOT_AN_AVRO_SCHEMA, f": {schema}")
            known_schema = schema
            found = self._made(lambda: make(known_schema), side)
            known[address] = found
        return self._used(found)

    def _made(self, make: Callable[[], _Reader], side: str) -> _Reader | Rejected:
        self._count_new(side)
        try:
            return make()
        except Rejected as rejected:
            return rejected

    def _count_new(self, side: str) -> None:
        """Counts a schema that the batch brings. Raises Rejected for one too many."""
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
        """The types of the columns that the table has; gathers those that it does not have. Raises Rejected."""
        if shape.conflict is not None:
            raise Rejected(reasons.BAD_SCHEMA, f": {shape.conflict}", shape.conflict)
        self._gather(shape, self.schema.row, self.unread)
        return {name: kind for name, kind in shape.types.items() if shape.lake[name] in self.schema.row}

    def _key_reader(self, schema: bytes, begin: bytes | None) -> KeyReader:
        return KeyReader(self._key_shape(key_shape_of_schema(schema, self._options)), self._options, begin)

    def _avro_key_reader(self, schema: AvroSchema) -> AvroKeyReader:
        return AvroKeyReader(self._key_shape(key_shape_of_type(schema.connect, self._options)), schema, self._options)

    def _key_shape(self, shape: RowShape) -> RowShape:
        if shape.conflict is not None:
            raise Rejected(reasons.BAD_SCHEMA, f": {shape.conflict}", shape.conflict)
        self._gather(shape, self.schema.key, self.unread_key)
        return shape

    def _plain_key(self, payload: bytes) -> KeyReader:
        reader = KeyReader.of_names(
            payload, self.schema, self._options, self._plain_keys, lambda: self._count_new("plain key")
        )
        if (conflict := reader.shape.conflict) is not None:
            raise Rejected(reasons.BAD_SCHEMA, f": {conflict}", conflict)
        self._gather(reader.shape, self.schema.key, self.unread_key)
        return reader

    def _gather(self, shape: RowShape, known: Mapping[str, str], unread: dict[str, str]) -> None:
        for name, kind in shape.types.items():
            lake = shape.lake[name]
            if known.get(lake) != kind.spark:
                sent = wider(unread.get(lake, kind.spark), kind.spark)
                if wider(known.get(lake, sent), sent) != known.get(lake):
                    unread[lake] = sent


def _forget_many(*remembered: MutableMapping[Any, Any]) -> None:
    for known in remembered:
        if len(known) > _REMEMBERED:
            known.clear()
