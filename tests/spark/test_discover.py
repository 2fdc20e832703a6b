"""What first records tell of their shapes by themselves is what Spark finds in them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from tests.spark.test_links import RAW
from tests.spark.test_slices import KEY, VALUES
from tests.support.recorded import Record, Scenario

from distributary.decode.discover import signatures, told_by_schemas, types_by_value
from distributary.decode.shapes import Signature
from distributary.decode.slices import sliced
from distributary.decode.unwrapped import Unwrapped
from distributary.survey.shown import _types_of_values

WITH_SCHEMA = ("usual", "null", "another schema", "tombstone")
FIRST = 20


def by_spark(session: SparkSession, records: Sequence[tuple[bytes | None, bytes | None, int]]) -> list[Signature]:
    rows: list[dict[str, Any]] = [
        {"key": key, "value": value, "partition": 0, "offset": i, "timestamp": at * 1000, "headers": []}
        for i, (key, value, at) in enumerate(records)
    ]
    cut = sliced(session.createDataFrame(pa.Table.from_pylist(rows, schema=RAW)))
    return [seen.signature for seen in signatures(cut)]


def told(records: Iterable[tuple[bytes | None, bytes | None, int]]) -> list[Signature] | None:
    found = told_by_schemas(records)
    return None if found is None else [seen.signature for seen in found]


@pytest.mark.parametrize("kind", VALUES)
def test_a_record_with_its_schema_tells_it(session: SparkSession, kind: str) -> None:
    as_value, as_key = ([(KEY, VALUES[kind], 1)], [(VALUES[kind], VALUES["usual"], 1)])
    for records in (as_value, as_key):
        if kind in WITH_SCHEMA:
            assert told(records) == by_spark(session, records)
        else:
            assert told(records) is None


WHOLE = (0, 2**63 - 1, -(2**63), 2**63, -(2**63) - 1, 10**19, 10**20, 2**64 - 1, 10**37, 10**38 - 1, 10**38, 10**40)


def test_values_show_the_same_types_with_spark_and_without_it(session: SparkSession) -> None:
    shown: dict[str, list[Any]] = {f"c{number}": [number] for number in WHOLE}
    shown |= {"mixed": [1, 2**63], "fraction": [1, 1.5], "round": [1.0], "small": [1e-7], "large": [1e20]}
    shown["null"] = [None]
    rows: list[dict[str, Any]] = [
        {"key": b"{}", "value": json.dumps({name: at[i] for name, at in shown.items() if i < len(at)}).encode(),
         "partition": 0, "offset": i, "timestamp": 0, "headers": []}
        for i in range(2)
    ]  # fmt: skip
    cut = sliced(session.createDataFrame(pa.Table.from_pylist(rows, schema=RAW)), Unwrapped({}))
    found = types_by_value(cut, shown, unwrapped=True)
    assert found == _types_of_values(shown)
    assert (found[f"c{2**63 - 1}"], found[f"c{2**63}"], found["mixed"]) == ("bigint", "string", "string")
    assert (found["fraction"], found["round"], found["small"], found["large"]) == ("double",) * 4


def test_one_record_that_is_written_otherwise_leaves_all_to_spark() -> None:
    usual = (KEY, VALUES["usual"], 1)
    assert told([usual, usual])
    assert told([usual, (KEY, VALUES["no schema"], 2), usual]) is None


def test_the_newest_comes_last(session: SparkSession) -> None:
    records = [(KEY, VALUES["another schema"], 2000), (KEY, VALUES["usual"], 1000), (KEY, None, 3000)]
    found = told(records)
    assert found is not None
    assert found == by_spark(session, records)
    assert [signature.row for signature in found][-1] == '{"type":"struct","fields":[],"optional":true}'


@pytest.mark.parametrize(
    ("name", "others"),
    [("pg_json_schema", 0), ("maria_json_schema", 1), ("pg_schema_evolution", 0), ("pg_types", 0)],
)
def test_recorded_topics(session: SparkSession, name: str, others: int) -> None:
    """All of them tell it but `others`: a schema history is no table's."""
    topics: dict[str, list[Record]] = {}
    for record in Scenario(name).records:
        topics.setdefault(record.topic, []).append(record)
    not_told = 0
    for records in topics.values():
        first = [(r.key, r.value, r.timestamp) for r in records[:FIRST]]
        found = told(first)
        if found is None:
            not_told += 1
        else:
            assert set(found) == set(by_spark(session, first))
    assert not_told == others
