"""Kafka records of one table, as Arrow, to events with typed rows, and the records that can't be applied with
reasons."""

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
"""A step holds the records as Python objects, which take some five times their bytes: this bounds the memory."""


@dataclass(frozen=True)
class Decoded:
    """`events` has a row for each change, `rejected` one for each record that can't be applied (see
    events.make_events). `observed` are the columns of the records, one entry for each of their schemas.

    `conflict` is why the config can't have the columns of some record: such records are rejected, and the table is to
    halt. `unknown_schemas` are addresses of Avro schemas that records name and the options do not have: these records
    are rejected, and are to be decoded again with the schemas. `source_tables` are the names of the tables that the
    changes are of. `references` are large values that records need and nobody has fetched yet (see large_values.py):
    these records are rejected, and are to be decoded again with the values. `has_too_many_large_values`: not all of
    them were fetched, as one batch may have only so many bytes of them.
    """

    events: pa.Table
    rejected: pa.Table
    observed: tuple[ObservedColumns, ...]
    conflict: TableHalt | None
    unknown_schemas: frozenset[str]
    source_tables: frozenset[str]
    references: frozenset[str] = frozenset()
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
        """Records with Kafka's columns (key, value, partition, offset, timestamp, headers) as events whose columns are
        those of the schema. `large` are the large values to put in place of references. `continues`: the records are
        a further piece of the batch that was decoded last, for which the limit of schemas holds as a whole. No content
        of a record makes it raise."""
        if schema != self._readers.schema:
            self._readers = Readers(schema, self.options)
        readers = self._readers
        if not continues:
            readers.start_batch()
        readers.start_piece()
        table = pa.Table.from_batches([raw]) if isinstance(raw, pa.RecordBatch) else raw
        events, rejected = [], []
        for step in _steps(table):
            for made, refused in self._decode_step(step, readers, schema, large):
                events.append(made)
                rejected.append(refused)
        if not events:
            empty = table.slice(0, 0)
            made, refused = make_events(empty, read_batch(empty, readers, self.options), schema, self.options)
            events, rejected = [made], [refused]
        return Decoded(
            pa.concat_tables(events),
            pa.concat_tables(rejected),
            readers.observed_columns(),
            readers.conflict,
            frozenset(readers.unknown_schemas),
            frozenset(readers.source_tables),
            frozenset(readers.references),
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
        made = [
            one for mask, how in parts for one in self._decode_alike(step.filter(mask), readers, schema, how, large)
        ]
        yield _by_place([events for events, _ in made]), _by_place([rejected for _, rejected in made])

    def _decode_alike(
        self, step: pa.Table, readers: Readers, schema: RecordSchema, options: DecodeOptions, large: LargeValues
    ) -> Iterator[tuple[pa.Table, pa.Table]]:
        """The same by these options; of half the records at once where all become too large."""
        try:
            batch = read_batch(step, readers, options)
        except TooMuchText:
            yield from self._decode_halves(step, readers, schema, options, large)
            return
        readers.source_tables.update(filter(None, batch.source_tables))
        if options.defaults is not None:
            readers.note_positions(batch.positions, batch.after.readers)
        try:
            made = make_events(step, batch, schema, options, large)
        except TooMuchText:
            if step.num_rows == 1:
                limit = f"more than {options.bounds.text_bytes} bytes of decimals"
                yield reject_all(step, batch, reasons.BEYOND_LIMITS, limit, schema, options)
            else:
                yield from self._decode_halves(step, readers, schema, options, large)
            return
        readers.references.update(batch.references)
        yield made

    def _decode_halves(
        self, step: pa.Table, readers: Readers, schema: RecordSchema, options: DecodeOptions, large: LargeValues
    ) -> Iterator[tuple[pa.Table, pa.Table]]:
        half = step.num_rows // 2
        yield from self._decode_alike(step.slice(0, half), readers, schema, options, large)
        yield from self._decode_alike(step.slice(half), readers, schema, options, large)


def _by_place(parts: list[pa.Table]) -> pa.Table:
    """Events of several parts in one table, each partition's by offset; those of one record in their order."""
    whole = pa.concat_tables(parts)
    return whole.take(np.lexsort((whole["offset"].to_numpy(), whole["partition"].to_numpy())))


def _steps(table: pa.Table) -> list[pa.Table]:
    """The table in pieces of so many records and bytes, with contiguous columns."""
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
