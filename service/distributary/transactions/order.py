"""The order of the source's transactions, as the transaction topic shows it, with records that are sent again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from distributary.consume.transactions import Begin, End

SETTLED_MS = 300_000
"""If the connector has continued for so long after the END of a transaction, missing changes were filtered out."""


@dataclass
class _ReadTransaction:
    """A transaction that was read: its place, how many BEGINs it has, its commit time, and the counts of its END."""

    seq: int
    begins: int
    ts_ms: int | None
    counts: Mapping[str, int] | None = None


class TransactionOrder:
    """Numbers transactions by their first BEGIN, from 1 on. Forgets the oldest ones beyond `at_most`.

    `sent_ms` is always a record's time in Kafka, in milliseconds since 1970.
    """

    def __init__(self, at_most: int) -> None:
        self._at_most = at_most
        self._seq = 0
        self._newest = (0, 0)  # commit time and time in Kafka of the newest transaction
        self._sent_again_ms = 0
        self._ids: dict[str, _ReadTransaction] = {}

    def begin(self, record: Begin, sent_ms: int) -> None:
        """The next record of the topic, a BEGIN."""
        known = self._ids.get(record.id)
        if known is None:
            self._add(record, begins=1)
            self._newest = max(self._newest, (record.ts_ms or 0, sent_ms))
        else:
            known.begins += 1
            self._sent_again_ms = max(self._sent_again_ms, sent_ms)

    def end(self, record: End, sent_ms: int) -> tuple[int, bool] | None:
        """The next record of the topic, an END. Returns the number of its transaction, and whether its counts are
        reliable; None if the same END was read before."""
        known = self._ids.get(record.id) or self._add(record, begins=0)
        if known.ts_ms is None:
            known.ts_ms = record.ts_ms
        if known.counts is not None or known.begins != 1:
            self._sent_again_ms = max(self._sent_again_ms, sent_ms)
        seq, counted = known.seq, known.begins == 1
        if known.counts is None:
            known.counts = record.counts
        elif known.counts == record.counts:
            return None  # sent again
        else:
            self._seq += 1  # the rest of a transaction after a restarted count, or another transaction with the same id
            seq, counted = self._seq, False
        return seq, counted

    def _add(self, record: Begin | End, begins: int) -> _ReadTransaction:
        self._seq += 1
        added = self._ids[record.id] = _ReadTransaction(self._seq, begins, record.ts_ms)
        if len(self._ids) > self._at_most:
            del self._ids[next(iter(self._ids))]
        return added

    def is_after(self, transaction: str, seq: int) -> bool:
        """Whether a transaction comes after the one with the number `seq`. False if its BEGIN was not read."""
        known = self._ids.get(transaction)
        return known is not None and known.seq > seq

    def is_not_after(self, one: str, other: str) -> bool:
        """Whether a transaction is the other one or comes before it. False if that is unknown. Its number alone proves
        nothing: of transactions that are sent again an earlier order may have read the first BEGIN."""
        if one == other:
            return True
        first, second = self._ids.get(one), self._ids.get(other)
        if first is None or second is None:
            return False
        return first.seq < second.seq and is_earlier(first.ts_ms, second.ts_ms)

    def is_settled(self, ts_ms: int | None, sent_ms: int) -> bool:
        """Whether the connector has continued for so long that all its changes of a transaction are in Kafka. `ts_ms`:
        the transaction's commit time; `sent_ms`: that of its END.

        After a crash it sends lost changes again with the transaction's END, before any new transaction. A repeated
        transaction may look new if its first BEGIN was read long ago, but its commit time is old.
        """
        newest_ts_ms, newest_sent_ms = self._newest
        if ts_ms is None or newest_ts_ms - ts_ms < SETTLED_MS:
            return False
        return newest_sent_ms - max(sent_ms, self._sent_again_ms) >= SETTLED_MS


def is_earlier(one_ms: int | None, other_ms: int | None) -> bool:
    """Whether a time is before another one. False if one of them is unknown."""
    return one_ms is not None and other_ms is not None and one_ms < other_ms
