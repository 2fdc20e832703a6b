"""The decoding that Spark's tasks run, and the findings that they send back beside the rows."""

from __future__ import annotations

import gc
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import partial
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from pyspark.accumulators import Accumulator, AccumulatorParam

from distributary.consume.offsets import OffsetRange
from distributary.decode.decoder import Decoded, Decoder
from distributary.decode.observed_columns import ObservedColumns
from distributary.decode.options import DecodeOptions
from distributary.error_mapping import classify
from distributary.errors import TableHalt, TransientError
from distributary.ingest.large_values import Allowance, LargeValueStore, decode_with_large_values
from distributary.ingest.task_results import EVENTS, FILE, REJECTED, TaskResults, make_result
from distributary.ingest.task_writer import PendingRows, TaskFile, TaskWriter
from distributary.types.record_schema import RecordSchema

Findings = Accumulator[frozenset[str]]
"""The findings of a batch's tasks, as JSON."""


class UnionOfTexts(AccumulatorParam[frozenset[str]]):
    """Accumulates texts. A task that ran twice adds the same ones."""

    def zero(self, value: frozenset[str]) -> frozenset[str]:  # noqa: ARG002
        return frozenset()

    def addInPlace(self, value1: frozenset[str], value2: frozenset[str]) -> frozenset[str]:  # noqa: N802
        return value1 | value2


@dataclass(frozen=True)
class FetchRanges:
    """Fetches offset ranges (partition, start, end) of a topic by their numbers, in pieces."""

    fetch: Callable[[OffsetRange, int, int], Iterator[pa.Table]]
    topic: str
    ranges: Sequence[tuple[int, int, int]]
    most_records: int
    most_bytes: int

    def __call__(self, numbers: pa.RecordBatch) -> Iterator[pa.Table]:
        for number in numbers.column(0).to_pylist():
            partition, start, end = self.ranges[number]
            part = OffsetRange(self.topic, {partition: start}, {partition: end})
            yield from self.fetch(part, self.most_records, self.most_bytes)


@dataclass(frozen=True)
class DecodeTask:
    """Decodes batches of raw records; with `fetch` the input is numbers of offset ranges, and it reads their records
    first. The output is tables (see task_results.RESULT_COLUMNS): events or rejected records (see
    decode.events.make_events), or a file with rows of events (see TaskFile). These events lack the column `row`.

    `store` fetches large values; `tasks` is the number of tasks that share the bytes that a batch may have of them.
    With `writer`, some rows are written into files of the table. `folder`: where it
    may write files with its output, see task_results.result_folder."""

    options: DecodeOptions
    schema: RecordSchema
    findings: Findings
    fetch: FetchRanges | None = None
    store: LargeValueStore | None = None
    tasks: int = 1
    writer: TaskWriter | None = None
    folder: str | None = None

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        try:
            yield from self._parts(batches)
        except Exception as error:
            # The driver gets the text alone, and knows only the service's own errors by it.
            fault = classify(error)
            if isinstance(fault, TransientError) and fault is not error:
                raise fault from error
            raise

    def _parts(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        decoder, send = Decoder(self.options), partial(make_result, folder=self.folder)
        allowance = None if self.store is None else self.store.allowance(self.tasks)
        pending = None if self.writer is None else PendingRows(self.writer)
        reported: set[str] = set()
        continues = False
        for batch in batches:
            for raw in self._raw_pieces(batch):
                with gc_paused():
                    decoded = self._decoded(decoder, raw, allowance, continues=continues)
                continues = True
                self.findings.add(frozenset((findings_as_json(decoded, reported),)))
                yield send(EVENTS, decoded.events if pending is None else pending.add_inserts(decoded.events))
                yield send(REJECTED, decoded.rejected)
                del raw, decoded  # not beside the next piece, which may be one record of 20 MB
                if pending is not None:
                    yield from (send(*_file_or_events(written)) for written in pending.flush())
        if pending is not None:
            yield from (send(*_file_or_events(written)) for written in pending.flush(at_end=True))

    def _raw_pieces(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch | pa.Table]:
        pieces = iter((batch,) if self.fetch is None else self.fetch(batch))
        while True:
            with gc_paused():
                piece = next(pieces, None)
            if piece is None:
                return
            yield piece
            del piece

    def _decoded(
        self, decoder: Decoder, raw: pa.RecordBatch | pa.Table, allowance: Allowance | None, *, continues: bool
    ) -> Decoded:
        if self.store is None or allowance is None:
            return decoder.decode(raw, self.schema, continues=continues)
        return decode_with_large_values(decoder, raw, self.schema, self.store, allowance, continues=continues)


@contextmanager
def gc_paused() -> Iterator[None]:
    """Pauses Python's collector of cyclic garbage: fetching and decoding make thousands of objects without cycles, and
    looking through them took a sixth of a decoder's time."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def _file_or_events(written: TaskFile | pa.Table) -> tuple[str, pa.Table]:
    return (FILE, written.as_table()) if isinstance(written, TaskFile) else (EVENTS, written)


def decoded_of(results: TaskResults, findings: Iterable[str], nothing: Decoded) -> Decoded:
    """Joins the results of a batch's tasks, each partition's records by offset, each column in one piece: what reads
    them later would copy columns of several pieces. `nothing`: the result for no records."""
    events, rejected = (
        # Rows that are in files are NULL.
        _by_place(pa.concat_tables([first, *_of_kind(results, kind)], promote_options="default").combine_chunks())
        for kind, first in ((EVENTS, nothing.events), (REJECTED, nothing.rejected))
    )
    return Decoded(events, rejected, *combine(findings))


def files_of(results: TaskResults) -> list[TaskFile]:
    """The data files that a batch's tasks wrote."""
    return list(map(TaskFile.from_table, _of_kind(results, FILE)))


def _of_kind(results: TaskResults, kind: str) -> list[pa.Table]:
    return [table for of_kind, table in results if of_kind == kind]


def _by_place(records: pa.Table) -> pa.Table:
    """Sorts by partition and offset. Stable: two events of one record keep their order."""
    places = np.lexsort((records["offset"].to_numpy(), records["partition"].to_numpy()))
    return records if (np.diff(places) == 1).all() else records.take(places)


def findings_as_json(decoded: Decoded, reported: set[str]) -> str:
    """The findings of decoding other than rows, for the driver; equal findings give equal texts. Leaves out the columns
    in `reported`, and adds all others to it: the driver keeps the texts of all pieces of a batch."""
    halt = decoded.conflict
    observed = [json.dumps({**asdict(columns), "names": sorted(columns.names)}) for columns in decoded.observed]
    new = [text for text in dict.fromkeys(observed) if text not in reported]
    reported.update(new)
    return json.dumps(
        {
            "observed": new,
            "conflict": None if halt is None else [halt.code, halt.message, halt.fix],
            "unknown_schemas": sorted(decoded.unknown_schemas),
            "source_tables": sorted(decoded.source_tables),
            "references": [sorted(needed) for needed in decoded.references[:1]],
            "has_too_many_large_values": decoded.has_too_many_large_values,
        }
    )


class Combined(NamedTuple):
    """The parts of Decoded other than its records, of all tasks of a batch."""

    observed: tuple[ObservedColumns, ...]
    conflict: TableHalt | None
    unknown_schemas: frozenset[str]
    source_tables: frozenset[str]
    references: tuple[frozenset[str], ...]
    """Those of one record of each piece: it only matters whether there are any, and a batch may have very many."""
    has_too_many_large_values: bool


def combine(findings: Iterable[str]) -> Combined:
    """The findings of a batch's tasks."""
    observed: dict[str, ObservedColumns] = {}
    conflict = None
    unknown: set[str] = set()
    source_tables: set[str] = set()
    references: list[frozenset[str]] = []
    has_too_many = False
    for text in sorted(findings):
        piece = json.loads(text)
        for columns in piece["observed"]:
            fields = json.loads(columns)
            observed[columns] = ObservedColumns(**{**fields, "names": frozenset(fields["names"])})
        conflict = conflict or (piece["conflict"] and TableHalt(*piece["conflict"]))
        unknown.update(piece["unknown_schemas"])
        source_tables.update(piece["source_tables"])
        references.extend(map(frozenset, piece["references"]))
        has_too_many = has_too_many or piece["has_too_many_large_values"]
    return Combined(
        tuple(observed.values()),
        conflict,
        frozenset(unknown),
        frozenset(source_tables),
        tuple(references),
        has_too_many,
    )
