"""A database with one table: does what a history says, holds the true rows, and writes a log.

A row has an identity of its own, so that its content does not depend on key changes. Time is counted in ticks: every
change and every commit has its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from tests.model.source.history import (
    READS,
    Delete,
    History,
    Move,
    Operation,
    Put,
    Read,
    Rename,
    Replace,
    Restart,
    Together,
    Touch,
    Transaction,
)
from tests.model.source.layout import Key, Layout, Row

TICK = 8
LONG = "long value "
"""The beginning of a value that is stored apart from its row."""


@dataclass(frozen=True)
class Dialect:
    """What a database can do: check keys only after a whole statement, or at the commit, truncate a table so that its
    connector sends it, empty it inside a transaction, and write a row to its log that waits for another's key."""

    deferred_keys: bool
    truncates: bool
    keys_at_commit: bool = False
    truncates_in_transactions: bool = False
    races: bool = False


@dataclass(frozen=True)
class Change:
    """A row's change as the log has it. No `before`: an insert; no `after`: a delete; neither: a truncate."""

    tick: int
    row_id: int
    before: Row | None
    after: Row | None
    statement: int


@dataclass(frozen=True)
class Committed:
    """A transaction. `number` is unique; transactions are in the log in the order of their commits."""

    number: int
    changes: tuple[Change, ...]
    tick: int


@dataclass(frozen=True)
class Snapshot:
    """Rows read at `tick`, each with its identity; `kind` is `initial`, `blocking` or `incremental`."""

    kind: str
    rows: tuple[tuple[int, Row], ...]
    tick: int
    behind: int = 0


@dataclass(frozen=True)
class Restarted:
    """The connector was started again."""


Entry = Committed | Snapshot | Restarted


@dataclass
class _Session:
    """A client: its script, and the transaction that it is in."""

    script: list[Operation]
    changes: list[Change] = field(default_factory=list)
    keys: set[Key] = field(default_factory=set)
    deleted: dict[Key, int] = field(default_factory=dict)
    """The keys whose rows it removed, each with the tick."""
    whole_table: bool = False


class Database:
    """Runs a history. `log` is what its connector will read; `rows` are the rows by identity, `committed` those that
    others see."""

    def __init__(self, layout: Layout, dialect: Dialect) -> None:
        self.layout = layout
        self.dialect = dialect
        self.rows: dict[int, Row] = {}
        self.committed: dict[int, Row] = {}
        self.log: list[Entry] = []
        self._tick = 1000 * TICK
        self._sessions: list[_Session] = []
        self._statements = 0
        self._transactions = 0
        self._values = 0

    def run(self, history: History) -> list[Entry]:
        """Runs the whole history; returns the log."""
        for number in history.rows:
            self._insert_quietly(number)
        if history.rows:
            self._read(Read("initial"))
        for step in history.steps:
            if isinstance(step, Transaction):
                self._together((step.operations,), ())
            elif isinstance(step, Together):
                self._together(step.transactions, step.turns)
            elif isinstance(step, Read):
                self._read(step)
            else:
                assert isinstance(step, Restart)
                self.log.append(Restarted())
        return self.log

    def _insert_quietly(self, number: int) -> None:
        if self._find(self._key(number)) is None:
            row_id = self._next_tick()
            self.rows[row_id] = self.committed[row_id] = self._new_row(number, "short")

    def _read(self, step: Read) -> None:
        keys = None if step.keys is None else {self._key(number) for number in step.keys}
        for session in self._sessions:
            if session.whole_table:
                self._commit(session)
        found = tuple(
            (row_id, row) for row_id, row in self.committed.items() if keys is None or self.layout.key_of(row) in keys
        )
        if found:
            self.log.append(Snapshot(step.kind, found, self._next_tick(), step.behind))

    def _together(self, scripts: Iterable[tuple[Operation, ...]], turns: Iterable[int]) -> None:
        sessions = self._sessions = [_Session(list(script)) for script in scripts]
        for turn in turns:
            if turn in READS:
                self._read(Read(READS[turn]))
            elif turn < len(sessions):
                self._next_operation(sessions[turn])
        for session in sessions:
            while session.script:
                self._next_operation(session)

    def _next_operation(self, session: _Session) -> None:
        if session.script:
            self._do(session, session.script.pop(0))
            if not session.script:
                self._commit(session)

    def _do(self, session: _Session, operation: Operation) -> None:
        self._statements += 1
        if isinstance(operation, Put):
            self._put(session, operation)
        elif isinstance(operation, Touch):
            self._update(session, {operation.key: {}})
        elif isinstance(operation, Rename):
            self._update(session, {number: {"u": self._value("u")} for number in operation.keys})
        elif isinstance(operation, Delete):
            found = self._find_and_lock(session, operation.key)
            if found is not None:
                self._write(session, found, self.rows[found], None)
        elif isinstance(operation, Move):
            self._move(session, operation)
        elif isinstance(operation, Replace):
            self._replace(session, operation)
        elif self.dialect.truncates:
            self._truncate(session)

    def _put(self, session: _Session, operation: Put) -> None:
        key = self._key(operation.key)
        tick = self._lock(session, [key])
        found = self._find(key)
        if found is None:
            big = "short" if operation.big == "keep" else operation.big
            row = self._new_row(operation.key, big)
            self._write(session, self._next_tick(), None, row, tick)
        else:
            change = {} if operation.big == "keep" else {"big": self._big(operation.big)}
            self._write(session, found, self.rows[found], {**self.rows[found], "v": self._value("v"), **change})

    def _update(self, session: _Session, changes: dict[int, dict[str, Any]]) -> None:
        for number, change in changes.items():
            found = self._find_and_lock(session, number)
            if found is not None:
                self._write(session, found, self.rows[found], {**self.rows[found], **change})

    def _move(self, session: _Session, operation: Move) -> None:
        self._lock(session, [self._key(number) for pair in operation.pairs for number in pair])
        for row_id, number in self._possible(operation.pairs):
            row = self.rows[row_id]
            self._write(session, row_id, row, {**row, **self.layout.numbered(number)})

    def _replace(self, session: _Session, operation: Replace) -> None:
        self._lock(session, [self._key(operation.old), self._key(operation.new)])
        moving, replaced = self._find(self._key(operation.old)), self._find(self._key(operation.new))
        if moving is None or moving == replaced:
            return
        row = self.rows[moving]
        moved = {**row, **self.layout.numbered(operation.new)}
        if replaced is not None and not self.dialect.keys_at_commit:
            self._write(session, replaced, self.rows[replaced], None)
            self._statements += 1
        self._write(session, moving, row, moved)
        if replaced is not None and self.dialect.keys_at_commit:
            self._statements += 1
            self._write(session, replaced, self.rows[replaced], None)

    def _possible(self, pairs: Iterable[tuple[int, int]]) -> Iterator[tuple[int, int]]:
        """The moves that leave every key at most one row, in an order that the database allows."""
        moves: dict[Key, tuple[int, int]] = {}
        targets: set[Key] = set()
        for old, new in pairs:
            source, target = self._key(old), self._key(new)
            found = self._find(source)
            if found is not None and source != target and source not in moves and target not in targets:
                moves[source] = (found, new)
                targets.add(target)

        def blocked(new: int) -> bool:
            return self._find(self._key(new)) is not None and self._key(new) not in moves

        while any(blocked(new) for _, new in moves.values()):
            moves = {source: move for source, move in moves.items() if not blocked(move[1])}
        if self.dialect.deferred_keys:
            yield from moves.values()
            return
        while free := [source for source, (_, new) in moves.items() if self._find(self._key(new)) is None]:
            yield moves.pop(free[0])

    def _truncate(self, session: _Session) -> None:
        for other in self._sessions:
            if other is not session or not self.dialect.truncates_in_transactions:
                self._commit(other)
        session.changes.append(Change(self._next_tick(), -1, None, None, self._statements))
        self.rows.clear()
        session.whole_table = True
        if not self.dialect.truncates_in_transactions:
            self._commit(session)

    def _find_and_lock(self, session: _Session, number: int) -> int | None:
        self._lock(session, [self._key(number)])
        return self._find(self._key(number))

    def _lock(self, session: _Session, keys: list[Key]) -> int | None:
        """Waits for the sessions that have locked the keys. Returns the tick of an insert that was logged before the
        wait."""
        early = None
        for other in self._sessions:
            if other is not session and (other.whole_table or not other.keys.isdisjoint(keys)):
                # Behind a truncate it waits for the table, before it writes anything.
                if self.dialect.races and not other.whole_table and len(keys) == 1 and keys[0] in other.deleted:
                    early = other.deleted[keys[0]] - 3
                self._commit(other)
        session.keys.update(keys)
        return early if early is not None and all(change.tick < early for change in session.changes) else None

    def _write(
        self, session: _Session, row_id: int, before: Row | None, after: Row | None, tick: int | None = None
    ) -> None:
        tick = tick or self._next_tick()
        session.changes.append(Change(tick, row_id, before, after, self._statements))
        if before is not None and (after is None or self.layout.key_of(after) != self.layout.key_of(before)):
            session.deleted[self.layout.key_of(before)] = tick
        if after is None:
            del self.rows[row_id]
        else:
            session.deleted.pop(self.layout.key_of(after), None)
            self.rows[row_id] = after

    def _commit(self, session: _Session) -> None:
        if session.changes:
            self._transactions += 1
            # A log may give whole stretches one number: no two commits may share one.
            self._tick += 4 * TICK
            self.log.append(Committed(self._transactions, tuple(session.changes), self._next_tick()))
            self._publish(session.changes)
        session.changes, session.keys, session.deleted, session.whole_table = [], set(), {}, False

    def _publish(self, changes: Iterable[Change]) -> None:
        for change in changes:
            if change.after is not None:
                self.committed[change.row_id] = change.after
            elif change.before is not None:
                del self.committed[change.row_id]
            else:
                self.committed.clear()

    def _next_tick(self) -> int:
        self._tick += TICK
        return self._tick

    def _key(self, number: int) -> Key:
        return self.layout.key_of(self.layout.numbered(number))

    def _find(self, key: Key) -> int | None:
        """The row with the key; of two, in the middle of a statement, the one that came first."""
        return next((row_id for row_id, row in self.rows.items() if self.layout.key_of(row) == key), None)

    def _new_row(self, number: int, big: str) -> Row:
        return {**self.layout.numbered(number), "v": self._value("v"), "u": self._value("u"), "big": self._big(big)}

    def _value(self, column: str) -> str:
        self._values += 1
        return f"{column}{self._values}"

    def _big(self, kind: str) -> str | None:
        return None if kind == "null" else self._value(LONG if kind == "long" else "short")
