"""The workers of all tables: one is made for each topic that belongs to the config, and replaced if that changes."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import replace

from distributary.config import Config
from distributary.config.table import equal_settings
from distributary.consume.offsets import Offsets
from distributary.consume.topics import TableId, has_database_part, table_of
from distributary.error_mapping import classify, is_fault, pause_after
from distributary.errors import DistributaryError, TableHalt, TransientError
from distributary.ingest.continuity import two_topics
from distributary.ingest.tables import connector_of_topic, lake_path, name_of, settings_of
from distributary.logs import get_logger
from distributary.table_state import TableState
from distributary.workers.context import WorkerContext
from distributary.workers.table_worker import TableWorker

_ANSWERS_WITHIN = 5.0  # seconds
_ROUNDS = 3  # failed look-ups, after which a run with `--once` gives up
_log = get_logger(__name__)


class TableSet:
    """The workers of the tables. Used by the planner's thread and the service's loop.

    `halt` is called for a table that another one excludes, `on_removed` for one that leaves the config or gets
    another worker.
    """

    def __init__(
        self,
        context: WorkerContext,
        halt: Callable[[TableWorker, TableHalt], None],
        on_removed: Callable[[TableWorker], None],
    ) -> None:
        self._context = context
        self._halt = halt
        self._on_removed = on_removed
        self._workers: dict[str, TableWorker | None] = {}  # None for a topic that is no table of the config
        self._paths: dict[str, str] = {}
        self._names: dict[str, str] = {}
        self._unclear: set[str] = set()
        self._outdated: set[str] = set()
        self._lock = threading.Lock()
        self.waiting_topics: dict[str, Offsets] = {}
        """Topics whose table is not known yet because a look-up failed, with their target offsets."""
        self._retry_at = 0.0
        self._failed_rounds = 0
        self._fault: DistributaryError | None = None

    def tables(self) -> list[TableWorker]:
        """All workers."""
        return [worker for worker in self.by_topic().values() if worker is not None]

    def by_topic(self) -> Mapping[str, TableWorker | None]:
        """The workers by topic, None for a topic that is no table of the config."""
        return dict(self._workers)

    def plan(self, ends: Mapping[str, Offsets]) -> None:
        """Sets the targets of these topics' tables, and makes workers for new ones. A topic whose table can't be looked
        up now waits for plan_again(); the status shows it as retrying."""
        for topic, end in ends.items():
            with self._lock:
                try:
                    worker = self._worker(topic)
                except BaseException as error:  # of one topic, for example a schema that the registry does not have
                    if not is_fault(error):
                        raise
                    _log.debug("a topic can't be looked up", topic=topic, exc_info=error)
                    self._wait_for(topic, end, classify(error))
                    continue
                if worker is not None:
                    worker.set_target(end)

    def plan_again(self, *, give_up: bool) -> None:
        """Looks up the waiting topics again. With `give_up` it raises the error after some failed rounds."""
        if self.waiting_topics and time.monotonic() >= self._retry_at:
            self._failed_rounds += 1
            self.plan(dict(self.waiting_topics))
            if give_up and self.waiting_topics and self._failed_rounds >= _ROUNDS and self._fault is not None:
                raise self._fault

    def recheck_missing_topics(self) -> None:
        """Has the tables check topics that Kafka does not list: the stream silently skips one that was deleted or that
        the service may not see any more."""
        try:
            there = self._context.kafka.partitions(_ANSWERS_WITHIN)
        except TransientError as fault:
            _log.debug("topics can't be listed now", code=fault.code, reason=fault.message)
            return
        for worker in self.tables():
            if worker.topic not in there:
                worker.request_recheck()

    def _wait_for(self, topic: str, end: Offsets, fault: DistributaryError) -> None:
        self.waiting_topics[topic], self._fault = end, fault
        # Under the name of its topic: its table is not known yet.
        self._context.status.update(
            topic, topics=(topic,), state=TableState.RETRYING, target_offsets={topic: dict(end)}, error=fault.as_dict()
        )
        self._retry_at = time.monotonic() + pause_after(1, self._context.config.trigger.interval_seconds())
        _log.warning(
            "a topic is looked up again later", topic=topic, code=fault.code, reason=fault.message, fix=fault.fix
        )

    def follow(self, config: Config) -> None:
        """Uses the tables of this config from now on. A running table gets its new settings by `replace_outdated`."""
        with self._lock:
            self._context = replace(self._context, config=config)
            self._unclear.clear()
            for topic, worker in list(self._workers.items()):
                if worker is None:
                    del self._workers[topic]  # it may be a table now
                elif self._has_other_settings(worker):
                    self._outdated.add(topic)

    def is_outdated(self, worker: TableWorker) -> bool:
        """Whether the config has other settings for the table than the worker."""
        return worker.topic in self._outdated

    def replace_outdated(self) -> None:
        """Replaces the workers of tables whose settings have changed, each once its batch in flight is done."""
        if not self._outdated:
            return
        replaced = []
        with self._lock:
            for topic in sorted(self._outdated):
                old = self._workers.get(topic)
                # The lock is never released: the old worker processes no further batch.
                if old is not None and old.turn_lock.acquire(blocking=False):
                    self._outdated.discard(topic)
                    self._replace(old)
                    replaced.append(old)
        for old in replaced:  # without the lock, because it may wait
            old.end_next()

    def _replace(self, old: TableWorker) -> None:
        self._on_removed(old)
        new = self._workers[old.topic] = self._new_worker(old.topic, old.table)
        if new is None:
            self._paths = {path: topic for path, topic in self._paths.items() if topic != old.topic}
            self._names = {name: topic for name, topic in self._names.items() if topic != old.topic}
            _log.info("table is no longer in the config; its files stay", table=old.name, topic=old.topic)
            return
        new.set_target(old.target_offsets)
        _log.info("table has new settings", table=new.name, entry=new.settings.where)

    def _has_other_settings(self, worker: TableWorker) -> bool:
        settings = settings_of(worker.table, self._context.config)
        return settings is None or not equal_settings(settings, worker.settings)

    def _worker(self, topic: str) -> TableWorker | None:
        """The worker of a topic; None for one that is no table of the config. Asked once per topic."""
        if topic in self._workers:
            return self._workers[topic]
        source = self._context.config.source
        connector: str | None = source.connector
        asks_records = connector is None and has_database_part(topic, source.topic_prefix)
        if asks_records:
            connector = connector_of_topic(topic, self._context.config, self._context.kafka, self._context.registry)
        if self.waiting_topics.pop(topic, None) is not None:
            self._context.status.forget(topic)
        if asks_records and connector is None:
            self._warn_unclear(topic)
            return None  # no record shows the table yet: it is looked up again with the next batch
        worker = self._new_worker(topic, table_of(topic, source.topic_prefix, connector))
        self._workers[topic] = worker
        return worker

    def _warn_unclear(self, topic: str) -> None:
        if topic not in self._unclear:
            self._unclear.add(topic)
            _log.warning(
                "no record shows yet which table the topic belongs to",
                topic=topic,
                fix="set source.connector in the config: only SQL Server's topics may have a database part",
            )

    def _new_worker(self, topic: str, table: TableId | None) -> TableWorker | None:
        config = self._context.config
        settings = settings_of(table, config)
        if table is None or settings is None:
            return None
        path = lake_path(config, table)
        name = name_of(config, table)
        # Two tables of one name would show each other's state.
        called = name if self._names.setdefault(name, topic) == topic else topic
        worker = TableWorker(self._context, table, topic, settings, path, called)
        other = self._paths.setdefault(path, topic)
        if other != topic:
            self._halt(worker, two_topics(topic, other, path))
        return worker
