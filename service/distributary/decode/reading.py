"""Reads keys, values and headers of a batch, record by record."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from distributary import reasons
from distributary.decode.avro.bare_keys import bare_keys_as_json
from distributary.decode.avro.framing import FramingHeaders, RecordPart, find_address, framing_headers, is_json
from distributary.decode.avro.readers import ReaderFinder
from distributary.decode.avro.reading import read_avro_keys, read_avro_values
from distributary.decode.avro.values import UNREAD
from distributary.decode.bad_utf8 import find_bad_utf8
from distributary.decode.bare_key import read_bare_keys
from distributary.decode.change_keeper import ChangeKeeper
from distributary.decode.cloud_event import envelope_of
from distributary.decode.column_checks import in_utf8, within_limit
from distributary.decode.document import change_of_document, key_of_document
from distributary.decode.envelope import MESSAGE, NEW_KEY_HEADER, OLD_KEY_HEADER, UNREADABLE_HEADERS
from distributary.decode.front import without_payload_object, without_schema_ids
from distributary.decode.headers import added_texts, find_headers
from distributary.decode.options import DecodeOptions
from distributary.decode.position import offset_position
from distributary.decode.readers import Readers
from distributary.decode.record_texts import FindReader, RecordTexts, texts_without_schema, whole_texts
from distributary.decode.row_reader import REFUSED
from distributary.decode.source_block import BY_OFFSET
from distributary.decode.unwrapped import change_of_row
from distributary.decode.wire_records import WireRecords
from distributary.decode.wrapping import is_null
from distributary.reasons import UNREADABLE, Rejected


def read_batch(step: pa.Table, readers: Readers, options: DecodeOptions) -> WireRecords:
    """Reads records with Kafka's columns. Collects the faults of records in the result instead of raising them. Raises
    TooMuchText if several records together become too large."""
    batch = WireRecords(step.num_rows)
    added = options.unwrapped.headers if options.unwrapped is not None else {}
    headers = find_headers(step, (OLD_KEY_HEADER, NEW_KEY_HEADER, UNREADABLE_HEADERS, *added))
    for index, record_headers in headers.items():
        if UNREADABLE_HEADERS in record_headers:
            batch.faults.add(index, reasons.BAD_UTF8)
    columns = {name: within_limit(step[name], batch, options) for name in ("key", "value")}
    framing = {} if options.avro is None else framing_headers(step)
    if options.avro is None:
        columns = {name: in_utf8(without_schema_ids(column, options.bounds), batch) for name, column in columns.items()}
    values = _texts_of(columns["value"], readers.of_value, options)
    keys = _texts_of(columns["key"], None if options.key_from_row else readers.of_key, options)
    key_indexes = _json_indexes(keys, framing, "key", options)
    value_indexes = _json_indexes(values, framing, "value", options)
    if options.avro is not None:
        for name, texts, indexes in (("key", keys, key_indexes), ("value", values, value_indexes)):
            for index in _bad_utf8(columns[name], indexes):
                batch.faults.add(index, reasons.BAD_UTF8)
                texts.drop(index)
    if options.cloud_events:
        order = tuple(field.name for field in options.order)
        values = RecordTexts([envelope_of(value, order) for value in values.data], values.readers)
    if options.documents:
        values = RecordTexts([*map(change_of_document, values.data, keys.data)], values.readers)
        keys = RecordTexts([*map(key_of_document, keys.data)], keys.readers)
    keep = ChangeKeeper(batch, options)
    if options.unwrapped is not None:
        _read_rows(step, values, value_indexes, headers, framing, batch, readers, options, keep)
    else:
        _read_values(values, value_indexes, batch, readers, keep)
        if options.avro is not None:
            others = _others(batch.count, value_indexes)
            read_avro_values(values.data, others, framing, batch, readers, options, keep)
    if options.key_from_row:
        bare = list(keys.data)
        if options.avro is not None:
            not_json = set(keep.nothings).difference(key_indexes)
            bare = bare_keys_as_json(bare, not_json, framing, readers.unknown_schemas, options)
        read_bare_keys(bare, keep.nothings, batch, readers, options)
    else:
        _read_keys(keys, key_indexes, batch, readers, options)
        if options.avro is not None:
            read_avro_keys(keys.data, _others(batch.count, key_indexes), framing, batch, readers, options)
        for index, record_headers in headers.items():
            _read_key_headers(index, record_headers, batch)
    return batch


def _texts_of(column: pa.ChunkedArray, find_reader: FindReader | None, options: DecodeOptions) -> RecordTexts:
    """The texts, without the schemas for which `find_reader` finds a reader."""
    if find_reader is not None and not (
        options.avro is not None or options.in_payload_object or options.cloud_events or options.documents
    ):
        return texts_without_schema(column, find_reader)
    texts = whole_texts(column)
    if options.in_payload_object:
        texts = RecordTexts([*map(without_payload_object, texts.data)], texts.readers)
    return texts


def _json_indexes(
    texts: RecordTexts, framing: FramingHeaders, side: RecordPart, options: DecodeOptions
) -> Sequence[int]:
    """The indexes of keys or values in JSON: all indexes; if the topic has Avro, those of objects that name no
    schema."""
    data = texts.data
    if options.avro is None:
        return range(len(data))
    objects = [index for index, text in enumerate(data) if is_json(text)]
    return [index for index in objects if find_address(data[index] or b"", framing.get(index, {}), side) is None]


def _others(count: int, indexes: Sequence[int]) -> Sequence[int]:
    if not indexes:
        return range(count)
    others = set(indexes)
    return [index for index in range(count) if index not in others]


def _bad_utf8(column: pa.ChunkedArray, indexes: Sequence[int]) -> Sequence[int]:
    if len(indexes) == len(column):
        return find_bad_utf8(column)
    return [indexes[at] for at in find_bad_utf8(column.take(pa.array(indexes, pa.int64())))] if indexes else ()


def _read_values(
    values: RecordTexts, indexes: Sequence[int], batch: WireRecords, readers: Readers, keep: ChangeKeeper
) -> None:
    """Reads the envelopes at these indexes."""
    data, known = values.data, values.readers
    for index in indexes:
        value = data[index]
        if value is None:
            keep.nothing(index)
            continue
        try:
            reader, payload = known[index], value
            if reader is None:
                reader, payload = readers.of_value(value)
            batch.sizes[index] = len(payload)
            try:
                change = reader.read(payload)
            except REFUSED:
                if is_null(payload):
                    keep.nothing(index)
                    continue
                change = reader.read_with_care(payload)
        except Rejected as rejected:
            readers.note_conflict(rejected)
            batch.faults.add(index, rejected.reason, rejected.detail)
            continue
        keep.change(index, reader, change)


def _read_rows(
    step: pa.Table,
    values: RecordTexts,
    json_indexes: Sequence[int],
    headers: Mapping[int, Mapping[str, bytes | None]],
    framing: FramingHeaders,
    batch: WireRecords,
    readers: Readers,
    options: DecodeOptions,
    keep: ChangeKeeper,
) -> None:
    """Reads rows without an envelope. Rows without a position of the source are ordered by their offset."""
    assert options.unwrapped is not None
    finder = ReaderFinder("value", framing, readers.of_avro_value, long_ids=options.long_ids)
    in_json = set(json_indexes)
    for index, value in enumerate(values.data):
        record_headers = headers.get(index, {})
        meta = added_texts(record_headers, options.unwrapped.headers)
        has_old_key = OLD_KEY_HEADER in record_headers
        reader: Any = readers.plain
        change: Any = None
        begin = 0
        try:
            if value is not None and index not in in_json:
                reader, begin = finder.find(index, value)
                batch.sizes[index] = len(value) - begin
                change = reader.read_avro(value, begin, has_old_key=has_old_key, headers=meta)
            elif value is not None:
                reader, payload = values.readers[index], value
                if reader is None:
                    reader, payload = readers.of_value(value)
                batch.sizes[index] = len(payload)
                try:
                    change = reader.read(payload, has_old_key=has_old_key, headers=meta)
                except REFUSED:
                    if not is_null(payload):
                        change = reader.read_with_care(payload, has_old_key=has_old_key, headers=meta)
        except Rejected as rejected:
            readers.note_conflict(rejected)
            batch.faults.add(index, rejected.reason, rejected.detail)
            continue
        except UNREAD as error:
            assert value is not None
            batch.faults.add(index, reader.payload.rejection(error, value, begin).reason)
            continue
        is_nothing = change is None
        if change is None:
            change = change_of_row(None, meta, options.connector, has_value=False, has_old_key=has_old_key)
        if change.op is None or (is_nothing and options.key_from_row):
            keep.nothing(index)
        else:
            keep.change(index, reader, change)
    if options.connector == BY_OFFSET:
        _place_by_offset(step, batch, options)


def _place_by_offset(step: pa.Table, batch: WireRecords, options: DecodeOptions) -> None:
    times = step["timestamp"].cast(pa.timestamp("ms", "UTC"), safe=False).cast(pa.int64()).to_pylist()
    indexes = zip(times, step["partition"].to_pylist(), step["offset"].to_pylist(), strict=True)
    for index, (time, partition, offset) in enumerate(indexes):
        batch.positions[index] = f"{options.epoch:03d}:{offset_position(time or 0, partition, offset)}"


def _read_keys(
    keys: RecordTexts, indexes: Sequence[int], batch: WireRecords, readers: Readers, options: DecodeOptions
) -> None:
    """Reads the keys at these indexes. The reader of a key without a schema is tried for those behind it."""
    alike: Any = None
    for index in indexes:
        key = keys.data[index]
        operation = batch.operations[index]
        needs_key = not options.keyless and operation not in ("t", MESSAGE)
        if key is None:
            if needs_key:
                batch.faults.add(index, reasons.NO_KEY)
            continue
        try:
            reader, payload = keys.readers[index], key
            if reader is None and alike is not None:
                try:
                    batch.keys.put(index, alike, alike.read(key))
                    continue
                except REFUSED:
                    pass
            if reader is None:
                reader, payload = _key_reader(key, readers)
                alike = reader if reader is not None and reader.reads_no_other else None
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
                batch.faults.add(index, rejected.reason, rejected.detail)
            continue
        if row is not None:
            batch.keys.put(index, reader, row, bad)
        elif needs_key:
            batch.faults.add(index, reasons.NO_KEY)


def _key_reader(key: bytes, readers: Readers) -> tuple[Any, bytes]:
    if is_null(key):
        return None, key
    try:
        reader, payload = readers.of_key(key)
    except Rejected as rejected:
        raise (Rejected(reasons.BAD_KEY) if rejected.reason is reasons.NOT_JSON else rejected) from None
    return reader, payload


def _read_key_headers(index: int, headers: Mapping[str, bytes | None], batch: WireRecords) -> None:
    """Reads the other key of a key change: on the create the row's old key, on the delete its new key."""
    reader = batch.keys.readers[index]
    for name, op, is_moved, side in (
        (OLD_KEY_HEADER, "c", batch.moved_in, batch.old_keys),
        (NEW_KEY_HEADER, "d", batch.moved_out, batch.new_keys),
    ):
        if name in headers and batch.operations[index] == op:
            is_moved[index] = True
            data = headers[name]
            row = None if data is None or reader is None else reader.read_header(data, batch.keys.rows[index])
            if row is not None:
                side.put(index, reader, row)
