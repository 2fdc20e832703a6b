"""Limits: differences between lake and source that records can't avoid, each with its reason."""

from __future__ import annotations

from dataclasses import dataclass

from tests.support.comparable import Value


@dataclass(frozen=True)
class CellLimit:
    """Where the truth has `truth` (the database's text or None) in `column`, the wire carries `lake` (a comparable
    value) and no record distinguishes the two."""

    table: str
    column: str
    truth: str | None
    lake: Value
    reason: str


@dataclass(frozen=True)
class MissingColumn:
    """Records never have this column, so the lake does not have it either."""

    table: str
    column: str
    reason: str


@dataclass(frozen=True)
class KeptColumn:
    """The lake keeps a column that the source has dropped or renamed."""

    table: str
    column: str
    reason: str


@dataclass(frozen=True)
class MissingRow:
    """The record of this row can't be applied and lies in quarantine. `key` is the database's text."""

    table: str
    key: tuple[str, ...]
    reason: str


Limit = CellLimit | MissingColumn | KeptColumn | MissingRow
