"""The changes of one source table, as a readable list that JSON can store.

Keys are small numbers; the table's layout (layout.py) maps them to values. Every operation is allowed on every state:
`put` inserts the row where it is missing, the others pass over rows that are not there. So any part of a history is a
history, and a failing one can be made smaller without care.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

Json = Any


@dataclass(frozen=True)
class Put:
    """Inserts or updates a row with a new content. `big` is the change of its large column: `keep` (not named by the
    statement), `long` (so large that it is stored apart), `short` or `null`."""

    key: int
    big: str = "keep"


@dataclass(frozen=True)
class Touch:
    """An update that changes nothing."""

    key: int


@dataclass(frozen=True)
class Rename:
    """One statement that updates a column under a unique index, in one row or several."""

    keys: tuple[int, ...]


@dataclass(frozen=True)
class Delete:
    """Deletes a row."""

    key: int


@dataclass(frozen=True)
class Move:
    """One statement that changes primary keys, all at once: `(old, new)` for each row."""

    pairs: tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class Replace:
    """A row takes the key of another one, which is deleted: after that, where keys are checked at the commit."""

    old: int
    new: int


@dataclass(frozen=True)
class Truncate:
    """Empties the table. Passed over where the connector sends no truncates."""


READS = {-1: "blocking", -2: "incremental"}
"""Turns of `Together` that are snapshots."""

Operation = Put | Touch | Rename | Delete | Move | Replace | Truncate


@dataclass(frozen=True)
class Transaction:
    """Operations that are committed together."""

    operations: tuple[Operation, ...]


@dataclass(frozen=True)
class Together:
    """Transactions at the same time. `turns` names the transaction that does its next operation; the remaining
    operations follow in order. A transaction waits for the commit of another one that has changed the same row. READS
    are turns, too: a snapshot of all committed rows."""

    transactions: tuple[tuple[Operation, ...], ...]
    turns: tuple[int, ...] = ()


@dataclass(frozen=True)
class Read:
    """A snapshot: `incremental`, or `blocking` (the connector stops streaming for it; the last `behind` transactions
    are streamed only after it). Of the rows with the keys, or of all."""

    kind: str
    keys: tuple[int, ...] | None = None
    behind: int = 0


@dataclass(frozen=True)
class Restart:
    """The connector stops cleanly and starts again: nothing is sent twice."""


Step = Transaction | Together | Read | Restart


@dataclass(frozen=True)
class History:
    """`rows` are in the table before the connector's first snapshot."""

    rows: tuple[int, ...] = ()
    steps: tuple[Step, ...] = field(default=())

    def operations(self) -> list[Operation]:
        """All operations, wherever they are."""
        found: list[Operation] = []
        for step in self.steps:
            if isinstance(step, Transaction):
                found += step.operations
            elif isinstance(step, Together):
                found += (operation for transaction in step.transactions for operation in transaction)
        return found

    def has(self, kind: type) -> bool:
        """Whether an operation or a step of this kind is in it."""
        return any(isinstance(part, kind) for part in (*self.steps, *self.operations()))

    def to_json(self) -> Json:
        """Lists of words and numbers."""
        return {"rows": list(self.rows), "steps": [_step_to_json(step) for step in self.steps]}

    @staticmethod
    def from_json(document: Json) -> History:
        """The inverse of to_json. Raises ValueError for unknown words."""
        return History(tuple(document["rows"]), tuple(_step_from_json(step) for step in document["steps"]))


def _step_to_json(step: Step) -> Json:
    if isinstance(step, Transaction):
        return ["transaction", *_operations_to_json(step.operations)]
    if isinstance(step, Together):
        return ["together", [_operations_to_json(part) for part in step.transactions], list(step.turns)]
    if isinstance(step, Read):
        return ["read", step.kind, None if step.keys is None else list(step.keys), step.behind]
    return ["restart"]


def _step_from_json(document: Json) -> Step:
    kind, *rest = document
    if kind == "transaction":
        return Transaction(_operations_from_json(rest))
    if kind == "together":
        return Together(tuple(_operations_from_json(part) for part in rest[0]), tuple(rest[1]))
    if kind == "read":
        return Read(rest[0], None if rest[1] is None else tuple(rest[1]), rest[2])
    if kind == "restart":
        return Restart()
    raise ValueError(f"no step is called {kind!r}")


def _operations_to_json(operations: Sequence[Operation]) -> list[Json]:
    return [_operation_to_json(operation) for operation in operations]


def _operations_from_json(documents: Sequence[Json]) -> tuple[Operation, ...]:
    return tuple(_operation_from_json(document) for document in documents)


def _operation_to_json(operation: Operation) -> Json:
    if isinstance(operation, Put):
        return ["put", operation.key] if operation.big == "keep" else ["put", operation.key, operation.big]
    if isinstance(operation, Rename):
        return ["rename", *operation.keys]
    if isinstance(operation, Move):
        return ["move", *(list(pair) for pair in operation.pairs)]
    if isinstance(operation, Replace):
        return ["replace", operation.old, operation.new]
    if isinstance(operation, Truncate):
        return ["truncate"]
    return ["touch" if isinstance(operation, Touch) else "delete", operation.key]


def _operation_from_json(document: Json) -> Operation:
    kind, *rest = document
    if kind == "put":
        return Put(*rest)
    if kind == "rename":
        return Rename(tuple(rest))
    if kind == "move":
        return Move(tuple((old, new) for old, new in rest))
    if kind == "replace":
        return Replace(*rest)
    if kind == "truncate":
        return Truncate()
    if kind == "touch":
        return Touch(rest[0])
    if kind == "delete":
        return Delete(rest[0])
    raise ValueError(f"no operation is called {kind!r}")
