"""Which tables the service has at work: found as topics and records tell them, replaced as the config says."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import replace

from distributary.config import Config
from distributary.config.table import same_but_for_the_entry
from distributary.consume.offsets import Offsets
from distributary.consume.topics import TableId, has_database_part, table_of
from distributary.error_mapping import pause_after
from distributary.errors import DistributaryError, TableHalt, TransientError
from distributary.ingest.continuity import two_topics
from distributary.ingest.tables import connector_of_topic, lake_path, name_of, settings_of
from distributary.logs import get_logger
from distributary.observe.table_status import TableState
from distributary.workers.context import WorkerContext
from distributary.workers.table_worker import TableWorker

_ANSWERS_WITHIN = 5.0  # seconds
_ROUNDS = 3  # in vain, after which a run that is to end gives up
_log = get_logger(__name__)


class TableSet:
    """The workers of the tables. The stream's thread and the service's own both use it.

    `halt` is told of a table that can't be at work beside another one, `gone` of one that is at work no more, or no
    more as it was.
    """

    def __init__(
        self,
        context: WorkerContext,
        halt: Callable[[TableWorker, TableHalt], None],
        gone: Callable[[TableWorker], None],
    ) -> None:
        self._context = context
        self._halt = halt
        self._gone = gone
        self._workers: dict[str, TableWorker | None] = {}  # None for a topic that is no table of the config
        self._paths: dict[str, str] = {}
        self._names: dict[str, str] = {}
        self._unclear: set[str] = set()
        self._outdated: set[str] = set()
        self._lock = threading.Lock()
        self.unasked: dict[str, Offsets] = {}
        """Topics that wait, and how far their tables would go."""
        self._ask_again_at = 0.0
        self._in_vain = 0
        self._fault: DistributaryError | None = None

    def tables(self) -> list[TableWorker]:
        """All workers."""
        return [worker for worker in self.by_topic().values() if worker is not None]

    def by_topic(self) -> Mapping[str, TableWorker | None]:
        """The workers by topic, None for a topic that is no table of the config."""
        return dict(self._workers)

    def plan(self, ends: Mapping[str, Offsets]) -> None:
        """Has the tables of these topics go as far; new ones come to work. A topic of which nothing could tell which
        table it is, because what was asked did not answer, waits for plan_again(); the status has it as retrying."""
        for topic, end in ends.items():
            with self._lock:
                try:
                    worker = self._worker(topic)
                except DistributaryError as fault:  # of one topic, be it its schema that no registry has
                    self._wait_for(topic, end, fault)
                    continue
                if worker is not None:
                    worker.set_target(end)

    def plan_again(self, *, give_up: bool) -> None:
        """Looks again at the topics that wait. With `give_up` it raises why after some rounds in vain."""
        if self.unasked and time.monotonic() >= self._ask_again_at:
            self._in_vain += 1
            self.plan(dict(self.unasked))
            if give_up and self.unasked and self._in_vain >= _ROUNDS and self._fault is not None:
                raise self._fault

    def recheck_the_missing(self) -> None:
        """Has the tables look at topics that Kafka does not name: the stream passes over one that was deleted, or that
        the service may not see any more, without a word."""
        try:
            there = self._context.broker.partitions(_ANSWERS_WITHIN)
        except TransientError as fault:
            _log.debug("topics can't be listed now", code=fault.code, reason=fault.message)
            return
        for worker in self.tables():
            if worker.topic not in there:
                worker.request_recheck()

    def _wait_for(self, topic: str, end: Offsets, fault: DistributaryError) -> None:
        self.unasked[topic], self._fault = end, fault
        # Called by its topic, for which table it is remains to be seen.
        self._context.status.update(
            topic, topics=(topic,), state=TableState.RETRYING, goal_offsets={topic: dict(end)}, error=fault.as_dict()
        )
        self._ask_again_at = time.monotonic() + pause_after(1, self._context.config.trigger.interval_seconds())
        _log.warning(
            "a topic is looked at again later", topic=topic, code=fault.code, reason=fault.message, fix=fault.fix
        )

    def follow(self, config: Config) -> None:
        """From now on the tables are those of this config. What counts for a table that is at work changes with
        `replace_outdated`."""
        with self._lock:
            self._context = replace(self._context, config=config)
            self._unclear.clear()
            for topic, worker in list(self._workers.items()):
                if worker is None:
                    del self._workers[topic]  # it may be a table now
                elif self._has_other_settings(worker):
                    self._outdated.add(topic)

    def is_outdated(self, worker: TableWorker) -> bool:
        """Whether other settings count for the table than those that the worker has."""
        return worker.topic in self._outdated

    def replace_outdated(self) -> None:
        """Where other settings count for a table a new worker goes on with it, once the batch in flight is through."""
        if not self._outdated:
            return
        with self._lock:
            for topic in sorted(self._outdated):
                old = self._workers.get(topic)
                # The lock is kept for good: the old worker takes no further batch.
                if old is not None and old.running.acquire(blocking=False):
                    self._outdated.discard(topic)
                    self._replace(old)

    def _replace(self, old: TableWorker) -> None:
        self._gone(old)
        new = self._workers[old.topic] = self._new_worker(old.topic, old.table)
        if new is None:
            self._paths = {path: topic for path, topic in self._paths.items() if topic != old.topic}
            self._names = {name: topic for name, topic in self._names.items() if topic != old.topic}
            _log.info("table is no longer in the config; it stays as it is", table=old.name, topic=old.topic)
            return
        new.set_target(old.goal)
        _log.info("other settings count for the table", table=new.name, entry=new.settings.where)

    def _has_other_settings(self, worker: TableWorker) -> bool:
        settings = settings_of(worker.table, self._context.config)
        return settings is None or not same_but_for_the_entry(settings, worker.settings)

    def _worker(self, topic: str) -> TableWorker | None:
        """The worker of a topic; None for one that is no table of the config. Asked once per topic."""
        if topic in self._workers:
            return self._workers[topic]
        source = self._context.config.source
        connector: str | None = source.connector
        if connector is None and has_database_part(topic, source.topic_prefix):
            connector = connector_of_topic(topic, self._context.config, self._context.broker, self._context.registry)
            if self.unasked.pop(topic, None) is not None:
                self._context.status.forget(topic)
            if connector is None:
                self._tell_unclear(topic)
                return None  # no record tells yet: asked again with the next batch
        worker = self._new_worker(topic, table_of(topic, source.topic_prefix, connector))
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
        config = self._context.config
        settings = settings_of(table, config)
        if table is None or settings is None:
            return None
        path = lake_path(config, table)
        name = name_of(config, table)
        # Two that are called alike would show each other's state.
        called = name if self._names.setdefault(name, topic) == topic else topic
        worker = TableWorker(self._context, table, topic, settings, path, called)
        other = self._paths.setdefault(path, topic)
        if other != topic:
            self._halt(worker, two_topics(topic, other, path))
        return worker
