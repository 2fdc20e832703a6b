"""The raw records of a batch that Spark's tasks fetch and decode, at once or while the batch before it is applied."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from concurrent.futures import Future, wait
from dataclasses import replace
from functools import partial

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.udf import UserDefinedFunction
from pyspark.util import PythonEvalType

from distributary.consume.offsets import OffsetRange
from distributary.consume.record_tables import RAW
from distributary.consume.source import RecordSource, ranges
from distributary.decode.decoder import Decoded, Decoder
from distributary.decode.options import DecodeOptions
from distributary.ingest.ahead_thread import AheadThread
from distributary.ingest.decode_task import DecodeTask, FetchRanges, Findings, decoded_of, files_of
from distributary.ingest.large_values import LargeValueStore
from distributary.ingest.offset_ranges import offsets_of, ranges_with
from distributary.ingest.task_files import WrittenFiles
from distributary.ingest.task_results import RESULT_COLUMNS, TaskResults, read_results, result_folder
from distributary.ingest.task_writer import TaskWriter
from distributary.launch.tagged_jobs import TaggedJobs
from distributary.types.record_schema import RecordSchema

_TASK_BYTES = 32 * 2**20
"""Bytes of records that a task decodes at once."""
_TASK_RECORDS = 20_000
_MOST_RUNS = 50
"""Ranges of rejected records that are fetched one by one: each takes some milliseconds."""


_CANCEL_INTERVAL = 0.1  # seconds
Arguments = tuple[DecodeOptions, RecordSchema, Callable[[OffsetRange, int, int], Iterator[pa.Table]]]
"""What the result of decoding a range depends on. The function fetches pieces of a range, see RecordSource."""


class TaskRecords:
    """Records of an offset range that Spark's tasks fetch. `make_writer` makes what writes rows in the tasks.
    `written`: the files with rows that the events of the last decode() lack."""

    def __init__(
        self,
        session: SparkSession,
        source: RecordSource,
        offset_range: OffsetRange,
        findings: Findings,
        make_writer: Callable[[RecordSchema], TaskWriter | None] = lambda _schema: None,
    ) -> None:
        self._session = session
        # One table at a time has jobs for its next batch, see AheadThread.
        self._jobs_ahead = TaggedJobs(session, "distributary-ahead")
        self._source = source
        self.offset_range = offset_range
        self._findings = findings
        self._make_writer = make_writer
        self.written: WrittenFiles | None = None
        self._begun: tuple[Arguments, Future[Decoded], AheadThread] | None = None

    def begin(self, thread: AheadThread, options: DecodeOptions, schema: RecordSchema) -> bool:
        """Begins to decode in that thread; returns whether it is free. A decode() of the same takes the result."""
        arguments = (options, schema, self._source.fetch_pieces)
        future = thread.submit(self, partial(self._decode_tagged, arguments))
        if future is not None:
            self._begun = arguments, future, thread
        return future is not None

    def end(self) -> None:
        """Ends the decoding that was begun, and deletes its files."""
        self._take_begun(None)
        self.delete_unused_files()

    def decode(self, decoder: Decoder, schema: RecordSchema, store: LargeValueStore | None = None) -> Decoded:
        """See RawRecords. Deletes the files of the previous call."""
        arguments = (decoder.options, schema, self._source.fetch_pieces)
        begun = self._take_begun(arguments if store is None else None)
        if begun is not None:
            return begun
        self.delete_unused_files()
        return self._decode(arguments, store)

    def _take_begun(self, wanted: Arguments | None) -> Decoded | None:
        """The result of the decoding that was begun, if it is of these arguments. None, too, if it failed: who decodes
        again meets the same fault, unless it has passed."""
        if self._begun is None:
            return None
        (arguments, future, thread), self._begun = self._begun, None
        is_wanted = arguments == wanted
        try:
            while not is_wanted and not future.done():
                # Again and again: its job may not have begun yet.
                self._jobs_ahead.cancel()
                wait((future,), _CANCEL_INTERVAL)
            failed = future.exception() is not None  # waits for it
        finally:
            thread.release(self)
        return future.result() if is_wanted and not failed else None

    def _decode_tagged(self, arguments: Arguments) -> Decoded:
        with self._jobs_ahead.tagged():
            return self._decode(arguments, None)

    def _decode(self, arguments: Arguments, store: LargeValueStore | None) -> Decoded:
        options, schema, fetch_pieces = arguments
        offset_ranges = ranges(self.offset_range, self._session.sparkContext.defaultParallelism)
        fetch = FetchRanges(fetch_pieces, self.offset_range.topic, offset_ranges, _TASK_RECORDS, _TASK_BYTES)
        writer = self._make_writer(schema)
        task = DecodeTask(options, schema, self._findings, fetch, store, len(offset_ranges), writer)
        # The numbers of the ranges, each in its own Spark partition.
        results = gather(self._session.range(0, len(offset_ranges), 1, len(offset_ranges)), task)
        if writer is not None:
            self.written = WrittenFiles(files_of(results), writer)
        return joined(results, task)

    def delete_unused_files(self) -> None:
        """Deletes the files that no commit has."""
        if self.written is not None:
            self.written.delete_unused()
        self.written = None

    def records_at(self, offsets: pa.Table) -> Iterator[pa.Table]:
        """See LocalRecords. Few ranges are fetched one by one, else the whole range is read once more."""
        wanted, found, size = set(offsets_of(offsets)), [], 0
        for piece in self._pieces_with(ranges_with(self.offset_range.topic, offsets)):
            found.append(records_among(piece, wanted))
            size += found[-1].nbytes
            if size >= _TASK_BYTES:
                yield pa.concat_tables(found)
                found, size = [], 0
        if found:
            yield pa.concat_tables(found)

    def _pieces_with(self, parts: Sequence[OffsetRange]) -> Iterator[pa.Table]:
        if len(parts) > _MOST_RUNS:
            yield from self._source.fetch_pieces(self.offset_range, _TASK_RECORDS, _TASK_BYTES)
            return
        for part in parts:
            fetched = self._source.fetch(part, _TASK_BYTES)
            if fetched.is_complete:
                yield fetched.records
            else:
                yield from self._source.fetch_pieces(part, _TASK_RECORDS, _TASK_BYTES)


def records_among(records: pa.Table, wanted: Collection[tuple[int, int]]) -> pa.Table:
    """The records at these offsets (partition, offset)."""
    return records.filter(pa.array([offset in wanted for offset in offsets_of(records)], pa.bool_()))


def gather(frame: DataFrame, task: DecodeTask) -> TaskResults:
    """What the tasks return for all rows of a frame, see DecodeTask."""
    task.findings.value = frozenset()
    with result_folder(frame.sparkSession.sparkContext) as folder:
        return read_results(_map_in_arrow(frame, replace(task, folder=folder)).toArrow())


def joined(results: TaskResults, task: DecodeTask) -> Decoded:
    """The decoded records of all tasks: what gather() returned just before."""
    nothing = Decoder(task.options).decode(RAW.empty_table(), task.schema)
    return decoded_of(results, task.findings.value, nothing)


def _map_in_arrow(frame: DataFrame, task: DecodeTask) -> DataFrame:
    """DataFrame.mapInArrow, which requires pandas although it does not use it."""
    function = UserDefinedFunction(task, RESULT_COLUMNS, evalType=PythonEvalType.SQL_MAP_ARROW_ITER_UDF, name="decode")
    column = function(*(frame[name] for name in frame.columns))
    return DataFrame(frame._jdf.mapInArrow(column._jc, False, None), frame.sparkSession)
