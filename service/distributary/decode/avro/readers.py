"""Reads values and keys of one Avro schema to changes and rows of wire values, as the readers of JSON do."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Generic, TypeVar

from distributary import reasons
from distributary.decode.avro.compiler import Read, compile_reader
from distributary.decode.avro.framing import FramingHeaders, RecordPart, find_address, unread_form
from distributary.decode.avro.schema import AvroSchema, AvroType
from distributary.decode.avro.targets import AS_JSON, SKIP, AsWire, is_native
from distributary.decode.avro.values import BROKEN
from distributary.decode.key_reader import KeyReader
from distributary.decode.options import DecodeOptions
from distributary.decode.row_reader import RowReader
from distributary.decode.row_shape import RowShape
from distributary.reasons import Rejected
from distributary.types.base import ColumnType

_Reader = TypeVar("_Reader")


class AvroRowReader(RowReader):
    """Reads values of one Avro schema with the columns `types`, as RowReader has them.

    If the config names another type for a column than its schema, or the source block has unusual types, values are
    first read as JSON would hold them, and then restated. Otherwise `decode` reads envelopes in one step.
    """

    def __init__(
        self, shape: RowShape, types: Mapping[str, ColumnType], schema: AvroSchema, options: DecodeOptions
    ) -> None:
        super().__init__(shape, types, options)
        self.payload = Payload(schema, self._wire)
        self.decode: Read = self.payload.read if self.payload.is_native else self.read_avro

    def read_avro(
        self, data: bytes, begin: int, *, has_old_key: bool = False, headers: Mapping[str, str] | None = None
    ) -> Any:
        """The change (see envelope.Change) in the Avro bytes from `begin` on; None for null.

        Raises Rejected, UnicodeDecodeError and one of BROKEN.
        """
        decoded = self.payload.read(data, begin)
        if decoded is None:
            return None
        if not self.payload.is_native:
            return self._restate(decoded, has_old_key, headers or {})
        return decoded if self._options.unwrapped is None else self._change_of_row(decoded, has_old_key, headers or {})


class AvroKeyReader(KeyReader):
    """Reads keys of one Avro schema: `decode` gives a row of wire values, or None for null."""

    def __init__(self, shape: RowShape, schema: AvroSchema, options: DecodeOptions) -> None:
        super().__init__(shape, options)
        self.payload = Payload(schema, self.row_class)
        self.decode: Read = self.payload.read if self.payload.is_native else self._decode_with_care
        self.bad: list[int] = []

    def _decode_with_care(self, data: bytes, begin: int) -> Any:
        """Puts the indexes of values that can't be restated into `bad`."""
        document = self.payload.read(data, begin)
        row, self.bad = (None, []) if document is None else self._restate(document)
        return row


class Payload:
    """Reads records of one schema: by `wire` if all their values have its types, else as documents.

    `read` raises one of BROKEN, and UnicodeDecodeError.
    """

    def __init__(self, schema: AvroType, wire: Any) -> None:
        self.is_native = is_native(schema, wire)
        self.read: Read = compile_reader(schema, AsWire(wire) if self.is_native else AS_JSON)
        self._schema = schema
        self._skip: Read | None = None

    def rejection(self, error: Exception, data: bytes, begin: int) -> Rejected:
        """Why a record is rejected for which `read` raised the error."""
        is_text = isinstance(error, UnicodeDecodeError) and self._is_whole(data, begin)
        return Rejected(reasons.BAD_UTF8 if is_text else reasons.NOT_AVRO)

    def _is_whole(self, data: bytes, begin: int) -> bool:
        """Whether the bytes are a value of the schema, apart from texts that are not UTF-8."""
        self._skip = self._skip or compile_reader(self._schema, SKIP)
        try:
            self._skip(data, begin)
        except BROKEN:
            return False
        return True


class ReaderFinder(Generic[_Reader]):
    """Finds the readers of the keys, or of the values, of a batch by the schemas that they name."""

    def __init__(
        self, side: RecordPart, headers: FramingHeaders, reader_of: Callable[[str], _Reader], *, long_ids: bool
    ) -> None:
        self._side = side
        self._long_ids = long_ids
        self._headers = headers
        self._reader_of = reader_of
        self.front: bytes | None = None

    def find(self, index: int, data: bytes) -> tuple[_Reader, int]:
        """The reader, and where the Avro begins. Sets `front` to the bytes with which records of the same reader begin,
        unless a header names their schema. Raises Rejected."""
        self.front = None
        headers = self._headers.get(index, {})
        address_and_begin = find_address(data, headers, self._side, long_ids=self._long_ids)
        if address_and_begin is None:
            form = unread_form(data, headers, self._side)
            raise Rejected(reasons.NO_SCHEMA_ID, f": the {self._side} has {form}" if form else f": the {self._side}")
        address, begin = address_and_begin
        reader = self._reader_of(address)
        if begin:
            self.front = data[:begin]
        return reader, begin
