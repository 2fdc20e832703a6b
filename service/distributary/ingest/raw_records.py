"""The raw records of a batch, and where they are decoded: in the driver or in Spark's tasks.

A small batch is fetched and decoded in the driver, in less time than a Spark job needs to start. The tasks of a larger
one fetch and decode by themselves. Both run the same functions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Protocol

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from distributary.consume.offsets import OffsetRange
from distributary.consume.source import RecordSource
from distributary.decode.decoder import Decoded, Decoder
from distributary.decode.options import DecodeOptions
from distributary.error_mapping import is_fault
from distributary.ingest.ahead_thread import AheadThread
from distributary.ingest.decode_task import DecodeTask, Findings, UnionOfTexts
from distributary.ingest.large_values import LargeValueStore, decode_with_large_values
from distributary.ingest.offset_ranges import offsets_of
from distributary.ingest.task_records import TaskRecords, gather, joined, records_among
from distributary.ingest.task_writer import TaskWriter
from distributary.types.record_schema import RecordSchema

LOCAL_RECORDS = 20_000
"""The most records of a batch that is decoded in the driver."""
LOCAL_BYTES = 64 * 2**20
"""The most bytes of a batch that the driver fetches itself: keys, values with their schemas, and headers."""
_RECORDS_OF_UNKNOWN_SIZE = 1_000
_ARROW_BATCH = "spark.sql.execution.arrow.maxRecordsPerBatch"


Cut = Callable[[OffsetRange, int], OffsetRange]
"""Gives the beginning of a range of which only so many records fit."""


MakeWriter = Callable[[RecordSchema, str, bool], TaskWriter | str]
"""Makes the writer for tasks that decode records of a topic with the columns of a schema, or returns why the driver
has to write all rows. The last argument: whether another batch is committed before theirs."""


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
        yield records_among(self.table, set(offsets_of(offsets)))


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
    `log_reason`. `ahead`: where the batch that comes next may be decoded."""

    def __init__(
        self,
        source: RecordSource,
        session: SparkSession,
        log_reason: Callable[[str], object],
        make_writer: MakeWriter = lambda _schema, _topic, _ahead: "no table is given",
        ahead: AheadThread | None = None,
    ) -> None:
        self._source = source
        self._session = session
        self._log_reason = log_reason
        self._make_writer = make_writer
        self._ahead = ahead
        self._next: TaskRecords | None = None
        self._used: list[TaskRecords] = []
        self._record_bytes = 0.0
        # One for all batches: PySpark keeps each accumulator as long as the driver lives.
        self._findings: Findings = session.sparkContext.accumulator(frozenset(), UnionOfTexts())

    @property
    def next_range(self) -> OffsetRange | None:
        """The range that begin_next() began."""
        return None if self._next is None else self._next.offset_range

    @property
    def can_begin_next(self) -> bool:
        """Whether begin_next() may begin anything: no table's next batch is begun."""
        return self._ahead is not None and self._ahead.is_free

    def begin_next(
        self,
        offset_range: OffsetRange,
        payload_bytes: float,
        cut: Cut | None,
        options: DecodeOptions,
        schema: RecordSchema,
    ) -> None:
        """Begins to decode the range that comes next, if that is for Spark's tasks, and if no other table does so. For
        the first three arguments see of_range(), for the others Decoder.decode()."""
        if self._ahead is None or self._why_tasks(offset_range, payload_bytes, cut) is None:
            return
        records = self._in_tasks(offset_range, ahead=True)
        if records.begin(self._ahead, options, schema):
            self._next = records

    def end_next(self) -> None:
        """Ends what begin_next() began."""
        begun, self._next = self._next, None
        if begun is not None:
            self._end(begun)

    def of_range(
        self, offset_range: OffsetRange, payload_bytes: float = 0, cut: Cut | None = None
    ) -> LocalRecords | TaskRecords:
        """The records of an offset range, with payloads of about so many bytes (0: unknown); of its beginning, if they
        turn out to be more than the driver decodes and there is a `cut`. Raises TransientError."""
        if self._next is not None and self._next.offset_range == offset_range:
            records, self._next = self._next, None
            self._log_reason("Spark's tasks began to decode them while the batch before was applied")
            self._used.append(records)
            return records
        self.end_next()
        if reason := self._why_tasks(offset_range, payload_bytes, cut):
            self._log_reason(reason)
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
                within = records_of(part, fetched.records)
                return self.of_range(part, payload_bytes, cut) if within is None else self._local(part, within)
            self._log_reason(f"more than {LOCAL_BYTES} bytes: Spark's tasks decode them")
            offset_range = part
        records = self._in_tasks(offset_range)
        self._used.append(records)
        return records

    def _why_tasks(self, offset_range: OffsetRange, payload_bytes: float, cut: Cut | None) -> str | None:
        """Why Spark's tasks decode the range; None if the driver tries to. For the arguments see of_range()."""
        record_bytes = max(self._record_bytes, payload_bytes)
        if offset_range.records > LOCAL_RECORDS:
            return f"{offset_range.records} offsets are more than {LOCAL_RECORDS}: Spark's tasks decode them"
        if cut is None and offset_range.records * record_bytes > LOCAL_BYTES:
            return f"{offset_range.records} records of {record_bytes:.0f} bytes: Spark's tasks decode them"
        return None

    def _in_tasks(self, offset_range: OffsetRange, *, ahead: bool = False) -> TaskRecords:
        writer_of = partial(self._writer_of, offset_range.topic, ahead)
        return TaskRecords(self._session, self._source, offset_range, self._findings, writer_of)

    def _writer_of(self, topic: str, ahead: bool, schema: RecordSchema) -> TaskWriter | None:
        writer = self._make_writer(schema, topic, ahead)
        if isinstance(writer, str):
            self._log_reason(f"the driver writes all rows: {writer}")
            return None
        self._log_reason("the tasks write the rows that are expected to be their keys' only change")
        return writer

    def end_used(self) -> None:
        """Ends the decoding of the records that were returned: what tasks still do, and files that no commit has."""
        used, self._used = self._used, []
        for records in used:
            self._end(records)

    def _end(self, records: TaskRecords) -> None:
        """A fault is none of the table's: nothing of these files was committed, and VACUUM removes them."""
        try:
            records.end()
        except BaseException as error:
            if not is_fault(error):
                raise
            self._log_reason(f"files that tasks wrote are left to VACUUM: {type(error).__name__}")

    def _local(self, offset_range: OffsetRange, records: pa.Table) -> LocalRecords:
        self._record_bytes = records.nbytes / max(1, records.num_rows)
        self._log_reason(f"{records.num_rows} records, {records.nbytes} bytes: decoded in the driver")
        return LocalRecords(offset_range, records)

    def of_frame(self, frame: DataFrame) -> FrameRecords:
        """The records of a DataFrame with Kafka's columns."""
        return FrameRecords(frame, self._findings)


def records_of(part: OffsetRange, fetched: pa.Table) -> pa.Table | None:
    """The records of a range; None if not all of them are among the fetched ones, of each partition the first."""
    partitions, offsets = fetched["partition"].to_numpy(), fetched["offset"].to_numpy()
    ends = np.array([part.end.get(partition, 0) for partition in partitions.tolist()], np.int64)
    last = {p: offsets[partitions == p].max(initial=-1) for p in part.end}
    return fetched.filter(offsets < ends) if all(last[p] + 1 >= end for p, end in part.end.items()) else None


def _decode_in_tasks(frame: DataFrame, task: DecodeTask) -> Decoded:
    return joined(gather(frame, task), task)
