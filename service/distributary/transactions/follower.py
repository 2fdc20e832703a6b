"""Reads the transaction topic and reports the last transaction up to which all tables are complete.

It runs in its own thread and changes no table: errors are logged and retried, and the tables continue.
"""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

from distributary.config import Config
from distributary.consume.kafka_client import KafkaClient, Topic
from distributary.consume.tail import Tail
from distributary.consume.topics import subscription_pattern, table_of
from distributary.consume.transactions import boundary, possible_topics, transaction_id, transaction_topic
from distributary.decode.source_block import BY_OFFSET
from distributary.error_mapping import classify
from distributary.errors import UsageError
from distributary.ingest.json_records import json_of
from distributary.ingest.registry import Registry
from distributary.ingest.tables import settings_of
from distributary.logs import get_logger
from distributary.observe.status import ServiceStatus
from distributary.storage.json_file import JsonFile
from distributary.transactions.claim_document import claim_document, read_claim
from distributary.transactions.consistent_table import Complete, ConsistentTable
from distributary.transactions.frontier import Answer, Claim, Frontier, Kafka, TableProgress, Transaction
from distributary.transactions.ledger import TransactionLedger
from distributary.workers.table_worker import TableWorker

_READ_SECONDS = 1.0  # limit of one read, and pause between two reads
_RETRY_AFTER = 30.0  # seconds after an error, or if there is no such topic
_UPDATE_AT_LEAST_EVERY = 10.0  # seconds between two updates without news
_UPDATE_AT_MOST_EVERY = 3.0  # seconds between two updates with new records: each requests all topics from Kafka
_CHUNK = 10_000
_SAVE_AFTER = 5.0
_JOIN_SECONDS = 5.0  # limit for the thread to stop at the end of the service
_FINAL_READ_SECONDS = 60.0  # limit for reading to the topic's end at the end of `run --once`
_log = get_logger(__name__)


class TransactionFollower:
    """`tables` returns the workers by topic, None for a topic that is no table of the config. `found` is set once a
    transaction topic exists. `registry` has the schemas of Avro records. `file` stores the claim, `consistent` gets it
    for readers."""

    def __init__(
        self,
        config: Config,
        kafka: KafkaClient,
        file: JsonFile,
        status: ServiceStatus,
        tables: Callable[[], Mapping[str, TableWorker | None]],
        found: threading.Event,
        registry: Registry | None = None,
        consistent: ConsistentTable | None = None,
    ) -> None:
        self._kafka = kafka
        self._file = file
        self._status = status
        self._tables = tables
        self._found = found
        self._registry = registry
        self._consistent = consistent
        self._prefix = config.source.topic_prefix
        self._topic = transaction_topic(self._prefix, config.source.connector_properties)
        self.follow(config)
        self._topic_id = ""
        self._tail: Tail | None = None
        self._ledger = TransactionLedger(self._topic_of)
        self._answer: Answer | None = None
        self._progress: Mapping[str, TableProgress] = {}
        self._updated_at = 0.0
        self._has_news = False
        self._logged_codes: set[str] = set()
        self._saved: Claim | None = None
        self._saved_at = 0.0
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="transactions", daemon=True)

    def follow(self, config: Config) -> None:
        """Uses the tables of this config from now on."""
        self._config = config
        self._pattern = re.compile(subscription_pattern(self._prefix, [rule.match for rule in config.tables]))

    def start(self) -> None:
        """Starts to follow the topic, if it exists."""
        try:
            # Before the first record is decoded, so that no table has to wait for its next change.
            self._open()
        except Exception as error:
            self._log_error(error)
            if isinstance(error, UsageError):
                return
        self._thread.start()

    def stop(self, *, to_the_end: bool) -> None:
        """Stops; `to_the_end`: after reading the topic to its current end."""
        if not self._thread.is_alive():
            return
        self._stopping.set()
        self._thread.join(_FINAL_READ_SECONDS if to_the_end else _JOIN_SECONDS)  # it may be writing for readers
        if self._thread.is_alive():
            return
        try:
            if to_the_end:
                self._read_to_the_end()
            self._save()
            if self._consistent is not None:
                self._consistent.write(at_once=True)
        except Exception as error:  # the tables are finished: an error here must not change the exit code
            self._log_error(error)
        self._close()

    def _read_to_the_end(self) -> None:
        until = time.monotonic() + _FINAL_READ_SECONDS
        while not self._step(last=True) and time.monotonic() < until:
            pass
        self._step(last=True)  # once more, because the ledger now knows which topics' end offsets it needs

    def _run(self) -> None:
        pause: float | None = 0.0
        while pause is not None and not self._stopping.wait(pause):
            pause = self._try_step()

    def _try_step(self) -> float | None:
        """Runs a step; returns the seconds until the next one, None if there must be none."""
        try:
            at_end = self._step()
        except Exception as error:
            self._log_error(error)
            self._close()
            return None if isinstance(error, UsageError) else _RETRY_AFTER
        return _RETRY_AFTER if self._tail is None else _READ_SECONDS if at_end else 0.0

    def _log_error(self, error: Exception) -> None:
        fault = classify(error)
        log = _log.debug if fault.code in self._logged_codes else _log.warning
        log("transactions can't be followed now", code=fault.code, reason=fault.message, fix=fault.fix)
        self._logged_codes.add(fault.code)
        _log.debug("following transactions failed", exc_info=error)

    def _close(self) -> None:
        if self._tail is not None:
            self._tail.close()
            self._tail = None

    def _step(self, *, last: bool = False) -> bool:
        """Reads and updates once; returns whether the topic's end was reached. Raises UsageError if the topic can't be
        followed at all."""
        if self._tail is None and not self._open():
            return True
        assert self._tail is not None
        records, at_end = self._tail.read(_CHUNK, _READ_SECONDS)
        for record in records:
            value = json_of(record.value, record.headers, "value", self._registry)
            if (mark := boundary(value)) is not None:
                self._ledger.add(mark, record.offset, record.timestamp_ms)
        progress = {topic: _table_progress(worker) for topic, worker in self._tables().items() if worker is not None}
        self._has_news = self._has_news or bool(records) or progress != self._progress
        since = time.monotonic() - self._updated_at
        if last or since > _UPDATE_AT_LEAST_EVERY or (self._has_news and since > _UPDATE_AT_MOST_EVERY):
            self._update(progress)
            self._has_news = False
        if self._consistent is not None:
            self._consistent.write()
        return at_end

    def _open(self) -> bool:
        """Opens the topic at the stored offset, else at its beginning; returns False if there is no such topic."""
        topic = self._kafka.topics([self._topic]).get(self._topic)
        if topic is None:
            self._status.show_transactions(None)
            return False
        if len(topic.partitions) != 1:
            raise UsageError(
                "transactions-unordered",
                f"the topic {self._topic} has {len(topic.partitions)} partitions, so the order of transactions is"
                " lost: the service can't report complete transactions",
                "give the topic one partition; the tables themselves are not affected",
            )
        self._found.set()
        first = self._kafka.earliest(topic)[0]
        claim = read_claim(self._file.read(), topic)
        offset = claim.transaction.next if claim else first
        if offset < first:
            _log.warning(
                "transactions were removed before they were read",
                code="transactions-removed",
                topic=self._topic,
                offset=offset,
                first=first,
            )
            offset = first
        self._topic_id = topic.topic_id
        self._ledger = TransactionLedger(self._topic_of, claim)
        self._saved = claim
        self._tail = self._kafka.tail(self._topic, offset)
        self._answer, self._progress = None, {}
        return True

    def _update(self, progress: Mapping[str, TableProgress]) -> None:
        # Kafka's state must be read after the tables' progress, never before.
        there = self._kafka.partitions()
        tables = self._tables()
        partitions = {t: p for t, p in there.items() if self._pattern.match(t) and not _is_no_table(t, tables)}
        topic = self._kafka.topics([self._topic]).get(self._topic)
        if topic is None or topic.topic_id != self._topic_id:
            _log.warning(
                "the transaction topic was deleted or created again", code="transactions-recreated", topic=self._topic
            )
            self._close()
            return
        if self._ledger.overflows() or not self._ledger.knows(partitions):
            self._ledger.start({t: self._ends(t, p) for t, p in partitions.items()})
        ends = {t: self._ends(t, partitions[t]) for t in self._ledger.asks if t in partitions}
        answer = self._ledger.answer(progress, Kafka(partitions, ends))
        self._progress, self._updated_at = progress, time.monotonic()
        self._show(answer, tables)
        if time.monotonic() - self._saved_at > _SAVE_AFTER:
            self._save()

    def _ends(self, topic: str, partitions: tuple[int, ...]) -> dict[int, int]:
        return self._kafka.latest(Topic(topic, "", partitions))

    def _show(self, answer: Answer, tables: Mapping[str, TableWorker | None]) -> None:
        if answer == self._answer:
            return
        self._answer = answer
        complete = answer.complete
        versions = {worker.name: n for t, n in answer.versions.items() if (worker := tables.get(t))}
        names = [worker.name if (worker := tables.get(t)) else t[len(self._prefix) + 1 :] for t in answer.waiting_for]
        shown = {
            "complete": _shown_claim(complete, versions, exact=answer.exact) if complete else None,
            "pending": answer.pending,
            "waiting_for": names,
        }
        self._status.show_transactions(shown)
        if self._consistent is not None:
            if complete:
                self._consistent.offer(Complete(complete, versions, answer.exact))
            else:
                self._consistent.withdraw()
        _log.debug("transactions", **shown)

    def _save(self) -> None:
        claim = self._ledger.claim
        if claim is None or claim == self._saved:
            return
        self._file.write(claim_document(claim, self._topic_id))
        self._saved, self._saved_at = claim, time.monotonic()

    def _topic_of(self, collection: str) -> str | None:
        tables = self._tables()
        known = (worker.progress.connector for worker in tables.values() if worker and worker.progress)
        connector: str | None = self._config.source.connector
        connector = connector or next((name for name in known if name != BY_OFFSET), None)
        topics = [t for t in possible_topics(collection, self._prefix, connector) if not _is_no_table(t, tables)]
        there = (t for t in topics if t in tables)
        return next(there, None) or next((t for t in topics if self._may_be(t, connector)), None)

    def _may_be(self, topic: str, connector: str | None) -> bool:
        """Whether a topic that does not exist yet would be a table of the config."""
        table = table_of(topic, self._prefix, connector)
        return settings_of(table, self._config) is not None


def _shown_claim(complete: Transaction, versions: Mapping[str, int], *, exact: bool) -> dict[str, Any]:
    return {"id": complete.id, "ts_ms": complete.ts_ms, "versions": versions, "exact": exact}


def _is_no_table(topic: str, tables: Mapping[str, TableWorker | None]) -> bool:
    """Whether the topic is known to be no table of the config."""
    return topic in tables and tables[topic] is None


def _table_progress(worker: TableWorker) -> TableProgress:
    first, head = worker.cursor.first, worker.cursor.head  # once: the next commit may come in between
    progress = None if head is None else head.progress
    if head is None or progress is None:
        return TableProgress(first)
    transactions = {p: last.transaction for p, last in progress.last.items()}
    frontier = {p: Frontier(transaction_id(at.id), at.order) for p, at in transactions.items() if at is not None}
    return TableProgress({**first, **progress.next}, frontier, head.version, progress.snapshot_ts_ms)
