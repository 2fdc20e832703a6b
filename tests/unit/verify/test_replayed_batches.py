"""The batches in which `verify` reads a topic again are bounded as the service's are."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from distributary.consume.offsets import OffsetRange
from distributary.ingest.batch_reader import BatchReader
from distributary.ingest.batch_size import BatchSizer
from distributary.ingest.raw_records import RawSource
from distributary.ingest.topic_format import TopicFormat
from distributary.progress.record import Progress
from distributary.verify.replayed_table import _read_bounded


def part(records: int) -> OffsetRange:
    return OffsetRange("t", {0: 0}, {0: records})


class Sizer:
    """Knows records of 20 MB, of which two fit in the driver."""

    record_bytes = 0.0

    def __init__(self) -> None:
        self.learned: list[Any] = []

    def cut_of(self, _batch: OffsetRange) -> Any:
        return lambda batch, records: part(min(batch.records, records))

    def half(self, batch: OffsetRange) -> OffsetRange | None:
        return part(batch.records // 2) if batch.records > 1 else None

    def learn(self, found: Any) -> None:
        self.learned.append(found)


def of_range(batch: OffsetRange, _record_bytes: float, cut: Any) -> Any:
    return SimpleNamespace(offset_range=cut(batch, 8))


@pytest.mark.parametrize(("most_large", "records"), [(100, 8), (3, 2), (0, 1)])
def test_a_batch_is_cut_by_its_bytes_and_by_its_large_values(most_large: int, records: int) -> None:
    def read(raw: Any, _format: Any, _before: Any) -> Any:
        decoded = SimpleNamespace(has_too_many_large_values=raw.offset_range.records > most_large)
        return SimpleNamespace(decoded=decoded, stats=raw.offset_range.records)

    sizer = Sizer()
    reader, source = SimpleNamespace(read_and_change_table=read), SimpleNamespace(of_range=of_range)
    batch, _ = _read_bounded(
        cast(BatchReader, reader),
        cast(RawSource, source),
        cast(BatchSizer, sizer),
        part(40),
        cast(TopicFormat, None),
        cast(Progress, None),
    )
    assert batch == part(records)
    assert sizer.learned == [records]
