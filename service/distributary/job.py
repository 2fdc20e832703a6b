"""The service: wires the stages. A stream plans batches; each table reads batches of its own, side by side."""

from __future__ import annotations

import gc
import os
import signal
import threading
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from types import FrameType

from pyspark.sql import SparkSession

from distributary import failpoints
from distributary.config import Config
from distributary.config.clients import spark_options, system_properties
from distributary.config.maintenance import resolve
from distributary.config.notices import keys_without_effect
from distributary.config.watch import ConfigWatcher
from distributary.consume.broker import Broker
from distributary.consume.heartbeats import Heartbeats
from distributary.consume.remaining import RemainingRecords
from distributary.consume.source import KafkaRecords
from distributary.control.halts import Halts
from distributary.control.lease import Lease, refuse_second
from distributary.control.pauses import Pauses
from distributary.control.polling_thread import PollingThread
from distributary.errors import AlreadyRunning
from distributary.ingest.registry import Registry, registry_of
from distributary.ingest.source_types import SourceTypes, source_types_path
from distributary.ingest.tables import own_path
from distributary.launch.session import close_session, open_session
from distributary.logs import get_logger
from distributary.maintain.maintenance_thread import Jobs, Maintainable, MaintenanceThread
from distributary.maintain.quarantine_maintenance import QuarantineFiles
from distributary.maintain.schedule import MaintenanceSchedule
from distributary.observe import http_server
from distributary.observe.answers import Access
from distributary.observe.consumer_group import ConsumerGroup
from distributary.observe.jvm import jvm_pid, jvm_state
from distributary.observe.recorder import Recorder
from distributary.observe.status import ServiceStatus
from distributary.quarantine.set_aside import SetAside
from distributary.quarantine.table import Quarantine
from distributary.storage.json_file import JsonFile
from distributary.transactions.follower import TransactionFollower
from distributary.workers.config_changes import ConfigChanges
from distributary.workers.context import WorkerContext
from distributary.workers.offset_planner import OffsetPlanner
from distributary.workers.resume import Resuming
from distributary.workers.scheduler import Scheduler
from distributary.workers.table_set import TableSet
from distributary.workers.table_worker import TableWorker

_TURN = 0.5  # seconds between two looks at what is to be done
_TOPICS_EVERY = 15.0  # seconds
_JVM_EVERY = 10.0  # seconds between two looks at the JVM, for the metrics
_HEARTBEATS_EVERY = 15.0  # seconds between two looks at the connector's heartbeats, for the metrics
_log = get_logger(__name__)


def run(config: Config, *, once: bool, file: Path | None = None) -> int:
    """Runs the service until SIGTERM or SIGINT, or with `once` until all that is in Kafka at the start is applied.

    `file` is where the config came from: without `once`, tables that are new or changed there are followed. Returns the
    exit code: 0, or 1 where `once` leaves a halted table. Raises DistributaryError for what ends all.
    """
    failpoints.arm(os.environ.get(failpoints.VARIABLE))
    registry = registry_of(config.source)
    for text in keys_without_effect(config):
        _log.warning("a key of the config has no effect any more", reason=text)
    # Before all that takes time: what is changed meanwhile differs from what was loaded.
    watch = ConfigWatcher(file, config) if file is not None and not once else None
    broker = Broker(config.kafka_properties())
    # A wrong address or a port that is taken is told before a JVM starts.
    broker.names()
    refuse_second(config)
    recorder = Recorder(ServiceStatus())
    with ExitStack() as ending:
        if config.http.enabled and not once:
            server = http_server.start(
                recorder.status, config.http.host, config.http.port, recorder=recorder, access=_access(config)
            )
            ending.callback(server.stop)
        session = open_session(config.spark_properties(), system_properties(config.kafka_properties()))
        ending.callback(close_session, session)
        service = Service(config, session, broker, recorder, registry, watch)
        lease = Lease(session, config, service.leave)
        ending.callback(lease.end)
        with recorder.status.waiting():
            lease.take()
        gc.collect()
        gc.freeze()  # what is there by now stays: it is not looked through after each step, see maintain/garbage.py
        return service.run(once=once)


def _access(config: Config) -> Access:
    """Who may see the service's pages."""
    token = config.http.token
    return Access((config.http.host, *config.http.names), token.get_secret_value() if token is not None else None)


class Service:
    """The running service: the stream, its tables, and the threads that advance them."""

    def __init__(
        self,
        config: Config,
        session: SparkSession,
        broker: Broker,
        recorder: Recorder,
        registry: Registry | None = None,
        watch: ConfigWatcher | None = None,
    ) -> None:
        self.status = recorder.status
        self._stopping = threading.Event()
        self._lag_group = ConsumerGroup(config, broker.commit)
        quarantine = Quarantine(session, config.quarantine_path())
        note = JsonFile(session, own_path(config, "maintenance", f"{config.source.topic_prefix}.json"))
        upkeep = MaintenanceSchedule(resolve(config.defaults.maintenance), note)
        self._quarantine_files = QuarantineFiles(session, quarantine, upkeep, config.quarantine.keep_seconds())
        types = JsonFile(session, source_types_path(config))
        self._pauses = Pauses(session, config)
        self._set_aside = SetAside(session, config)
        self._records = KafkaRecords(config.kafka_properties())
        context = WorkerContext(
            config=config,
            session=session,
            broker=broker,
            options=spark_options(config.kafka_properties()),
            records=RemainingRecords(self._records, self._set_aside.places),
            quarantine=quarantine,
            recorder=recorder,
            stopping=self._stopping,
            taken=self._lag_group.taken,
            registry=registry,
            told=SourceTypes(config, broker, types.read, types.write).of,
            paused=self._pauses.of,
            set_aside=self._set_aside,
        )
        self._halts = Halts(session, config)
        self._turns = Scheduler(context, self._halts, self._tables, self._waits, self._settle)
        self._roster = TableSet(context, self._turns.halt, self._turns.forget)
        self._resuming = Resuming(session, config, self._halts, self._turns.try_at_once)
        self._caretaker = MaintenanceThread(self._tended, self._turns.busy, recorder, Jobs(session))
        looks = (self._pauses.look, self._set_aside.look, lambda: self._resuming.look(self._roster.tables()))
        beats = Heartbeats(config.source.topic_prefix, broker, self.status.show_heartbeat)
        self._lookouts = (
            PollingThread("lookout", looks, _TURN),
            PollingThread("jvm", [lambda: recorder.jvm(jvm_state(session))], _JVM_EVERY),
            PollingThread("heartbeats", [beats.look], _HEARTBEATS_EVERY),
        )
        if (java := jvm_pid(session)) is not None:
            recorder.jvm_process(java)
        self._stream = OffsetPlanner(context, self._roster.plan, self._turns.nudge)
        self._topics_looked_at = time.monotonic()
        note = JsonFile(session, own_path(config, "transactions", f"{config.source.topic_prefix}.json"))
        self._tracker = TransactionFollower(
            config, broker, note, self.status, self._roster.by_topic, context.transactions, registry
        )
        self._changes = ConfigChanges(watch, self.status, self._roster, self._stream, self._tracker.follow)
        self._left_to: AlreadyRunning | None = None

    def leave(self, to: AlreadyRunning) -> None:
        """Another driver has the config now: the batches in flight end, and run() raises the error."""
        _log.error("another driver has taken over", code=to.code, reason=to.message)
        self._left_to = to
        self._stopping.set()

    def run(self, *, once: bool) -> int:
        """Until stopped, or with `once` until everything there at the start is applied. Raises AlreadyRunning where
        another driver took over meanwhile."""
        self._turns.give_up = once
        self._listen_for_signals()
        with self.status.waiting():
            self._pauses.read()  # before anything is applied
            self._set_aside.read()
            self._halts.clear()  # what halted an earlier run may be mended: each table is tried anew
        self._tracker.start()
        self._lag_group.start()
        self._stream.begin(once=once)
        self._caretaker.start()
        for lookout in self._lookouts:
            lookout.start()
        self.status.mark_ready()
        try:
            self._turn(once=once)
        finally:
            cut_short = self._stopping.is_set()
            self._finish()
            self._tracker.stop(to_the_end=once and not cut_short)
            self._lag_group.stop()
        if self._left_to is not None:
            raise self._left_to
        left = [w for w in self._roster.tables() if w.halted is not None]
        for worker in left:
            _log.error("table is halted", table=worker.name, code=worker.halted.code if worker.halted else "")
        if once and not self._roster.tables():
            _log.warning("no topic of the config's tables exists", pattern=self._stream.pattern)
        return 1 if once and left else 0

    def _listen_for_signals(self) -> None:
        def stop(number: int, _frame: FrameType | None) -> None:
            _log.info("stopping after the batch in flight", signal=signal.Signals(number).name)
            self._stopping.set()

        signal.signal(signal.SIGTERM, stop)
        signal.signal(signal.SIGINT, stop)

    def _turn(self, *, once: bool) -> None:
        """Until told to stop, or with `once` until the stream has ended and every table is where it ended."""
        while not self._stopping.is_set():
            with self.status.waiting():  # a stream that begins anew reads and writes its checkpoint
                ended = self._stream.look()
            if ended:
                if not self._has_work():
                    self._resuming.look(self._roster.tables(), now=True)
                if not self._has_work() and not self._caretaker.has_work():
                    return
            with self.status.waiting():
                self._changes.follow()
                # A topic that can't be looked at ends no run in which other tables are still at work.
                self._roster.plan_again(give_up=once and not self._tables_have())
            self.status.heartbeat()
            self._look_for_topics()
            self._turns.nudge()
            self._stopping.wait(_TURN)

    def _look_for_topics(self) -> None:
        now = time.monotonic()
        if now >= self._topics_looked_at + _TOPICS_EVERY and not self._stream.fails:
            self._roster.recheck_the_missing()
            self._topics_looked_at = now

    def _has_work(self) -> bool:
        return bool(self._roster.unasked) or self._tables_have()

    def _tables_have(self) -> bool:
        return any(worker.has_to_step() for worker in self._roster.tables())

    def _tables(self) -> Sequence[TableWorker]:
        return self._roster.tables()

    def _tended(self) -> Sequence[Maintainable]:
        return [*self._roster.tables(), self._quarantine_files]

    def _waits(self, worker: TableWorker) -> bool:
        """Whether a table takes no further batch for now: one that is far behind would never be found idle, to be
        replaced, for an overdue task or for what an operator asks."""
        others = self._caretaker.waits_for(worker) or self._resuming.waits_for(worker)
        return others or self._roster.is_outdated(worker)

    def _settle(self, worker: TableWorker) -> None:
        self._resuming.settle(worker)

    def _finish(self) -> None:
        """Lets the batches in flight end. The stream itself may be cut: tables do not rely on its checkpoint."""
        self._stopping.set()
        for lookout in self._lookouts:
            lookout.stop()
        self._caretaker.stop()
        self._turns.end()
        self._stream.stop()
        self._records.close()
        _log.info("stopped")
