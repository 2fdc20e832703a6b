"""One case of a rule: records and expected rows, step by step (see rule_packs.py)."""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
from tests.support.changes import Topic
from tests.support.kafka import Record

KEYS = 10_000
"""Number of keys that are reserved for each case."""

PARTITIONS = 3
"""Number of partitions that are reserved for each case."""

NUMBERS = {"id": "bigint", "v": "bigint"}
"""Columns of a table in which every value is always sent. The texts of a case become numbers in it."""

TEXTS = {"id": "bigint", "v": "string"}
"""Columns of a table in which a connector may leave values out."""

Rows = list[tuple[Any, ...]]


@dataclass(frozen=True)
class Settings:
    """The settings that the cases of a pack share: the connector, the table's settings, and the types of its
    columns."""

    connector: str
    rule: tuple[tuple[str, Any], ...]
    columns: tuple[tuple[str, str], ...]

    @property
    def keeps_deleted(self) -> bool:
        """Whether deletes are soft."""
        return dict(self.rule).get("deletes") == "soft"

    def value(self, column: str, value: Any) -> Any:
        """A value of a case, as the column of the table holds it."""
        if isinstance(value, str) and dict(self.columns).get(column) == "bigint":
            return zlib.crc32(value.encode())
        return value


@dataclass(frozen=True)
class Expected:
    """Rows of some columns. `alive`: those that are deleted softly may be there, too."""

    rows: Rows
    columns: tuple[str, ...]
    alive: bool = False


@dataclass
class Step:
    """Records that are applied together, and the rows that the table must have after them."""

    records: list[Record]
    new_driver: bool = False
    expected: list[Expected] = field(default_factory=list)


class Case:
    """One case. Its keys and partitions start at 0 and do not meet those of other cases."""

    def __init__(self, settings: Settings, number: int) -> None:
        self._settings = settings
        self._first_key = number * KEYS
        self._first_partition = number * PARTITIONS
        self.steps: list[Step] = []
        self.is_decided = False

    @property
    def keeps_deleted(self) -> bool:
        """Whether deletes are soft."""
        return self._settings.keeps_deleted

    def topic(self) -> Topic:
        """An empty topic for the case's records."""
        return Topic("case", connector=self._settings.connector)

    def take(self, records: Iterable[Record], at_most: int | None = None, *, new_driver: bool = False) -> None:
        """Applies the records in the next step, or in steps of `at_most`. `new_driver`: by a new process."""
        moved = [self._moved(record) for record in records]
        size = at_most or max(1, len(moved))
        for start in range(0, max(1, len(moved)), size):
            self.steps.append(Step(moved[start : start + size], new_driver))

    def expect(self, rows: Rows, *columns: str) -> None:
        """After the steps so far the table must have these rows of the case, with the named columns, else id and v."""
        self._expect(rows, columns, alive=False)

    def expect_alive(self, rows: Rows, *columns: str) -> None:
        """Expects these rows without those that are marked as deleted."""
        self._expect(rows, columns, alive=self.keeps_deleted)

    def expect_with_deleted(self, rows: Rows, *columns: str) -> None:
        """Expects these rows, each with `__deleted` at its end; without it if deletes are hard."""
        if self.keeps_deleted:
            self.expect(rows, *columns, "__deleted")
        else:
            self.expect([values[:-1] for values in rows], *columns)

    def expect_decided(self) -> None:
        """Expects that no delete is counted as ambiguous."""
        self.is_decided = True

    def _expect(self, rows: Rows, columns: tuple[str, ...], *, alive: bool) -> None:
        names = columns or ("id", "v")
        values_of_rows = [tuple(map(self._settings.value, names, values)) for values in rows]
        expected = Expected(sorted(values_of_rows, key=repr), names, alive)
        self.steps[-1].expected.append(expected)

    def found(self, table: pa.Table | None, columns: Sequence[str], *, alive: bool = False) -> Rows:
        """The case's rows of a table, sorted, with its own keys; perhaps only those that are not deleted softly."""
        if table is None:
            return []
        rows = [row for row in table.to_pylist() if not (alive and row["__deleted"])]
        mine = [row for row in rows if self._first_key <= row["id"] < self._first_key + KEYS]
        own = [{**row, "id": row["id"] - self._first_key} for row in mine]
        return sorted((tuple(row[name] for name in columns) for row in own), key=repr)

    def _moved(self, record: Record) -> Record:
        headers = [(name, self._moved_key(value)) for name, value in record.headers]
        value = record.value
        if value is not None:
            document = json.loads(value)
            for image in ("before", "after"):
                if document.get(image) is not None:
                    row = {name: self._settings.value(name, held) for name, held in document[image].items()}
                    document[image] = {**row, "id": row["id"] + self._first_key}
            value = json.dumps(document).encode()
        partition = self._first_partition + (record.partition or 0)
        return record._replace(partition=partition, key=self._moved_key(record.key), value=value, headers=headers)

    def _moved_key(self, raw: bytes | None) -> bytes | None:
        if raw is None:
            return None
        document = json.loads(raw)
        return json.dumps({**document, "id": document["id"] + self._first_key}).encode()


def as_text(steps: Iterable[Step]) -> str:
    """The records of these steps as text."""
    lines = []
    for number, step in enumerate(steps):
        lines.append(f"step {number}:")
        lines += [f"  {r.partition} {r.key!r} {r.value!r} {r.headers!r}" for r in step.records]
    return "\n".join(lines)
