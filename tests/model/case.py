"""A case: what happened in which source, how its records got to the table, and what the table must hold.

A case is JSON, so that one that once failed stays a test.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from tests.model.delivery import Arrived, Delivery, delivered
from tests.model.encoding import Form, records
from tests.model.reference.table import Reference
from tests.model.source.flavours import Played, play
from tests.model.source.history import History, Move, Put, Read, Truncate
from tests.model.source.truth import truths
from tests.support.recorded import Record

Json = Any
Rows = Counter[tuple[tuple[str, Any], ...]]


@dataclass(frozen=True)
class Case:
    """`deletes` and `truncate` are the table's settings."""

    flavour: str
    history: History
    layout: str = "whole"
    delivery: Delivery = field(default_factory=Delivery)
    form: Form = field(default_factory=Form)
    deletes: str = "hard"
    truncate: str = "apply"

    def to_json(self) -> str:
        """The case as text that can be kept."""
        document = {
            "flavour": self.flavour,
            "layout": self.layout,
            "history": self.history.to_json(),
            "delivery": self.delivery.to_json(),
            "form": self.form.to_json(),
            "deletes": self.deletes,
            "truncate": self.truncate,
        }
        return json.dumps(document)

    @staticmethod
    def from_json(text: str) -> Case:
        """The inverse of to_json."""
        document = json.loads(text)
        return Case(
            **{name: document[name] for name in ("flavour", "layout", "deletes", "truncate")},
            history=History.from_json(document["history"]),
            delivery=Delivery.from_json(document["delivery"]),
            form=Form.from_json(document["form"]),
        )

    def __str__(self) -> str:
        return self.to_json()

    def happen(self) -> Happened:
        """Plays the history and delivers its records."""
        played = play(self.flavour, self.layout, self.history)
        return Happened(self, played, delivered(played.sent, self.delivery))

    def reaches_truth(self) -> bool:
        """Whether the records can bring the table to what the source holds."""
        delivery, history = self.delivery, self.history
        if not delivery.compacted:
            return True
        # A compacted topic takes no record without key. A repetition of a part would be all that is left of a key,
        # and so would the delete of a row that moved away from under another one. A large value may be in a record
        # that is gone.
        moves = [operation for operation in history.operations() if isinstance(operation, Move)]
        large = any(isinstance(operation, Put) and operation.big == "long" for operation in history.operations())
        return not (
            history.has(Truncate)
            or large
            or any(again.only is not None for again in delivery.again)
            or any(len(move.pairs) > 1 for move in moves)
        )


@dataclass(frozen=True)
class Happened:
    """A case that was played."""

    case: Case
    played: Played
    arrived: list[Arrived]

    def records(self) -> list[Record]:
        """The records of the topic, in the order in which they were sent."""
        return records(self.arrived, self.played.connector, self.case.form)

    def truth(self) -> Rows:
        """What the table must hold in the end, from the source alone."""
        return self.truth_after()[-1]

    def truth_after(self) -> list[Rows]:
        """What the table must hold after each entry of the source's log; the first is that of the empty table."""
        books = truths(self.played.layout, self.played.log, self.case.deletes, self.case.truncate)
        return [Counter(), *(counted(book.rows()) for book in books)]

    def boundaries(self) -> Iterator[tuple[int, int]]:
        """(sent records, log entries) where the records tell exactly the first entries of the log."""
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
    """What the reference says the table must hold."""
    rows = reference.rows(case.deletes, case.truncate).values()
    soft = case.deletes == "soft"
    return counted({**row.values, "__deleted": row.deleted} if soft else row.values for row in rows)


def counted(rows: Iterable[Mapping[str, Any]]) -> Rows:
    """Rows as a multiset."""
    return Counter(tuple(sorted(row.items())) for row in rows)


def kinds(history: History) -> set[str]:
    """The kinds of snapshots in a history."""
    return {step.kind for step in history.steps if isinstance(step, Read)}
