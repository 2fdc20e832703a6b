"""The state of all tables, from the lake and Kafka only: needs neither the service nor Spark."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from distributary.config import Config
from distributary.consume.kafka_client import KafkaClient
from distributary.consume.offsets import Offsets
from distributary.control.halts import read_halts
from distributary.control.pauses import ALL, Pause, read_pauses
from distributary.errors import DistributaryError, SetupError
from distributary.former_names import with_former_names
from distributary.halt_actions import PAUSED_IN_CONFIG
from distributary.ingest.continuity import lost_ends
from distributary.ingest.removal_layout import removal_layout
from distributary.ingest.tables import ConfiguredTable, list_tables
from distributary.progress.record import Progress
from distributary.quarantine.listing import summary
from distributary.storage.lake_files import Newest, newest_record
from distributary.table_state import TableState


@dataclass(frozen=True)
class TableOverview:
    """One table at one moment.

    - `state`: NEW, UP_TO_DATE, BEHIND, PAUSED or HALTED.
    - `lag_records`: None if it is unknown: the table's offsets are not those of the topic as it is now.
    - `lag_seconds`: if behind, the age at the source of the newest applied change; else 0.
    - `last_commit_at`: seconds since 1970.
    - `quarantined`: number of records that went to quarantine, over all runs; `in_quarantine`: of those the ones that
      are still there, and were not applied since.
    - `ambiguous_deletes`: number of deletes that could apply to either of two rows (rule 2.7).
    - `orphaned_rows`: number of rows that the last complete snapshot does not have; None if unknown.
    - `layout`: the one in force; `remembered_keys` and `memory_bytes`: the size of what the table
      remembers beside its rows.
    - `error`: `code`, `message` and `fix` of a halted table; `paused`: the reason of a pause.
    """

    table: str
    topic: str
    path: str
    state: TableState
    lag_records: int | None
    lag_seconds: float | None
    position: str | None = None
    last_commit_at: float | None = None
    records_applied: int = 0
    quarantined: int = 0
    in_quarantine: int = 0
    ambiguous_deletes: int = 0
    orphaned_rows: int | None = None
    layout: str = "auto"
    remembered_keys: int | None = None
    memory_bytes: int | None = None
    error: dict[str, str] | None = None
    paused: str | None = None

    def as_json(self) -> dict[str, Any]:
        """The overview in JSON's types."""
        return with_former_names(asdict(self))


def overview(config: Config, kafka: KafkaClient) -> list[TableOverview]:
    """All tables of the config with a topic, and halted tables whose topic is missing; sorted by name. Raises errors of
    Kafka and the storage."""
    halts = read_halts(config)
    pauses = read_pauses(config)
    tables = [
        _of(one, kafka, _error(halts.get(one.topic)), _why_paused(one, pauses)) for one in list_tables(config, kafka)
    ]
    tables += without_topic(halts, {one.topic for one in tables})
    return sorted(with_quarantine(tables, config), key=lambda one: one.table)


def with_quarantine(tables: Sequence[TableOverview], config: Config) -> list[TableOverview]:
    """The overviews with the numbers of records in quarantine. The quarantine table is read only if records ever went
    there; if it can't be read, all of them count."""
    if not any(table.quarantined for table in tables):
        return list(tables)
    waiting = Counter[str]()
    try:
        for reason in summary(config):
            waiting[reason.table] += reason.waiting
    except SetupError:
        waiting.update({table.table: table.quarantined for table in tables})
    return [replace(table, in_quarantine=waiting[table.table]) for table in tables]


def without_topic(halts: Mapping[str, dict[str, str]], topics: Collection[str]) -> list[TableOverview]:
    """Overviews of halted tables whose topic is not in `topics`: it was deleted, and only the halt is known."""
    return [
        TableOverview(
            halt["table"],
            topic,
            path="",
            state=TableState.HALTED,
            lag_records=None,
            lag_seconds=None,
            error=_error(halt),
        )
        for topic, halt in halts.items()
        if topic not in topics
    ]


def _error(halt: Mapping[str, str] | None) -> dict[str, str] | None:
    return None if halt is None else {name: halt[name] for name in ("code", "message", "fix")}


def _why_paused(table: ConfiguredTable, pauses: Mapping[str, Pause]) -> str | None:
    if table.settings.paused:
        return PAUSED_IN_CONFIG
    pause = pauses.get(ALL) or pauses.get(table.topic)
    return None if pause is None else str(pause)


def _of(table: ConfiguredTable, kafka: KafkaClient, halt: dict[str, str] | None, paused: str | None) -> TableOverview:
    topic = kafka.topics([table.topic]).get(table.topic)
    first = kafka.earliest(topic) if topic else {}
    end = kafka.latest(topic) if topic else {}
    try:
        newest = newest_record(table.path)
    except DistributaryError as fault:  # an error of one table must not hide the others
        newest, halt = None, fault.as_dict()
    topic_id = topic.topic_id if topic else None
    return table_overview(table, newest, first, end, halt, time.time(), paused, topic_id)


def table_overview(
    one: ConfiguredTable,
    newest: Newest | None,
    first: Offsets,
    end: Offsets,
    halt: dict[str, str] | None,
    now: float,
    paused: str | None = None,
    topic_id: str | None = None,
) -> TableOverview:
    """The overview of a table from its newest record, Kafka's first and end offsets, its halt, its pause's reason, and
    the id of the topic as it is now. `now`: seconds since 1970."""
    progress = newest.progress if newest else None
    next_offsets = {**first, **(progress.next if progress else {})}
    lag = None
    if progress is None or not _has_other_offsets(progress, topic_id, end):
        lag = sum(max(0, offset - next_offsets.get(p, 0)) for p, offset in end.items())
    if halt is not None:
        state = TableState.HALTED
    elif paused is not None:
        state = TableState.PAUSED
    elif progress is None:
        state = TableState.NEW
    else:
        state = TableState.UP_TO_DATE if lag == 0 else TableState.BEHIND
    return TableOverview(
        table=one.name,
        topic=one.topic,
        path=one.path,
        state=state,
        lag_records=lag,
        lag_seconds=_lag_seconds(progress, lag, now),
        position=progress.position if progress else None,
        last_commit_at=newest.committed_at if newest else None,
        records_applied=progress.records if progress else 0,
        quarantined=progress.quarantined if progress else 0,
        ambiguous_deletes=progress.ambiguous_deletes if progress else 0,
        orphaned_rows=progress.snapshot.orphaned_rows if progress and progress.snapshot else None,
        layout=removal_layout(one.settings).value,
        remembered_keys=progress.remembered_keys if progress else None,
        memory_bytes=progress.memory_bytes if progress else None,
        error=halt,
        paused=paused,
    )


def _has_other_offsets(progress: Progress, topic_id: str | None, end: Offsets) -> bool:
    """Whether the table's offsets are not those of the topic as it is now: it was created again, or has lost its
    end."""
    return topic_id not in (None, progress.topic_id) or bool(progress.short or lost_ends(progress, end))


def _lag_seconds(progress: Progress | None, lag: int | None, now: float) -> float | None:
    if lag == 0:
        return 0.0
    if progress is None or progress.source_ts_ms is None:
        return None
    return max(0.0, round(now - progress.source_ts_ms / 1000, 3))
