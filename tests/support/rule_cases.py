"""One case of a rule, told slice by slice (see rule_packs.py)."""

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
"""Each case has so many keys of its own."""

PARTITIONS = 3
"""Each case has so many partitions of its own."""

NUMBERS = {"id": "bigint", "v": "bigint"}
"""The columns of a table in which no value can be left out: the library commits its batches, where deletes are hard. A
case's texts become numbers in it."""

TEXTS = {"id": "bigint", "v": "string"}
"""Those of one in which a connector may leave values out: there Spark commits batches with key changes."""

Rows = list[tuple[Any, ...]]


@dataclass(frozen=True)
class Settings:
    """What the cases of a pack have in common: the connector, the table's settings, and the types of its columns."""

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
class OffsetRange:
    """Records that come together, and what the table must have after them."""

    records: list[Record]
    new_driver: bool = False
    expected: list[Expected] = field(default_factory=list)


class Case:
    """One case, told slice by slice. Keys, columns and partitions are its own, counted from 0."""

    def __init__(self, settings: Settings, number: int) -> None:
        self._settings = settings
        self._first_key = number * KEYS
        self._first_partition = number * PARTITIONS
        self.slices: list[OffsetRange] = []
        self.is_decided = False

    @property
    def keeps_deleted(self) -> bool:
        """Whether deletes are soft."""
        return self._settings.keeps_deleted

    def topic(self) -> Topic:
        """An empty topic, whose records can be taken."""
        return Topic("case", connector=self._settings.connector)

    def take(self, records: Iterable[Record], at_most: int | None = None, *, new_driver: bool = False) -> None:
        """The records come in the next slice, or in slices of `at_most`; perhaps a driver takes them that knows only
        what the table knows."""
        moved = [self._moved(record) for record in records]
        size = at_most or max(1, len(moved))
        for start in range(0, max(1, len(moved)), size):
            self.slices.append(OffsetRange(moved[start : start + size], new_driver))

    def expect(self, rows: Rows, *columns: str) -> None:
        """After the slices so far the table has these rows of the case; of the named columns, else of id and v."""
        self._expect(rows, columns, alive=False)

    def expect_alive(self, rows: Rows, *columns: str) -> None:
        """The same of the rows that are not deleted softly."""
        self._expect(rows, columns, alive=self.keeps_deleted)

    def expect_with_deleted(self, rows: Rows, *columns: str) -> None:
        """The same of rows with `__deleted` behind their columns, where deletes are soft."""
        if self.keeps_deleted:
            self.expect(rows, *columns, "__deleted")
        else:
            self.expect([values[:-1] for values in rows], *columns)

    def expect_decided(self) -> None:
        """In the end no delete is counted that might be of another row."""
        self.is_decided = True

    def _expect(self, rows: Rows, columns: tuple[str, ...], *, alive: bool) -> None:
        names = columns or ("id", "v")
        held = [tuple(map(self._settings.value, names, values)) for values in rows]
        expected = Expected(sorted(held, key=repr), names, alive)
        self.slices[-1].expected.append(expected)

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


def as_text(slices: Iterable[OffsetRange]) -> str:
    """All records of some slices."""
    lines = []
    for number, slice_ in enumerate(slices):
        lines.append(f"slice {number}:")
        lines += [f"  {r.partition} {r.key!r} {r.value!r} {r.headers!r}" for r in slice_.records]
    return "\n".join(lines)
