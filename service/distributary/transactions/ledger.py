"""Finds the last transaction up to which all tables are complete (rule 3.9). Pure: uses neither Kafka nor Spark.

A claim may lag but must never be wrong. The reasoning:

- Kafka keeps the order of records only inside a partition. The END of a transaction may be in Kafka before its changes,
  which wait for another broker. So an END proves nothing; only the progress of a table does.
- The connector delivers at least once: after a restart it sends the last part of the stream again, in the transaction
  topic, too. The first BEGIN of a transaction determines its place (see order.py). The frontier of a partition is the
  transaction of its largest position, and records that are sent again do not lower it.
- A frontier whose BEGIN was not read may be before or after those that were read, so it proves nothing.
- If a BEGIN comes again before its END, the connector may have restarted its counts and left out tables. Then the
  counts prove nothing, and the transaction may have changed any table.
- If none of this helps, a table has a transaction when it has reached the end of its topic long after the END, and the
  connector has continued since then.
- Records from before the ledger started (snapshots, changes without transactions, a topic without its beginning) have
  no place among the transactions. So after a start, and when a table is added, nothing is claimed until every table
  has passed the end that its topic had at that time.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

from distributary.consume.offsets import Offsets
from distributary.consume.transactions import Begin, End
from distributary.transactions.frontier import (
    Answer,
    Claim,
    Frontier,
    Kafka,
    TableProgress,
    Transaction,
    holds,
    offsets_of,
    passed,
    versions_of,
    with_live_versions,
)
from distributary.transactions.order import TransactionOrder, is_earlier

MOST_PENDING = 50_000

_ALL_TABLES = "*"  # in place of a table's name, which is never just a star


@dataclass(frozen=True)
class _Need:
    """The changes that a table must have applied: `count` changes of a transaction, or a change of a later one.

    `counted`: the count is reliable. `is_only`: no earlier transactions were merged into this one. `ts_ms`: its commit
    time; `sent_ms`: the time of its END in Kafka.
    """

    transaction: str
    seq: int
    count: int
    counted: bool
    is_only: bool
    ts_ms: int | None
    sent_ms: int


class TransactionLedger:
    """Transactions that were read but not claimed yet, and the claim so far.

    `topic_of` returns the topic of a table by its source name; None if the config has no such table. `claim`: the claim
    of an earlier ledger; add() is then called with the records after its transaction. `asks`: topics whose end offsets
    the next answer needs.
    """

    def __init__(
        self, topic_of: Callable[[str], str | None], claim: Claim | None = None, at_most: int = MOST_PENDING
    ) -> None:
        self.claim = claim
        self.asks: set[str] = set()
        self._topic_of = topic_of
        self._at_most = at_most
        self._order = TransactionOrder(4 * max(MOST_PENDING, at_most))  # more than a restarted connector sends again
        self._pending: deque[tuple[Transaction, dict[str, _Need]]] = deque()
        self._base: tuple[Transaction, dict[str, _Need]] | None = None
        self._target_ends: Mapping[str, Offsets] | None = None
        self._known: set[tuple[str, int]] = set()
        self._old: dict[tuple[str, int], str] = {}
        self._last: dict[tuple[str, int], int] = {}

    def overflows(self) -> bool:
        """Whether there are too many pending transactions, so that start() is needed. If the tables still have not
        reached the ends of the last start(), pending transactions are merged instead, because later ends might never
        be reached."""
        if len(self._pending) <= self._at_most:
            return False
        if self._target_ends is None:
            return True
        self._merge_pending()
        return False

    def knows(self, partitions: Mapping[str, tuple[int, ...]]) -> bool:
        """Whether the last start() included all these partitions."""
        return all((topic, p) in self._known for topic, numbers in partitions.items() for p in numbers)

    def start(self, ends: Mapping[str, Offsets]) -> None:
        """Claims nothing until every table has passed these current end offsets of its topic.

        Pending transactions are merged into one: each table must have its last one of them.
        """
        self._merge_pending()
        self._target_ends = ends
        self._known = {(topic, p) for topic, offsets in ends.items() for p in offsets}

    def add(self, record: Begin | End, offset: int, sent_ms: int) -> None:
        """The next record of the transaction topic; `sent_ms` is its time in Kafka, in milliseconds since 1970."""
        if isinstance(record, Begin):
            self._order.begin(record, sent_ms)
            return
        place = self._order.end(record, sent_ms)
        if place is None:
            return
        seq, counted = place
        needs = {
            name: _Need(record.id, seq, count, counted, True, record.ts_ms, sent_ms)
            for name, count in record.counts.items()
            if count > 0
        }
        if not counted:
            needs[_ALL_TABLES] = _Need(record.id, seq, 0, counted, True, record.ts_ms, sent_ms)
        self._pending.append((Transaction(record.id, record.ts_ms, offset + 1), needs))

    def answer(self, progress: Mapping[str, TableProgress], kafka: Kafka) -> Answer:
        """Claims as many transactions as possible. `progress`: that of the running tables, by topic.
        `kafka.partitions`: the existing topics of all tables."""
        waiting = self._filled_again(progress) or self._behind_target(progress)
        while not waiting and (front := self._front()) is not None:
            transaction, needs = front
            lacking = (
                topic
                for topic, need in self._needed(needs, kafka)
                if not self._is_covered(topic, need, progress, kafka)
            )
            waiting = sorted(set(lacking))
            if not waiting:
                exact = self._has_nothing_later(transaction, progress)
                self.claim = Claim(transaction, offsets_of(progress), versions_of(progress), exact)
                self.asks.clear()
                if self._base is not None:
                    self._base = None
                else:
                    self._pending.popleft()
        self.asks |= set(waiting)
        if self.claim is not None:
            self.claim = with_live_versions(self.claim, progress)
        pending = len(self._pending) + (self._base is not None)
        if self.claim is None or not holds(self.claim, progress, kafka.partitions):
            return Answer(None, pending, tuple(waiting))
        return Answer(self.claim.transaction, pending, tuple(waiting), self.claim.versions, self.claim.exact)

    def _has_nothing_later(self, transaction: Transaction, progress: Mapping[str, TableProgress]) -> bool:
        """Whether no table has a change of a transaction after this one. False where that is not known."""
        before = self.claim if self.claim is not None and self.claim.exact else None
        if before is not None and not is_earlier(before.transaction.ts_ms, transaction.ts_ms):
            before = None
        for topic, table in progress.items():
            if table.snapshot_ts_ms is not None and not is_earlier(table.snapshot_ts_ms, transaction.ts_ms):
                return False  # a snapshot may have read changes of later transactions
            for p, frontier in table.frontier.items():
                # A partition without new records is as it was at the previous claim, also after a restart.
                stands_still = before is not None and before.offsets.get(topic, {}).get(p) == table.next.get(p)
                if not stands_still and not self._order.is_not_after(frontier.transaction, transaction.id):
                    return False
        return True

    def _filled_again(self, progress: Mapping[str, TableProgress]) -> list[str]:
        """Topics of tables whose offsets went back. Then start() is needed."""
        now = {(topic, p): n for topic, table in progress.items() for p, n in table.next.items()}
        again = sorted({place[0] for place, n in self._last.items() if now.get(place, 0) < n})
        self._last = now
        if again:
            self._known.clear()
        return again

    def _front(self) -> tuple[Transaction, dict[str, _Need]] | None:
        return self._base or (self._pending[0] if self._pending else None)

    def _needed(self, needs: Mapping[str, _Need], kafka: Kafka) -> Iterator[tuple[str, _Need]]:
        for name, need in needs.items():
            if name == _ALL_TABLES:
                yield from ((topic, need) for topic in kafka.partitions)
                continue
            topic = self._topic_of(name)
            if topic is not None:
                yield topic, need

    def _behind_target(self, progress: Mapping[str, TableProgress]) -> list[str]:
        if self._target_ends is None:
            return []
        short = [
            topic
            for topic, ends in self._target_ends.items()
            if topic not in progress or not passed(progress[topic], ends, ends)
        ]
        if not short:
            self._target_ends = None
            # The BEGIN of a current frontier may not have been read: only frontiers that move from here on count.
            self._old = {(t, p): f.transaction for t, s in progress.items() for p, f in s.frontier.items()}
            self._merge_pending()
            if self.claim is not None:
                offsets = offsets_of(progress)
                self.claim = replace(
                    self.claim, offsets=offsets, exact=self.claim.exact and offsets == self.claim.offsets
                )
        return sorted(short)

    def _merge_pending(self) -> None:
        """Merges pending transactions into the last of them, with the last need of each table."""
        if not self._pending:
            return
        together = dict(self._base[1]) if self._base else {}
        for _, needs in self._pending:
            for name, need in needs.items():
                together[name] = replace(need, is_only=name not in together)
        self._base = (self._pending[-1][0], together)
        self._pending.clear()

    def _is_covered(self, topic: str, need: _Need, progress: Mapping[str, TableProgress], kafka: Kafka) -> bool:
        table = progress.get(topic)
        partitions = kafka.partitions.get(topic)
        if table is None or not partitions:
            return False
        not_later = [p for p in partitions if not self._is_later(topic, p, table, need.seq)]
        if not not_later:
            return True
        if need.counted and any(self._is_at(table.frontier.get(p), need, len(partitions)) for p in not_later):
            return True
        ends = kafka.ends.get(topic)
        return ends is not None and self._order.is_settled(need.ts_ms, need.sent_ms) and passed(table, ends, not_later)

    def _is_later(self, topic: str, partition: int, table: TableProgress, seq: int) -> bool:
        frontier = table.frontier.get(partition)
        if frontier is None or self._old.get((topic, partition)) == frontier.transaction:
            return False
        return self._order.is_after(frontier.transaction, seq)

    @staticmethod
    def _is_at(frontier: Frontier | None, need: _Need, partitions: int) -> bool:
        """Whether the frontier proves that the table has all changes: it is the last change in the only partition, or
        the only change of the transaction."""
        if frontier is None or frontier.transaction != need.transaction or frontier.order is None:
            return False
        return frontier.order >= need.count if partitions == 1 else need.count == 1 and need.is_only
