"""Plays recorded scenarios through a real Kafka and the public command, and reads the resulting lake.

A playback has a topic prefix of its own, so that many can share a broker. A recorded topic `<prefix>.public.<table>`
becomes `<own prefix>.<scenario>.<table>`: the topic's name decides a table's identity, and so one run of the service
can cover many scenarios. What lies inside the records stays as it was recorded.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import uuid
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import yaml
from deltalake import DeltaTable, QueryBuilder
from deltalake.exceptions import TableNotFoundError
from tests.support.kafka import create_topics, produce
from tests.support.mariadb_types import mariadb_type
from tests.support.postgres_types import postgres_type
from tests.support.recorded import Record, Scenario, TruthTable
from tests.support.truth import Difference, compare_table, missing_service_columns
from tests.support.waiting import wait_until
from tests.support.wire_limits import limits

TOPIC_CONFIG = {
    # The recording's own clock may be years behind or ahead of the broker's.
    "retention.ms": "-1",
    "message.timestamp.before.max.ms": str(2**63 - 1),
    "message.timestamp.after.max.ms": str(2**63 - 1),
}
COMMON_SCHEMAS = ("public", "shop")
"""The usual schema of each database."""

NOT_ON_THE_WIRE = {"pg_unwrap": ("__source_ts",)}
"""Columns of the service that a scenario's records can't fill."""

TABLE_HALTED = "table halted"
"""The event of a log entry."""

RUN_TIMEOUT = 3400
"""Seconds."""


@dataclass(frozen=True)
class Run:
    """The exit code of a run of the command, and its output."""

    exit_code: int
    output: str

    def log(self) -> list[dict[str, Any]]:
        """The log's entries."""
        return [json.loads(line) for line in self.output.splitlines() if line.startswith("{")]

    def halts(self) -> dict[str, dict[str, Any]]:
        """The log's entries on tables that halted, by table."""
        return {entry["table"]: entry for entry in self.log() if entry["event"] == TABLE_HALTED}

    def __str__(self) -> str:
        return f"exit code {self.exit_code}; the log ends with\n{self.output[-4000:]}"


@dataclass(frozen=True)
class Running:
    """A run of the command that may not have ended yet."""

    process: subprocess.Popen[bytes]
    log: Path
    may_halt: frozenset[str] = frozenset()
    """The tables that the test expects to halt."""

    def wait_until(self, holds: Callable[[], object], seconds: float = 300.0) -> None:
        """Waits until the condition holds. Raises AssertionError if it takes longer, if the run ends before, and as
        soon as another table than expected has halted: then with the halt's log line alone, else with the log's end."""
        wait_until(
            holds,
            seconds,
            lambda: "\n".join(self._unexpected_halts()) or self.log.read_text(encoding="utf-8")[-4000:],
            every=0.2,
            alive=lambda: self.process.poll() is None and not self._unexpected_halts(),
        )

    def _unexpected_halts(self) -> list[str]:
        """The log's lines on tables that halted and were not expected to. Its last line may not be whole yet."""
        *lines, _ = self.log.read_text(encoding="utf-8").split("\n")
        halts = [line for line in lines if line.startswith("{") and json.loads(line)["event"] == TABLE_HALTED]
        return [line for line in halts if json.loads(line)["table"] not in self.may_halt]

    def ended(self, seconds: float) -> Run:
        """Waits for its end and returns it. Raises TimeoutExpired after that many seconds."""
        return Run(self.process.wait(seconds), self.log.read_text(encoding="utf-8"))


class Playback:
    """One lake, filled from one topic prefix."""

    def __init__(self, bootstrap: str, folder: Path, source: Mapping[str, Any] | None = None, **settings: Any) -> None:
        """`settings` are keys of the config, besides those that are the same for every playback, and `source` keys
        under that name."""
        self.prefix = f"played{uuid.uuid4().hex[:8]}"
        self.lake = folder / "lake"
        self.bootstrap = bootstrap
        self.checkpoint = folder / "checkpoint"
        self.before: Sequence[str] = ()
        """A command that runs the command: the beginning of the command line."""
        self.may_halt: Collection[str] = ()
        """The tables that the test expects to halt; any other that halts ends its wait for a run."""
        self.config_file = folder / "config.yaml"
        self._settings = settings
        self._source = source or {}
        self._topics: set[str] = set()
        self._runs = 0

    def topic(self, scenario: Scenario, recorded: str) -> str:
        """The name of a recorded topic in this playback."""
        if recorded == scenario.prefix:
            return self.prefix
        if recorded.endswith(f".{scenario.prefix}"):
            return recorded.removesuffix(scenario.prefix) + self.prefix
        schema, dot, table = recorded.removeprefix(f"{scenario.prefix}.").partition(".")
        return f"{self.prefix}.{self.schema(scenario, schema)}.{table}" if dot else f"{self.prefix}.{schema}"

    def schema(self, scenario: Scenario, recorded: str) -> str:
        """The name of a recorded schema in this playback."""
        return scenario.name if recorded in COMMON_SCHEMAS else f"{scenario.name}_{recorded}"

    def send(self, scenario: Scenario, records: Iterable[Record]) -> None:
        """Appends records, each to its recorded partition, in the given order."""
        moved = [replace(record, topic=self.topic(scenario, record.topic)) for record in records]
        topics = {self.topic(scenario, recorded): count for recorded, count in scenario.partitions.items()}
        missing = {topic: count for topic, count in topics.items() if topic not in self._topics}
        create_topics(self.bootstrap, missing, TOPIC_CONFIG)
        self._topics.update(missing)
        produce(self.bootstrap, moved)

    def configure(self, tables: Iterable[Mapping[str, Any]]) -> None:
        """Writes the config for these entries of `tables`."""
        config = {
            "version": 1,
            "kafka": {"bootstrap.servers": self.bootstrap},
            "source": {"topic_prefix": self.prefix, **self._source},
            "target": {"path": str(self.lake)},
            "checkpoint": str(self.checkpoint),
            "http": {"enabled": False},
            "tables": list(tables),
            **self._settings,
        }
        self.config_file.write_text(yaml.safe_dump(config, allow_unicode=True), encoding="utf-8")

    def run(self) -> Run:
        """`distributary run --once` as a process of its own; its log stays beside the lake."""
        with self.start("--once") as running:
            return running.ended(RUN_TIMEOUT)

    @contextmanager
    def start(self, *options: str, **environment: str) -> Iterator[Running]:
        """`distributary run` as a process of its own, which is killed at the end if it has not ended by then."""
        self._runs += 1
        log = self._log(self._runs)
        command = [*self.before, sys.executable, "-m", "distributary", "run", "-c", str(self.config_file), *options]
        with log.open("wb") as file:
            process = subprocess.Popen(command, stdout=file, stderr=file, env={**os.environ, **environment})
        try:
            yield Running(process, log, frozenset(self.may_halt))
        finally:
            process.kill()
            process.wait()

    def log(self, run: int) -> str:
        """The output of the run with that number, counted from 1."""
        return self._log(run).read_text(encoding="utf-8")

    def _log(self, run: int) -> Path:
        return self.config_file.with_name(f"run-{run}.log")

    def lose_checkpoint(self) -> None:
        """Deletes the checkpoint directory. Raises FileNotFoundError when there is none."""
        shutil.rmtree(self.checkpoint)

    def table(self, schema: str, name: str) -> pa.Table | None:
        """A table of the lake, read by an independent reader; None if there is none."""
        try:
            table = self.delta_table(schema, name)
        except TableNotFoundError:
            return None
        # Not to_pyarrow_table: it reads the statistics as Python's dates, which end at the year 9999.
        return pa.table(QueryBuilder().register("found", table).execute("SELECT * FROM found").read_all())

    def delta_table(self, schema: str, name: str) -> DeltaTable:
        """The same before its rows are read. Raises TableNotFoundError."""
        return DeltaTable(str(self.lake / schema / name))

    def quarantined(self) -> list[dict[str, Any]]:
        """The rows of the quarantine table; none where there is no such table."""
        table = self.table("_quarantine", "")
        rows: list[dict[str, Any]] = [] if table is None else table.to_pylist()
        return rows

    def difference(self, scenario: Scenario, truth: TruthTable) -> Difference:
        """The table compared with the truth; a table without any record may be missing."""
        table = self.table(self.schema(scenario, truth.topic_schema), truth.topic_name)
        if table is None:
            missing = [] if not truth.rows else ["the whole table is missing"]
            return Difference(truth.name, columns=missing)
        types = (
            mariadb_type
            if scenario.recording.startswith("maria")
            else partial(postgres_type, settings=scenario.connector)
        )
        difference = compare_table(table, truth, types, limits(scenario.recording))
        difference.columns += missing_service_columns(table, NOT_ON_THE_WIRE.get(scenario.recording, ()))
        return difference
