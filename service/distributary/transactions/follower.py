"""Follows the transaction topic beside the tables and tells up to which transaction all of them are complete.

A thread of its own that only looks: whatever goes wrong here is logged and tried again, and the tables go on.
"""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

from distributary.config import Config
from distributary.consume.broker import Broker, Topic
from distributary.consume.tail import Tail
from distributary.consume.topics import subscription_pattern, table_of
from distributary.consume.transactions import boundary, possible_topics, transaction_id, transaction_topic
from distributary.decode.source_block import BY_OFFSET
from distributary.error_mapping import classified
from distributary.errors import UsageError
from distributary.ingest.json_records import json_of
from distributary.ingest.registry import Registry
from distributary.ingest.tables import settings_of
from distributary.logs import get_logger
from distributary.observe.status import ServiceStatus
from distributary.storage.json_file import JsonFile
from distributary.transactions.frontier import Answer, Claim, Frontier, Kafka, Standing, Transaction
from distributary.transactions.ledger import TransactionLedger
from distributary.workers.table_worker import TableWorker

_TURN = 1.0  # seconds that reading may take, and between two looks
_REST = 30.0  # seconds until the next look after a fault, or where there is no such topic
_LOOK_AGAIN = 10.0  # seconds after which it is looked at Kafka again though neither the topic nor a table went on
_LOOK_AT_MOST = 3.0  # seconds between two looks otherwise: each asks Kafka for all topics
_CHUNK = 10_000
_SAVE_AFTER = 5.0
_ENDING = 5.0  # seconds that the end of the service waits for a look that takes long
_AT_THE_END = 60.0  # seconds that reading to the topic's end may take at the end of `run --once`
_log = get_logger(__name__)


class TransactionFollower:
    """`tables` gives the workers by topic, None for a topic that is no table of the config; `found` is set once there
    is a transaction topic, and `registry` has the schemas of Avro records."""

    def __init__(
        self,
        config: Config,
        broker: Broker,
        note: JsonFile,
        status: ServiceStatus,
        tables: Callable[[], Mapping[str, TableWorker | None]],
        found: threading.Event,
        registry: Registry | None = None,
    ) -> None:
        self._broker = broker
        self._note = note
        self._status = status
        self._tables = tables
        self._found = found
        self._registry = registry
        self._prefix = config.source.topic_prefix
        self._topic = transaction_topic(self._prefix, config.source.connector_properties)
        self.follow(config)
        self._topic_id = ""
        self._tail: Tail | None = None
        self._ledger = TransactionLedger(self._topic_of)
        self._answer: Answer | None = None
        self._standings: Mapping[str, Standing] = {}
        self._looked_at = 0.0
        self._news = False
        self._told: set[str] = set()
        self._saved: Transaction | None = None
        self._saved_at = 0.0
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="transactions", daemon=True)

    def follow(self, config: Config) -> None:
        """From now on the tables are those of this config."""
        self._config = config
        self._pattern = re.compile(subscription_pattern(self._prefix, [rule.match for rule in config.tables]))

    def start(self) -> None:
        """Begins to follow the topic, where there is one."""
        try:
            # Told before the first record is decoded, so that no table has to wait for its next change.
            self._open()
        except Exception as error:
            self._tell(error)
            if isinstance(error, UsageError):
                return
        self._thread.start()

    def stop(self, *, to_the_end: bool) -> None:
        """Ends; `to_the_end`: after all that is in the topic now was taken into account."""
        if not self._thread.is_alive():
            return
        self._stopping.set()
        self._thread.join(_ENDING)
        if self._thread.is_alive():
            return
        try:
            if to_the_end:
                self._read_to_the_end()
            self._save()
        except Exception as error:  # the tables are done: nothing here may change how the run ends
            self._tell(error)
        self._close()

    def _read_to_the_end(self) -> None:
        until = time.monotonic() + _AT_THE_END
        while not self._turn(last=True) and time.monotonic() < until:
            pass
        self._turn(last=True)  # once more, now that it is known which tables' ends are to be asked for

    def _run(self) -> None:
        rest: float | None = 0.0
        while rest is not None and not self._stopping.wait(rest):
            rest = self._guarded()

    def _guarded(self) -> float | None:
        """A turn; gives the seconds until the next one, None where there is no use in one."""
        try:
            at_end = self._turn()
        except Exception as error:
            self._tell(error)
            self._close()
            return None if isinstance(error, UsageError) else _REST
        return _REST if self._tail is None else _TURN if at_end else 0.0

    def _tell(self, error: Exception) -> None:
        fault = classified(error)
        tell = _log.debug if fault.code in self._told else _log.warning
        tell("transactions can't be followed now", code=fault.code, reason=fault.message, fix=fault.fix)
        self._told.add(fault.code)
        _log.debug("following transactions failed", exc_info=error)

    def _close(self) -> None:
        if self._tail is not None:
            self._tail.close()
            self._tail = None

    def _turn(self, *, last: bool = False) -> bool:
        """One look; whether the topic's end was reached. Raises UsageError where it can't be followed at all."""
        if self._tail is None and not self._open():
            return True
        assert self._tail is not None
        records, at_end = self._tail.read(_CHUNK, _TURN)
        for record in records:
            value = json_of(record.value, record.headers, "value", self._registry)
            if (said := boundary(value)) is not None:
                self._ledger.add(said, record.offset, record.timestamp_ms)
        standings = {topic: _standing(worker) for topic, worker in self._tables().items() if worker is not None}
        self._news = self._news or bool(records) or standings != self._standings
        since = time.monotonic() - self._looked_at
        if last or since > _LOOK_AGAIN or (self._news and since > _LOOK_AT_MOST):
            self._look(standings)
            self._news = False
        return at_end

    def _open(self) -> bool:
        """Begins where the last run ended, else at the topic's beginning; False where there is no such topic."""
        topic = self._broker.topics([self._topic]).get(self._topic)
        if topic is None:
            self._status.show_transactions(None)
            return False
        if len(topic.partitions) != 1:
            raise UsageError(
                "transactions-unordered",
                f"the topic {self._topic} has {len(topic.partitions)} partitions, so that the order of transactions is"
                " lost: it is not told up to which one all tables are complete",
                "give the topic one partition; the tables themselves are right as they are",
            )
        self._found.set()
        first = self._broker.earliest(topic)[0]
        claim = _claim(self._note.read(), topic)
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
        self._saved = claim.transaction if claim else None
        self._tail = self._broker.tail(self._topic, offset)
        self._answer, self._standings = None, {}
        return True

    def _look(self, standings: Mapping[str, Standing]) -> None:
        # The order counts: what Kafka has is asked after it was seen what the tables have.
        there = self._broker.partitions()
        tables = self._tables()
        partitions = {t: p for t, p in there.items() if self._pattern.match(t) and not _is_none(t, tables)}
        topic = self._broker.topics([self._topic]).get(self._topic)
        if topic is None or topic.topic_id != self._topic_id:
            _log.warning(
                "the transaction topic is gone or was created again", code="transactions-recreated", topic=self._topic
            )
            self._close()
            return
        if self._ledger.overflows() or not self._ledger.knows(partitions):
            self._ledger.start({t: self._ends(t, p) for t, p in partitions.items()})
        ends = {t: self._ends(t, partitions[t]) for t in self._ledger.asks if t in partitions}
        answer = self._ledger.answer(standings, Kafka(partitions, ends))
        self._standings, self._looked_at = standings, time.monotonic()
        self._show(answer, tables)
        if time.monotonic() - self._saved_at > _SAVE_AFTER:
            self._save()

    def _ends(self, topic: str, partitions: tuple[int, ...]) -> dict[int, int]:
        return self._broker.latest(Topic(topic, "", partitions))

    def _show(self, answer: Answer, tables: Mapping[str, TableWorker | None]) -> None:
        if answer == self._answer:
            return
        self._answer = answer
        complete = answer.complete
        versions = {worker.name: n for t, n in answer.versions.items() if (worker := tables.get(t))}
        names = [worker.name if (worker := tables.get(t)) else t[len(self._prefix) + 1 :] for t in answer.waiting_for]
        shown = {
            "complete": {"id": complete.id, "ts_ms": complete.ts_ms, "versions": versions} if complete else None,
            "pending": answer.pending,
            "waiting_for": names,
        }
        self._status.show_transactions(shown)
        _log.debug("transactions", **shown)

    def _save(self) -> None:
        claim = self._ledger.claim
        if claim is None or claim.transaction == self._saved:
            return
        of = claim.transaction
        self._note.write(
            {
                "topic_id": self._topic_id,
                "next": of.next,
                "complete": {"id": of.id, "ts_ms": of.ts_ms},
                "held": {topic: {str(p): n for p, n in offsets.items()} for topic, offsets in claim.held.items()},
                "versions": dict(claim.versions),
            }
        )
        self._saved, self._saved_at = of, time.monotonic()

    def _topic_of(self, collection: str) -> str | None:
        tables = self._tables()
        known = (worker.progress.connector for worker in tables.values() if worker and worker.progress)
        connector: str | None = self._config.source.connector
        connector = connector or next((name for name in known if name != BY_OFFSET), None)
        topics = [t for t in possible_topics(collection, self._prefix, connector) if not _is_none(t, tables)]
        there = (t for t in topics if t in tables)
        return next(there, None) or next((t for t in topics if self._may_be(t, connector)), None)

    def _may_be(self, topic: str, connector: str | None) -> bool:
        """Whether a topic that is not there yet will be a table of the config."""
        table = table_of(topic, self._prefix, connector)
        return settings_of(table, self._config) is not None


def _is_none(topic: str, tables: Mapping[str, TableWorker | None]) -> bool:
    """Whether it is known of a topic that it is no table of the config."""
    return topic in tables and tables[topic] is None


def _standing(worker: TableWorker) -> Standing:
    first, head = worker.first, worker.head  # once: the next commit may come in between
    progress = None if head is None else head.progress
    if head is None or progress is None:
        return Standing(first)
    told = {p: last.transaction for p, last in progress.last.items()}
    frontier = {p: Frontier(transaction_id(at.id), at.order) for p, at in told.items() if at is not None}
    return Standing({**first, **progress.next}, frontier, head.version)


def _claim(noted: Any, topic: Topic) -> Claim | None:
    """What was noted of this topic; None where nothing was that can be used."""
    try:
        if noted is None or noted["topic_id"] != topic.topic_id:
            return None
        complete = noted["complete"]
        held = {str(t): {int(p): int(n) for p, n in offsets.items()} for t, offsets in noted["held"].items()}
        versions = {str(t): int(n) for t, n in noted.get("versions", {}).items()}
        return Claim(Transaction(str(complete["id"]), complete["ts_ms"], int(noted["next"])), held, versions)
    except (AttributeError, KeyError, TypeError, ValueError):
        _log.warning(
            "the note of the last complete transaction can't be read: the topic is read anew",
            code="transactions-note-unreadable",
            topic=topic.name,
        )
        return None
