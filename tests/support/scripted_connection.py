"""A connection of SQLAlchemy that runs nothing: it answers from lists and records the statements."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any


class ScriptedConnection:
    """`of` is SQLAlchemy's dialect; `columns` answers the statement for a table's columns, `answers` all others in
    turn, then nothing."""

    def __init__(self, of: Any, columns: Sequence[Sequence[Any]], answers: Sequence[Any]) -> None:
        self.dialect = of
        self.columns, self.answers = columns, list(answers)
        self.asked: list[str] = []
        self.given: list[Mapping[str, Any]] = []
        """The parameters of the same statements."""

    def begin(self) -> ScriptedConnection:
        return self

    def __enter__(self) -> ScriptedConnection:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def execute(self, statement: Any, given: Any = None, **_options: Any) -> ScriptedConnection:
        self.asked.append(str(statement).replace("\\:", ":"))
        self.given.append(given or {})
        if given and "schema" in given:
            self.rows = list(self.columns)
        else:
            self.rows = self.answers.pop(0) if self.answers else []
        return self

    @property
    def returns_rows(self) -> bool:
        return True

    def fetchall(self) -> list[Any]:
        return self.rows

    def fetchmany(self, _count: int) -> list[Any]:
        rows, self.rows = self.rows, []
        return rows
