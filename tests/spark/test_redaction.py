"""Redacted records in quarantine, read again for a replay."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from distributary.quarantine.redaction import FORMER_HEADER, HEADER, with_original_bytes


@pytest.mark.parametrize("header", [HEADER, FORMER_HEADER])
def test_redacted_records_are_read_from_kafka_again(session: SparkSession, header: str) -> None:
    names = pa.list_(pa.struct({"key": pa.string(), "value": pa.binary()}))

    def records(*values: bytes | None) -> dict[str, Any]:
        return {"partition": [0, 0], "offset": [3, 4], "timestamp": [7, 8], "value": pa.array(values, pa.binary())}

    marked = pa.array([[{"key": header, "value": b"[]"}], None], names)
    waiting = session.createDataFrame(pa.table({**records(None, b"own"), "headers": marked}))
    kafka = session.createDataFrame(pa.table({**records(b"whole", b"other"), "headers": pa.nulls(2, names)}))
    source = cast(Any, SimpleNamespace(frame=lambda _session, _range: kafka))
    found = with_original_bytes(waiting, session, "t", {0: 0}, {0: 9}, source).orderBy("offset").toArrow()
    assert found["value"].to_pylist() == [b"whole", b"own"]
