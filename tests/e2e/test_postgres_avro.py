"""From a real PostgreSQL through a real Debezium connector and a real Avro converter with a real registry into Delta
tables: the types and a change of the schema. The lake must become equal to `SELECT *` of the table."""

from __future__ import annotations

import subprocess
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from tests.e2e.test_postgres import Pipeline
from tests.support.connect import AVRO_CONVERTER, Connect, avro_converter, running_connect
from tests.support.postgres import Postgres, running_postgres
from tests.support.registry import RegistryAddress

SCHEMA = """
CREATE TYPE mood AS ENUM ('sad', 'ok', 'happy');
CREATE TABLE kinds (
    id integer PRIMARY KEY, small smallint, big bigint, flag boolean, exact numeric(30,10), whole numeric(9),
    real_ real, double_ double precision, text_ text NOT NULL DEFAULT 'none', fixed char(4), bytes_ bytea,
    day date, at timestamp(3), at_us timestamp, at_zone timestamptz, clock time, clock_zone timetz,
    token uuid, doc jsonb, feeling mood, numbers integer[], texts text[], span interval, bits bit(10)
);
INSERT INTO kinds
SELECT n, n * 100, n::bigint << 40, n % 2 = 0, n * -1.0000000001, n * 1000, n / 3.0, n / 7.0, 'Zoë ' || n, 'ab',
    decode(md5(n::text), 'hex'), date '1970-01-01' - n * 1000,
    timestamp '1969-12-31 23:59:59.999' + n * interval '1 day',
    timestamp '2026-03-29 01:30:00.123456' + n * interval '1 hour', timestamptz '2026-03-29 01:30:00.123456+01',
    time '23:59:59.999999', timetz '12:00:00+02', md5(n::text)::uuid,
    jsonb_build_object('n', n, 'list', '[1, null]'::jsonb), 'happy', ARRAY[n, NULL, -n],
    ARRAY['a', NULL, 'ß'], interval '1 day 2 hours', B'1010101010'
FROM generate_series(1, 20) n;
INSERT INTO kinds (id) VALUES (100);
"""


@pytest.fixture(scope="module")
def postgres() -> Iterator[Postgres]:
    with running_postgres() as server:
        yield server


@pytest.fixture(scope="module")
def connect(kafka: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Connect]:
    with running_connect(kafka, tmp_path_factory.mktemp("connect"), AVRO_CONVERTER) as worker:
        yield worker


@pytest.fixture
def pipeline(
    postgres: Postgres, connect: Connect, kafka: str, registry: RegistryAddress, tmp_path: Path
) -> Iterator[Pipeline]:
    with postgres.connect() as source:
        source.execute(SCHEMA)
    prefix = f"avro{uuid.uuid4().hex[:8]}"
    connect.create_connector(
        prefix,
        {
            "connector.class": "io.debezium.connector.postgresql.PostgresConnector",
            "database.hostname": "127.0.0.1",
            "database.port": postgres.port,
            "database.user": "postgres",
            "database.password": "not asked for",
            "database.dbname": postgres.database,
            "topic.prefix": prefix,
            "plugin.name": "pgoutput",
            "slot.name": prefix,
            "publication.name": prefix,
            "topic.creation.default.partitions": 1,
            "topic.creation.default.replication.factor": 1,
            "schema.name.adjustment.mode": "avro",
            **avro_converter(registry.root),
        },
    )
    config = {
        "version": 1,
        "kafka": {"bootstrap.servers": kafka},
        "source": {"topic_prefix": prefix, "format": "avro", "schema_registry": {"url": registry.url}},
        "target": {"path": str(tmp_path / "lake")},
        "checkpoint": str(tmp_path / "checkpoint"),
        "spark": {"spark.driver.memory": "1g", "spark.sql.shuffle.partitions": 2},
        "tables": [{"match": "*.*"}],
        "trigger": {"interval": "1s"},
        "http": {"enabled": False},
    }
    (tmp_path / "config.yaml").write_text(yaml.safe_dump(config), "utf-8")
    command = [sys.executable, "-m", "distributary", "run", "-c", str(tmp_path / "config.yaml")]
    log = tmp_path / "service.log"
    with log.open("wb") as sink:
        service = subprocess.Popen(command, stdout=sink, stderr=subprocess.STDOUT)
    try:
        yield Pipeline(postgres, service, tmp_path / "lake", log)
    finally:
        service.kill()
        service.wait()
        connect.delete_connector(prefix)


@pytest.mark.timeout(1800)
def test_types_and_a_change_of_the_schema_arrive_through_the_converter(pipeline: Pipeline) -> None:
    pipeline.expect_equal("kinds")
    with pipeline.postgres.connect() as source:
        source.execute("UPDATE kinds SET exact = exact * 2, texts = NULL WHERE id % 2 = 0")
        source.execute("DELETE FROM kinds WHERE id = 3")
        source.execute("UPDATE kinds SET id = 400 WHERE id = 4")
        source.execute("ALTER TABLE kinds ADD COLUMN more numeric(5,2) DEFAULT 1.5, ADD COLUMN later timestamptz[]")
        source.execute("UPDATE kinds SET more = id / 100.0, later = ARRAY[now()] WHERE id < 10")
        source.execute("INSERT INTO kinds (id) VALUES (101)")
        source.execute("UPDATE kinds SET text_ = upper(text_)")
    pipeline.expect_equal("kinds")
