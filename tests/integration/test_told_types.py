"""Records without a schema, whose columns' types the connector tells in its schema-change topic, as MariaDB's did.

The public command fills the tables in two runs. Between them the topic is gone: what it told is kept.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

from confluent_kafka.admin import AdminClient
from tests.support.playback import Playback
from tests.support.recorded import Record, Scenario
from tests.support.replay import halves

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
