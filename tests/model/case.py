"""A case: the history of a source, the delivery of its records, and the expected table.

A case is JSON, so that a failed one can be kept as a test.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from tests.model.delivery import Arrived, Delivery, delivered, grows_unseen
from tests.model.encoding import Form, records, written
from tests.model.reference.table import Reference
from tests.model.source.flavours import Played, play
from tests.model.source.history import History, Move, Put, Read, Replace, Truncate
from tests.model.source.sent import PLACEHOLDER, TOMBSTONE, Sent
from tests.model.source.truth import truths
from tests.support.recorded import Record

Json = Any
Rows = Counter[tuple[tuple[str, Any], ...]]


@dataclass(frozen=True)
class Kept:
    """The table's settings, as the config names them."""

    mode: str = "upsert"
    deletes: str = "hard"
    truncate: str = "apply"


MODES = {
    "soft deletes": Kept(deletes="soft"),
    "soft truncates": Kept(deletes="soft", truncate="soft"),
    "ignored truncates": Kept(truncate="ignore"),
    "history": Kept("history"),
    "append": Kept("append"),
}
"""All settings of a table, except the plain upsert."""


@dataclass(frozen=True)
class Case:
    """A history in a source of a flavour, to a table of a layout, and how its records are delivered and written."""

    flavour: str
    history: History
    layout: str = "whole"
    delivery: Delivery = field(default_factory=Delivery)
    form: Form = field(default_factory=Form)
    kept: Kept = field(default_factory=Kept)

    def to_json(self) -> str:
        """The case as text for a file."""
        document = {
            "flavour": self.flavour,
            "layout": self.layout,
            "history": self.history.to_json(),
            "delivery": self.delivery.to_json(),
            "form": self.form.to_json(),
            "kept": asdict(self.kept),
        }
        return json.dumps(document)

    @staticmethod
    def from_json(text: str) -> Case:
        """The inverse of to_json."""
        document = json.loads(text)
        return Case(
            flavour=document["flavour"],
            layout=document["layout"],
            history=History.from_json(document["history"]),
            delivery=Delivery.from_json(document["delivery"]),
            form=Form.from_json(document["form"]),
            kept=Kept(**document["kept"]),
        )

    def __str__(self) -> str:
        return self.to_json()

    def happen(self) -> Happened:
        """Plays the history and delivers its records."""
        played = play(self.flavour, self.layout, self.history)
        return Happened(self, played, delivered(played.sent, self.delivery))

    def reaches_truth(self) -> bool:
        """Whether the records suffice to make the table equal to the source."""
        return self.why_not_truth() is None

    def why_not_truth(self) -> str | None:
        """Why the records do not suffice to make the table equal to the source; None if they do."""
        delivery, history = self.delivery, self.history
        moves = [operation for operation in history.operations() if isinstance(operation, Move | Replace)]
        if self.kept.truncate == "ignore" and moves and history.has(Truncate):
            return "a row may move to a key whose row is no more, which ignoring truncates keeps"
        if self.kept.mode == "history" and any(isinstance(step, Read) and step.behind for step in history.steps):
            return "versions come twice: by a blocking snapshot, and by the changes before it"
        if self.kept.mode == "append" and delivery.again and delivery.grown and delivery.first_read:
            return "a change that was sent again, to a partition that came later, before the table was first read"
        if self.form.unwrapped is not None and not self._unwrapped_reaches_truth(moves):
            return "bare rows do not tell places or truncates"
        if not delivery.compacted:
            return None
        if self.kept.mode != "upsert" or "soft" in (self.kept.deletes, self.kept.truncate):
            return "compaction takes versions, changes and deleted rows away"
        if history.has(Truncate):
            return "compaction takes no record without key"
        if any(isinstance(operation, Put) and operation.big == "long" for operation in history.operations()):
            return "a large value may be in a record that compaction took away"
        if any(again.only is not None for again in delivery.again) or any(map(_over_another, moves)):
            return "compaction may leave a delete that meant another row, or a repetition, as the last of its key"
        if delivery.grown and any(isinstance(step, Read) and step.behind for step in history.steps):
            return "a tombstone whose delete compaction took away may be older than a snapshot row sent before it"
        return None

    def _unwrapped_reaches_truth(self, moves: list[Move | Replace]) -> bool:
        """Unwrapped records lack truncates, and may lack the positions of deletes or of all changes."""
        if self.history.has(Truncate) or self.form.unwrapped == "drop":
            return False
        repeated = any(again.only is not None for again in self.delivery.again)
        placed = bool(self.form.added) and str(self.form.unwrapped).startswith("rewrite")
        return placed or not (repeated or any(map(_over_another, moves)))


def _over_another(move: Move | Replace) -> bool:
    """Whether a row may arrive under a key before the other row has left the key."""
    return isinstance(move, Replace) or len(move.pairs) > 1


@dataclass(frozen=True)
class Happened:
    """The records and the truth of a case."""

    case: Case
    played: Played
    arrived: list[Arrived]

    def known_partitions(self) -> int:
        """How many partitions the topic has when the table is first read."""
        delivery = self.case.delivery
        return delivery.more if grows_unseen(delivery, self.arrived) else delivery.partitions

    def records(self) -> list[Record]:
        """The records of the topic, in the order in which they were sent."""
        return records(self.arrived, self.played.connector, self.case.form)

    def phases(self) -> list[int]:
        """The phase in which each of the records was sent."""
        return [arrived.phase for arrived, _ in written(self.arrived, self.played.connector, self.case.form)]

    def truth(self) -> Rows:
        """The rows that the table must have at the end, from the source alone."""
        return self.truth_after()[-1]

    def truth_after(self) -> list[Rows]:
        """The rows that the table must have after each entry of the source's log, from the empty table on."""
        log = self.played.log
        if self.case.kept.mode == "append":
            return [counted(map(appended_row, self._first(entries))) for entries in range(len(log) + 1)]
        books = truths(self.played.layout, log, self.case.kept.deletes, self.case.kept.truncate)
        if self.case.kept.mode == "history":
            return [Counter(), *(counted(book.all_versions()) for book in books)]
        return [Counter(), *(counted(book.rows()) for book in books)]

    def ends_after(self) -> list[dict[tuple[tuple[str, Any], ...], int | None]]:
        """For each version (rule 4.2) the entry of the source's log that ended it, after each entry."""
        books = truths(self.played.layout, self.played.log, self.case.kept.deletes, self.case.kept.truncate)
        return [{}, *(book.ends() for book in books)]

    def _first(self, entries: int) -> list[Sent]:
        return [sent for sent in self.played.sent if sent.entry < entries and sent.op != TOMBSTONE]

    def decidable(self) -> bool:
        """Whether the records tell the order of each key's changes.

        They do not where PostgreSQL wrote an insert before the delete that it had to wait for, and the insert's is the
        first transaction that a connector read after its start: it looks as if it was sent again.
        """
        if self.played.connector.name != "postgresql":
            return True
        known: set[int] = set()
        for record in self.arrived:
            if record.sent.op in "cudt" and json.loads(record.sent.source["sequence"])[0] is not None:
                known.add(record.sent.source["txId"])
        newest: dict[str, int] = {}
        for sent in self.played.sent:
            if sent.op in "cud":
                key, lsn = json.dumps(sent.key), sent.source["lsn"]
                if sent.source["txId"] not in known and lsn < newest.get(key, 0):
                    return False
                newest[key] = max(newest.get(key, 0), lsn)
        return True

    def boundaries(self) -> Iterator[tuple[int, int]]:
        """(sent records, log entries) at which the records show exactly the first entries of the log."""
        left = Counter(record.entry for record in self.played.sent)
        total, seen = dict(left), set[tuple[int, int, str]]()
        begun: set[int] = set()
        for number, record in enumerate(self.arrived, start=1):
            sent = record.sent
            begun.add(sent.entry)
            if (sent.entry, sent.group, sent.op) not in seen:
                seen.add((sent.entry, sent.group, sent.op))
                left[sent.entry] -= 1
            whole = max(begun)
            if all(left[entry] == 0 for entry in total if entry <= whole):
                yield number, whole + 1


def expected(reference: Reference, case: Case) -> Rows:
    """The rows that the table must have by the reference."""
    if case.kept.mode == "append":
        return counted(_labelled(one.op, one.values, one.unavailable) for one in reference.appended())
    if case.kept.mode == "history":
        return counted(
            {**version.values, "__number": number, "__current": version.until is None}
            for versions in reference.versions(case.kept.truncate).values()
            for number, version in enumerate(versions)
        )
    rows = reference.rows(case.kept.deletes, case.kept.truncate).values()
    soft = case.kept.deletes == "soft"
    return counted({**row.values, "__deleted": row.deleted} if soft else row.values for row in rows)


def appended_row(sent: Sent) -> dict[str, Any]:
    """A change as `mode: append` keeps it."""
    row = (sent.before if sent.op == "d" else sent.after) or {}
    names = [name for name, value in row.items() if value == PLACEHOLDER]
    return _labelled(sent.op, {name: None if name in names else value for name, value in row.items()}, names)


def _labelled(op: str, values: Mapping[str, Any], unavailable: Iterable[str]) -> dict[str, Any]:
    return {**values, "__op": op, "__unavailable": tuple(unavailable)}


def counted(rows: Iterable[Mapping[str, Any]]) -> Rows:
    """Rows as a multiset."""
    return Counter(tuple(sorted(row.items())) for row in rows)
