"""The comparison of two sides: which keys differ, and which can't be checked."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from distributary.verify.comparison import MAX_SHOWN_CHARACTERS, Comparison, ComparisonSpec, value_struct
from distributary.verify.report import BEFORE_TOPIC, CHANGED_MEANWHILE, FAULTS, NOT_CHECKED, REMOVED_ORPHAN

_EVENT = "STRUCT<partition: INT, offset: BIGINT, position: STRING, op: STRING>"
_EXPECTED = (
    f"k STRUCT<k0: INT>, times INT, v STRUCT<v0: STRING, v1: MAP<STRING, STRING>>, event {_EVENT},"
    " unknown_columns ARRAY<STRING>, orphaned BOOLEAN"
)
_LAKE = f"k STRUCT<k0: INT>, v STRUCT<v0: STRING, v1: MAP<STRING, STRING>>, origin {_EVENT}, deleted BOOLEAN"


def source_row(value: str | None) -> tuple[str | None, dict[str, str]]:
    return value, {"a": "1", "b": "2"}


def place(position: int | None) -> tuple[int, int, str, str] | None:
    return None if position is None else (0, position, f"{position:03d}", "u")


def expected(key: int, value: str | None, at: int | None = 1, times: int = 1, **marks: Any) -> tuple[Any, ...]:
    there = source_row(value) if times else None
    return (key,), times, there, place(at), marks.get("unknown_columns", []), marks.get("orphaned", False)


def lake(key: int, value: str | None, at: int = 1, *, deleted: bool = False) -> tuple[Any, ...]:
    return (key,), source_row(value), place(at), deleted


EXPECTED = [
    expected(1, "same"),
    expected(2, "new", 5),
    expected(3, "here"),
    expected(5, None, at=3, times=0),  # deleted
    expected(6, "twice"),
    expected(7, "an orphaned row", orphaned=True),
    expected(8, "a", at=2),
    expected(9, None, unknown_columns=["v"]),
    expected(11, "in quarantine"),
    expected(12, "x" * 1000),
    expected(13, "same", at=2),
]
LAKE = [
    lake(1, "same"),
    lake(2, "old", 4),
    lake(4, "from nowhere"),
    lake(5, "still here"),
    lake(6, "twice"),
    lake(6, "twice"),
    lake(8, "newer", at=3),
    lake(9, "kept"),
    lake(11, "other"),
    lake(12, "y" * 1000),
    lake(13, "same", at=1),
]


def compared(session: SparkSession, *, partial: bool) -> Comparison:
    def frame(rows: list[tuple[Any, ...]], schema: str) -> DataFrame:
        return session.createDataFrame(rows, schema)

    columns = {"v": "string", "m": "map<string,string>"}
    spec = ComparisonSpec(("id",), columns, "sqlserver", positions=True, partial=partial, skips_unknown=partial)
    suspects = frame([((11,), CHANGED_MEANWHILE), ((1,), CHANGED_MEANWHILE)], "k STRUCT<k0: INT>, why STRING")
    return Comparison(spec, frame(EXPECTED, _EXPECTED), frame(LAKE, _LAKE), suspects)


@pytest.mark.parametrize(
    ("partial", "equal", "faults", "not_checked"),
    [
        (False, 1, (1, 2, 5, 1), {REMOVED_ORPHAN: 1, CHANGED_MEANWHILE: 1}),
        # 4: the topic has no change of it; 8: the lake's row is newer than the topic; 9: no record shows the value.
        (True, 2, (1, 1, 3, 1), {BEFORE_TOPIC: 2, REMOVED_ORPHAN: 1, CHANGED_MEANWHILE: 1}),
    ],
)
def test_each_key_has_one_verdict(
    session: SparkSession, partial: bool, equal: int, faults: tuple[int, ...], not_checked: dict[str, int]
) -> None:
    counts = compared(session, partial=partial).counts
    assert (counts.lake, counts.expected, counts.equal) == (11, 10, equal)
    assert counts.faults == dict(zip(FAULTS, faults, strict=True))
    assert counts.not_checked == {**dict.fromkeys(NOT_CHECKED, 0), **not_checked}


def test_differences_are_shown_with_both_values_and_where_they_come_from(session: SparkSession) -> None:
    both = compared(session, partial=False)
    found = {d.key: d for d in both.differences(100, None)}
    assert {key: d.fault for key, d in found.items()} == {
        '{"id":2}': "different",
        '{"id":3}': "missing",
        '{"id":4}': "unexpected",
        '{"id":5}': "unexpected",
        '{"id":6}': "repeated",
        '{"id":8}': "different",
        '{"id":9}': "different",
        '{"id":12}': "different",
        '{"id":13}': "different",
    }
    values = {key: [(v.column, v.lake, v.expected) for v in d.values] for key, d in found.items()}
    assert values['{"id":2}'] == [("v", "old", "new"), ("__position", "004", "005")]
    assert values['{"id":9}'] == [("v", "kept", None)]
    assert values['{"id":13}'] == [("__position", "001", "002")]
    [long] = values['{"id":12}']
    end = "… (1000 characters)"
    assert long == ("v", "y" * MAX_SHOWN_CHARACTERS + end, "x" * MAX_SHOWN_CHARACTERS + end)
    deleted = found['{"id":5}']
    assert deleted.decided_by is not None
    assert deleted.lake_row is not None
    assert (deleted.decided_by.position, deleted.lake_row.position) == ("003", "001")
    assert [d.key for d in both.differences(2, None)] == ['{"id":2}', '{"id":3}']


def test_a_table_that_has_nothing_but_its_key_can_be_compared(session: SparkSession) -> None:
    keys = session.range(1, 4).selectExpr("named_struct('k0', id) AS k")
    no_event = F.expr(f"CAST(NULL AS {_EVENT})")
    wanted = keys.where("k.k0 < 3").select(
        "k", F.lit(1).alias("times"), value_struct([]).alias("v"), no_event.alias("event"),
        F.expr("CAST(array() AS ARRAY<STRING>)").alias("unknown_columns"),
        F.lit(False).alias("orphaned"),
    )  # fmt: skip
    found = keys.where("k.k0 > 1").select(
        "k", value_struct([]).alias("v"), no_event.alias("origin"), F.lit(False).alias("deleted")
    )
    suspects = keys.where("false").withColumn("why", F.lit(""))
    both = Comparison(ComparisonSpec(("id",), {}, None), wanted, found, suspects)
    assert {d.key: d.fault for d in both.differences(9, None)} == {'{"id":1}': "missing", '{"id":3}': "unexpected"}
    assert both.counts.equal == 1
