"""The status of the running service, for its HTTP server and its metrics.

The service's threads write (`update`, `heartbeat`, `mark_ready`), the HTTP server's threads read (`snapshot`, `tables`,
`live`). All of it is in memory and is lost with the process: progress that must last is in the tables.
"""

from __future__ import annotations

import shlex
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from distributary import __version__
from distributary.halt_actions import unpause_command, with_names
from distributary.observe.rate_history import History
from distributary.observe.stages import Stages
from distributary.observe.table_details import TableDetails
from distributary.observe.table_status import Batch, TableStatus

_COMMANDS = {
    "quarantine_list": "quarantine list",
    "quarantine_replay": "quarantine replay",
}
"""Commands that the page shows for a table, beside the one that ends its halt."""


class ServiceStatus:
    """The status of one running service. Every method may be called from any thread.

    `clock` counts seconds and never runs backwards, `wall` gives seconds since 1970; tests give their own. `history`
    has the tables' recent rates, `details` the last commits, columns and files of single tables. `config_file` is the
    config's path, which the commands for operators name.
    """

    def __init__(
        self,
        clock: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = time.time,
        config_file: str = "FILE",
    ) -> None:
        self._config_file = config_file
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
        # The start counts as a beat, so that a service which never reaches its loop is found dead, too.
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
        """A table has committed a batch; `freshness_seconds` is None if none of its records has a time at the source,
        `stages` where no change of it was streamed."""
        self.history.add(table, batch.applied, freshness_seconds)
        changes: dict[str, Any] = {"last_commit_at": batch.at, "last_batch": batch}
        if freshness_seconds is not None:
            changes["freshness_seconds"] = freshness_seconds
        if stages is not None:
            changes["stages"] = stages
        return self.update(table, **changes)

    def show_transactions(self, transactions: Mapping[str, Any] | None) -> None:
        """Shows how far all tables are complete together, as JSON's types; None if it is not known."""
        with self._lock:
            self._transactions = transactions

    def show_config(self, config: Mapping[str, Any] | None) -> None:
        """Shows faults and ignored keys of the config's files, as JSON's types; None if there are none."""
        with self._lock:
            self._config = config

    @property
    def config(self) -> Mapping[str, Any] | None:
        """The last argument of show_config()."""
        with self._lock:
            return self._config

    def show_stream(self, fault: Mapping[str, str] | None) -> None:
        """Shows why no new records can be planned now (`code`, `message`, `fix`), and from when on; None once they
        can."""
        with self._lock:
            since = self._stream["since"] if self._stream is not None else self._wall()
            self._stream = None if fault is None else {**fault, "since": since}

    def show_heartbeat(self, at_ms: int | None) -> None:
        """Shows when Kafka got the connector's last heartbeat, in milliseconds since 1970; None if that is not
        known."""
        with self._lock:
            self._heartbeat_ms = at_ms

    @property
    def heartbeat_at(self) -> float | None:
        """The last argument of show_heartbeat(), in seconds since 1970."""
        with self._lock:
            return None if self._heartbeat_ms is None else self._heartbeat_ms / 1000

    def note_planned(self) -> None:
        """Notes that all records that Kafka has now are planned."""
        with self._lock:
            self._planned_at = self._wall()

    @property
    def planned_at(self) -> float:
        """When note_planned() was called last, else the start, in seconds since 1970."""
        with self._lock:
            return self._planned_at

    @property
    def stream(self) -> Mapping[str, Any] | None:
        """The last argument of show_stream(), with `since`, in seconds since 1970."""
        with self._lock:
            return self._stream

    @property
    def transactions(self) -> Mapping[str, Any] | None:
        """The last argument of show_transactions()."""
        with self._lock:
            return self._transactions

    def forget(self, table: str) -> None:
        """Stop showing `table`, for instance because its topic is gone."""
        with self._lock:
            self._tables.pop(table, None)
        self.history.forget(table)
        self.details.forget(table)

    def heartbeat(self) -> None:
        """Notes that the service's loop is alive. To be called at each of its turns."""
        with self._lock:
            self._last_beat = self._clock()

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """While the loop waits in here for the storage it counts as alive, because a restart would only wait again."""
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
        """The status of one table; None if the service does not know it."""
        with self._lock:
            return self._tables.get(name)

    def tables(self) -> tuple[TableStatus, ...]:
        """The status of all tables, sorted by name."""
        with self._lock:
            return tuple(self._tables[name] for name in sorted(self._tables))

    def table_as_json(self, name: str) -> dict[str, Any] | None:
        """One table with its details as JSON's types; None if the service does not know it."""
        table, now = self.table(name), self.now()
        if table is None:
            return None
        commands: dict[str, str | None] = {
            what: f"distributary {words} -c {shlex.quote(self._config_file)} {shlex.quote(name)}"
            for what, words in _COMMANDS.items()
        }
        commands["unpause"] = None if table.paused is None else unpause_command(table.paused, name, self._config_file)
        fields = self._with_config_file(table.as_json(now))
        return {"time": now, **fields, **self.details.as_json(name), "commands": commands}

    @property
    def started_at(self) -> float:
        """When the service started, in seconds since 1970."""
        return self._started_at

    def now(self) -> float:
        """The time by the status's own clock, in seconds since 1970."""
        return self._wall()

    def snapshot(self) -> dict[str, Any]:
        """Everything as JSON's types: `version`, `time` and `started_at` (seconds since 1970), `ready`,
        `seconds_since_beat`, `tables`, where it is known `transactions`, `config` if the config's files have faults or
        ignored keys, `stream` while Kafka can't be asked for new records, and where it is known `heartbeat_at`, when
        Kafka got the connector's last heartbeat (seconds since 1970)."""
        return self._as_json(TableStatus.as_json)

    def overview(self) -> dict[str, Any]:
        """As snapshot(), without the tables' offsets, for a page that polls thousands of tables."""
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
            "tables": {status.table: self._with_config_file(of_table(status, now)) for status in self.tables()},
            **({} if transactions is None else {"transactions": transactions}),
            **({} if config is None else {"config": config}),
            **({} if stream is None else {"stream": stream}),
            **({} if heartbeat_at is None else {"heartbeat_at": heartbeat_at}),
        }

    def _with_config_file(self, table: dict[str, Any]) -> dict[str, Any]:
        """A table's status as JSON, with the config's path and its own name in commands in place of FILE and TABLE."""
        told = [table, *(one for one in (table["error"], *table["warnings"]) if one)]
        for fields in told:
            for name in ("command", "fix"):
                if fields.get(name):
                    fields[name] = with_names(fields[name], table=table["table"], config_file=self._config_file)
        return table
