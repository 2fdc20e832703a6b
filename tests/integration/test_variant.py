"""JSON columns as VARIANT (`columns: {c: variant}`), in every mode."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from tests.support.changes import Topic
from tests.support.spark import Bench, rows_of

DOCUMENTS: list[Any] = [{"b": [1, 2.5, None], "a": "ü"}, "text", 7, [], None]


@pytest.mark.parametrize("mode", ["upsert", "history", "append"])
def test_json_columns_are_kept_as_variants(session: SparkSession, kafka: str, tmp_path: Path, mode: str) -> None:
    rule = {"mode": mode, "columns": {"doc": "variant"}}
    bench = Bench(session, kafka, tmp_path, f"variant{random.randrange(10**9)}.dbo.t", rule).create()
    topic = Topic(bench.topic)

    def change(op: str, number: int, document: Any) -> None:
        text = None if document is None else json.dumps(document, ensure_ascii=False)
        topic.change(op, {"id": number}, {"id": number, "doc": text}, at=len(topic.records) + 1)

    for number, document in enumerate(DOCUMENTS):
        change("c", number, document)
    worker = bench.take(topic.records)
    change("u", 0, DOCUMENTS[1])
    change("u", 1, {"new": True})
    change("u", 1, {"new": True})
    topic.change("d", {"id": 2}, at=len(topic.records) + 1)
    topic.change("c", {"id": 9}, {"id": 9, "doc": "{no json"}, at=len(topic.records) + 1)
    bench.take(topic.records[len(DOCUMENTS) :], worker)
    before = [(number, document) for number, document in enumerate(DOCUMENTS)]
    expected = {
        "upsert": [(0, "text"), (1, {"new": True}), *before[3:]],
        "history": [*before, (0, "text"), (1, {"new": True})],
        "append": [*before, (0, "text"), (1, {"new": True}), (1, {"new": True}), (2, None)],
    }
    rows = session.read.format("delta").load(str(bench.table))
    assert dict(rows.dtypes)["doc"] == "variant"
    found = [(row["id"], row["text"]) for row in rows.selectExpr("id", "to_json(doc) AS text").collect()]
    parsed = [(number, None if text is None else json.loads(text)) for number, text in found]
    assert sorted(parsed, key=repr) == sorted(expected[mode], key=repr)
    assert rows_of(bench.quarantine, "offset", "reason") == [(len(topic.records) - 1, "bad-value")]
