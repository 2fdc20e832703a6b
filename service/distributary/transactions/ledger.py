"""Up to which transaction all tables are complete (rule 3.9). Values in, values out: nothing here asks Kafka or Spark.

A claim must never be wrong, later than possible is fine. What it rests on:

- Within a partition Kafka keeps the order of the connector's records, between partitions it does not: the END of a
  transaction may be there before its changes, which wait for another broker. So an END proves nothing; what a table has
  applied does.
- The connector delivers at least once: after a restart a suffix of the stream comes again, in the transaction topic as
  well. A transaction has its place where its BEGIN came first. The frontier of a partition is the transaction of its
  largest position, which a replay does not take back.
- A frontier that is not among the BEGINs that were read may lie before or behind them: it proves nothing.
- A BEGIN that comes again before its END may count the changes anew, and leave out tables whose changes came before:
  then the counts prove nothing, and the transaction may have changed any table.
- Where nothing of this tells, a table has a transaction when it has come to the end of its topic long after the END,
  and the connector has gone on since.
- What was there before the ledger began to look (snapshots, changes before there were transactions, a topic whose
  beginning is gone) has no place among the transactions. So at first, and when a table comes new, nothing is claimed
  until every table has passed the end that its topic had then.
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
    Standing,
    Transaction,
    holds,
    offsets_of,
    passed,
    versions_of,
    with_live_versions,
)

MOST_PENDING = 50_000
_MOST_IDS = 4 * MOST_PENDING  # further back than a replay goes
SETTLED_MS = 300_000
"""A change that is not in Kafka when the connector has gone on for so long after the END of its transaction comes no
more: something filtered it out."""

_EVERY = "*"  # stands for all tables; no table of a source is named by that alone


@dataclass(frozen=True)
class _Need:
    """What a table must have: `count` changes of a transaction, or that of a later one. `counted`: the count can be
    relied on; `alone`: it stands for no earlier transactions; `ts_ms` is its commit time, `sent_ms` that of the END in
    Kafka."""

    transaction: str
    seq: int
    count: int
    counted: bool
    alone: bool
    ts_ms: int | None
    sent_ms: int


@dataclass
class _Seen:
    seq: int
    begins: int
    counts: Mapping[str, int] | None = None


class TransactionLedger:
    """The transactions that were read and not yet claimed, against what the tables have.

    `topic_of` gives the topic of a table by the source's name of it, None for one that is no table of the config.
    `claim` is what an earlier ledger claimed; the records that come are those after its transaction. `asks` are the
    topics whose ends the next answer may need.
    """

    def __init__(
        self, topic_of: Callable[[str], str | None], claim: Claim | None = None, at_most: int = MOST_PENDING
    ) -> None:
        self.claim = claim
        self.asks: set[str] = set()
        self._topic_of = topic_of
        self._at_most = at_most
        self._seq = 0
        self._newest = (0, 0)  # commit time and time in Kafka of the newest transaction
        self._replayed_ms = 0
        self._ids: dict[str, _Seen] = {}
        self._pending: deque[tuple[Transaction, dict[str, _Need]]] = deque()
        self._base: tuple[Transaction, dict[str, _Need]] | None = None
        self._goal: Mapping[str, Offsets] | None = None
        self._known: set[tuple[str, int]] = set()
        self._old: dict[tuple[str, int], str] = {}
        self._last: dict[tuple[str, int], int] = {}

    def overflows(self) -> bool:
        """Whether so much is pending that the tables must be looked at anew, see start(). Where they are already what
        is pending becomes one: a goal that moved on would never be reached."""
        if len(self._pending) <= self._at_most:
            return False
        if self._goal is None:
            return True
        self._melt()
        return False

    def knows(self, partitions: Mapping[str, tuple[int, ...]]) -> bool:
        """Whether start() has seen all these partitions of topics."""
        return all((topic, p) in self._known for topic, numbers in partitions.items() for p in numbers)

    def start(self, ends: Mapping[str, Offsets]) -> None:
        """Nothing more is claimed until every table has passed these ends of its topic's partitions, as they are now.

        What is pending becomes one: each table must have the last of it.
        """
        self._melt()
        self._goal = ends
        self._known = {(topic, p) for topic, offsets in ends.items() for p in offsets}

    def add(self, record: Begin | End, offset: int, sent_ms: int) -> None:
        """The next record of the transaction topic; `sent_ms` is its time in Kafka, in milliseconds since 1970."""
        seen = self._ids.get(record.id)
        if isinstance(record, Begin):
            if seen is None:
                self._begin(record.id, begins=1)
                self._newest = max(self._newest, (record.ts_ms or 0, sent_ms))
            else:
                seen.begins += 1
                self._replayed_ms = max(self._replayed_ms, sent_ms)
            return
        if seen is None:
            seen = self._begin(record.id, begins=0)
        if seen.counts is not None or seen.begins != 1:
            self._replayed_ms = max(self._replayed_ms, sent_ms)
        seq, counted = seen.seq, seen.begins == 1
        if seen.counts is None:
            seen.counts = record.counts
        elif seen.counts == record.counts:
            return  # sent again
        else:
            self._seq += 1  # the rest of one that was counted anew, or another one of the same name
            seq, counted = self._seq, False
        needs = {
            name: _Need(record.id, seq, count, counted, True, record.ts_ms, sent_ms)
            for name, count in record.counts.items()
            if count > 0
        }
        if not counted:
            needs[_EVERY] = _Need(record.id, seq, 0, counted, True, record.ts_ms, sent_ms)
        self._pending.append((Transaction(record.id, record.ts_ms, offset + 1), needs))

    def _begin(self, id_: str, begins: int) -> _Seen:
        self._seq += 1
        seen = self._ids[id_] = _Seen(self._seq, begins)
        if len(self._ids) > max(_MOST_IDS, 4 * self._at_most):
            del self._ids[next(iter(self._ids))]
        return seen

    def answer(self, standings: Mapping[str, Standing], kafka: Kafka) -> Answer:
        """Claims what can be claimed. `standings`: the tables at work, by topic. `kafka.partitions`: the topics of all
        tables that there are."""
        waiting = self._filled_again(standings) or self._short_of_goal(standings)
        while not waiting and (front := self._front()) is not None:
            transaction, needs = front
            lacking = (
                topic for topic, need in self._needed(needs, kafka) if not self._has(topic, need, standings, kafka)
            )
            waiting = sorted(set(lacking))
            if not waiting:
                self.claim = Claim(transaction, offsets_of(standings), versions_of(standings))
                self.asks.clear()
                if self._base is not None:
                    self._base = None
                else:
                    self._pending.popleft()
        self.asks |= set(waiting)
        if self.claim is not None:
            self.claim = with_live_versions(self.claim, standings)
        pending = len(self._pending) + (self._base is not None)
        if self.claim is None or not holds(self.claim, standings, kafka.partitions):
            return Answer(None, pending, tuple(waiting))
        return Answer(self.claim.transaction, pending, tuple(waiting), self.claim.versions)

    def _filled_again(self, standings: Mapping[str, Standing]) -> list[str]:
        """The tables that are behind where they were: start() is needed then."""
        now = {(topic, p): n for topic, table in standings.items() for p, n in table.next.items()}
        again = sorted({place[0] for place, n in self._last.items() if now.get(place, 0) < n})
        self._last = now
        if again:
            self._known.clear()
        return again

    def _front(self) -> tuple[Transaction, dict[str, _Need]] | None:
        return self._base or (self._pending[0] if self._pending else None)

    def _needed(self, needs: Mapping[str, _Need], kafka: Kafka) -> Iterator[tuple[str, _Need]]:
        for name, need in needs.items():
            if name == _EVERY:
                yield from ((topic, need) for topic in kafka.partitions)
                continue
            topic = self._topic_of(name)
            if topic is not None:
                yield topic, need

    def _short_of_goal(self, standings: Mapping[str, Standing]) -> list[str]:
        if self._goal is None:
            return []
        short = [
            topic
            for topic, ends in self._goal.items()
            if topic not in standings or not passed(standings[topic], ends, ends)
        ]
        if not short:
            self._goal = None
            # From here on a frontier counts once it has moved: where it stands now was perhaps not read.
            self._old = {(t, p): f.transaction for t, s in standings.items() for p, f in s.frontier.items()}
            self._melt()
            if self.claim is not None:
                self.claim = replace(self.claim, held=offsets_of(standings))
        return sorted(short)

    def _melt(self) -> None:
        """What is pending becomes one transaction, its last, with the last need of each table."""
        if not self._pending:
            return
        together = dict(self._base[1]) if self._base else {}
        for _, needs in self._pending:
            for name, need in needs.items():
                together[name] = replace(need, alone=name not in together)
        self._base = (self._pending[-1][0], together)
        self._pending.clear()

    def _has(self, topic: str, need: _Need, standings: Mapping[str, Standing], kafka: Kafka) -> bool:
        table = standings.get(topic)
        partitions = kafka.partitions.get(topic)
        if table is None or not partitions:
            return False
        not_later = [p for p in partitions if not self._is_later(topic, p, table, need.seq)]
        if not not_later:
            return True
        if need.counted and any(self._is_at(table.frontier.get(p), need, len(partitions)) for p in not_later):
            return True
        ends = kafka.ends.get(topic)
        return ends is not None and self._is_settled(need) and passed(table, ends, not_later)

    def _is_settled(self, need: _Need) -> bool:
        """Whether the connector has gone on for so long that all it sent of the transaction is in Kafka.

        What it lost in a crash it sends again with the transaction's END, before any transaction that is new. One that
        is sent again may look new when its first BEGIN was read long ago, but its commit time does not.
        """
        ts_ms, sent_ms = self._newest
        if need.ts_ms is None or ts_ms - need.ts_ms < SETTLED_MS:
            return False
        return sent_ms - max(need.sent_ms, self._replayed_ms) >= SETTLED_MS

    def _is_later(self, topic: str, partition: int, table: Standing, seq: int) -> bool:
        frontier = table.frontier.get(partition)
        if frontier is None or self._old.get((topic, partition)) == frontier.transaction:
            return False
        seen = self._ids.get(frontier.transaction)
        return seen is not None and seen.seq > seq

    @staticmethod
    def _is_at(frontier: Frontier | None, need: _Need, partitions: int) -> bool:
        """Whether the frontier shows that all changes are there: its own is the last one of the only partition, or the
        only one at all."""
        if frontier is None or frontier.transaction != need.transaction or frontier.order is None:
            return False
        return frontier.order >= need.count if partitions == 1 else need.count == 1 and need.alone
