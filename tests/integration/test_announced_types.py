"""Records without a schema whose column types come from the connector's schema-change topic."""

from __future__ import annotations

import base64
import json
import random
from decimal import Decimal
from pathlib import Path

from pyspark.sql import SparkSession
from tests.support.changes import Topic
from tests.support.kafka import Record as Sent
from tests.support.kafka import create_topic
from tests.support.spark import Bench


def test_5_1_unsigned_numbers_that_are_sent_precisely_are_what_a_schema_would_make_of_them(
    session: SparkSession, kafka: str, tmp_path: Path
) -> None:
    prefix = f"unsigned{random.randrange(10**9)}"
    create_topic(kafka, prefix, 1)
    precise = {"bigint.unsigned.handling.mode": "precise", "decimal.handling.mode": "string"}
    options = {"source": {"topic_prefix": prefix, "connector_properties": precise}}
    bench = Bench(session, kafka, tmp_path, f"{prefix}.dbo.t", {}, options).create()
    column = {"name": "id", "typeName": "BIGINT UNSIGNED", "length": 20, "scale": None}
    changes = [{"type": "CREATE", "id": '"dbo"."t"', "table": {"columns": [column]}}]
    found = {"source": {"connector": "mysql"}, "ddl": "…", "tableChanges": changes}
    topic = Topic(bench.topic, connector="mysql")
    for index, number in enumerate((1, 2**63, 2**64 - 2, 2**64 - 1), start=1):
        sent = base64.b64encode(number.to_bytes(number.bit_length() // 8 + 1, "big")).decode()
        topic.change("c", {"id": sent}, {"id": sent}, at=index)
    topic.change("d", {"id": base64.b64encode(b"\0" + (2**64 - 2).to_bytes(8, "big")).decode()}, at=9)
    bench.take([Sent(prefix, 0, None, json.dumps(found).encode(), []), *topic.records])
    assert sorted(bench.rows("id")) == [(Decimal(1),), (Decimal(2**63),), (Decimal(2**64 - 1),)]
    assert not bench.quarantine.exists()
