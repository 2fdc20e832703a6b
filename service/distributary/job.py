"""The service: wires the stages. A stream plans batches; each table takes its own slice of a batch, side by side."""

from __future__ import annotations

import signal
import threading
import time
from concurrent.futures import Future, ThreadPoolExecutor, wait
from types import FrameType

from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery
from tenacity import Retrying, retry_if_exception_type, stop_after_attempt, wait_exponential_jitter

from distributary.config import Config
from distributary.consume.broker import Broker
from distributary.consume.checkpoint import OffsetLog
from distributary.consume.offsets import Offsets
from distributary.consume.options import spark_options
from distributary.consume.source import stream
from distributary.consume.topics import (
    TableId,
    has_database_part,
    is_signal_table,
    subscription_pattern,
    table_of,
)
from distributary.errors import DistributaryError, TableHalt, TransientError, UsageError
from distributary.launch.session import open_session
from distributary.operate import health
from distributary.operate.faults import classified
from distributary.operate.logs import get_logger
from distributary.operate.look import connector_of
from distributary.operate.quarantine import Quarantine
from distributary.operate.status import ServiceStatus, TableState
from distributary.operate.worker import Surroundings, TableWorker

_SIDE_BY_SIDE = 4  # tables merged at once; more only queue for the same cores
_TURN = 0.5  # seconds between two looks at what is to be done
_QUERY_RESTARTS = 5
_log = get_logger(__name__)


def run(config: Config, *, once: bool) -> int:
    """Runs the service until SIGTERM or SIGINT, or with `once` until all that is in Kafka at the start is taken in.

    Returns the exit code: 0, or 1 where `once` leaves a halted table. Raises DistributaryError for what ends all.
    """
    _refuse_unbuilt(config)
    broker = Broker(config.kafka_properties())
    broker.names()  # a wrong address is told before a JVM starts
    session = open_session(config.spark_properties())
    service = Service(config, session, broker)
    server = None
    if config.http.enabled and not once:
        server = health.start(service.status, config.http.host, config.http.port)
    try:
        return service.run(once=once)
    finally:
        if server is not None:
            server.stop()
        session.stop()


def _refuse_unbuilt(config: Config) -> None:
    if config.source.format != "json":
        raise UsageError("not-built", f"source.format {config.source.format} is not built yet", "use json")
    if config.target.path is None:
        raise UsageError("not-built", "target.catalog is not built yet", "use target.path")


class Service:
    """The running service: the stream, its tables, and the threads that advance them."""

    def __init__(self, config: Config, session: SparkSession, broker: Broker) -> None:
        self.config = config
        self.status = ServiceStatus()
        self._session = session
        self._broker = broker
        self._stopping = threading.Event()
        self._around = Surroundings(
            config=config,
            session=session,
            broker=broker,
            options=spark_options(config.kafka_properties()),
            quarantine=Quarantine(session, config.quarantine_path()),
            status=self.status,
            stopping=self._stopping,
        )
        self._offsets = OffsetLog(session, config.checkpoint)
        self._workers: dict[str, TableWorker | None] = {}
        self._paths: dict[str, str] = {}
        self._pool = ThreadPoolExecutor(_SIDE_BY_SIDE, thread_name_prefix="table")
        self._retry_at: dict[str, float] = {}

    def run(self, *, once: bool) -> int:
        """Until stopped, or with `once` until everything there at the start is taken in."""
        self._listen_for_signals()
        self._plan(self._offsets.newest())
        query = self._start(once=once)
        self.status.mark_ready()
        try:
            query = self._turn(query, once=once)
        finally:
            self._finish(query)
        if once:
            self._catch_up_all()
        left = [w for w in self._tables() if w.halted is not None]
        for worker in left:
            _log.error("table is halted", table=worker.name, code=worker.halted.code if worker.halted else "")
        return 1 if once and left else 0

    def _listen_for_signals(self) -> None:
        def stop(number: int, _frame: FrameType | None) -> None:
            _log.info("stopping after the batch in flight", signal=signal.Signals(number).name)
            self._stopping.set()

        signal.signal(signal.SIGTERM, stop)
        signal.signal(signal.SIGINT, stop)

    def _start(self, *, once: bool) -> StreamingQuery:
        matches = [rule.match for rule in self.config.tables]
        pattern = subscription_pattern(self.config.source.topic_prefix, matches)
        frame = stream(self._session, self._around.options, pattern, self.config.trigger.max_records)
        writer = frame.writeStream.foreachBatch(self._batch).option("checkpointLocation", self.config.checkpoint)
        if once:
            return writer.trigger(availableNow=True).start()
        return writer.trigger(processingTime=f"{self.config.trigger.interval_seconds()} seconds").start()

    def _turn(self, query: StreamingQuery, *, once: bool) -> StreamingQuery:
        """Until the query ends or is to end; tables that lag behind the stream are advanced beside it."""
        failures = 0
        while not self._stopping.is_set():
            if not query.isActive:
                error = query.exception()
                if error is None:
                    return query
                failures += 1
                fault = classified(error)
                if failures > _QUERY_RESTARTS or isinstance(fault, TableHalt):
                    raise UsageError("stream-failed", f"the stream ended: {fault.message}", fault.fix) from error
                _log.warning("the stream ended and is started again", code=fault.code, reason=fault.message)
                self._stopping.wait(min(60, 2**failures))
                query = self._start(once=once)
            self.status.beat()
            self._nudge()
            self._stopping.wait(_TURN)
        return query

    def _finish(self, query: StreamingQuery) -> None:
        """Lets the slices in flight end. The stream itself may be cut: tables do not rely on its checkpoint."""
        if self._stopping.is_set():
            self._pool.shutdown(wait=True)
            try:
                query.stop()
            except StreamingQueryException as error:
                _log.debug("the stream ended with an error", error=type(error).__name__)
        _log.info("stopped" if self._stopping.is_set() else "the stream is through")

    def _batch(self, _frame: DataFrame, batch_id: int) -> None:
        """A batch of the stream: every table takes in what lies between its own offsets and the batch's end."""
        self._plan(self._offsets.of(batch_id))
        wait([future for w in self._tables() if (future := self._submit(w)) is not None and not self._lags(w)])

    def _lags(self, worker: TableWorker) -> bool:
        """A table with a long way to go (added later, resumed) goes it beside the others' batches."""
        return worker.behind() > 2 * self.config.trigger.max_records

    def _plan(self, ends: dict[str, Offsets]) -> None:
        for topic, end in ends.items():
            worker = self._worker(topic)
            if worker is not None:
                worker.aim(end)

    def _tables(self) -> list[TableWorker]:
        return [worker for worker in list(self._workers.values()) if worker is not None]

    def _nudge(self) -> None:
        """Tables behind their goal that nobody works on: after a fault, or with a long way to go."""
        now = time.monotonic()
        for worker in self._tables():
            if worker.behind() and now >= self._retry_at.get(worker.topic, 0.0):
                self._submit(worker)

    def _catch_up_all(self) -> None:
        """The end of `--once`: every table to its goal, those that went beside the stream, too."""
        self._pool.shutdown(wait=True)
        for worker in self._tables():
            if worker.behind() and worker.halted is None and not self._stopping.is_set():
                self._advance(worker)

    def _submit(self, worker: TableWorker) -> Future[None] | None:
        if worker.halted is not None or not worker.behind() or self._stopping.is_set():
            return None
        if not worker.running.acquire(blocking=False):
            return None
        try:
            future = self._pool.submit(self._advance, worker)
        except RuntimeError:  # the pool was shut down in between
            worker.running.release()
            return None
        future.add_done_callback(lambda _: worker.running.release())
        return future

    def _advance(self, worker: TableWorker) -> None:
        state = TableState.CATCHING_UP if self._lags(worker) else TableState.RUNNING
        retrying = Retrying(
            retry=retry_if_exception_type(TransientError),
            stop=stop_after_attempt(4),
            wait=wait_exponential_jitter(initial=0.5, max=10),
            reraise=True,
        )
        try:
            retrying(self._attempt, worker, state)
            self._retry_at.pop(worker.topic, None)
        except TableHalt as halt:
            worker.halted = halt
            self._tell(worker, TableState.HALTED, halt)
            _log.error("table halted", table=worker.name, code=halt.code, reason=halt.message, fix=halt.fix)
        except DistributaryError as fault:
            self._retry_at[worker.topic] = time.monotonic() + max(5.0, self.config.trigger.interval_seconds())
            self._tell(worker, TableState.RETRYING, fault)
            _log.warning("table is tried again later", table=worker.name, code=fault.code, reason=fault.message)

    def _attempt(self, worker: TableWorker, state: TableState) -> None:
        try:
            worker.advance(state=state)
        except Exception as error:
            _log.debug("a batch failed", table=worker.name, exc_info=error)
            raise classified(error) from error

    def _tell(self, worker: TableWorker, state: TableState, error: DistributaryError) -> None:
        self.status.update(
            worker.name, state=state, error={"code": error.code, "message": error.message, "fix": error.fix}
        )

    def _worker(self, topic: str) -> TableWorker | None:
        """The worker of a topic; None for one that is no table of the config. Asked once per topic."""
        if topic in self._workers:
            return self._workers[topic]
        prefix = self.config.source.topic_prefix
        connector: str | None = self.config.source.connector
        if connector is None and has_database_part(topic, prefix):
            connector = self._connector(topic)
            if connector is None:
                return None  # no record tells yet: asked again with the next batch
        worker = self._new_worker(topic, table_of(topic, prefix, connector))
        self._workers[topic] = worker
        return worker

    def _connector(self, topic: str) -> str | None:
        found = self._broker.topics([topic]).get(topic)
        if found is None:
            return None
        return connector_of(self._broker.records(found, self._broker.earliest(found), 20))

    def _new_worker(self, topic: str, table: TableId | None) -> TableWorker | None:
        if table is None or is_signal_table(table, self.config.source.signal_table):
            return None
        settings = self.config.settings_for(table.schema, table.table)
        if settings is None:
            return None
        path = self._path(table)
        worker = TableWorker(self._around, table, topic, settings, path)
        other = self._paths.setdefault(path, topic)
        if other != topic:
            worker.halted = TableHalt(
                "two-topics-one-table",
                f"{topic} and {other} would both be written to {path}",
                'tell them apart in target.table, for example "{database}/{schema}/{table}"',
            )
            _log.error("table halted", table=worker.name, code=worker.halted.code, reason=worker.halted.message)
        return worker

    def _path(self, table: TableId) -> str:
        place = self.config.target.table.format(schema=table.schema, table=table.table, database=table.database or "")
        return "/".join([str(self.config.target.path).rstrip("/"), *(part for part in place.split("/") if part)])
