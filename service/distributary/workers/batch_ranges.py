"""The offset ranges of one table's batches, and the batch that is decoded while the one before it is applied."""

from __future__ import annotations

from distributary.consume.offsets import OffsetRange, Offsets
from distributary.decode.options import DecodeOptions
from distributary.errors import TransientError
from distributary.ingest.batch_size import BatchSizer
from distributary.ingest.continuity import nearer_target
from distributary.ingest.raw_records import LocalRecords, RawSource
from distributary.ingest.table_cursor import TableCursor
from distributary.ingest.task_records import TaskRecords
from distributary.types.record_schema import RecordSchema


class BatchRanges:
    """Plans the batches of one table from its `cursor` on."""

    def __init__(self, sizer: BatchSizer, source: RawSource, cursor: TableCursor) -> None:
        self._sizer = sizer
        self._source = source
        self._cursor = cursor

    def next(self, target: Offsets) -> OffsetRange:
        """The offset range of the next batch on the way to `target`, empty at its end. After a loss that an operator
        accepted, it first reads up to the ends of that time (see nearer_target). Raises TransientError."""
        progress, start = self._cursor.progress, self._cursor.from_offsets
        if progress and progress.lost:
            nearer = self._sizer.next(start, nearer_target(target, start, progress.lost))
            return nearer or self._sizer.next(start, target)
        begun = self._source.next_range
        if begun is not None and _is_next(begun, start, target):
            return begun
        return self._sizer.next(start, target)

    def begin_after(
        self, batch: LocalRecords | TaskRecords, target: Offsets, options: DecodeOptions, schema: RecordSchema
    ) -> None:
        """Begins to decode the batch that follows on this one, with the options and the schema of this one, if both
        are for Spark's tasks. Does nothing if another table's is begun, or if Kafka does not answer."""
        progress = self._cursor.progress
        if isinstance(batch, LocalRecords) or not self._source.can_begin_next or (progress and progress.lost):
            return
        try:
            following = self._sizer.next({**self._cursor.from_offsets, **batch.offset_range.end}, target)
        except TransientError:  # of no concern to the batch that is applied now; the next step asks again
            return
        if following:
            cut = self._sizer.cut_of(following)
            self._source.begin_next(following, self._sizer.record_bytes, cut, options, schema)


def _is_next(batch: OffsetRange, start: Offsets, target: Offsets) -> bool:
    begins = all(start.get(partition, 0) == offset for partition, offset in batch.start.items())
    return begins and all(offset <= target.get(partition, 0) for partition, offset in batch.end.items())
