"""One table at one moment, as the status page, `/status` and the metrics show it."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from dataclasses import fields as dataclass_fields
from typing import Any

from distributary.former_names import with_former_names
from distributary.halt_actions import NEEDED_ACTIONS, resume_option
from distributary.observe.stages import Stages
from distributary.table_state import TableState

Offsets = Mapping[str, Mapping[int, int]]
"""Per topic and partition an offset."""


@dataclass(frozen=True)
class Batch:
    """A batch that a table has committed: when (seconds since 1970), its records, those applied and those put into
    quarantine, and how many seconds it took from its beginning to its commit."""

    at: float
    records: int
    applied: int
    quarantined: int
    seconds: float


@dataclass(frozen=True)
class TableStatus:
    """One table at one moment.

    `table` is `<schema>.<table>` (see tables.name_of). `next_offsets`: per partition the first offset that the table
    has not applied; `target_offsets`, planned once in each `trigger.interval`: per partition the offset after Kafka's
    last record. `records_applied` and `quarantined` count over all runs: they are in the table's progress record.
    `ambiguous_deletes` counts deletes that could apply to either of two rows of the same key. `last_commit_at` is in
    seconds, `source_ts` (commit time at the source of the newest change applied) in milliseconds, both since 1970.
    `orphaned_rows` counts the rows that the last complete snapshot does not have, None if unknown. `freshness_seconds`
    is the time from the source's commit of the oldest change of a batch to the batch's commit, and `last_batch` the
    newest one of this run; both None before that. `stages` are those of the oldest streamed change of the last batch
    that had one. `compacted_at` and `vacuumed_at` are when the table's files were compacted and vacuumed last (see
    maintain/), in seconds since 1970; None if they never were. `catalog_name` is the table's name in the config's
    catalog; None without a catalog, and until the table is in it. `layout` is the way in which rows are removed from
    files: auto, rewrite or vectors. `remembered_keys` counts the special keys in its memory, `memory_bytes` the bytes
    of memory that a commit writes. `paused` is the reason of a pause, None for all other tables. `error` has the keys
    `code`, `message` and `fix`; it is there while the table is retrying or halted. `warnings` have the same keys:
    likely mistakes in its config.
    """

    table: str
    topics: tuple[str, ...] = ()
    state: TableState = TableState.STARTING
    position: str | None = None
    next_offsets: Offsets = field(default_factory=dict)
    target_offsets: Offsets = field(default_factory=dict)
    records_applied: int = 0
    quarantined: int = 0
    ambiguous_deletes: int = 0
    last_commit_at: float | None = None
    source_ts: int | None = None
    error: Mapping[str, str] | None = None
    catalog_name: str | None = None
    orphaned_rows: int | None = None
    freshness_seconds: float | None = None
    last_batch: Batch | None = None
    stages: Stages | None = None
    compacted_at: float | None = None
    vacuumed_at: float | None = None
    layout: str | None = None
    remembered_keys: int | None = None
    memory_bytes: int | None = None
    warnings: tuple[Mapping[str, str], ...] = ()
    paused: str | None = None

    def __post_init__(self) -> None:
        # Copies: the service continues to change its own dicts while another thread reads these.
        object.__setattr__(self, "topics", tuple(self.topics))
        object.__setattr__(self, "state", TableState(self.state))
        object.__setattr__(self, "next_offsets", _copy(self.next_offsets))
        object.__setattr__(self, "target_offsets", _copy(self.target_offsets))
        object.__setattr__(self, "error", dict(self.error) if self.error is not None else None)
        object.__setattr__(self, "warnings", tuple(map(dict, self.warnings)))

    @property
    def lag_records(self) -> int:
        """How many offsets of Kafka the table has not applied yet; a partition it never read counts from 0."""
        return sum(
            max(0, end - self.next_offsets.get(topic, {}).get(partition, 0))
            for topic, partitions in self.target_offsets.items()
            for partition, end in partitions.items()
        )

    def lag_seconds(self, now: float) -> float | None:
        """How old the newest change applied is at the source while the table is behind, 0 while it is not; None if it
        is not known. `now` is in seconds since 1970."""
        if self.lag_records == 0:
            return 0.0
        if self.source_ts is None:
            return None
        return max(0.0, round(now - self.source_ts / 1000, 3))

    @property
    def command(self) -> str | None:
        """The command that an operator has to run; None if there is nothing to do."""
        if self.state is TableState.HALTED:
            # Once the cause is mended, or accepted.
            needed = resume_option(NEEDED_ACTIONS.get((self.error or {}).get("code", "")))
            return f"distributary resume -c FILE {shlex.quote(self.table)}{needed}"
        if self.orphaned_rows:
            return f"distributary resume -c FILE {shlex.quote(self.table)} --reconcile"
        return None

    def as_json(self, now: float) -> dict[str, Any]:
        """The status in JSON's types: partitions become text; the lag and the operator's command are added."""
        fields = self._fields(now)
        for name, offsets in (("next_offsets", self.next_offsets), ("target_offsets", self.target_offsets)):
            fields[name] = {
                topic: {str(partition): offset for partition, offset in sorted(partitions.items())}
                for topic, partitions in offsets.items()
            }
        return with_former_names(fields)

    def without_offsets(self, now: float) -> dict[str, Any]:
        """As as_json, without the offsets, which are the largest part."""
        return with_former_names(self._fields(now))

    def _fields(self, now: float) -> dict[str, Any]:
        fields: dict[str, Any] = {name: getattr(self, name) for name in _SHOWN}
        fields["topics"] = list(self.topics)
        fields["state"] = self.state.value
        fields["error"] = dict(self.error) if self.error is not None else None
        fields["warnings"] = list(map(dict, self.warnings))
        fields["last_batch"] = asdict(self.last_batch) if self.last_batch is not None else None
        fields["stages"] = asdict(self.stages) if self.stages is not None else None
        fields["lag_records"] = self.lag_records
        fields["lag_seconds"] = self.lag_seconds(now)
        fields["command"] = self.command
        return fields


_SHOWN = tuple(one.name for one in dataclass_fields(TableStatus) if not one.name.endswith("_offsets"))


def _copy(offsets: Offsets) -> dict[str, dict[int, int]]:
    return {topic: dict(partitions) for topic, partitions in offsets.items()}
