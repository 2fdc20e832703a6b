"""The service: connects the stages. A stream plans target offsets; each table processes batches of its own to reach
them."""

from __future__ import annotations

import gc
import os
import signal
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from types import FrameType

from pyspark.sql import SparkSession

from distributary import failpoints
from distributary.config import Config
from distributary.config.clients import spark_options, system_properties
from distributary.config.maintenance import resolve
from distributary.config.notices import keys_without_effect
from distributary.config.watch import ConfigWatcher
from distributary.consume.heartbeats import Heartbeats
from distributary.consume.kafka_client import KafkaClient
from distributary.consume.remaining import RemainingRecords
from distributary.consume.source import KafkaRecords
from distributary.control.halts import Halts
from distributary.control.lease import Lease, is_lake_there, refuse_second
from distributary.control.pauses import Pauses
from distributary.control.polling_thread import PollingThread
from distributary.errors import AlreadyRunning
from distributary.ingest.registry import Registry, registry_of
from distributary.ingest.source_types import SourceTypes, source_types_path
from distributary.ingest.tables import own_path
from distributary.launch.conditional_commits import check_store
from distributary.launch.session import close_session, open_session, refuse_stopped
from distributary.launch.tagged_jobs import TaggedJobs
from distributary.launch.temporary_directories import TemporaryDirectories
from distributary.logs import get_logger
from distributary.maintain.maintenance_thread import Maintainable, MaintenanceThread
from distributary.maintain.own_table import own_table_files
from distributary.observe import http_server
from distributary.observe.answers import Access
from distributary.observe.consumer_group import ConsumerGroup
from distributary.observe.jvm import jvm_pid, jvm_state
from distributary.observe.recorder import Recorder
from distributary.observe.status import ServiceStatus
from distributary.quarantine.set_aside import SetAside
from distributary.quarantine.table import Quarantine
from distributary.storage.json_file import JsonFile
from distributary.transactions.consistent_table import consistent_table
from distributary.transactions.follower import TransactionFollower
from distributary.workers.config_changes import ConfigChanges
from distributary.workers.context import WorkerContext
from distributary.workers.offset_planner import OffsetPlanner
from distributary.workers.resume import ResumePoller
from distributary.workers.scheduler import Scheduler
from distributary.workers.table_set import TableSet
from distributary.workers.table_worker import TableWorker

_TURN = 0.5  # seconds between two turns of the loop, and two polls of operators' requests
_TOPICS_EVERY = 15.0  # seconds between two listings of Kafka's topics
_JVM_EVERY = 10.0  # seconds between two readings of the JVM's metrics
_HEARTBEATS_EVERY = 15.0  # seconds between two readings of the connector's heartbeats
_DIRECTORIES_EVERY = 60.0  # seconds between two checks of Spark's temporary directories
_log = get_logger(__name__)


def run(config: Config, *, once: bool, file: Path | None = None) -> int:
    """Runs the service until SIGTERM or SIGINT, or with `once` until all records that Kafka has at the start are
    applied.

    `file`: the config's file; without `once`, changes of its tables are applied while the service runs. Returns the
    exit code: 0, or 1 if `once` leaves a halted table. Raises DistributaryError for what ends the process.
    """
    failpoints.arm(os.environ.get(failpoints.VARIABLE))
    registry = registry_of(config.source)
    for text in keys_without_effect(config):
        _log.warning("a key of the config has no effect any more", reason=text)
    # Before anything that takes time, so that a change made meanwhile is seen.
    watch = ConfigWatcher(file, config) if file is not None and not once else None
    kafka = KafkaClient(config.kafka_properties())
    # A wrong address or a port in use fails before a JVM starts.
    kafka.names()
    refuse_second(config)
    recorder = Recorder(ServiceStatus(config_file="FILE" if file is None else str(file)))
    with ExitStack() as ending:
        if config.http.enabled and not once:
            server = http_server.start(
                recorder.status, config.http.host, config.http.port, recorder=recorder, access=_access(config)
            )
            ending.callback(server.stop)
        session = open_session(config.spark_properties(), system_properties(config.kafka_properties()))
        ending.callback(close_session, session)
        lake = partial(is_lake_there, session, config)
        service = Service(config, session, kafka, recorder, registry, watch, lake)
        lease = Lease(session, config, service.stop_for)
        ending.callback(lease.release)
        with recorder.status.waiting():
            lease.acquire()
            check_store(session, own_path(config, "driver"))
        gc.collect()
        gc.freeze()  # these objects live as long as the process: no collection need visit them, see maintain/garbage.py
        return service.run(once=once)


def _access(config: Config) -> Access:
    """Who may see the service's pages."""
    token = config.http.token
    return Access((config.http.host, *config.http.names), token.get_secret_value() if token is not None else None)


class Service:
    """The running service: the planner, the tables, and the threads that advance them."""

    def __init__(
        self,
        config: Config,
        session: SparkSession,
        kafka: KafkaClient,
        recorder: Recorder,
        registry: Registry | None = None,
        watch: ConfigWatcher | None = None,
        is_lake_there: Callable[[], bool] = lambda: True,
    ) -> None:
        self.status = recorder.status
        self.stopping = threading.Event()
        self._session = session
        self._consumer_group = ConsumerGroup(config, kafka.commit)
        quarantine = Quarantine(session, config.quarantine_path())
        self._own_tables = [
            own_table_files("_quarantine", quarantine, session, config, config.quarantine.keep_seconds())
        ]
        types = JsonFile(session, source_types_path(config))
        self._pauses = Pauses(session, config)
        self._set_aside = SetAside(session, config)
        self._records = KafkaRecords(config.kafka_properties())
        context = WorkerContext(
            config=config,
            session=session,
            kafka=kafka,
            options=spark_options(config.kafka_properties()),
            records=RemainingRecords(self._records, self._set_aside.offsets),
            quarantine=quarantine,
            recorder=recorder,
            stopping=self.stopping,
            report_offsets=self._consumer_group.report,
            registry=registry,
            announced_types=SourceTypes(config, kafka, types.read, types.write).of,
            pause_reason=self._pauses.of,
            set_aside=self._set_aside,
            is_lake_there=is_lake_there,
        )
        self._halts = Halts(session, config)
        self._scheduler = Scheduler(context, self._halts, self._tables, self._waits, self._finish_request)
        self._table_set = TableSet(context, self._scheduler.halt, self._scheduler.forget)
        self._resuming = ResumePoller(session, config, self._halts, self._scheduler.try_at_once)
        jobs = TaggedJobs(session, "distributary-maintenance")
        self._maintenance = MaintenanceThread(self._maintainables, self._scheduler.busy, recorder, jobs)
        polls = (self._pauses.poll, self._set_aside.poll, lambda: self._resuming.poll(self._table_set.tables()))
        beats = Heartbeats(config.source.topic_prefix, kafka, self.status.show_heartbeat)
        self._pollers = (
            PollingThread("requests", polls, _TURN),
            PollingThread("jvm", [lambda: recorder.jvm(jvm_state(session))], _JVM_EVERY),
            PollingThread("heartbeats", [beats.poll], _HEARTBEATS_EVERY),
            PollingThread("temporary directories", [TemporaryDirectories(session).keep], _DIRECTORIES_EVERY),
        )
        if (java := jvm_pid(session)) is not None:
            recorder.jvm_process(java)
        self._planner = OffsetPlanner(context, self._table_set.plan, self._scheduler.schedule)
        self._topics_looked_at = time.monotonic()
        json_file = JsonFile(session, own_path(config, "transactions", f"{config.source.topic_prefix}.json"))
        consistent = consistent_table(session, config)
        if consistent is not None:
            keep = resolve(config.defaults.maintenance).keep
            self._own_tables.append(own_table_files(consistent.name, consistent, session, config, keep))
        self._follower = TransactionFollower(
            config, kafka, json_file, self.status, self._table_set.by_topic, context.transactions, registry, consistent
        )
        self._changes = ConfigChanges(watch, self.status, self._table_set, self._planner, self._follower.follow)
        self._other_driver: AlreadyRunning | None = None

    def stop_for(self, driver: AlreadyRunning) -> None:
        """Called when another driver has taken the config over: ends the batches in flight; run() then raises the
        error."""
        _log.error("another driver has taken over", code=driver.code, reason=driver.message)
        self._other_driver = driver
        self.stopping.set()

    def run(self, *, once: bool) -> int:
        """Runs until stopped, or with `once` until all records of the start are applied; gives the exit code. Raises
        AlreadyRunning if another driver has taken over, SetupError if Spark has stopped."""
        self._scheduler.give_up = once
        self._listen_for_signals()
        with self.status.waiting():
            self._pauses.read()  # before anything is applied
            self._set_aside.read()
            self._halts.clear()  # the cause of a halt in an earlier run may be mended: each table is tried again
        self._follower.start()
        self._consumer_group.start()
        self._planner.begin(once=once)
        self._maintenance.start()
        for poller in self._pollers:
            poller.start()
        self.status.mark_ready()
        try:
            self._loop(once=once)
        finally:
            cut_short = self.stopping.is_set()
            self._finish()
            self._follower.stop(to_the_end=once and not cut_short)
            self._consumer_group.stop()
        if self._other_driver is not None:
            raise self._other_driver
        halted = [w for w in self._table_set.tables() if w.halted is not None]
        for worker in halted:
            _log.error("table is halted", table=worker.name, code=worker.halted.code if worker.halted else "")
        if once and not self._table_set.tables():
            _log.warning("no topic of the config's tables exists", pattern=self._planner.pattern)
        return 1 if once and halted else 0

    def _listen_for_signals(self) -> None:
        def stop(number: int, _frame: FrameType | None) -> None:
            _log.info("stopping after the batch in flight", signal=signal.Signals(number).name)
            self.stopping.set()

        signal.signal(signal.SIGTERM, stop)
        signal.signal(signal.SIGINT, stop)

    def _loop(self, *, once: bool) -> None:
        """The loop: turns until the service is stopped, or with `once` until the planner has ended and no table has
        work."""
        while not self.stopping.is_set():
            refuse_stopped(self._session)
            with self.status.waiting():  # starting a stream reads and writes its checkpoint
                ended = self._planner.keep_running()
            if ended:
                if not self._has_work():
                    self._resuming.poll(self._table_set.tables(), now=True)
                if not self._has_work() and not self._maintenance.has_work():
                    return
            with self.status.waiting():
                self._changes.follow()
                # A topic that can't be looked up ends no run in which other tables have work.
                self._table_set.plan_again(give_up=once and not self._tables_have())
            self.status.heartbeat()
            self._look_for_topics()
            self._scheduler.schedule()
            self.stopping.wait(_TURN)

    def _look_for_topics(self) -> None:
        now = time.monotonic()
        if now >= self._topics_looked_at + _TOPICS_EVERY and not self._planner.fails:
            self._table_set.recheck_missing_topics()
            self._topics_looked_at = now

    def _has_work(self) -> bool:
        return bool(self._table_set.waiting_topics) or self._tables_have()

    def _tables_have(self) -> bool:
        return any(worker.has_to_step() for worker in self._table_set.tables())

    def _tables(self) -> Sequence[TableWorker]:
        return self._table_set.tables()

    def _maintainables(self) -> Sequence[Maintainable]:
        return [*self._table_set.tables(), *self._own_tables]

    def _waits(self, worker: TableWorker) -> bool:
        """Whether a table is to process no further batch for now: an overdue maintenance task, a resume request or a
        new worker waits until it is idle, and a table far behind never is."""
        others = self._maintenance.waits_for(worker) or self._resuming.waits_for(worker)
        return others or self._table_set.is_outdated(worker)

    def _finish_request(self, worker: TableWorker) -> None:
        self._resuming.finish_request(worker)

    def _finish(self) -> None:
        """Waits for the batches in flight. The stream may be cut at any time: no table depends on its checkpoint."""
        self.stopping.set()
        for poller in self._pollers:
            poller.stop()
        self._maintenance.stop()
        self._scheduler.end()
        self._planner.stop()
        self._records.close()
        _log.info("stopped")
