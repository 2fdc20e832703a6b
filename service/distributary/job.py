"""The service: wires the stages. A stream plans batches; each table takes its own slice of a batch, side by side."""

from __future__ import annotations

import gc
import os
import signal
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from logging import ERROR, WARNING
from pathlib import Path
from types import FrameType

from confluent_kafka import KafkaException
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery
from tenacity import Retrying, retry_if_exception_type, stop_after_attempt, wait_random_exponential

from distributary.config import Config
from distributary.config.maintenance import resolve
from distributary.config.watch import Watch
from distributary.consume import refusals
from distributary.consume.broker import Broker
from distributary.consume.checkpoint import OffsetLog
from distributary.consume.options import spark_options
from distributary.consume.source import stream
from distributary.consume.topics import subscription_pattern
from distributary.errors import AlreadyRunning, DistributaryError, TableHalt, TransientError, UsageError
from distributary.launch.session import close_session, open_session
from distributary.operate import failpoints, health
from distributary.operate.caretaker import Caretaker, Jobs, Tended
from distributary.operate.faults import DISK_FULL, classified, stream_fault
from distributary.operate.halts import Halts
from distributary.operate.lag_group import LagGroup
from distributary.operate.lease import Lease, refuse_second
from distributary.operate.logs import get_logger
from distributary.operate.note import Note
from distributary.operate.quarantine import Quarantine
from distributary.operate.quarantine_files import QuarantineFiles
from distributary.operate.recorder import Recorder
from distributary.operate.registry import Registry, registry_of
from distributary.operate.resuming import Resuming
from distributary.operate.roster import Roster
from distributary.operate.source_types import SourceTypes, source_types_path
from distributary.operate.status import ServiceStatus, TableState
from distributary.operate.surroundings import Surroundings
from distributary.operate.tables import own_path
from distributary.operate.tracker import Tracker
from distributary.operate.upkeep import Upkeep
from distributary.operate.worker import TableWorker

_SIDE_BY_SIDE = 4  # tables merged at once; more only queue for the same cores
_TURN = 0.5  # seconds between two looks at what is to be done
_LOOK_EVERY = 2.0  # seconds between two looks at the config's files
_QUERY_RESTARTS = 5  # in vain, after which the checkpoint may be at fault; `--once` gives up
_OTHERS_FAULTS = (*refusals.CODES, DISK_FULL, "storage-not-allowed")  # which no new checkpoint would end
_WAITING = "Waiting for"  # what Spark says of a stream that has planned all there is
_LONGEST_PAUSE = 60.0  # seconds until what failed is tried again
_TOPICS_EVERY = 15.0  # seconds
_ROUNDS_OF_ONCE = 3  # after so many rounds of retries `--once` gives a table up and says so
_RETRYING = Retrying(
    retry=retry_if_exception_type(TransientError),
    stop=stop_after_attempt(4),
    wait=wait_random_exponential(multiplier=0.5, max=10),
    reraise=True,
)
_log = get_logger(__name__)


def run(config: Config, *, once: bool, file: Path | None = None) -> int:
    """Runs the service until SIGTERM or SIGINT, or with `once` until all that is in Kafka at the start is taken in.

    `file` is where the config came from: without `once`, tables that are new or changed there are followed. Returns the
    exit code: 0, or 1 where `once` leaves a halted table. Raises DistributaryError for what ends all.
    """
    failpoints.arm(os.environ.get(failpoints.VARIABLE))
    registry = registry_of(config.source)
    broker = Broker(config.kafka_properties())
    # A wrong address or a port that is taken is told before a JVM starts.
    broker.names()
    refuse_second(config)
    recorder = Recorder(ServiceStatus())
    with ExitStack() as ending:
        if config.http.enabled and not once:
            server = health.start(recorder.status, config.http.host, config.http.port, recorder=recorder)
            ending.callback(server.stop)
        session = open_session(config.spark_properties())
        ending.callback(close_session, session)
        watch = Watch(file, config) if file is not None and not once else None
        service = Service(config, session, broker, recorder, registry, watch)
        lease = Lease(session, config, service.leave)
        ending.callback(lease.end)
        lease.take()
        gc.collect()
        gc.freeze()  # what is there by now stays: it is not looked through after each slice, see merge/kept.py
        return service.run(once=once)


class Service:
    """The running service: the stream, its tables, and the threads that advance them."""

    def __init__(
        self,
        config: Config,
        session: SparkSession,
        broker: Broker,
        recorder: Recorder,
        registry: Registry | None = None,
        watch: Watch | None = None,
    ) -> None:
        self.config = config
        self.status = recorder.status
        self._session = session
        self._broker = broker
        self._stopping = threading.Event()
        self._lag_group = LagGroup(config, broker.commit)
        quarantine = Quarantine(session, config.quarantine_path())
        note = Note(session, own_path(config, "maintenance", f"{config.source.topic_prefix}.json"))
        upkeep = Upkeep(resolve(config.defaults.maintenance), note)
        self._quarantine_files = QuarantineFiles(session, quarantine, upkeep)
        types = Note(session, source_types_path(config))
        self._around = Surroundings(
            config=config,
            session=session,
            broker=broker,
            options=spark_options(config.kafka_properties()),
            quarantine=quarantine,
            recorder=recorder,
            stopping=self._stopping,
            taken=self._lag_group.taken,
            registry=registry,
            told=SourceTypes(config, broker, types.read, types.write).of,
        )
        self._offsets = OffsetLog(session, config.checkpoint)
        self._roster = Roster(self._around, self._halt, self._gone)
        self._caretaker = Caretaker(self._tended, self._is_busy, recorder, Jobs(session))
        self._watch = watch
        self._looked_at = time.monotonic()
        self._topics_looked_at = time.monotonic()
        self._replan = False
        self._failures = 0  # of the stream, since it last planned anything
        self._failed: StreamingQuery | None = None
        self._start_at = 0.0
        self._pool = ThreadPoolExecutor(_SIDE_BY_SIDE, thread_name_prefix="table")
        self._retry_at: dict[str, float] = {}
        self._once = False
        note = Note(session, own_path(config, "transactions", f"{config.source.topic_prefix}.json"))
        self._tracker = Tracker(
            config, broker, note, self.status, self._roster.by_topic, self._around.transactions, registry
        )
        self._has_new_checkpoint = False
        self._left_to: AlreadyRunning | None = None
        self._halts = Halts(session, config)
        self._resuming = Resuming(session, config, self._halts, lambda worker: self._retry_at.pop(worker.topic, None))

    def leave(self, to: AlreadyRunning) -> None:
        """Another driver has the config now: the slices in flight end, and run() raises the error."""
        _log.error("another driver has taken over", code=to.code, reason=to.message)
        self._left_to = to
        self._stopping.set()

    def run(self, *, once: bool) -> int:
        """Until stopped, or with `once` until everything there at the start is taken in. Raises AlreadyRunning where
        another driver took over meanwhile."""
        self._once = once
        self._listen_for_signals()
        self._halts.clear()  # what halted an earlier run may be mended: each table is tried anew
        self._tracker.start()
        self._lag_group.start()
        query = self._begin(once=once)
        self._caretaker.start()
        self.status.mark_ready()
        try:
            query = self._turn(query, once=once)
        finally:
            cut_short = self._stopping.is_set()
            self._finish(query)
            self._tracker.stop(to_the_end=once and not cut_short)
            self._lag_group.stop()
        if self._left_to is not None:
            raise self._left_to
        left = [w for w in self._roster.tables() if w.halted is not None]
        for worker in left:
            _log.error("table is halted", table=worker.name, code=worker.halted.code if worker.halted else "")
        if once and not self._roster.tables():
            _log.warning("no topic of the config's tables exists", pattern=self._pattern())
        return 1 if once and left else 0

    def _listen_for_signals(self) -> None:
        def stop(number: int, _frame: FrameType | None) -> None:
            _log.info("stopping after the batch in flight", signal=signal.Signals(number).name)
            self._stopping.set()

        signal.signal(signal.SIGTERM, stop)
        signal.signal(signal.SIGINT, stop)

    def _begin(self, *, once: bool) -> StreamingQuery:
        try:
            self._roster.plan(self._offsets.newest())
            return self._start(once=once)
        except Exception as error:
            # Files that end too early look like a network that does: only what others told is none of the checkpoint's.
            if isinstance(error, DistributaryError | KafkaException):
                raise
            self._set_aside(classified(error))
        return self._start(once=once)

    def _set_aside(self, fault: DistributaryError) -> bool:
        """Goes on without the checkpoint, once: whatever is wrong with it, the tables know where they are. Whether
        there was one to go on without."""
        if self._has_new_checkpoint:
            return False
        try:
            aside = self._offsets.set_aside()
        except Exception as error:  # its storage does not answer, so that nothing tells that the checkpoint is at fault
            _log.warning("the checkpoint can't be moved", reason=classified(error).message)
            return False
        self._has_new_checkpoint = True
        if aside is not None:
            _log.warning(
                "the checkpoint can't be used: the stream begins with a new one, each table goes on from where it is",
                reason=fault.message,
                moved_to=aside,
            )
        return aside is not None

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
        while not self._stopping.is_set():
            if not query.isActive:
                fault = stream_fault(query)
                if fault is None:
                    if not self._has_work():
                        self._resuming.look(self._roster.tables(), now=True)
                    if not self._has_work() and not self._caretaker.has_work():
                        return query
                else:
                    query = self._again(query, fault, once=once)
            elif self._failures and query.status["message"].startswith(_WAITING):
                self._failures = 0
                self.status.show_stream(None)
            query = self._follow(query)
            self.status.beat()
            self._resuming.look(self._roster.tables())
            self._roster.plan_again(give_up=once)
            self._look_for_topics()
            self._nudge()
            self._stopping.wait(_TURN)
        return query

    def _look_for_topics(self) -> None:
        now = time.monotonic()
        if now >= self._topics_looked_at + _TOPICS_EVERY and not self._failures:
            self._roster.doubt_the_missing()
            self._topics_looked_at = now

    def _has_work(self) -> bool:
        return bool(self._roster.unasked) or self._is_busy()

    def _is_busy(self) -> bool:
        return any(worker.has_to_step() for worker in self._roster.tables())

    def _tended(self) -> Sequence[Tended]:
        return [*self._roster.tables(), self._quarantine_files]

    def _again(self, failed: StreamingQuery, fault: DistributaryError, *, once: bool) -> StreamingQuery:
        """The stream to go on with after an error: the one that failed until its pause is over, then a new one, for as
        long as the error lasts. Raises UsageError for one that can't pass, with `once` for one that lasts."""
        if failed is self._failed:
            if time.monotonic() < self._start_at:
                return failed
            try:
                return self._start(once=once)
            except Exception as error:  # a stream reads and writes its checkpoint before it is there
                fault = classified(error)
        self._failed, self._start_at = failed, 0.0
        self._failures += 1
        lasting = not isinstance(fault, TransientError)
        if lasting or self._failures > _QUERY_RESTARTS:
            # Files of the checkpoint that end too early look like a storage that does not answer.
            if fault.code not in _OTHERS_FAULTS and self._set_aside(fault):
                return failed
            if lasting or once:
                raise UsageError("stream-failed", f"the stream ended: {fault.message}", fault.fix)
        self.status.show_stream(fault.told())
        _log.warning("the stream ended and is started again", code=fault.code, reason=fault.message, fix=fault.fix)
        self._start_at = time.monotonic() + self._pause_after(self._failures)
        return failed

    def _pause_after(self, faults: int) -> float:
        """Seconds to wait after so many faults in a row."""
        return min(_LONGEST_PAUSE, max(1.0, self.config.trigger.interval_seconds()) * faults)

    def _finish(self, query: StreamingQuery) -> None:
        """Lets the slices in flight end. The stream itself may be cut: tables do not rely on its checkpoint."""
        self._stopping.set()
        self._caretaker.stop()
        self._pool.shutdown(wait=True)
        _stopped(query)
        _log.info("stopped")

    def _batch(self, _frame: DataFrame, batch_id: int) -> None:
        """A batch of the stream: sets how far each table has to go.

        The tables go there in slices of their own, from where they are themselves, each at its own pace: a slow one
        holds up no other, and a batch that the checkpoint forgets or repeats changes nothing.
        """
        failpoints.passing("before-plan")
        self._roster.plan(self._offsets.of(batch_id))
        self._nudge()

    def _follow(self, query: StreamingQuery) -> StreamingQuery:
        """Looks now and then whether the config's files say something else of the tables; the query to go on with."""
        self._roster.replace_outdated()
        if self._replan:
            self._plan_newest()
        now = time.monotonic()
        if self._watch is None or now < self._looked_at + _LOOK_EVERY:
            return query
        self._looked_at = now
        change = self._watch.look()
        if change is None:
            return query
        told = change.told()
        if told is not None and told != self.status.config:
            _log.log(ERROR if change.faults else WARNING, "something in the config's files does not count", **told)
        self.status.show_config(told)
        if change.config is None:
            return query
        _log.info("the config's tables have changed", entries=len(change.config.tables))
        before = self._pattern()
        self.config = change.config
        self._tracker.follow(change.config)
        self._roster.follow(change.config)
        self._roster.replace_outdated()
        if self._pattern() != before and query.isActive:
            # A stream's pattern is fixed when it starts. It may be cut: the tables do not rely on where it is.
            _stopped(query)
            query = self._start(once=False)
        self._plan_newest()
        return query

    def _plan_newest(self) -> None:
        """Sends the tables as far as the newest batch went: those that are new may have no other one to come."""
        try:
            self._roster.plan(self._offsets.newest())
            self._replan = False
        except Exception as error:
            self._replan = True
            _log.warning("new tables can't be looked up yet", reason=classified(error).message)

    def _nudge(self) -> None:
        """Puts every table that is behind its goal in the queue, unless it is there or waits after a fault."""
        now = time.monotonic()
        for worker in self._roster.tables():
            if worker.has_to_step() and now >= self._retry_at.get(worker.topic, 0.0):
                self._submit(worker)

    def _submit(self, worker: TableWorker) -> None:
        # A table that is far behind would never be found idle: it takes no further slice before it is replaced, or an
        # overdue task is done.
        waits = self._stopping.is_set() or self._roster.is_outdated(worker) or self._caretaker.waits_for(worker)
        if waits or not worker.running.acquire(blocking=False):
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
            self._retry_at[worker.topic] = time.monotonic() + self._pause_after(worker.faults)
            _log.warning("table is tried again later", table=worker.name, code=fault.code, reason=fault.message)
            if self._once and worker.faults >= _ROUNDS_OF_ONCE:
                self._halt(worker, TableHalt(fault.code, fault.message, fault.fix))
        finally:
            self._resuming.settle(worker)
            worker.running.release()
        if worker.has_to_step() and worker.faults == 0:
            self._submit(worker)

    def _attempt(self, worker: TableWorker) -> None:
        try:
            failpoints.passing("before-slice", worker.name)
            worker.step()
        except Exception as error:
            _log.debug("a slice failed", table=worker.name, exc_info=error)
            fault = classified(error)
            if isinstance(fault, TransientError):
                self._around.recorder.retried(worker.name)
            if not isinstance(fault, TableHalt):
                worker.failing = True
                self._tell(worker, TableState.RETRYING, fault)
            raise fault from error

    def _halt(self, worker: TableWorker, halt: TableHalt) -> None:
        worker.halted = halt
        self._halts.add(worker.topic, worker.name, halt)  # first: who sees the halt may ask for its end at once
        self._tell(worker, TableState.HALTED, halt)
        _log.error("table halted", table=worker.name, code=halt.code, reason=halt.message, fix=halt.fix)

    def _gone(self, worker: TableWorker) -> None:
        """The table is at work no more, or no more as it was: what was told of it does not count."""
        self._retry_at.pop(worker.topic, None)
        self._halts.remove(worker.topic)
        self.status.forget(worker.name)

    def _tell(self, worker: TableWorker, state: TableState, error: DistributaryError) -> None:
        self.status.update(worker.name, state=state, error=error.told())


def _stopped(query: StreamingQuery) -> None:
    try:
        query.stop()
    except StreamingQueryException as error:
        _log.debug("the stream ended with an error", error=type(error).__name__)
