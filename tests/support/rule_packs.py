"""Rule cases that share a table: many cases of equal settings are one topic, one table and a few batches.

A case is a script: it takes records in slices and says which rows the table must have after each. Each case has keys
and partitions of its own, so that the cases of a pack do not meet: its record with the key 1 in partition 0 gets, in
the pack's topic, a key of the case's own range and the first of the case's own partitions. The slices with
the same number are one batch, so a pack has as many batches as its longest case has slices. It runs when the first of
its cases is asked for, and each case is a test of its own:

    @rule_case(connector="postgresql", deletes="soft")
    def test_3_2_a_deleted_row_stays(case: Case) -> None:
        topic = case.topic()
        topic.change("c", key(1), row(1, "first"), at=1)
        topic.change("d", key(1), at=2)
        case.take(topic.records)
        case.expect([(1, "first", True)], "id", "v", "__deleted")

A truncate or a halt befalls a whole table: such rules are tests with a table of their own.
"""

from __future__ import annotations

import functools
import json
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from tests.support import memory_kafka
from tests.support.changes import Row, Topic
from tests.support.kafka import Record
from tests.support.lake import read_table
from tests.support.spark import Bench

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
    """What the cases of a pack have in common: the connector, the table's settings, and the first row's columns, by
    which columns without a schema get their types."""

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
class _Expected:
    """Rows of some columns. `alive`: those that are deleted softly may be there, too."""

    rows: Rows
    columns: tuple[str, ...]
    alive: bool = False


@dataclass
class _Slice:
    records: list[Record]
    new_driver: bool = False
    expected: list[_Expected] = field(default_factory=list)


class Case:
    """One case, told slice by slice. Keys, columns and partitions are its own, counted from 0."""

    def __init__(self, settings: Settings, number: int) -> None:
        self._settings = settings
        self._first_key = number * KEYS
        self._first_partition = number * PARTITIONS
        self.slices: list[_Slice] = []
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
            self.slices.append(_Slice(moved[start : start + size], new_driver))

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
        expected = _Expected(sorted(held, key=repr), names, alive)
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


class Pack:
    """All cases of equal settings, in one table."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self._scripts: dict[str, Callable[[Case], None]] = {}
        self._cases: dict[str, Case] = {}
        self._after: list[pa.Table | None] = []
        self._undecided = 0
        self._error: BaseException | None = None

    def add(self, name: str, script: Callable[[Case], None]) -> None:
        """One case more. Raises ValueError where there is one of that name."""
        if name in self._scripts:
            raise ValueError(f"there are two cases {name}")
        self._scripts[name] = script

    def check(self, name: str, session: SparkSession, folder: Callable[[], Path]) -> None:
        """Runs the pack, unless it ran; then the case's rows must be what it expects."""
        if self._error is not None:
            raise AssertionError(f"the pack did not run to its end: {self._error}") from self._error
        if not self._cases:
            try:
                self._run(session, folder())
            except BaseException as error:
                self._error = error
                raise
        case = self._cases[name]
        for number, slice_ in enumerate(case.slices):
            for expected in slice_.expected:
                found = case.found(self._after[number], expected.columns, alive=expected.alive)
                assert found == expected.rows, (
                    f"{name} after slice {number}:\n  expected {expected.rows}\n  found    {found}\n"
                    f"{_listed(case.slices[: number + 1])}"
                )
        assert not case.is_decided or self._undecided == 0

    def _run(self, session: SparkSession, folder: Path) -> None:
        cases = {}
        for number, (name, script) in enumerate(self._scripts.items()):
            cases[name] = Case(self.settings, number)
            script(cases[name])
            assert any(slice_.expected for slice_ in cases[name].slices), f"{name} expects nothing"
        rule = {"columns": dict(self.settings.columns), **dict(self.settings.rule)}
        bench = Bench(session, memory_kafka.new_address(), folder, "packed.dbo.t", rule)
        bench.create(partitions=PARTITIONS * len(cases))
        worker = None
        for number in range(max(len(case.slices) for case in cases.values())):
            slices = [case.slices[number] for case in cases.values() if number < len(case.slices)]
            if any(slice_.new_driver for slice_ in slices):
                worker = None
            records = [record._replace(topic=bench.topic) for slice_ in slices for record in slice_.records]
            worker = bench.take(records, worker)
            self._after.append(read_table(bench.table))
        assert not bench.quarantine.exists(), "a pack has no records that can't be read"
        assert worker is not None
        assert worker.progress is not None
        self._undecided = worker.progress.undecided
        self._cases = cases


def _listed(slices: Iterable[_Slice]) -> str:
    lines = []
    for number, slice_ in enumerate(slices):
        lines.append(f"slice {number}:")
        lines += [f"  {r.partition} {r.key!r} {r.value!r} {r.headers!r}" for r in slice_.records]
    return "\n".join(lines)


_packs: dict[tuple[str, Settings], Pack] = {}


def rule_case(
    connector: str = "sqlserver",
    columns: Mapping[str, str] | None = None,
    variants: Sequence[Row] = ({},),
    **rule: Any,
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Makes a script a test. `columns`: the types of the table's columns; `variants`: further arguments of the script.
    Each makes a case of its own, and may have `connector`, `columns` and settings of the table for it."""

    def decorate(script: Callable[..., None]) -> Callable[..., None]:
        packs: dict[str, Pack] = {}
        for variant in variants:
            arguments = dict(variant)
            by = arguments.pop("connector", connector)
            types = arguments.pop("columns", columns) or NUMBERS
            own: dict[str, Any] = {name: arguments.pop(name) for name in ("deletes", "truncate") if name in arguments}
            own = {**rule, **own}
            settings = Settings(by, tuple(sorted(own.items())), tuple(types.items()))
            pack = _packs.setdefault((script.__module__, settings), Pack(settings))
            shown = {**variant, **({"columns": "-".join(types.values())} if "columns" in variant else {})}
            id_ = "-".join(f"{name} {value}" for name, value in shown.items())
            name = f"{script.__name__}[{id_}]" if id_ else script.__name__
            pack.add(name, functools.partial(script, **arguments))
            packs[id_] = pack

        @pytest.mark.parametrize("variant", [pytest.param(id_, id=id_ or "case") for id_ in packs])
        def test(variant: str, session: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> None:
            name = f"{script.__name__}[{variant}]" if variant else script.__name__
            packs[variant].check(name, session, lambda: tmp_path_factory.mktemp("pack"))

        test.__name__ = script.__name__
        test.__doc__ = script.__doc__
        test.__module__ = script.__module__
        return test

    return decorate
