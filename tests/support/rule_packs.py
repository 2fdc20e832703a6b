"""Rule cases that share a table: many cases with equal settings have one topic, one table and a few batches.

A case is a script: it applies records in steps and names the rows that the table must have after each. Each case has
its own keys and partitions: a record with the key 1 in partition 0 gets, in the pack's topic, a key of the case's range
and the first of the case's partitions. Steps of all cases with the same number are one batch, so a pack has as many
batches as its longest case has steps. The pack runs when the first of its tests runs, and each case is a test:

    @rule_case(connector="postgresql", deletes="soft")
    def test_3_2_a_deleted_row_stays(case: Case) -> None:
        topic = case.topic()
        topic.change("c", key(1), row(1, "first"), at=1)
        topic.change("d", key(1), at=2)
        case.take(topic.records)
        case.expect([(1, "first", True)], "id", "v", "__deleted")

A truncate or a halt affects a whole table: tests of such rules have their own table.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from tests.support import memory_kafka
from tests.support.changes import Row
from tests.support.lake import read_table
from tests.support.rule_cases import NUMBERS, PARTITIONS, Case, Settings, as_text
from tests.support.spark import Bench


class Pack:
    """All cases of equal settings, in one table."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self._scripts: dict[str, Callable[[Case], None]] = {}
        self._cases: dict[str, Case] = {}
        self._after: list[pa.Table | None] = []
        self._ambiguous_deletes = 0
        self._error: BaseException | None = None

    def add(self, name: str, script: Callable[[Case], None]) -> None:
        """Adds a case. Raises ValueError if there is one with that name."""
        if name in self._scripts:
            raise ValueError(f"there are two cases {name}")
        self._scripts[name] = script

    def check(self, name: str, session: SparkSession, folder: Callable[[], Path]) -> None:
        """Runs the pack once, and compares the case's rows with what it expects."""
        if self._error is not None:
            raise AssertionError(f"the pack did not run to its end: {self._error}") from self._error
        if not self._cases:
            try:
                self.run_steps(session, folder())
            except BaseException as error:
                self._error = error
                raise
        case = self._cases[name]
        for number, step in enumerate(case.steps):
            for expected in step.expected:
                found = case.found(self._after[number], expected.columns, alive=expected.alive)
                assert found == expected.rows, (
                    f"{name} after step {number}:\n  expected {expected.rows}\n  found    {found}\n"
                    f"{as_text(case.steps[: number + 1])}"
                )
        assert not case.is_decided or self._ambiguous_deletes == 0, "deletes of the pack that might be of another row"

    def run_steps(self, session: SparkSession, folder: Path) -> None:
        """Runs the steps of all cases on one table, and keeps what it holds after each."""
        cases = {}
        for number, (name, script) in enumerate(self._scripts.items()):
            cases[name] = Case(self.settings, number)
            script(cases[name])
            assert any(step.expected for step in cases[name].steps), f"{name} expects nothing"
        rule = {"columns": dict(self.settings.columns), **dict(self.settings.rule)}
        bench = Bench(session, memory_kafka.new_address(), folder, "packed.dbo.t", rule)
        bench.create(partitions=PARTITIONS * len(cases))
        worker = None
        for number in range(max(len(case.steps) for case in cases.values())):
            steps = [case.steps[number] for case in cases.values() if number < len(case.steps)]
            if any(step.new_driver for step in steps):
                worker = None
            records = [record._replace(topic=bench.topic) for step in steps for record in step.records]
            worker = bench.take(records, worker)
            self._after.append(read_table(bench.table))
        assert not bench.quarantine.exists(), "a pack has no records that can't be read"
        assert worker is not None
        assert worker.progress is not None
        self._ambiguous_deletes = worker.progress.ambiguous_deletes
        self._cases = cases


_packs: dict[tuple[str, Settings], Pack] = {}


def rule_case(
    connector: str = "sqlserver",
    columns: Mapping[str, str] | None = None,
    variants: Sequence[Row] = ({},),
    **rule: Any,
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Makes a script a test. `columns`: the types of the table's columns. `variants`: arguments of the script; each is
    a separate case and may have its own `connector`, `columns` and `deletes`."""

    def decorate(script: Callable[..., None]) -> Callable[..., None]:
        packs: dict[str, Pack] = {}
        for variant in variants:
            arguments = dict(variant)
            by = arguments.pop("connector", connector)
            types = arguments.pop("columns", columns) or NUMBERS
            deletes = {"deletes": arguments.pop("deletes")} if "deletes" in arguments else {}
            settings = Settings(by, tuple(sorted({**rule, **deletes}.items())), tuple(types.items()))
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
