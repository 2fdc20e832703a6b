"""Statistics of a batch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from distributary.progress.record import InTransaction
from distributary.rules.position_text import highest_of


@dataclass(frozen=True)
class PartitionStats:
    """One partition of the batch. `position` and `ts_ms` are the largest of its streamed changes (snapshots aside).

    `deleted_key` is the hash of the key whose delete was the partition's last record, else None. `transaction` is that
    of the change with the largest position, also if it went to the quarantine table; None if the connector sends none.
    """

    records: int
    position: str | None
    ts_ms: int | None
    deleted_key: int | None
    transaction: InTransaction | None = None


@dataclass(frozen=True)
class Passage:
    """When one change was committed at the source, when its connector processed it (None if not known), and the time of
    Kafka's record: in milliseconds since 1970."""

    source_ms: int
    connector_ms: int | None
    kafka_ms: int


@dataclass(frozen=True)
class BatchStats:
    """One batch: counts of records by kind, what is special about it, and its partitions.

    `moved` counts halves of key changes that name the other key. `lone`: some tombstones follow no delete. `late`: some
    record may not be newer than all that the table has applied. `placeholders` counts rows with values that were not
    sent, bad ones among them. `filled`: rows of the table may hold older values for such. `suspect`: the source may
    have gone back (see went_back). `snapshot` is the position of a snapshot of the table that ends in the batch,
    `lowest` the lowest one of its records, `read` the largest one of its snapshot rows, bad ones among them; `unread`
    counts bad records that may be snapshot rows. `deletes` counts tombstones too. `other_form` has by partition the
    offset of the first record that is no envelope where the others are, or is one, `strays` that of the last record
    that the table can't have (see ingest/stray_records.py). `payload` is what all records'
    payloads have in bytes. `keys` are the smallest and the largest value of the key's first column, None if nothing
    has one, or it is of a type by which no files are passed over. `passage` is that of the oldest streamed change.
    """

    connector: str
    records: int
    applied: int
    bad: int
    reads: int
    changes: int
    deletes: int
    moved: int
    lone: bool
    truncated: str | None
    late: bool
    placeholders: int
    filled: bool
    suspect: bool
    newest_ts_ms: int | None
    read_ts_ms: int | None
    partitions: Mapping[int, PartitionStats]
    snapshot: str | None = None
    lowest: str | None = None
    read: str | None = None
    unread: int = 0
    payload: int = 0
    keys: tuple[Any, Any] | None = None
    creates: int = 0
    tombstones: int = 0
    other_form: Mapping[int, int] = field(default_factory=dict)
    passage: Passage | None = None
    strays: Mapping[int, int] = field(default_factory=dict)

    @property
    def operations(self) -> dict[str, int]:
        """How many records of each operation the batch has, without those that can't be applied."""
        deletes = self.deletes - self.tombstones
        counts = {
            "create": self.creates,
            "update": self.changes - self.creates - deletes,
            "delete": deletes,
            "read": self.reads,
            "tombstone": self.tombstones,
            "message": self.records - self.applied - self.bad,
        }
        return {**counts, "truncate": self.records - self.bad - sum(counts.values())}

    @property
    def position(self) -> str | None:
        """The largest position of the batch's streamed changes."""
        return highest_of(self.connector, (p.position for p in self.partitions.values()))
