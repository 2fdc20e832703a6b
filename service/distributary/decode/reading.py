"""Reads keys, values and headers of a batch, record by record."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from distributary.decode import reasons
from distributary.decode.avro.framing import FramingHeaders, framing_headers
from distributary.decode.avro.readers import ReaderFinder
from distributary.decode.avro.reading import read_avro_keys, read_avro_values
from distributary.decode.avro.values import UNREAD
from distributary.decode.bad_utf8 import find_bad_utf8
from distributary.decode.batch import Batch
from distributary.decode.envelope import (
    KEPT_ROW,
    MESSAGE,
    NEW_KEY_HEADER,
    OLD_KEY_HEADER,
    OPERATIONS,
    TOMBSTONE,
    Change,
)
from distributary.decode.headers import added_texts, find_headers
from distributary.decode.options import DecodeOptions
from distributary.decode.position import BadPosition, offset_position, position_of
from distributary.decode.readers import Readers
from distributary.decode.reasons import UNREADABLE, Rejected
from distributary.decode.row_reader import REFUSED
from distributary.decode.source_block import (
    BY_OFFSET,
    SNAPSHOT_ENDS,
    SNAPSHOT_READS,
    Source,
    snapshot_identity,
    snapshot_text,
    source_time,
    transaction_of,
)
from distributary.decode.unwrapped import change_of_row
from distributary.decode.wrapping import is_null


def read_batch(step: pa.Table, readers: Readers, options: DecodeOptions) -> Batch:
    """Reads records with Kafka's columns. Faults of records are collected in the batch; none is raised."""
    batch = Batch(step.num_rows)
    added = options.unwrapped.headers if options.unwrapped is not None else {}
    headers = _headers(step, (OLD_KEY_HEADER, NEW_KEY_HEADER, *added))
    values, keys = step["value"].to_pylist(), step["key"].to_pylist()
    limit = options.bounds.record_bytes
    for place, (key, value) in enumerate(zip(keys, values, strict=True)):
        if (value is not None and len(value) > limit) or (key is not None and len(key) > limit):
            batch.faults.add(place, reasons.BEYOND_LIMITS, f"more than {limit} bytes")
            values[place] = keys[place] = None
    framing: FramingHeaders = {}
    if options.avro is None:
        for column, texts in (("key", keys), ("value", values)):
            for place in find_bad_utf8(step[column]):
                batch.faults.add(place, reasons.BAD_UTF8)
                texts[place] = None
    else:
        framing = framing_headers(step)
    if options.unwrapped is not None:
        _read_rows(step, values, headers, framing, batch, readers, options)
    elif options.avro is None:
        _read_values(values, batch, readers, options)
    else:
        read_avro_values(values, framing, batch, readers, _Keeper(batch, options))
    if not options.key_from_row:
        if options.avro is None:
            _read_keys(keys, batch, readers, options)
        else:
            read_avro_keys(keys, framing, batch, readers, options)
        for place, found in headers.items():
            _read_key_headers(place, found, batch)
    return batch


def _headers(step: pa.Table, names: Sequence[str]) -> dict[int, dict[str, bytes | None]]:
    if "headers" not in step.column_names:
        return {}
    column = step["headers"].combine_chunks()
    return find_headers(column if isinstance(column, pa.Array) else pa.concat_arrays(column.chunks), names)


def _read_values(values: Sequence[bytes | None], batch: Batch, readers: Readers, options: DecodeOptions) -> None:
    """Envelopes. Most begin with the bytes of the schema before: they are cut there and read at once."""
    reader, begin, cut, read = readers.plain, None, 0, readers.plain.read
    keep = _Keeper(batch, options)
    for place, value in enumerate(values):
        if value is None:
            keep.nothing(place)
            continue
        try:
            if begin is not None and value.startswith(begin) and value.endswith(b"}"):
                payload = value[cut:-1]
            else:
                reader, payload = readers.of_value(value)  # type: ignore[assignment]
                begin, read = reader.begin, reader.read
                cut = len(begin or b"")
            batch.sizes[place] = len(payload)
            try:
                change = read(payload)
            except REFUSED:
                if is_null(payload):
                    keep.nothing(place)
                    continue
                change = reader.read_with_care(payload)
        except Rejected as rejected:
            readers.note_conflict(rejected)
            batch.faults.add(place, rejected.reason, rejected.detail)
            continue
        keep.change(place, reader, change)


def _read_rows(
    step: pa.Table,
    values: Sequence[bytes | None],
    headers: Mapping[int, Mapping[str, bytes | None]],
    framing: FramingHeaders,
    batch: Batch,
    readers: Readers,
    options: DecodeOptions,
) -> None:
    """Rows without an envelope; where their source tells no position, it is Kafka's place."""
    assert options.unwrapped is not None
    keep = _Keeper(batch, options)
    finder = ReaderFinder("value", framing, readers.of_avro_value)
    for place, value in enumerate(values):
        found = headers.get(place, {})
        told = added_texts(found, options.unwrapped.headers)
        has_old_key = OLD_KEY_HEADER in found
        reader: Any = readers.plain
        change: Any = None
        begin = 0
        try:
            if value is not None and options.avro is not None:
                reader, begin = finder.find(place, value)
                batch.sizes[place] = len(value) - begin
                change = reader.read_avro(value, begin, has_old_key=has_old_key, headers=told)
            elif value is not None:
                reader, payload = readers.of_value(value)
                batch.sizes[place] = len(payload)
                try:
                    change = reader.read(payload, has_old_key=has_old_key, headers=told)
                except REFUSED:
                    if not is_null(payload):
                        change = reader.read_with_care(payload, has_old_key=has_old_key, headers=told)
        except Rejected as rejected:
            readers.note_conflict(rejected)
            batch.faults.add(place, rejected.reason, rejected.detail)
            continue
        except UNREAD as error:
            assert value is not None
            batch.faults.add(place, reader.payload.rejection(error, value, begin).reason)
            continue
        if change is None:
            change = change_of_row(None, told, options.connector, has_value=False, has_old_key=has_old_key)
        if change.op is None or (value is None and options.key_from_row):
            keep.nothing(place)
        else:
            keep.change(place, reader, change)
    if options.connector == BY_OFFSET:
        _place_by_offset(step, batch, options)


def _place_by_offset(step: pa.Table, batch: Batch, options: DecodeOptions) -> None:
    times = step["timestamp"].cast(pa.timestamp("ms", "UTC"), safe=False).cast(pa.int64()).to_pylist()
    places = zip(times, step["partition"].to_pylist(), step["offset"].to_pylist(), strict=True)
    for place, (time, partition, offset) in enumerate(places):
        batch.positions[place] = f"{options.epoch:03d}:{offset_position(time or 0, partition, offset)}"


class _Keeper:
    """Puts changes into the batch, and checks their operation, source and row."""

    def __init__(self, batch: Batch, options: DecodeOptions) -> None:
        self._batch = batch
        self._options = options
        self._position = position_of(options.connector)
        self._by_transaction = options.connector in ("sqlserver", "db2")
        self._epoch = f"{options.epoch:03d}:"

    def nothing(self, place: int) -> None:
        """A record without a value."""
        self._batch.operations[place] = MESSAGE if self._options.key_from_row else TOMBSTONE

    def change(self, place: int, reader: Any, change: Any) -> None:
        """A change, be it an envelope as msgspec reads it or an envelope.Change."""
        batch, op, source = self._batch, change.op, change.source
        if op is None and source is None:
            batch.faults.add(place, reasons.NOT_AN_ENVELOPE)
            return
        if op not in OPERATIONS:
            batch.faults.add(place, reasons.UNKNOWN_OPERATION)
            return
        if op == "c" and is_snapshot_row(source):
            op = "r"
        batch.operations[place] = op
        self._source(place, op, source or Source())
        after = change.after
        if after is not None:
            batch.after.put(place, reader, after)
        elif op in KEPT_ROW:
            batch.faults.add(place, reasons.NO_ROW)
        if self._options.reads_before and change.before is not None:
            batch.before.put(place, reader, change.before)
        if self._options.transactions and self._options.unwrapped is None:
            batch.blocks[place] = change.transaction
        if type(change) is Change:
            self._with_care(place, change)

    def _with_care(self, place: int, change: Change) -> None:
        for side, bad, unavailable in (
            (self._batch.after, change.bad, change.unavailable),
            (self._batch.before, change.bad_before, change.unavailable_before),
        ):
            if bad:
                side.bad[place] = list(bad)
            if unavailable:
                side.unavailable[place] = list(unavailable)

    def _source(self, place: int, op: str, source: Source) -> None:
        batch, options = self._batch, self._options
        if source.connector is not None and source.connector not in options.family and op != MESSAGE:
            batch.faults.add(place, reasons.OTHER_CONNECTOR)
        position = None
        try:
            position = self._position(source, op)
        except BadPosition:
            if op != MESSAGE:
                batch.faults.add(place, reasons.BAD_POSITION)
        batch.times[place] = source_time(source.ts_ms)
        if position is not None:
            batch.positions[place] = self._epoch + position
        elif op != MESSAGE and options.connector != BY_OFFSET:
            batch.faults.add(place, reasons.NO_POSITION)
        if self._by_transaction:
            batch.transactions[place] = None if position is None else self._epoch + position.partition("/")[0]
        else:
            batch.transactions[place] = transaction_of(options.connector, source)
        if source.snapshot is not None:
            batch.snapshots[place] = snapshot_text(source.snapshot)
        if op == "r" and options.connector == "postgresql":
            batch.identities[place] = snapshot_identity(source)


def _read_keys(keys: Sequence[bytes | None], batch: Batch, readers: Readers, options: DecodeOptions) -> None:
    reader: Any = None
    begin, cut = None, 0
    for place, key in enumerate(keys):
        operation = batch.operations[place]
        needs_key = not options.keyless and operation not in ("t", MESSAGE)
        if key is None:
            if needs_key:
                batch.faults.add(place, reasons.NO_KEY)
            continue
        try:
            if begin is not None and key.startswith(begin) and key.endswith(b"}"):
                payload = key[cut:-1]
            else:
                reader, payload = _key_reader(key, readers)
                begin = None if reader is None else reader.begin
                cut = len(begin or b"")
            bad: Sequence[int] = ()
            if reader is None or is_null(payload):
                row = None
            else:
                try:
                    row = reader.read(payload)
                except REFUSED:
                    row, bad = reader.read_with_care(payload)
        except Rejected as rejected:
            readers.note_conflict(rejected)
            if needs_key or rejected.reason in UNREADABLE:
                batch.faults.add(place, rejected.reason, rejected.detail)
            continue
        if row is not None:
            batch.keys.put(place, reader, row, bad)
        elif needs_key:
            batch.faults.add(place, reasons.NO_KEY)


def _key_reader(key: bytes, readers: Readers) -> tuple[Any, bytes]:
    if is_null(key):
        return None, key
    try:
        reader, payload = readers.of_key(key)
    except Rejected as rejected:
        raise (Rejected(reasons.BAD_KEY) if rejected.reason is reasons.NOT_JSON else rejected) from None
    return reader, payload


def _read_key_headers(place: int, found: Mapping[str, bytes | None], batch: Batch) -> None:
    """The key that the row had before, on the create of a key change; the one that it gets, on the delete."""
    reader = batch.keys.readers[place]
    for name, op, moved, side in (
        (OLD_KEY_HEADER, "c", batch.moved_in, batch.old_keys),
        (NEW_KEY_HEADER, "d", batch.moved_out, batch.new_keys),
    ):
        if name in found and batch.operations[place] == op:
            moved[place] = True
            data = found[name]
            row = None if data is None or reader is None else reader.read_header(data, batch.keys.rows[place])
            if row is not None:
                side.put(place, reader, row)


def is_snapshot_row(source: Source | None) -> bool:
    """Whether a snapshot read the row, whatever `op` says: some transforms and older connectors write creates."""
    if source is None or source.snapshot in (None, False, "false"):
        return False
    return snapshot_text(source.snapshot) in SNAPSHOT_READS


def is_snapshot_end(snapshot: str | None, operation: str | None) -> bool:
    """Whether a record is the last row of the table's snapshot."""
    return operation == "r" and snapshot in SNAPSHOT_ENDS
