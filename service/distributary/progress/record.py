"""The progress record: the offsets and positions that a table has applied, in the same Delta commit as the data.

The record is JSON in the commit's `userMetadata`, so that DESCRIBE HISTORY shows it. Beside it every commit carries a
`txn` action with the record's sequence number: of two drivers that commit on the same state Delta lets one win, and the
other reads the winner's record before it tries again. The number comes from the table's own last record, never from a
batch id: Delta silently skips a write with a known number, and a new checkpoint starts counting batches at 0.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from distributary.errors import TableHalt
from distributary.rules.position_text import position_order

APP_ID = "distributary"
_FORMAT = 2
"""Raised only if older versions would misread a record. They keep fields that they do not know, so that the same tables
work after a rollback. 2: the rules' memory is in the file `memory`, which older versions would not carry on."""
_RECORD = ConfigDict(frozen=True, extra="allow", populate_by_name=True)
"""An alias is a field's name in the stored record, which stays as it is: older versions read it, too."""


class InTransaction(BaseModel):
    """A change's number in a transaction: `order` counts the transaction's changes of this table from 1."""

    model_config = _RECORD

    position: str
    id: str
    order: int | None = None


class Last(BaseModel):
    """The last streamed change of a partition.

    `transaction` is that of the change with the largest position, if the connector reports transactions.
    """

    model_config = _RECORD

    position: str | None = None
    ts_ms: int | None = None
    transaction: InTransaction | None = None


class AddedColumn(BaseModel):
    """A column whose default older rows have, as a text (see types/column_default.py): those whose last change comes
    `before` that position. `pending`: the rows that the table had when it got the column do not have it yet."""

    model_config = _RECORD

    value: str
    before: str
    pending: bool = False


class SourceSnapshot(BaseModel):
    """The newest complete snapshot of a table: the position that all its rows have; per partition the end up to which
    rows of it may still be unread; and how many rows it leaves over, None while they are not counted."""

    model_config = _RECORD

    position: str
    open: Mapping[int, int] = {}
    orphaned_rows: int | None = Field(None, alias="ghosts")


class Progress(BaseModel):
    """One table's progress: the next offset of each partition, its highest position, and the rules' state.

    None means that the version which wrote the record did not know the field, or has the field's own meaning. Names are
    the table's, times are in milliseconds since 1970, offsets are by partition. Fields of later versions are kept.

    - `connector`: the one by whose positions the table is ordered, or position.BY_OFFSET; `order`: the fields that make
      positions, where the connector has no built-in order
    - `unwrapped`: the records are rows without an envelope
    - `topic_id`: Kafka's id of the topic; another one after the topic was deleted and created again
    - `position`, `truncated`: the highest position of a streamed change, and of the newest truncate
    - `lowest`: the lowest position of all records applied; `snapshot_row`: the highest one of a snapshot row
    - `source_ts_ms`, `snapshot_ts_ms`: the source time of the newest record, and of the newest snapshot row
    - `incomplete_snapshot`: the position of the newest snapshot of which rows may be missing: in quarantine, or lost
      from Kafka
    - `lost`: the ends when an operator accepted that Kafka had lost records; snapshots up to there may lack rows
    - `short`: the ends that were below the table's offsets, until an operator accepts that
    - `growth`: the ends when the topic got more partitions, until all records up to there are applied
    - `recent`: (records, rejected ones) of the last batches, for `quarantine.max_ratio`
    - `ambiguous_deletes`: deletes that could apply to either of two rows of a key (rule 2.7)
    - `masks`: how columns are masked (see decode/masks.py); `renames`: the columns that have another name at the source
    - `marks_deleted`: rows have `__deleted`; `timestamps`: the config's setting, ntz if None; `transactions`: rows name
      their transaction
    - `memory`: the file with the rules' state, or `recalled`: a short state itself; `memory_bytes`: its size;
      `remembered_keys`: its special keys
    - `source_table`: the one source table whose changes the topic has had, None if several are allowed (see
      ingest/source_tables.py)
    - `adopted`: the first offsets that the service applied to a table which another writer had filled
    - `strays`: the last record that contradicted the table (see ingest/stray_records.py)
    - `added`: columns that were added with a default for older rows
    """

    model_config = _RECORD

    format: int = _FORMAT
    commit: str
    sequence: int
    topic: str
    topic_id: str
    connector: str
    mode: str = "upsert"
    unwrapped: bool = False
    key: tuple[str, ...]
    next: Mapping[int, int]
    last: Mapping[int, Last] = {}
    position: str | None = None
    truncated: str | None = None
    source_ts_ms: int | None = None
    snapshot_ts_ms: int | None = Field(None, alias="read_ts_ms")
    snapshot: SourceSnapshot | None = None
    lowest: str | None = None
    snapshot_row: str | None = Field(None, alias="read")
    incomplete_snapshot: str | None = Field(None, alias="unread")
    lost: Mapping[int, int] | None = None
    records: int = 0
    quarantined: int = 0
    ambiguous_deletes: int = Field(0, alias="undecided")
    recent: tuple[tuple[int, int], ...] = ()
    masks: Mapping[str, str] | None = None
    renames: Mapping[str, str] | None = None
    marks_deleted: bool | None = None
    timestamps: str | None = None
    transactions: bool | None = None
    short: Mapping[int, int] | None = None
    memory: str | None = None
    recalled: str | None = None
    remembered_keys: int | None = None
    memory_bytes: int | None = None
    growth: Mapping[int, int] | None = None
    source_table: str | None = None
    order: tuple[tuple[str, str], ...] | None = None
    adopted: Mapping[int, int] | None = None
    strays: Mapping[int, int] | None = None
    added: Mapping[str, AddedColumn] | None = None

    @property
    def is_new(self) -> bool:
        """Whether the table has applied nothing yet, and has to be filled from the beginning."""
        return not self.next and self.records == 0

    def to_json(self) -> str:
        """The text that a commit carries as its userMetadata."""
        return json.dumps(
            {APP_ID: self.model_dump(mode="json", exclude_none=True, by_alias=True)}, separators=(",", ":")
        )

    @staticmethod
    def from_json(text: str | None) -> Progress | None:
        """The record in a commit's userMetadata; None if another writer wrote it."""
        if not text or APP_ID not in text:
            return None
        try:
            holder: dict[str, Any] = json.loads(text)
            record = holder[APP_ID]
        except (ValueError, KeyError, TypeError):
            return None
        try:
            progress = Progress.model_validate(record)
        except ValidationError as error:
            raise _unreadable(f"{error.error_count()} faults") from error
        if progress.format > _FORMAT:
            raise _unreadable(f"its format is {progress.format}, and {_FORMAT} is the newest that is known here")
        return progress

    def cleared(self) -> Progress:
        """The record for the same table as a new table, which is filled from the beginning."""
        fresh = first_progress(self.topic, self.topic_id, self.connector, self.mode, ())
        return fresh.model_copy(update={"sequence": self.sequence})

    def next_commit(self, **changes: Any) -> Progress:
        """The record for the next commit: the next number, an identity of its own."""
        return self.model_copy(update={**changes, "commit": uuid.uuid4().hex, "sequence": self.sequence + 1})


def first_progress(topic: str, topic_id: str, connector: str, mode: str, key: tuple[str, ...]) -> Progress:
    """The state of a table that has applied nothing."""
    return Progress(
        commit="", sequence=0, topic=topic, topic_id=topic_id, connector=connector, mode=mode, key=key, next={}
    )


def later(connector: str, one: InTransaction | None, other: InTransaction | None) -> InTransaction | None:
    """The later one of two changes, by their positions."""
    order = position_order(connector)
    return max(filter(None, (one, other)), key=lambda at: (order(at.position), at.order or 0), default=None)


@dataclass(frozen=True)
class Head:
    """Where a table's log is: its version, the newest progress record (None before the service's first commit), and
    when that was committed, in seconds since 1970 (None if Delta does not record it)."""

    version: int
    progress: Progress | None
    at: float | None = None


@dataclass(frozen=True)
class Restored:
    """A RESTORE: the `version` that it made, and the one that the table was set back `to`; None if the log has only a
    time."""

    version: int
    to: int | None


def restored(line: str, version: int) -> Restored | None:
    """The RESTORE in a commit file's commitInfo line; None if it is another operation."""
    info = json.loads(line).get("commitInfo") or {}
    if info.get("operation") != "RESTORE":
        return None
    return Restored(version, restored_to(info.get("operationParameters")))


def _unreadable(why: str) -> TableHalt:
    return TableHalt(
        "progress-unreadable",
        f"the table's progress record can't be read by this version ({why})",
        "run the version of distributary that wrote it, or a newer one",
    )


def restored_to(parameters: Mapping[str, Any] | None) -> int | None:
    """The version that a RESTORE with these operationParameters went back to; None if they have a time alone."""
    to = str((parameters or {}).get("version"))
    return int(to) if to.isdigit() else None


def table_restored() -> TableHalt:
    """The halt of a table that was restored to an unknown version."""
    return TableHalt(
        "table-restored",
        "the table was restored to an earlier state, and its log does not have the progress record of that state",
        "restore it once more, by a version whose commit file is there (RESTORE TABLE … TO VERSION AS OF n);"
        " or delete the table's directory to have it filled again from the start of its topic",
    )


def committed_at(line: str) -> float | None:
    """The time of a commit file's commitInfo line, in seconds since 1970."""
    at = (json.loads(line).get("commitInfo") or {}).get("timestamp")
    return at / 1000 if isinstance(at, int | float) else None


def user_metadata(line: str) -> str | None:
    """The userMetadata of a commit file's line, None if the line is another action."""
    if '"commitInfo"' not in line:
        return None
    info = json.loads(line).get("commitInfo") or {}
    metadata = info.get("userMetadata")
    return metadata if isinstance(metadata, str) else None
