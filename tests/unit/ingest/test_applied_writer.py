"""Which of a key's rows the rules are given."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pytest

from distributary.apply.memory import TableSpec
from distributary.delta.group_facts import GroupFact
from distributary.delta.writer import TableWriter
from distributary.ingest.applied_writer import AppliedWriter
from distributary.rules.state import RuleSettings

KEY = pa.struct([("id", pa.int64())])
OLD_SERVER = "000:00000000000000000009/00000000000000000005/0000000000/1/a/00000000000000000007"
TOOK_OVER = "000:00000000000000000001/00000000000000000004/0000000000/2/a/00000000000000000020"


@pytest.mark.parametrize("ends", [(OLD_SERVER, TOOK_OVER), (TOOK_OVER, OLD_SERVER), (None, TOOK_OVER)])
def test_4_2_the_newest_of_ended_versions_is_that_of_the_server_that_took_over(ends: Sequence[str | None]) -> None:
    """Its binlog's files are counted anew, and sort below as texts."""
    columns = {"id": [1, 1], "__end_at": pa.array(ends, pa.string()), "__current": [False, False]}
    rows = SimpleNamespace(keys=np.array([0, 0]), rows=pa.table(columns))
    writer = cast(TableWriter, SimpleNamespace(locate=lambda _: [], read_found=lambda *_: rows))
    spec = TableSpec(RuleSettings("mysql", "history"), "t", KEY, KEY)
    found: Any = AppliedWriter(writer, spec).read(pa.array([{"id": 1}], KEY), ["__end_at"])
    assert found["__end_at"].to_pylist() == [TOOK_OVER]


@pytest.mark.parametrize(
    ("groups", "found"),
    [
        ([], set()),
        ([[("r", "1"), ("u", "2"), ("r", None), (None, "3")], [("r", "1"), ("r", "4")]], {"1", "4"}),
        ([[("r", str(number)) for number in range(16)]], {str(number) for number in range(16)}),
        ([[("r", "1")], [("r", str(number)) for number in range(17)]], None),
    ],
)
def test_the_positions_of_snapshot_rows_are_those_of_their_row_groups_if_they_are_few(
    groups: Sequence[Sequence[tuple[str | None, str | None]]], found: set[str] | None
) -> None:
    def facts(fact: GroupFact[Any], _locations: object) -> list[Any]:
        assert fact.columns == ("__op", "__position")
        columns = [list(zip(*group, strict=True)) for group in groups]
        return [fact.derive(pa.table([pa.array(one, pa.string()) for one in both], fact.columns)) for both in columns]

    writer = cast(TableWriter, SimpleNamespace(locate=lambda _: [], facts=facts))
    applied = AppliedWriter(writer, TableSpec(RuleSettings("sqlserver"), "t", KEY, KEY))
    assert applied.snapshot_positions(pa.array([{"id": 1}], KEY)) == found
