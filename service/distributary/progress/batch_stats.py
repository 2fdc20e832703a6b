"""Statistics of a batch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from distributary.progress.record import InTransaction
from distributary.rules.position_text import highest_of


@dataclass(frozen=True)
class PartitionStats:
    """One partition of the batch. `position` and `ts_ms` are the largest of its streamed changes (snapshots aside).

    `transaction` is that of the change with the largest position, also if it went to the quarantine table; None if the
    connector sends none.
    """

    records: int
    position: str | None
    ts_ms: int | None
    transaction: InTransaction | None = None


@dataclass(frozen=True)
class OldestChangeTimes:
    """When one change was committed at the source, when its connector processed it (None if not known), and the time of
    Kafka's record: in milliseconds since 1970."""

    source_ms: int
    connector_ms: int | None
    kafka_ms: int


@dataclass(frozen=True)
class BatchStats:
    """One batch: counts of records by kind, positions, and its partitions.

    `truncated`: the position of its newest truncate. `snapshot`: the position of a snapshot of the table that ends in
    the batch; `lowest`: the lowest position of its records; `snapshot_row`: the largest one of its snapshot rows, bad
    ones among them. `bad_snapshot_rows` counts bad records that may be snapshot rows. `deletes` counts tombstones too.
    `other_form`: by partition, the offset of the first record that is no envelope where the others are, or is one;
    `strays`: that of the last record that the table can't have (see ingest/stray_records.py).
    `payload`: bytes of all records' payloads. `oldest_change`: the times of the oldest streamed change. Times are in
    milliseconds since 1970.
    """

    connector: str
    records: int
    applied: int
    bad: int
    snapshot_rows: int
    changes: int
    deletes: int
    truncated: str | None
    newest_ts_ms: int | None
    snapshot_ts_ms: int | None
    partitions: Mapping[int, PartitionStats]
    snapshot: str | None = None
    lowest: str | None = None
    snapshot_row: str | None = None
    bad_snapshot_rows: int = 0
    payload: int = 0
    creates: int = 0
    tombstones: int = 0
    other_form: Mapping[int, int] = field(default_factory=dict)
    oldest_change: OldestChangeTimes | None = None
    strays: Mapping[int, int] = field(default_factory=dict)

    @property
    def operations(self) -> dict[str, int]:
        """How many records of each operation the batch has, without those that can't be applied."""
        deletes = self.deletes - self.tombstones
        counts = {
            "create": self.creates,
            "update": self.changes - self.creates - deletes,
            "delete": deletes,
            "read": self.snapshot_rows,
            "tombstone": self.tombstones,
            "message": self.records - self.applied - self.bad,
        }
        return {**counts, "truncate": self.records - self.bad - sum(counts.values())}

    @property
    def position(self) -> str | None:
        """The largest position of the batch's streamed changes."""
        return highest_of(self.connector, (p.position for p in self.partitions.values()))
