"""Counts events of the tables, and exposes them to Prometheus together with the status.

All values come from a batch's statistics and its commit: nothing here runs a Spark job.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    ProcessCollector,
    Summary,
    disable_created_metrics,
)
from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric as Family
from prometheus_client.registry import Collector

from distributary import __version__
from distributary.lake.optimize import Compacted
from distributary.observe import metrics as m
from distributary.observe.jvm import JvmState
from distributary.observe.metric import Metric
from distributary.observe.stages import Stages
from distributary.observe.status import ServiceStatus
from distributary.observe.table_details import Commit, SchemaChange, StoredTable
from distributary.observe.table_status import Batch
from distributary.table_state import TableState

# Otherwise each counter has a second series with its time of creation.
disable_created_metrics()  # type: ignore[no-untyped-call]


class Stopwatch:
    """A batch's stop watch: the seconds of each of its phases."""

    def __init__(self) -> None:
        self._began = time.monotonic()
        self.phases: dict[str, float] = {}

    @property
    def seconds(self) -> float:
        """The time since it was started."""
        return time.monotonic() - self._began

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Adds the time inside to a phase, one of metrics.PHASES."""
        began = time.monotonic()
        try:
            yield
        finally:
            self.phases[name] = self.phases.get(name, 0.0) + time.monotonic() - began


class Recorder:
    """Records events of all tables. Every method may be called from any thread.

    `registry` has all metrics of the catalogue, including those that are made from the status.
    """

    def __init__(self, status: ServiceStatus) -> None:
        self.status = status
        # A registry of its own: the process-wide one would mix in whatever a library registers there.
        self.registry = CollectorRegistry()
        self.registry.register(_StatusCollector(status))
        self._commits = self._counter(m.COMMITS)
        self._records = self._counter(m.RECORDS)
        self._merged = self._counter(m.MERGED)
        self._reasons = self._counter(m.BY_REASON)
        self._retries = self._counter(m.RETRIES)
        self._schema_changes = self._counter(m.SCHEMA_CHANGES)
        self._compacted_files = self._counter(m.COMPACTED_FILES)
        self._compacted_bytes = self._counter(m.COMPACTED_BYTES)
        self._maintenance_failures = self._counter(m.MAINTENANCE_FAILURES)
        self._failed_tries = Gauge(
            m.MAINTENANCE_IN_VAIN.name,
            m.MAINTENANCE_IN_VAIN.help,
            m.MAINTENANCE_IN_VAIN.labels,
            registry=self.registry,
        )
        self._maintenance = Summary(
            m.MAINTENANCE.name, m.MAINTENANCE.help, m.MAINTENANCE.labels, registry=self.registry
        )
        self._table_batch = Summary(
            m.TABLE_BATCH.name, m.TABLE_BATCH.help, m.TABLE_BATCH.labels, registry=self.registry
        )
        self._batch = Histogram(
            m.BATCH.name, m.BATCH.help, m.BATCH.labels, buckets=m.BATCH.buckets, registry=self.registry
        )

        self._freshness = Histogram(
            m.FRESHNESS_OF_BATCHES.name,
            m.FRESHNESS_OF_BATCHES.help,
            buckets=m.FRESHNESS_OF_BATCHES.buckets,
            registry=self.registry,
        )
        self._jvm: JvmState | None = None
        ProcessCollector("distributary", registry=self.registry)
        self.registry.register(_JvmCollector(lambda: self._jvm))

    def jvm_process(self, pid: int) -> None:
        """Exposes metrics of this process, which is Spark's JVM."""
        ProcessCollector("distributary_jvm", pid=lambda: pid, registry=self.registry)

    def jvm(self, state: JvmState) -> None:
        """Updates the state of Spark's JVM."""
        self._jvm = state

    def _counter(self, metric: Metric) -> Counter:
        return Counter(metric.name, metric.help, metric.labels, registry=self.registry)

    def add_table(self, table: str) -> None:
        """Sets the counters of a new table to 0, so that its first event is an increase."""
        for counter in (
            *(self._commits, self._retries, self._schema_changes),
            *(self._compacted_files, self._compacted_bytes),
        ):
            counter.labels(table)
        for task in m.TASKS:
            self._maintenance_failures.labels(table, task)
            self._failed_tries.labels(table, task)
        for op in m.OPERATIONS:
            self._records.labels(table, op)
        for change in m.CHANGES:
            self._merged.labels(table, change)

    def retried(self, table: str) -> None:
        """Counts a batch that failed with a temporary error and is tried again."""
        self._retries.labels(table).inc()

    def maintained(self, table: str, task: str, seconds: float, compacted: Compacted | None) -> None:
        """A task of metrics.TASKS is done; `compacted` where it was that."""
        self._maintenance.labels(table, task).observe(seconds)
        self._failed_tries.labels(table, task).set(0)
        if compacted is not None:
            self._compacted_files.labels(table).inc(compacted.removed)
            self._compacted_bytes.labels(table).inc(compacted.bytes)

    def maintenance_failed(self, table: str, task: str) -> None:
        """A task of metrics.TASKS failed and is tried again later."""
        self._maintenance_failures.labels(table, task).inc()
        self._failed_tries.labels(table, task).inc()

    def forget(self, table: str) -> None:
        """Removes the failed tries of a table that left the config or got another worker."""
        for task in m.TASKS:
            with suppress(KeyError):
                self._failed_tries.remove(table, task)

    def schema_changed(self, table: str, change: SchemaChange) -> None:
        """The table was made, or its columns were changed."""
        self._schema_changes.labels(table).inc()
        self.status.details.schema_changed(table, change)

    def committed(
        self,
        table: str,
        batch: Batch,
        freshness_seconds: float | None,
        phases: Mapping[str, float],
        operations: Mapping[str, int],
        merged: Mapping[str, int],
        reasons: Mapping[str, int],
        version: int | None = None,
        stored: Callable[[], StoredTable | None] | None = None,
        stages: Stages | None = None,
    ) -> None:
        """A table has committed a batch: how long each of `phases` took, the records of `operations`, the rows
        `merged` by kind of change, the records put into quarantine by `reasons`, the table's `version` since then,
        how it is `stored` (see TableDetails), and the `stages` of its oldest streamed change."""
        self._commits.labels(table).inc()
        for counter, counts in ((self._records, operations), (self._merged, merged), (self._reasons, reasons)):
            for name, count in counts.items():
                if count:
                    counter.labels(table, name).inc(count)
        for phase, seconds in phases.items():
            self._table_batch.labels(table, phase).observe(seconds)
            self._batch.labels(phase).observe(seconds)
        if freshness_seconds is not None:
            self._freshness.observe(freshness_seconds)
        self.status.committed(table, batch, freshness_seconds, stages)
        took = {phase: round(seconds, 3) for phase, seconds in phases.items()}
        commit = Commit(**asdict(batch), version=version, phases=took, rows=dict(merged))
        self.status.details.committed(table, commit, reasons, stored)


class _JvmCollector(Collector):
    """Exposes the last known state of the JVM: a scrape never waits for the JVM."""

    def __init__(self, last: Callable[[], JvmState | None]) -> None:
        self._last = last

    def collect(self) -> Iterable[Family]:
        state = self._last()
        if state is None:
            return
        gauges = {m.JVM_HEAP_USED: state.heap_used, m.JVM_HEAP_MAX: state.heap_max, m.JVM_THREADS: state.threads}
        for metric, value in gauges.items():
            yield GaugeMetricFamily(metric.name, metric.help, value=value)
        yield CounterMetricFamily(m.JVM_COLLECTIONS.name, m.JVM_COLLECTIONS.help, value=state.collection_seconds)


class _StatusCollector(Collector):
    """Makes metrics from the status at each scrape, so that the two never differ."""

    def __init__(self, status: ServiceStatus) -> None:
        self._status = status

    def collect(self) -> Iterable[Family]:
        yield from self._of_tables()
        yield from self._of_service()

    def _of_tables(self) -> Iterator[Family]:
        gauges = {
            metric: GaugeMetricFamily(metric.name, metric.help, labels=metric.labels)
            for metric in (
                *(
                    m.LAG_RECORDS,
                    m.LAG_SECONDS,
                    m.FRESHNESS,
                    m.SOURCE_TIME,
                    m.LAST_COMMIT,
                    m.ORPHANED_ROWS,
                    m.GHOST_ROWS,
                ),
                *(m.COMPACTED_AT, m.VACUUMED_AT, m.REMEMBERED_KEYS, m.MEMORY_BYTES),
            )
        }
        counters = {
            metric: CounterMetricFamily(metric.name, metric.help, labels=metric.labels)
            for metric in (m.APPLIED, m.QUARANTINED, m.AMBIGUOUS_DELETES, m.UNDECIDED)
        }
        stages = GaugeMetricFamily(m.STAGE.name, m.STAGE.help, labels=m.STAGE.labels)
        state = GaugeMetricFamily(m.STATE.name, m.STATE.help, labels=m.STATE.labels)
        now = self._status.now()
        for table in self._status.tables():
            values = {
                m.LAG_RECORDS: table.lag_records,
                m.LAG_SECONDS: table.lag_seconds(now),
                m.FRESHNESS: table.freshness_seconds,
                m.SOURCE_TIME: None if table.source_ts is None else table.source_ts / 1000,
                m.LAST_COMMIT: table.last_commit_at,
                m.ORPHANED_ROWS: table.orphaned_rows,
                m.GHOST_ROWS: table.orphaned_rows,
                m.REMEMBERED_KEYS: table.remembered_keys,
                m.MEMORY_BYTES: table.memory_bytes,
                m.COMPACTED_AT: table.compacted_at,
                m.VACUUMED_AT: table.vacuumed_at,
            }
            for metric, value in values.items():
                if value is not None:
                    gauges[metric].add_metric([table.table], value)
            if table.next_offsets:  # before, its record was not read: a count of 0 would grow by all of it then
                counters[m.APPLIED].add_metric([table.table], table.records_applied)
                counters[m.QUARANTINED].add_metric([table.table], table.quarantined)
                for metric in (m.AMBIGUOUS_DELETES, m.UNDECIDED):
                    counters[metric].add_metric([table.table], table.ambiguous_deletes)
            for stage in m.STAGES if table.stages is not None else ():
                if (seconds := getattr(table.stages, stage)) is not None:
                    stages.add_metric([table.table, stage], seconds)
            for possible in TableState:
                state.add_metric([table.table, possible.value], float(table.state is possible))
        yield from (state, stages, *gauges.values(), *counters.values())

    def _of_service(self) -> Iterator[Family]:
        status = self._status
        values = {
            m.READY: float(status.ready),
            m.STARTED: status.started_at,
            m.LAST_TURN: status.now() - status.seconds_since_beat(),
            m.LAST_PLAN: status.planned_at,
            m.CONFIG_FAULTS: len((status.config or {}).get("faults", ())),
        }
        if (heartbeat := status.heartbeat_at) is not None:
            values[m.HEARTBEAT] = heartbeat
        transactions = status.transactions or {}
        complete = transactions.get("complete") or {}
        if complete.get("ts_ms") is not None:
            values[m.COMPLETE] = complete["ts_ms"] / 1000
        if transactions.get("pending") is not None:
            values[m.PENDING] = transactions["pending"]
        for metric, value in values.items():
            yield GaugeMetricFamily(metric.name, metric.help, value=value)
        info = GaugeMetricFamily(m.INFO.name, m.INFO.help, labels=m.INFO.labels)
        info.add_metric([__version__], 1)
        yield info
