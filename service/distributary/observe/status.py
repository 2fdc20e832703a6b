"""What the running service knows about itself, for its HTTP server and for whoever asks in the same process.

The service's threads write (`update`, `beat`, `mark_ready`), the HTTP server's threads read (`snapshot`, `tables`,
`live`). Everything here is kept in memory and starts anew with the process: what a table has applied for good is in
the table itself.
"""

from __future__ import annotations

import shlex
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from dataclasses import fields as dataclass_fields
from enum import Enum
from typing import Any

from distributary import __version__
from distributary.halt_actions import ASKED_BY, option, unpause
from distributary.observe.rate_history import History
from distributary.observe.stages import Stages
from distributary.observe.table_details import TableDetails

_COMMANDS = {
    "quarantine_list": "quarantine list",
    "quarantine_replay": "quarantine replay",
}
"""What the page has for operators to copy, beside what ends a halt."""
Offsets = Mapping[str, Mapping[int, int]]
"""Per topic and partition an offset."""


class TableState(str, Enum):
    """Where a table is in its life. `str` so that it stands in JSON and in labels as it is."""

    STARTING = "starting"
    RUNNING = "running"
    CATCHING_UP = "catching_up"
    RETRYING = "retrying"
    PAUSED = "paused"
    HALTED = "halted"


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

    `table` is `<schema>.<table>` (see tables.name_of). `next_offsets` is what the table has applied: per partition
    the first offset that it has not; `goal_offsets` is what Kafka held when the stream looked last, once in each
    `trigger.interval`: per partition the offset that the next record there would get.
    `records_applied` and `quarantined` count over all runs: they are in the table's progress record.
    `undecided` counts deletes of which nothing tells whether they took the new row of a key or the one before it.
    `last_commit_at` is in seconds, `source_ts` (commit time at the source of the newest change applied) in
    milliseconds, both since 1970.
    `ghosts` counts the rows that the last complete snapshot leaves over, None where that is not known.
    `freshness_seconds` is the time from the source's commit of the oldest change of a batch to the batch's commit, and
    `last_batch` the newest one of this run; both None before that.
    `stages` are those of the oldest streamed change of the last batch that had one.
    `compacted_at` and `vacuumed_at` are when the table's files were looked after last (see maintain/), in seconds since
    1970; None where they never were.
    `catalog_name` is what the config's catalog calls the table; None without one, and while it does not have it.
    `layout` says how rows leave its files: auto, rewrite or vectors, whichever is in force. `remembered_keys` counts
    the keys of which it remembers more than their row, `memory_bytes` what a commit writes of its memory.
    `paused` says why a paused table is, None for all others.
    `error` has the keys `code`, `message` and `fix`; it is there while the table is retrying or halted. `warnings` have
    the same keys: likely mistakes in its config.
    """

    table: str
    topics: tuple[str, ...] = ()
    state: TableState = TableState.STARTING
    position: str | None = None
    next_offsets: Offsets = field(default_factory=dict)
    goal_offsets: Offsets = field(default_factory=dict)
    records_applied: int = 0
    quarantined: int = 0
    undecided: int = 0
    last_commit_at: float | None = None
    source_ts: int | None = None
    error: Mapping[str, str] | None = None
    catalog_name: str | None = None
    ghosts: int | None = None
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
        # Copies: the service goes on changing its own dicts while another thread reads these.
        object.__setattr__(self, "topics", tuple(self.topics))
        object.__setattr__(self, "state", TableState(self.state))
        object.__setattr__(self, "next_offsets", _copy(self.next_offsets))
        object.__setattr__(self, "goal_offsets", _copy(self.goal_offsets))
        object.__setattr__(self, "error", dict(self.error) if self.error is not None else None)
        object.__setattr__(self, "warnings", tuple(map(dict, self.warnings)))

    @property
    def lag_records(self) -> int:
        """How many offsets of Kafka the table has not applied yet; a partition it never read counts from 0."""
        return sum(
            max(0, goal - self.next_offsets.get(topic, {}).get(partition, 0))
            for topic, partitions in self.goal_offsets.items()
            for partition, goal in partitions.items()
        )

    def lag_seconds(self, now: float) -> float | None:
        """How old the newest change applied is at the source while the table is behind, 0 while it is not; None where
        nothing tells it. `now` is in seconds since 1970."""
        if self.lag_records == 0:
            return 0.0
        if self.source_ts is None:
            return None
        return max(0.0, round(now - self.source_ts / 1000, 3))

    @property
    def command(self) -> str | None:
        """What an operator has to run, as a line for a shell; None where nothing is to be done."""
        if self.state is TableState.HALTED:
            # Once the cause is mended, or accepted.
            asked = option(ASKED_BY.get((self.error or {}).get("code", "")))
            return f"distributary resume -c FILE {shlex.quote(self.table)}{asked}"
        if self.ghosts:
            return f"distributary resume -c FILE {shlex.quote(self.table)} --reconcile"
        return None

    def as_json(self, now: float) -> dict[str, Any]:
        """The same with JSON's types only: partitions become text; the lag and what is to be done are added."""
        found = self.without_offsets(now)
        for name, offsets in (("next_offsets", self.next_offsets), ("goal_offsets", self.goal_offsets)):
            found[name] = {
                topic: {str(partition): offset for partition, offset in sorted(partitions.items())}
                for topic, partitions in offsets.items()
            }
        return found

    def without_offsets(self, now: float) -> dict[str, Any]:
        """The same without the offsets, which are most of it."""
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


class ServiceStatus:
    """The status of one running service. Every method may be called from any thread.

    `clock` counts seconds and never runs backwards, `wall` gives seconds since 1970; tests give their own. `history`
    has what the tables did lately, `details` what is known of single ones beside.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic, wall: Callable[[], float] = time.time) -> None:
        self._lock = threading.Lock()
        self._clock = clock
        self._wall = wall
        self.history = History(wall)
        self.details = TableDetails()
        self._tables: dict[str, TableStatus] = {}
        self._ready = False
        self._transactions: Mapping[str, Any] | None = None
        self._config: Mapping[str, Any] | None = None
        self._stream: Mapping[str, Any] | None = None
        self._heartbeat_ms: int | None = None
        self._planned_at = wall()
        self._started_at = wall()
        # The start counts as a beat: a service that never gets to its loop must be found dead as well.
        self._last_beat = clock()
        self._waits = False

    def update(self, table: str, **changes: Any) -> TableStatus:
        """Set fields of `TableStatus` by name for `table`, which is added if it is new.

        Raises TypeError for a field that does not exist, ValueError for a state that does not.
        """
        with self._lock:
            before = self._tables.get(table) or TableStatus(table)
            after = replace(before, **changes)
            self._tables[table] = after
            return after

    def committed(
        self, table: str, batch: Batch, freshness_seconds: float | None, stages: Stages | None = None
    ) -> TableStatus:
        """A table has committed a batch; `freshness_seconds` is None where nothing in it tells a time at the source,
        `stages` where no change of it was streamed."""
        self.history.add(table, batch.applied, freshness_seconds)
        changes: dict[str, Any] = {"last_commit_at": batch.at, "last_batch": batch}
        if freshness_seconds is not None:
            changes["freshness_seconds"] = freshness_seconds
        if stages is not None:
            changes["stages"] = stages
        return self.update(table, **changes)

    def show_transactions(self, transactions: Mapping[str, Any] | None) -> None:
        """Shows how far all tables are complete together, as JSON's types; None where nothing tells it."""
        with self._lock:
            self._transactions = transactions

    def show_config(self, config: Mapping[str, Any] | None) -> None:
        """Shows what of the config's files does not count, as JSON's types; None where all of it does."""
        with self._lock:
            self._config = config

    @property
    def config(self) -> Mapping[str, Any] | None:
        """What was given last to show_config()."""
        with self._lock:
            return self._config

    def show_stream(self, fault: Mapping[str, str] | None) -> None:
        """Shows why no new records can be planned now (`code`, `message`, `fix`), and from when on; None once they
        can."""
        with self._lock:
            since = self._stream["since"] if self._stream is not None else self._wall()
            self._stream = None if fault is None else {**fault, "since": since}

    def show_heartbeat(self, at_ms: int | None) -> None:
        """Shows when Kafka got the connector's last heartbeat, in milliseconds since 1970; None where that is not
        known."""
        with self._lock:
            self._heartbeat_ms = at_ms

    @property
    def heartbeat_at(self) -> float | None:
        """What was given last to show_heartbeat(), in seconds since 1970."""
        with self._lock:
            return None if self._heartbeat_ms is None else self._heartbeat_ms / 1000

    def planned(self) -> None:
        """The stream has planned all that Kafka had at its turn."""
        with self._lock:
            self._planned_at = self._wall()

    @property
    def planned_at(self) -> float:
        """When that was last, or the start, in seconds since 1970."""
        with self._lock:
            return self._planned_at

    @property
    def stream(self) -> Mapping[str, Any] | None:
        """What was given last to show_stream(), with `since`, in seconds since 1970."""
        with self._lock:
            return self._stream

    @property
    def transactions(self) -> Mapping[str, Any] | None:
        """What was given last to show_transactions()."""
        with self._lock:
            return self._transactions

    def forget(self, table: str) -> None:
        """Stop showing `table`, for instance because its topic is gone."""
        with self._lock:
            self._tables.pop(table, None)
        self.history.forget(table)
        self.details.forget(table)

    def heartbeat(self) -> None:
        """To be called at each turn of the service's loop: says that it is alive."""
        with self._lock:
            self._last_beat = self._clock()

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """The loop waits in here for the storage: a restart would only have it wait again, so that it counts as alive
        for as long as that lasts."""
        with self._lock:
            self._waits = True
        try:
            yield
        finally:
            with self._lock:
                self._waits = False

    def mark_ready(self, ready: bool = True) -> None:
        """Say that the service has started and takes records in."""
        with self._lock:
            self._ready = ready

    @property
    def ready(self) -> bool:
        with self._lock:
            return self._ready

    def seconds_since_beat(self) -> float:
        """How long ago the loop made its last turn."""
        with self._lock:
            return self._clock() - self._last_beat

    def live(self, max_silence_seconds: float) -> bool:
        """Whether the loop made a turn within the last `max_silence_seconds`, or waits for the storage."""
        with self._lock:
            return self._waits or self._clock() - self._last_beat <= max_silence_seconds

    def table(self, name: str) -> TableStatus | None:
        """One table as it is now; None if the service does not know it."""
        with self._lock:
            return self._tables.get(name)

    def tables(self) -> tuple[TableStatus, ...]:
        """All tables as they are now, by name."""
        with self._lock:
            return tuple(self._tables[name] for name in sorted(self._tables))

    def table_as_json(self, name: str) -> dict[str, Any] | None:
        """One table with its details as JSON's types; None if the service does not know it."""
        table, now = self.table(name), self.now()
        if table is None:
            return None
        commands: dict[str, str | None] = {
            what: f"distributary {words} -c FILE {shlex.quote(name)}" for what, words in _COMMANDS.items()
        }
        commands["unpause"] = None if table.paused is None else unpause(table.paused, name)
        return {"time": now, **table.as_json(now), **self.details.as_json(name), "commands": commands}

    @property
    def started_at(self) -> float:
        """When the service started, in seconds since 1970."""
        return self._started_at

    def now(self) -> float:
        """The time by the status's own clock, in seconds since 1970."""
        return self._wall()

    def snapshot(self) -> dict[str, Any]:
        """Everything as JSON's types: `version`, `time` and `started_at` (seconds since 1970), `ready`,
        `seconds_since_beat`, `tables`, where it is known `transactions`, `config` where something in the config's files
        does not count, `stream` while Kafka can't be asked for new records, and where it is known `heartbeat_at`, when
        Kafka got the connector's last heartbeat (seconds since 1970)."""
        return self._as_json(TableStatus.as_json)

    def overview(self) -> dict[str, Any]:
        """The same without the tables' offsets, for a page that shows thousands of them again and again."""
        return self._as_json(TableStatus.without_offsets)

    def _as_json(self, of_table: Callable[[TableStatus, float], dict[str, Any]]) -> dict[str, Any]:
        heartbeat_at = self.heartbeat_at
        now, transactions, config, stream = self.now(), self.transactions, self.config, self.stream
        return {
            "version": __version__,
            "time": now,
            "ready": self.ready,
            "started_at": self._started_at,
            "seconds_since_beat": round(self.seconds_since_beat(), 3),
            "tables": {status.table: of_table(status, now) for status in self.tables()},
            **({} if transactions is None else {"transactions": transactions}),
            **({} if config is None else {"config": config}),
            **({} if stream is None else {"stream": stream}),
            **({} if heartbeat_at is None else {"heartbeat_at": heartbeat_at}),
        }


def _copy(offsets: Offsets) -> dict[str, dict[int, int]]:
    return {topic: dict(partitions) for topic, partitions in offsets.items()}
