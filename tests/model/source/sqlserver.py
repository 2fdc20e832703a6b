"""SQL Server: the change tables of its change data capture, read by the function or directly.

An update of the key or of a column under a unique index is a delete and an insert there, with one `seqval`, and no
field connects the two. Read directly, rows come in the order of the commands: all deletes of a statement, then all its
inserts. The serial number counts the rows that follow each other with one `seqval`, so that a delete and the insert of
its key then have three equal numbers.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from tests.model.source.database import Change, Committed, Dialect, Snapshot
from tests.model.source.layout import Key, Layout, Row
from tests.model.source.sent import Connector, Part

_DELETE, _INSERT, _UPDATE = 1, 2, 3


@dataclass(frozen=True)
class _Captured:
    """A row of a change table; an update's two rows are one here."""

    command: int
    seqval: int
    operation: int
    before: Row | None
    after: Row | None


class SqlServer(Connector):
    """`direct`: data.query.mode is direct."""

    name = "sqlserver"
    dialect = Dialect(deferred_keys=True, truncates=False)
    source_fields = (("change_lsn", "string"), ("commit_lsn", "string"), ("event_serial_no", "int64"))

    def __init__(self, layout: Layout, *, direct: bool = False) -> None:
        super().__init__(layout)
        self._direct = direct

    def read_place(self, snapshot: Snapshot) -> dict[str, Any]:
        if snapshot.kind == "incremental" and self.last:
            return self.last
        return {"commit_lsn": _lsn(snapshot.tick), "change_lsn": None, "event_serial_no": None}

    def transaction(self, number: int, entry: Committed) -> None:
        captured = sorted(self._capture(entry.changes), key=lambda row: (row.seqval, row.operation))
        if self._direct:
            captured.sort(key=lambda row: row.command)
        seqval, serial = -1, 0
        for row in captured:
            rows = 2 if row.operation == _UPDATE else 1
            seqval, serial = row.seqval, serial + rows if row.seqval == seqval else rows
            place = {"commit_lsn": _lsn(entry.tick), "change_lsn": _lsn(seqval), "event_serial_no": serial}
            op = {_DELETE: "d", _INSERT: "c", _UPDATE: "u"}[row.operation]
            self.emit_part(number, Part(op, row.before, row.after), place, entry.tick, None, alone=True)

    def _capture(self, changes: Iterable[Change]) -> Iterator[_Captured]:
        for statement, group in groupby(changes, key=lambda change: change.statement):
            statement_changes = list(group)
            if len(statement_changes) > 1 and any(self._moves(change) for change in statement_changes):
                yield from self._collapsed(2 * statement, statement_changes)
            else:
                for change in statement_changes:
                    yield from self._split(2 * statement, change)

    def _moves(self, change: Change) -> bool:
        before, after = change.before, change.after
        return before is not None and after is not None and self.layout.key_of(before) != self.layout.key_of(after)

    def _split(self, command: int, change: Change) -> Iterator[_Captured]:
        before, after = change.before, change.after
        unique = before is not None and after is not None and (self._moves(change) or before["u"] != after["u"])
        if before is not None and after is not None and not unique:
            yield _Captured(command, change.tick, _UPDATE, before, after)
            return
        if before is not None:
            yield _Captured(command, change.tick, _DELETE, before, None)
        if after is not None:
            yield _Captured(command + unique, change.tick, _INSERT, None, after)

    def _collapsed(self, command: int, changes: list[Change]) -> Iterator[_Captured]:
        """Many rows' keys changed by one statement: a row that moves to a key which another row leaves is an update of
        that key."""
        left: dict[Key, tuple[int, Row]] = {}
        filled: dict[Key, tuple[int, Row]] = {}
        for change in changes:
            assert change.before is not None
            assert change.after is not None
            left[self.layout.key_of(change.before)] = (change.tick, change.before)
            filled[self.layout.key_of(change.after)] = (change.tick, change.after)
        for key, (tick, row) in left.items():
            if key in filled:
                yield _Captured(command, tick, _UPDATE, row, filled[key][1])
            else:
                yield _Captured(command, tick, _DELETE, row, None)
        for key, (tick, row) in filled.items():
            if key not in left:
                yield _Captured(command + 1, tick + 2, _INSERT, None, row)


def _lsn(tick: int) -> str:
    """8:8:4 hex digits: log file, block in it, slot in the block."""
    block, slot = divmod(tick, 64)
    return f"{0x2C:08x}:{0xF70 + block:08x}:{slot + 1:04x}"
