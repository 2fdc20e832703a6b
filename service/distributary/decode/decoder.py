"""Decodes the Kafka records of one table: Arrow in; out come events with typed rows, and the records that can't be
applied with the reason of each."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from distributary import reasons
from distributary.decode.events import make_events, reject_all
from distributary.decode.large_values import NO_LARGE_VALUES, LargeValues
from distributary.decode.observed_columns import ObservedColumns
from distributary.decode.options import DecodeOptions
from distributary.decode.readers import Readers
from distributary.decode.reading import read_batch
from distributary.errors import TableHalt
from distributary.types.bounds import TooMuchText
from distributary.types.record_schema import RecordSchema

_RECORDS = 20_000
_BYTES = 64 * 2**20
"""Bytes of records per step. This bounds the memory: a step holds its records as Python objects, which take some five
times as much."""


@dataclass(frozen=True)
class Decoded:
    """`events` has a row for each change, `rejected` one for each record that can't be applied (see
    events.make_events). `observed` are the columns of the records, one entry for each of their schemas.

    `conflict` is the halt that the columns of some record cause, because they do not fit the config: these records are
    rejected, and the table has to halt. `unknown_schemas` are addresses of Avro schemas that records name and the
    options lack: these records are rejected, and are to be decoded again with the schemas. `source_tables` are the
    names of the changes' source tables. `references` are large values that records need and nobody has fetched yet (see
    large_values.py), a set for each of these records: they are rejected, and are to be decoded again with the values.
    `has_too_many_large_values`: not all of them were fetched, because they have more bytes than a batch may have.
    """

    events: pa.Table
    rejected: pa.Table
    observed: tuple[ObservedColumns, ...]
    conflict: TableHalt | None
    unknown_schemas: frozenset[str]
    source_tables: frozenset[str]
    references: tuple[frozenset[str], ...] = ()
    has_too_many_large_values: bool = False


class Decoder:
    """Decodes the records of one table, and remembers their schemas. Not safe for several threads."""

    def __init__(self, options: DecodeOptions) -> None:
        self.options = options
        self._readers = Readers(RecordSchema(), options)

    def decode(
        self,
        raw: pa.RecordBatch | pa.Table,
        schema: RecordSchema,
        large: LargeValues = NO_LARGE_VALUES,
        *,
        continues: bool = False,
    ) -> Decoded:
        """Decodes records with Kafka's columns (key, value, partition, offset, timestamp, headers) to events with the
        columns of the schema. `large` are the large values that replace references. `continues`: the records belong to
        the same batch as those of the previous call; the limit of schemas holds for the batch as a whole. Never raises
        because of a record's content."""
        if schema != self._readers.schema:
            self._readers = Readers(schema, self.options)
        readers = self._readers
        if not continues:
            readers.start_batch()
        readers.start_piece()
        table = pa.Table.from_batches([raw]) if isinstance(raw, pa.RecordBatch) else raw
        events, rejected = [], []
        for step in _steps(table):
            for changes, refused in self._decode_step(step, readers, schema, large):
                events.append(changes)
                rejected.append(refused)
        if not events:
            empty = table.slice(0, 0)
            changes, refused = make_events(empty, read_batch(empty, readers, self.options), schema, self.options)
            events, rejected = [changes], [refused]
        return Decoded(
            pa.concat_tables(events),
            pa.concat_tables(rejected),
            readers.observed_columns(),
            readers.conflict,
            frozenset(readers.unknown_schemas),
            frozenset(readers.source_tables),
            tuple(readers.references),
        )

    def _decode_step(
        self, step: pa.Table, readers: Readers, schema: RecordSchema, large: LargeValues
    ) -> Iterator[tuple[pa.Table, pa.Table]]:
        """Events and rejected records. In a table whose rows may stand for their keys, records without a key are
        decoded by themselves."""
        options = self.options
        if not options.key_from_rows_without_key:
            yield from self._decode_alike(step, readers, schema, options, large)
            return
        has_key = pc.is_valid(step["key"])
        of_rows = replace(options, key_from_row=options.key_from_rows_without_key)
        parts = [(has_key, options), (pc.invert(has_key), of_rows)]
        decoded = [
            tables
            for mask, how in parts
            for tables in self._decode_alike(step.filter(mask), readers, schema, how, large)
        ]
        yield _by_offset([events for events, _ in decoded]), _by_offset([rejected for _, rejected in decoded])

    def _decode_alike(
        self, step: pa.Table, readers: Readers, schema: RecordSchema, options: DecodeOptions, large: LargeValues
    ) -> Iterator[tuple[pa.Table, pa.Table]]:
        """The same by these options. If the records together become too large, decodes them in two halves."""
        try:
            batch = read_batch(step, readers, options)
        except TooMuchText:
            yield from self._decode_halves(step, readers, schema, options, large)
            return
        readers.source_tables.update(filter(None, batch.source_tables))
        if options.defaults is not None:
            readers.note_positions(batch.positions, batch.after.readers)
        try:
            decoded = make_events(step, batch, schema, options, large)
        except TooMuchText:
            if step.num_rows == 1:
                limit = f"more than {options.bounds.text_bytes} bytes of decimals"
                yield reject_all(step, batch, reasons.BEYOND_LIMITS, limit, schema, options)
            else:
                yield from self._decode_halves(step, readers, schema, options, large)
            return
        readers.references.extend(frozenset(batch.references[index]) for index in sorted(batch.references))
        yield decoded

    def _decode_halves(
        self, step: pa.Table, readers: Readers, schema: RecordSchema, options: DecodeOptions, large: LargeValues
    ) -> Iterator[tuple[pa.Table, pa.Table]]:
        half = step.num_rows // 2
        yield from self._decode_alike(step.slice(0, half), readers, schema, options, large)
        yield from self._decode_alike(step.slice(half), readers, schema, options, large)


def _by_offset(parts: list[pa.Table]) -> pa.Table:
    """The events of several parts in one table, those of a partition by offset; events of one record keep their
    order."""
    whole = pa.concat_tables(parts)
    return whole.take(np.lexsort((whole["offset"].to_numpy(), whole["partition"].to_numpy())))


def _steps(table: pa.Table) -> list[pa.Table]:
    """The table in pieces of bounded records and bytes, with contiguous columns."""
    if not table.num_rows:
        return []
    sizes = pc.fill_null(pc.binary_length(table["value"]), 0).to_numpy()
    ends = np.cumsum(sizes)
    steps, start = [], 0
    while start < table.num_rows:
        before = ends[start - 1] if start else 0
        fitting = int(np.searchsorted(ends, before + _BYTES, side="right"))
        stop = min(max(fitting, start + 1), start + _RECORDS)
        steps.append(table.slice(start, stop - start))
        start = stop
    return steps
