"""Warnings about rows before they are written."""

from __future__ import annotations

import pyarrow as pa
from structlog.testing import capture_logs

from distributary.ingest.applied_writer import columns_with_empty_texts, warn_of_empty_partitions


def test_empty_texts_in_columns_of_the_partition_are_reported_once() -> None:
    rows = pa.table({"region": ["", None, "x"], "year": [1, 2, 3], "note": ["", "", ""], "kind": ["a", None, "b"]})
    assert columns_with_empty_texts(rows, ["region", "year", "kind", "of another table"]) == ["region"]
    assert columns_with_empty_texts(rows.slice(1), ["region"]) == []
    with capture_logs() as logs:
        for _ in range(3):
            warn_of_empty_partitions("t.dbo.sales", ("region",))
    assert [(entry["code"], entry["columns"]) for entry in logs] == [("empty-partition", ["region"])]
