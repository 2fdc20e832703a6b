"""When a batch's oldest change was committed at the source, processed by the connector and written to Kafka."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from distributary.progress.batch_stats import OldestChangeTimes
from distributary.rules.columns import one_array

STREAMED = pa.array(["c", "u", "d", "t"])
"""The operations of changes that were streamed, in contrast to rows of snapshots."""


def oldest_change_times(events: pa.Table) -> OldestChangeTimes | None:
    """The times of the batch's change that the source committed first (of several, the last one that Kafka got); None
    without one. A snapshot's rows do not count: when the source committed them is not known.

    `events` are decoded ones. Whole columns are compared, not single records.
    """
    kafka = one_array(events["timestamp"]).cast(pa.timestamp("ms", "UTC")).cast(pa.int64())
    times = pa.table(
        {
            "source": one_array(events["source_time"]),
            "connector": one_array(events["connector_time"]),
            "kafka": kafka,
        }
    ).filter(pc.and_(pc.is_in(events["operation"], STREAMED), pc.greater(kafka, 0)))
    oldest = pc.min(times["source"])
    if not oldest.is_valid:
        return None
    times = times.filter(pc.equal(times["source"], oldest))
    kafka_ms = pc.max(times["kafka"])
    connector = pc.max(times.filter(pc.equal(times["kafka"], kafka_ms))["connector"])
    return OldestChangeTimes(oldest.as_py(), connector.as_py(), kafka_ms.as_py())
