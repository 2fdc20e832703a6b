"""The service: wires the stages. A stream plans batches; each table takes its own slice of a batch, side by side."""

from __future__ import annotations

import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from types import FrameType

from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery
from tenacity import Retrying, retry_if_exception_type, stop_after_attempt, wait_random_exponential

from distributary.config import Config
from distributary.consume.broker import Broker
from distributary.consume.checkpoint import OffsetLog
from distributary.consume.offsets import Offsets
from distributary.consume.options import spark_options
from distributary.consume.source import stream
from distributary.consume.topics import (
    TableId,
    has_database_part,
    subscription_pattern,
    table_of,
)
from distributary.errors import DistributaryError, TableHalt, TransientError, UsageError
from distributary.launch.session import open_session
from distributary.operate import health
from distributary.operate.faults import classified
from distributary.operate.halts import Halts
from distributary.operate.logs import get_logger
from distributary.operate.note import Note
from distributary.operate.quarantine import Quarantine
from distributary.operate.registry import Registry, registry_of
from distributary.operate.status import ServiceStatus, TableState
from distributary.operate.tables import connector_of_topic, lake_path, own_path, refuse_unbuilt, settings_of
from distributary.operate.tracker import Tracker
from distributary.operate.worker import Surroundings, TableWorker

_SIDE_BY_SIDE = 4  # tables merged at once; more only queue for the same cores
_TURN = 0.5  # seconds between two looks at what is to be done
_QUERY_RESTARTS = 5
_ROUNDS_OF_ONCE = 3  # after so many rounds of retries `--once` gives a table up and says so
_RETRYING = Retrying(
    retry=retry_if_exception_type(TransientError),
    stop=stop_after_attempt(4),
    wait=wait_random_exponential(multiplier=0.5, max=10),
    reraise=True,
)
_log = get_logger(__name__)


def run(config: Config, *, once: bool) -> int:
    """Runs the service until SIGTERM or SIGINT, or with `once` until all that is in Kafka at the start is taken in.

    Returns the exit code: 0, or 1 where `once` leaves a halted table. Raises DistributaryError for what ends all.
    """
    refuse_unbuilt(config)
    registry = registry_of(config.source)
    broker = Broker(config.kafka_properties())
    # A wrong address or a port that is taken is told before a JVM starts.
    broker.names()
    status = ServiceStatus()
    with ExitStack() as ending:
        if config.http.enabled and not once:
            ending.callback(health.start(status, config.http.host, config.http.port).stop)
        session = open_session(config.spark_properties())
        ending.callback(session.stop)
        return Service(config, session, broker, status, registry).run(once=once)


class Service:
    """The running service: the stream, its tables, and the threads that advance them."""

    def __init__(
        self,
        config: Config,
        session: SparkSession,
        broker: Broker,
        status: ServiceStatus,
        registry: Registry | None = None,
    ) -> None:
        self.config = config
        self.status = status
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
            registry=registry,
        )
        self._offsets = OffsetLog(session, config.checkpoint)
        self._workers: dict[str, TableWorker | None] = {}
        self._paths: dict[str, str] = {}
        self._unclear: set[str] = set()
        self._unasked: dict[str, Offsets] = {}
        self._ask_again_at = 0.0
        self._asked_in_vain = 0
        self._pool = ThreadPoolExecutor(_SIDE_BY_SIDE, thread_name_prefix="table")
        self._retry_at: dict[str, float] = {}
        self._once = False
        note = own_path(config, "transactions", f"{config.source.topic_prefix}.json")
        self._tracker = Tracker(
            config,
            broker,
            Note(session, note),
            status,
            lambda: dict(self._workers),
            self._around.transactions,
            registry,
        )
        self._halts = Halts(session, config)

    def run(self, *, once: bool) -> int:
        """Until stopped, or with `once` until everything there at the start is taken in."""
        self._once = once
        self._listen_for_signals()
        self._halts.clear()  # what halted an earlier run may be mended: each table is tried anew
        self._tracker.start()
        self._plan(self._offsets.newest())
        query = self._start(once=once)
        self.status.mark_ready()
        try:
            query = self._turn(query, once=once)
        finally:
            cut_short = self._stopping.is_set()
            self._finish(query)
            self._tracker.stop(to_the_end=once and not cut_short)
        left = [w for w in self._tables() if w.halted is not None]
        for worker in left:
            _log.error("table is halted", table=worker.name, code=worker.halted.code if worker.halted else "")
        if once and not self._tables():
            _log.warning("no topic of the config's tables exists", pattern=self._pattern())
        return 1 if once and left else 0

    def _listen_for_signals(self) -> None:
        def stop(number: int, _frame: FrameType | None) -> None:
            _log.info("stopping after the batch in flight", signal=signal.Signals(number).name)
            self._stopping.set()

        signal.signal(signal.SIGTERM, stop)
        signal.signal(signal.SIGINT, stop)

    def _start(self, *, once: bool) -> StreamingQuery:
        frame = stream(self._session, self._around.options, self._pattern(), self.config.trigger.max_records)
        writer = frame.writeStream.foreachBatch(self._batch).option("checkpointLocation", self.config.checkpoint)
        if once:
            return writer.trigger(availableNow=True).start()
        return writer.trigger(processingTime=f"{self.config.trigger.interval_seconds()} seconds").start()

    def _pattern(self) -> str:
        return subscription_pattern(self.config.source.topic_prefix, [rule.match for rule in self.config.tables])

    def _turn(self, query: StreamingQuery, *, once: bool) -> StreamingQuery:
        """Until told to stop, or with `once` until the stream has ended and every table is where it ended."""
        failures = 0
        while not self._stopping.is_set():
            if not query.isActive:
                error = query.exception()
                if error is None:
                    if not self._unasked and not any(self._to_do(worker) for worker in self._tables()):
                        return query
                else:
                    failures += 1
                    query = self._again(error, failures, once=once)
            self.status.beat()
            self._plan_again()
            self._nudge()
            self._stopping.wait(_TURN)
        return query

    def _again(self, error: Exception, failures: int, *, once: bool) -> StreamingQuery:
        """Starts the stream again after an error, a few times."""
        fault = classified(error)
        if failures > _QUERY_RESTARTS or isinstance(fault, TableHalt):
            raise UsageError("stream-failed", f"the stream ended: {fault.message}", fault.fix) from error
        _log.warning("the stream ended and is started again", code=fault.code, reason=fault.message)
        self._stopping.wait(min(60, 2**failures))
        return self._start(once=once)

    def _finish(self, query: StreamingQuery) -> None:
        """Lets the slices in flight end. The stream itself may be cut: tables do not rely on its checkpoint."""
        self._stopping.set()
        self._pool.shutdown(wait=True)
        try:
            query.stop()
        except StreamingQueryException as error:
            _log.debug("the stream ended with an error", error=type(error).__name__)
        _log.info("stopped")

    def _batch(self, _frame: DataFrame, batch_id: int) -> None:
        """A batch of the stream: sets how far each table has to go.

        The tables go there in slices of their own, from where they are themselves, each at its own pace: a slow one
        holds up no other, and a batch that the checkpoint forgets or repeats changes nothing.
        """
        self._plan(self._offsets.of(batch_id))
        self._nudge()

    def _plan(self, ends: dict[str, Offsets]) -> None:
        for topic, end in ends.items():
            try:
                worker = self._worker(topic)
            except TransientError as fault:
                # Only the records, and what is asked about them, would tell which table it is: no other has to wait.
                self._unasked[topic] = end
                self._ask_again_at = time.monotonic() + self._pause(1)
                _log.warning("a topic is looked at again later", topic=topic, code=fault.code, reason=fault.message)
                if self._once and self._asked_in_vain >= _ROUNDS_OF_ONCE:
                    raise
                continue
            self._unasked.pop(topic, None)
            if worker is not None:
                worker.aim(end)

    def _plan_again(self) -> None:
        """Looks again at topics of which nothing could tell which table they are."""
        if self._unasked and time.monotonic() >= self._ask_again_at:
            self._asked_in_vain += 1
            self._plan(dict(self._unasked))

    def _pause(self, faults: int) -> float:
        """The seconds to wait after so many faults."""
        return min(60.0, max(1.0, self.config.trigger.interval_seconds()) * faults)

    def _tables(self) -> list[TableWorker]:
        return [worker for worker in list(self._workers.values()) if worker is not None]

    @staticmethod
    def _to_do(worker: TableWorker) -> bool:
        return worker.halted is None and worker.behind() > 0

    def _nudge(self) -> None:
        """Puts every table that is behind its goal in the queue, unless it is there or waits after a fault."""
        now = time.monotonic()
        for worker in self._tables():
            if self._to_do(worker) and now >= self._retry_at.get(worker.topic, 0.0):
                self._submit(worker)

    def _submit(self, worker: TableWorker) -> None:
        if self._stopping.is_set() or not worker.running.acquire(blocking=False):
            return
        try:
            self._pool.submit(self._advance, worker)
        except RuntimeError:  # the pool was shut down in between
            worker.running.release()

    def _advance(self, worker: TableWorker) -> None:
        """One slice of one table, then back to the end of the queue: a long way to go starves no other table."""
        if self._stopping.is_set():
            worker.running.release()
            return
        try:
            _RETRYING(self._attempt, worker)
            worker.faults = 0
        except TableHalt as halt:
            self._halt(worker, halt)
        except DistributaryError as fault:
            worker.faults += 1
            self._retry_at[worker.topic] = time.monotonic() + self._pause(worker.faults)
            self._tell(worker, TableState.RETRYING, fault)
            _log.warning("table is tried again later", table=worker.name, code=fault.code, reason=fault.message)
            if self._once and worker.faults >= _ROUNDS_OF_ONCE:
                self._halt(worker, TableHalt(fault.code, fault.message, fault.fix))
        finally:
            worker.running.release()
        if self._to_do(worker) and worker.faults == 0:
            self._submit(worker)

    def _attempt(self, worker: TableWorker) -> None:
        try:
            worker.step()
        except Exception as error:
            _log.debug("a slice failed", table=worker.name, exc_info=error)
            raise classified(error) from error

    def _halt(self, worker: TableWorker, halt: TableHalt) -> None:
        worker.halted = halt
        self._tell(worker, TableState.HALTED, halt)
        _log.error("table halted", table=worker.name, code=halt.code, reason=halt.message, fix=halt.fix)
        self._halts.add(worker.topic, worker.name, halt)

    def _tell(self, worker: TableWorker, state: TableState, error: DistributaryError) -> None:
        self.status.update(worker.name, state=state, error=error.told())

    def _worker(self, topic: str) -> TableWorker | None:
        """The worker of a topic; None for one that is no table of the config. Asked once per topic."""
        if topic in self._workers:
            return self._workers[topic]
        prefix = self.config.source.topic_prefix
        connector: str | None = self.config.source.connector
        if connector is None and has_database_part(topic, prefix):
            connector = connector_of_topic(topic, self.config, self._broker, self._around.registry)
            if connector is None:
                self._tell_unclear(topic)
                return None  # no record tells yet: asked again with the next batch
        worker = self._new_worker(topic, table_of(topic, prefix, connector))
        self._workers[topic] = worker
        return worker

    def _tell_unclear(self, topic: str) -> None:
        if topic not in self._unclear:
            self._unclear.add(topic)
            _log.warning(
                "no record tells yet which table the topic is",
                topic=topic,
                fix="set source.connector in the config: only SQL Server's topics may have a database part",
            )

    def _new_worker(self, topic: str, table: TableId | None) -> TableWorker | None:
        settings = settings_of(table, self.config)
        if table is None or settings is None:
            return None
        path = lake_path(self.config, table)
        worker = TableWorker(self._around, table, topic, settings, path)
        other = self._paths.setdefault(path, topic)
        if other != topic:
            halt = TableHalt(
                "two-topics-one-table",
                f"{topic} and {other} would both be written to {path}",
                'tell them apart in target.table, for example "{database}/{schema}/{table}"',
            )
            self._halt(worker, halt)
        return worker
