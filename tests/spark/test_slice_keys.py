"""What is told of a slice's keys without a fold."""

from __future__ import annotations

import pytest
from pyspark.sql import DataFrame, SparkSession

from distributary.merge.queries import Queries
from distributary.merge.slice_keys import SliceKeys

_RECORDS = "k struct<k0:int>, kind string, bad struct<code:string,message:string>, size int"


def keys_of(session: SparkSession, keys: list[int], kind: str = "c", bad: int | None = None) -> SliceKeys:
    """One record for each of the keys, some bytes larger each time; `bad` is the place of one that does not count."""
    rows = [((key,), kind, ("not-json", "") if i == bad else None, 10 + i) for i, key in enumerate(keys)]
    records: DataFrame = session.createDataFrame(rows, _RECORDS).selectExpr("*", "xxhash64(k) AS kh")
    return SliceKeys(records, Queries())


@pytest.mark.parametrize(("keys", "kind", "bad", "differ"), [
    ([1, 2, 3], "u", None, True), ([1, 2, 1], "c", None, False), ([1, 2, 1], "c", 2, True),
    ([1, 2, 1], "t", None, True), ([], "c", None, True),
])  # fmt: skip
def test_whether_keys_differ(session: SparkSession, keys: list[int], kind: str, bad: int | None, differ: bool) -> None:
    assert keys_of(session, keys, kind, bad).differ is differ


@pytest.mark.parametrize(("keys", "kind", "bad", "largest"), [
    ([1, 2, 3], "u", None, 12), ([1, 2, 1], "c", None, 22), ([1, 2, 1], "c", 2, 11), ([1, 1], "t", None, 0),
    ([], "c", None, 0),
])  # fmt: skip
def test_how_large_one_key_is(session: SparkSession, keys: list[int], kind: str, bad: int | None, largest: int) -> None:
    assert keys_of(session, keys, kind, bad).largest == largest
