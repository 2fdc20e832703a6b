"""The size of a table's next batch: at most so many records, and so many bytes that the driver's memory can hold them.
Kafka knows offsets, not bytes. A batch that may be too large is sampled in a few places before it is cut. The last
batch counts, too, because rare large records are in no sample.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping
from itertools import pairwise

from pyspark.sql import SparkSession

from distributary.config.model import Trigger
from distributary.consume.kafka_client import KafkaClient, Topic
from distributary.consume.offsets import OffsetRange, next_range_by_time
from distributary.decode.front import inflated_size
from distributary.ingest.raw_records import LOCAL_BYTES, LOCAL_RECORDS, Cut
from distributary.launch.memory import java_heap
from distributary.progress.batch_stats import BatchStats

_HEAP_DIVISOR = 3
"""The part of the driver's heap that the payloads of all batches at once may have, in bytes."""
_MOST_BYTES = 512 * 2**20  # texts of a column together have at most 2 GiB in Arrow, and samples may be wrong
_MIN_SHARERS = 4
"""Tables that share it at least, beside the batch that is decoded ahead."""
_USUAL_LARGEST = 1024 * 1024  # bytes of a record that Kafka takes by default
_PLACES = 17
_RECORDS_OF_A_PLACE = 200  # fewer places where there are few records: each takes some hundredths of a second
_MAX_SHRINK = 0.8  # how much of a batch is left when it is cut, at most: else it might be sampled many times
_SLACK = 1.25  # samples differ
_GOLDEN = 0.618  # its multiples lie evenly between whole numbers, however many there are
_SCHEMA, _PAYLOAD = b'{"schema":', b',"payload":'


def batch_bytes(session: SparkSession, tables_at_once: int) -> int:
    """How many bytes the payloads of one batch may have."""
    return min(_MOST_BYTES, java_heap(session) // (_HEAP_DIVISOR * (1 + max(_MIN_SHARERS, tables_at_once))))


def sizer_of(session: SparkSession, kafka: KafkaClient, topic: str, trigger: Trigger) -> BatchSizer:
    """The sizer of a topic's batches."""
    return BatchSizer(kafka, topic, trigger.max_records, batch_bytes(session, trigger.tables_at_once))


class BatchSizer:
    """Cuts the batches of one table: of at most so many records, with about so many bytes of payload at most."""

    def __init__(self, kafka: KafkaClient, topic: str, records: int, payload: int) -> None:
        self._kafka = kafka
        self._topic = topic
        self._records = records
        self._payload = payload
        self._recent_record_bytes = 0.0  # bytes of a record, as the last batches were
        self._largest_record_bytes = 0.0

    @property
    def record_bytes(self) -> float:
        """About how large a record's payload is: the largest mean of a batch; 0 before the first."""
        return self._largest_record_bytes

    def next(self, next_offsets: Mapping[int, int], target: Mapping[int, int]) -> OffsetRange:
        """The next batch between `next_offsets` and `target`, see next_range_by_time. Raises TransientError."""
        at_most = self._records
        if self._recent_record_bytes:
            at_most = max(1, min(at_most, int(self._payload / self._recent_record_bytes)))
        return self._shrink_to_fit(self._next_range(next_offsets, target, at_most))

    def cut_of(self, batch: OffsetRange) -> Cut | None:
        """For a batch that `next` did not sample, because it has few records: a function that shortens it if its
        records turn out larger than earlier ones. None for any other batch."""
        return self._cut if batch.records <= self._unsampled_limit else None

    def _cut(self, batch: OffsetRange, records: int) -> OffsetRange:
        return self._next_range(batch.start, batch.end, max(1, records))

    @property
    def _unsampled_limit(self) -> int:
        """Records that fit, and that the driver fetches, if none is larger than usual or than in earlier batches."""
        fetched = min(LOCAL_RECORDS, int(LOCAL_BYTES / max(1.0, self._largest_record_bytes)))
        return min(self._payload // _USUAL_LARGEST, fetched)

    def _shrink_to_fit(self, batch: OffsetRange) -> OffsetRange:
        """The part of a range that fits, from its start; at least so few records. A smaller part is sampled again, at
        other offsets."""
        start, end = batch.start, batch.end
        while batch.records > max(len(batch.end), self._unsampled_limit) and (fits := self._fitting_share(batch)) < 1:
            batch = self._next_range(start, end, max(1, int(batch.records * min(fits, _MAX_SHRINK))))
        return batch

    def half(self, batch: OffsetRange) -> OffsetRange | None:
        """About the first half of a batch, which ends at one time, too; None if it has only one offset."""
        if batch.records <= 1:
            return None
        half = self._next_range(batch.start, batch.end, batch.records // 2)
        if half.records < batch.records:
            return half
        # One offset of each partition: some of the partitions.
        some = sorted(batch.end)[: len(batch.end) // 2]
        return OffsetRange(batch.topic, {p: batch.start[p] for p in some}, {p: batch.end[p] for p in some})

    def _next_range(self, next_offsets: Mapping[int, int], target: Mapping[int, int], at_most: int) -> OffsetRange:
        topic = Topic(self._topic, "", tuple(sorted(target)))
        return next_range_by_time(
            self._topic,
            next_offsets,
            target,
            at_most,
            lambda: self._kafka.newest_time_ms(topic),
            lambda time: self._kafka.at_time(topic, time),
        )

    def learn(self, stats: BatchStats) -> None:
        """Learns the size of records from a batch. A large size decays slowly, not with the next batch of small
        ones."""
        if stats.records:
            mean = stats.payload / stats.records
            self._recent_record_bytes, self._largest_record_bytes = (
                max(mean, self._recent_record_bytes / 2),
                max(mean, self._largest_record_bytes),
            )

    def _fitting_share(self, batch: OffsetRange) -> float:
        """The part of a batch, from its start on, that fits: 1 for all of it."""
        samples = self._kafka.sample(self._topic, places(batch, min(_PLACES, 2 + batch.records // _RECORDS_OF_A_PLACE)))
        sizes = [statistics.fmean(map(payload_size, some)) for some in samples if some]
        steps = [
            [size * batch.records / (len(sizes) - 1) for size in (min(both), max(both))] for both in pairwise(sizes)
        ]
        if sum(most for _, most in steps) <= _SLACK * self._payload:
            return 1.0
        remaining = float(self._payload)
        for number, (least, most) in enumerate(steps):
            if most > remaining:
                # Where only one end of a step has large records, half of it may fit: that part is sampled again.
                fits = max(remaining / most, min(0.5, remaining / max(1.0, least)))
                return (number + fits) / len(steps)
            remaining -= most
        return 1.0


def places(batch: OffsetRange, count: int) -> list[tuple[int, int]]:
    """Partitions and offsets from a batch's start to its end, a partition the more often the more records it has."""
    sizes = {p: batch.end[p] - batch.start[p] for p in sorted(batch.end)}
    sample_places = []
    for number in range(count):
        at = int(number * _GOLDEN % 1 * batch.records)
        for partition, size in sizes.items():
            if at < size:
                sample_places.append((partition, batch.start[partition] + (size - 1) * number // (count - 1)))
                break
            at -= size
    return sample_places


def payload_size(value: bytes | None) -> int:
    """Bytes of a record's value, inflated, a schema beside it aside."""
    value = value or b""
    if (size := inflated_size(value, _USUAL_LARGEST)) is not None:
        return size
    cut = value.find(_PAYLOAD) if value.startswith(_SCHEMA) else -1
    return len(value) - (cut + len(_PAYLOAD) + 1 if cut >= 0 else 0)
