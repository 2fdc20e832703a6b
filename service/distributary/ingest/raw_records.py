"""The raw records of a batch, and where they are decoded: in the driver or in Spark's tasks.

A small batch is fetched and decoded in the driver, in less time than a Spark job needs to start. The tasks of a larger
one fetch and decode by themselves. Both run the same functions.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Protocol

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.udf import UserDefinedFunction
from pyspark.util import PythonEvalType

from distributary.consume.offsets import OffsetRange
from distributary.consume.record_tables import RAW
from distributary.consume.source import RecordSource, ranges
from distributary.decode.decoder import Decoded, Decoder
from distributary.ingest.decode_task import (
    GATHERED,
    DecodeTask,
    FetchRanges,
    Findings,
    UnionOfTexts,
    decoded_of,
    files_of,
)
from distributary.ingest.large_values import LargeValueStore, decode_with_large_values
from distributary.ingest.offset_ranges import offsets_of, ranges_with
from distributary.ingest.task_files import WrittenFiles
from distributary.ingest.task_writer import TaskWriter
from distributary.types.record_schema import RecordSchema

LOCAL_RECORDS = 20_000
"""The most records of a batch that is decoded in the driver."""
LOCAL_BYTES = 64 * 2**20
"""The most bytes of a batch that the driver fetches itself: keys, values with their schemas, and headers."""
_TASK_BYTES = 32 * 2**20
"""Bytes of records that a task decodes at once."""
_TASK_RECORDS = 20_000
_MOST_RUNS = 50
"""Ranges of rejected records that are fetched one by one: each takes some milliseconds."""
_RECORDS_OF_UNKNOWN_SIZE = 1_000
_ARROW_BATCH = "spark.sql.execution.arrow.maxRecordsPerBatch"


Cut = Callable[[OffsetRange, int], OffsetRange]
"""Gives the beginning of a range of which only so many records fit."""


MakeWriter = Callable[[RecordSchema, str], TaskWriter | str]
"""Makes the writer for tasks that decode records of a topic with the columns of a schema, or returns why the driver
has to write all rows."""


class RawRecords(Protocol):
    """The raw records of one batch."""

    def decode(self, decoder: Decoder, schema: RecordSchema, store: LargeValueStore | None = None) -> Decoded:
        """Decodes all records into the driver's memory, each partition's by offset. `store`: where large values are
        to be fetched from."""
        ...


class LocalRecords:
    """Records of an offset range in the driver (see consume.record_tables.RAW). `written`: see TaskRecords."""

    written = None

    def __init__(self, offset_range: OffsetRange, table: pa.Table) -> None:
        self.offset_range = offset_range
        self.table = table

    def decode(self, decoder: Decoder, schema: RecordSchema, store: LargeValueStore | None = None) -> Decoded:
        """See RawRecords."""
        if store is None:
            return decoder.decode(self.table, schema)
        return decode_with_large_values(decoder, self.table, schema, store, store.allowance())

    def records_at(self, offsets: pa.Table) -> Iterator[pa.Table]:
        """The raw records (record_tables.RAW) at these offsets (partition, offset), in pieces that fit into memory."""
        yield _at(self.table, set(offsets_of(offsets)))


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
        self._source = source
        self.offset_range = offset_range
        self._findings = findings
        self._make_writer = make_writer
        self.written: WrittenFiles | None = None

    def decode(self, decoder: Decoder, schema: RecordSchema, store: LargeValueStore | None = None) -> Decoded:
        """See RawRecords. Deletes the files of the previous call."""
        self.delete_unused_files()
        numbers, fetch = self._ranges()
        writer = self._make_writer(schema)
        task = DecodeTask(decoder.options, schema, self._findings, fetch, store, len(fetch.ranges), writer)
        gathered = _gathered(numbers, task)
        if writer is not None:
            self.written = WrittenFiles(files_of(gathered), writer)
        return _decoded(gathered, task)

    def delete_unused_files(self) -> None:
        """Deletes the files that no commit has."""
        if self.written is not None:
            self.written.delete_unused()
        self.written = None

    def _ranges(self) -> tuple[DataFrame, FetchRanges]:
        """The numbers of the ranges, each in its own Spark partition, and the function that fetches a range."""
        offset_ranges = ranges(self.offset_range, self._session.sparkContext.defaultParallelism)
        fetch = FetchRanges(
            self._source.fetch_pieces, self.offset_range.topic, offset_ranges, _TASK_RECORDS, _TASK_BYTES
        )
        return self._session.range(0, len(offset_ranges), 1, len(offset_ranges)), fetch

    def records_at(self, offsets: pa.Table) -> Iterator[pa.Table]:
        """See LocalRecords. Few ranges are fetched one by one, else the whole range is read once more."""
        wanted, found, size = set(offsets_of(offsets)), [], 0
        for piece in self._pieces_with(ranges_with(self.offset_range.topic, offsets)):
            found.append(_at(piece, wanted))
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


class FrameRecords:
    """Records of a DataFrame with Kafka's columns."""

    def __init__(self, frame: DataFrame, findings: Findings) -> None:
        self._frame = frame
        self._findings = findings

    def decode(self, decoder: Decoder, schema: RecordSchema, store: LargeValueStore | None = None) -> Decoded:
        """See RawRecords."""
        task = DecodeTask(decoder.options, schema, self._findings)
        if store is None:
            return _decode_in_tasks(self._raw(), task)
        # One task: these records do not come in smaller batches, and each of them may need all bytes of a batch.
        return _decode_in_tasks(self._raw().coalesce(1), replace(task, store=store))

    def _raw(self) -> DataFrame:
        self._frame.sparkSession.conf.set(_ARROW_BATCH, str(_RECORDS_OF_UNKNOWN_SIZE))
        return self._frame.select("key", "value", "partition", "offset", "timestamp", "headers")


class RawSource:
    """Chooses for each batch of one table where it is decoded, and where its rows are written, and reports why to
    `log_reason`."""

    def __init__(
        self,
        source: RecordSource,
        session: SparkSession,
        log_reason: Callable[[str], object],
        make_writer: MakeWriter = lambda _schema, _topic: "no table is given",
    ) -> None:
        self._source = source
        self._session = session
        self._log_reason = log_reason
        self._make_writer = make_writer
        self._with_files: list[TaskRecords] = []
        self._record_bytes = 0.0
        # One for all batches: PySpark keeps each accumulator as long as the driver lives.
        self._findings: Findings = session.sparkContext.accumulator(frozenset(), UnionOfTexts())

    def of_range(
        self, offset_range: OffsetRange, payload_bytes: float = 0, cut: Cut | None = None
    ) -> LocalRecords | TaskRecords:
        """The records of an offset range, with payloads of about so many bytes (0: unknown); of its beginning, if they
        turn out to be more than the driver decodes and there is a `cut`. Raises TransientError."""
        record_bytes = max(self._record_bytes, payload_bytes)
        if offset_range.records > LOCAL_RECORDS:
            self._log_reason(f"{offset_range.records} offsets are more than {LOCAL_RECORDS}: Spark's tasks decode them")
        elif cut is None and offset_range.records * record_bytes > LOCAL_BYTES:
            self._log_reason(f"{offset_range.records} records of {record_bytes:.0f} bytes: Spark's tasks decode them")
        else:
            fetched = self._source.fetch(offset_range, LOCAL_BYTES)
            if fetched.is_complete:
                return self._local(offset_range, fetched.records)
            # The next batch of that size is not fetched in vain then.
            self._record_bytes = 1 + LOCAL_BYTES / offset_range.records
            fits = fetched.records.num_rows
            part = offset_range if cut is None else cut(offset_range, fits)
            if fits and part.records < offset_range.records:
                self._log_reason(f"the first {fits} records have {LOCAL_BYTES} bytes: the batch ends with them")
                records = records_of(part, fetched.records)
                return self.of_range(part, payload_bytes, cut) if records is None else self._local(part, records)
            self._log_reason(f"more than {LOCAL_BYTES} bytes: Spark's tasks decode them")
            offset_range = part
        writer_of = partial(self._writer_of, offset_range.topic)
        records = TaskRecords(self._session, self._source, offset_range, self._findings, writer_of)
        self._with_files.append(records)
        return records

    def _writer_of(self, topic: str, schema: RecordSchema) -> TaskWriter | None:
        writer = self._make_writer(schema, topic)
        if isinstance(writer, str):
            self._log_reason(f"the driver writes all rows: {writer}")
            return None
        self._log_reason("the tasks write the rows that are expected to be their keys' only change")
        return writer

    def delete_unused_files(self) -> None:
        """Deletes the files that tasks wrote for earlier batches, and that no commit has."""
        for records in self._with_files:
            records.delete_unused_files()
        self._with_files = []

    def _local(self, offset_range: OffsetRange, records: pa.Table) -> LocalRecords:
        self._record_bytes = records.nbytes / max(1, records.num_rows)
        self._log_reason(f"{records.num_rows} records, {records.nbytes} bytes: decoded in the driver")
        return LocalRecords(offset_range, records)

    def of_frame(self, frame: DataFrame) -> FrameRecords:
        """The records of a DataFrame with Kafka's columns."""
        return FrameRecords(frame, self._findings)


def _at(records: pa.Table, wanted: Collection[tuple[int, int]]) -> pa.Table:
    return records.filter(pa.array([offset in wanted for offset in offsets_of(records)], pa.bool_()))


def records_of(part: OffsetRange, fetched: pa.Table) -> pa.Table | None:
    """The records of a range; None if not all of them are among the fetched ones, of each partition the first."""
    partitions, offsets = fetched["partition"].to_numpy(), fetched["offset"].to_numpy()
    ends = np.array([part.end.get(partition, 0) for partition in partitions.tolist()], np.int64)
    last = {p: offsets[partitions == p].max(initial=-1) for p in part.end}
    return fetched.filter(offsets < ends) if all(last[p] + 1 >= end for p, end in part.end.items()) else None


def _decode_in_tasks(frame: DataFrame, task: DecodeTask) -> Decoded:
    return _decoded(_gathered(frame, task), task)


def _gathered(frame: DataFrame, task: DecodeTask) -> pa.Table:
    task.findings.value = frozenset()
    return _map_in_arrow(frame, task).toArrow()


def _decoded(gathered: pa.Table, task: DecodeTask) -> Decoded:
    nothing = Decoder(task.options).decode(RAW.empty_table(), task.schema)
    return decoded_of(gathered, task.findings.value, nothing)


def _map_in_arrow(frame: DataFrame, task: DecodeTask) -> DataFrame:
    """DataFrame.mapInArrow, which requires pandas although it does not use it."""
    function = UserDefinedFunction(task, GATHERED, evalType=PythonEvalType.SQL_MAP_ARROW_ITER_UDF, name="decode")
    column = function(*(frame[name] for name in frame.columns))
    return DataFrame(frame._jdf.mapInArrow(column._jc, False, None), frame.sparkSession)
