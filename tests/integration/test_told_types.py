"""Records without a schema, whose columns' types the connector tells in its schema-change topic."""

from __future__ import annotations

import base64
import json
import random
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

from confluent_kafka.admin import AdminClient
from pyspark.sql import SparkSession
from tests.support.changes import Topic
from tests.support.kafka import Record as Sent
from tests.support.kafka import create_topic
from tests.support.playback import Playback
from tests.support.recorded import Record, Scenario
from tests.support.replay import halves
from tests.support.spark import Bench

MARIADB = Scenario("maria_json_schema")
TABLES = ("all_types", "customers", "dt_keys", "num_keys")


def without_schema(record: Record) -> Record:
    """As JsonConverter writes it with schemas.enable=false; the database is called what the playback calls it."""

    def payload(data: bytes | None) -> bytes | None:
        return None if data is None else json.dumps(json.loads(data)["payload"]).encode()

    value = payload(record.value)
    if record.topic == MARIADB.prefix:
        value = (value or b"").replace(rb"\"shop\".", rb"\"maria_json_schema\".")
    return replace(record, key=payload(record.key), value=value)


def test_5_1_types_come_from_the_schema_change_topic_and_are_kept(kafka: str, tmp_path: Path) -> None:
    """As MariaDB's did. The public command fills the tables in two runs; between them the topic is gone."""
    playback = Playback(kafka, tmp_path)
    names = {f"{MARIADB.prefix}.shop.{name}" for name in TABLES}
    wanted = [without_schema(r) for r in MARIADB.records if r.topic in {*names, MARIADB.prefix}]
    told = [record for record in wanted if record.topic == MARIADB.prefix]
    first, second = halves([record for record in wanted if record.topic != MARIADB.prefix])
    playback.send(MARIADB, [*told, *first])
    playback.configure({"match": f"maria_json_schema.{name}"} for name in TABLES)
    done = playback.run()
    assert done.exit_code == 0, str(done)
    assert "typed by their values" not in done.output
    admin = AdminClient({"bootstrap.servers": kafka})
    for future in admin.delete_topics([playback.prefix]).values():
        future.result(30)
    playback.send(MARIADB, second)
    done = playback.run()
    assert done.exit_code == 0, str(done)
    differences = [d for name in TABLES if (d := playback.difference(MARIADB, MARIADB.tables[name]))]
    assert not differences, "\n".join(map(str, differences))
    assert not playback.quarantined()


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
    told = {"source": {"connector": "mysql"}, "ddl": "…", "tableChanges": changes}
    topic = Topic(bench.topic, connector="mysql")
    for at, number in enumerate((1, 2**63, 2**64 - 2, 2**64 - 1), start=1):
        sent = base64.b64encode(number.to_bytes(number.bit_length() // 8 + 1, "big")).decode()
        topic.change("c", {"id": sent}, {"id": sent}, at=at)
    topic.change("d", {"id": base64.b64encode(b"\0" + (2**64 - 2).to_bytes(8, "big")).decode()}, at=9)
    bench.take([Sent(prefix, 0, None, json.dumps(told).encode(), []), *topic.records])
    assert sorted(bench.rows("id")) == [(Decimal(1),), (Decimal(2**63),), (Decimal(2**64 - 1),)]
    assert not bench.quarantine.exists()
