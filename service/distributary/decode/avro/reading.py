"""Reads keys and values of a batch in Avro, record by record."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from distributary import reasons
from distributary.decode.avro.framing import FramingHeaders
from distributary.decode.avro.readers import ReaderFinder
from distributary.decode.avro.values import UNREAD
from distributary.decode.change_keeper import ChangeKeeper
from distributary.decode.envelope import MESSAGE
from distributary.decode.options import DecodeOptions
from distributary.decode.readers import Readers
from distributary.decode.wire_records import WireRecords
from distributary.reasons import UNREADABLE, Rejected


def read_avro_values(
    values: Sequence[bytes | None],
    indexes: Iterable[int],
    framing: FramingHeaders,
    batch: WireRecords,
    readers: Readers,
    options: DecodeOptions,
    keep: ChangeKeeper,
) -> None:
    """Reads the envelopes at these indexes. Most records name the schema of the one before."""
    finder = ReaderFinder("value", framing, readers.of_avro_value, long_ids=options.long_ids)
    reader: Any = None
    begin = 0
    for index in indexes:
        value = values[index]
        if value is None:
            keep.nothing(index)
            continue
        try:
            front = finder.front
            if front is None or not value.startswith(front) or len(value) == begin or index in framing:
                reader, begin = finder.find(index, value)
            batch.sizes[index] = len(value) - begin
            change = reader.decode(value, begin)
        except Rejected as rejected:
            readers.note_conflict(rejected)
            batch.faults.add(index, rejected.reason, rejected.detail)
            continue
        except UNREAD as error:
            batch.faults.add(index, reader.payload.rejection(error, value, begin).reason)
            continue
        if change is None:
            keep.nothing(index)
        else:
            keep.change(index, reader, change)


def read_avro_keys(
    keys: Sequence[bytes | None],
    indexes: Iterable[int],
    framing: FramingHeaders,
    batch: WireRecords,
    readers: Readers,
    options: DecodeOptions,
) -> None:
    """Reads the keys at these indexes, after the values."""
    finder = ReaderFinder("key", framing, readers.of_avro_key, long_ids=options.long_ids)
    reader: Any = None
    begin = 0
    for index in indexes:
        key = keys[index]
        needs_key = not options.keyless and batch.operations[index] not in ("t", MESSAGE)
        row: Any = None
        if key is not None:
            try:
                front = finder.front
                if front is None or not key.startswith(front) or len(key) == begin or index in framing:
                    reader, begin = finder.find(index, key)
                row = reader.decode(key, begin)
            except Rejected as rejected:
                readers.note_conflict(rejected)
                _reject_key(index, rejected, batch, needs_key)
                continue
            except UNREAD as error:
                _reject_key(index, reader.payload.rejection(error, key, begin), batch, needs_key)
                continue
        if row is not None:
            batch.keys.put(index, reader, row, reader.bad)
        elif needs_key:
            batch.faults.add(index, reasons.NO_KEY)


def _reject_key(index: int, rejected: Rejected, batch: WireRecords, needs_key: bool) -> None:
    """Adds the fault of a key, unless the value's bytes have one already."""
    is_known = index in batch.faults.found and batch.faults.found[index][0] in UNREADABLE
    if not is_known and (needs_key or rejected.reason in UNREADABLE):
        batch.faults.add(index, rejected.reason, rejected.detail)
