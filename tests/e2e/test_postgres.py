"""From a real PostgreSQL through a real Debezium connector in Kafka Connect into Delta tables, while rows change: as
JSON, and as Avro by a real converter with a real registry.

The service runs as users run it. After every change the lake, read by the `deltalake` package, must become equal to
`SELECT *` of every table: each row, each column, type and value.
"""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psycopg
import pytest
import yaml
from tests.support.connect import AVRO_CONVERTER, Connect, avro_converter, running_connect
from tests.support.lake import read_table
from tests.support.postgres import Postgres, running_postgres
from tests.support.postgres_types import postgres_type
from tests.support.registry import RegistryAddress
from tests.support.truth import Difference, compare_table, missing_service_columns

EQUAL_SECONDS = 600  # seconds are enough on an idle machine; Spark's start is in the first wait
STOP_SECONDS = 120
LOG_LINES = 60

SCHEMA = """
CREATE TABLE customers (
    id integer PRIMARY KEY, name text NOT NULL, email varchar(80), born date, vip boolean,
    balance numeric(12,2), score double precision, token uuid, picture bytea, settings jsonb,
    seen timestamptz, created timestamp(3)
);
CREATE TABLE "Order lines" (
    order_id bigint, line smallint, product text, quantity integer, price numeric(10,4), PRIMARY KEY (order_id, line)
);
CREATE TABLE journal (id integer PRIMARY KEY, entry text);
INSERT INTO journal SELECT n, 'entry ' || n FROM generate_series(1, 40) n;
INSERT INTO "Order lines" SELECT n / 3, n % 3, 'product ' || n, n, n / 7.0 FROM generate_series(1, 60) n;
"""
CUSTOMERS = """
INSERT INTO customers
SELECT n, 'Zoë ' || n, CASE WHEN n %% 3 > 0 THEN n || '@example.org' END, date '1970-01-01' + n * 100, n %% 2 = 0,
    n * -1.25, 1.0 / n, md5(n::text)::uuid, decode(md5(n::text), 'hex'),
    jsonb_build_object('n', n, 'list', '[1, null]'::jsonb),
    timestamptz '2026-03-29 01:30:00.123456+01' + n * interval '1 hour',
    timestamp '1969-12-31 23:59:59.999' + n * interval '1 day'
FROM generate_series(%s::int, %s::int) n
"""


KINDS = """
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


@dataclass(frozen=True)
class Pipeline:
    """The source, the lake, and the service between them."""

    postgres: Postgres
    service: subprocess.Popen[bytes]
    lake: Path
    log: Path

    def expect_equal(self, *tables: str) -> None:
        """Wait until each of these tables of the lake equals the source's, all at the same time."""
        deadline = time.monotonic() + EQUAL_SECONDS
        while differences := [found for found in map(self.difference, tables) if found]:
            assert self.service.poll() is None, f"the service ended by itself:\n{self.log_end()}"
            assert time.monotonic() < deadline, "\n".join([*map(str, differences), self.log_end()])
            time.sleep(0.5)

    def difference(self, name: str) -> Difference:
        truth = self.postgres.table("public", name)
        table = read_table(self.lake / "public" / truth.topic_name)
        if table is None:
            return Difference(name, columns=["the whole table is missing"])
        found = compare_table(table, truth, postgres_type)
        found.columns += missing_service_columns(table)
        return found

    def log_end(self) -> str:
        return "\n".join(self.log.read_text("utf-8", errors="replace").splitlines()[-LOG_LINES:])


@contextmanager
def running_pipeline(
    postgres: Postgres,
    connect: Connect,
    kafka: str,
    folder: Path,
    connector: Mapping[str, object],
    source: Mapping[str, object],
) -> Iterator[Pipeline]:
    """A connector and the service; `connector` are more of the connector's settings, `source` keys of the config."""
    prefix = f"shop{uuid.uuid4().hex[:8]}"
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
            "topic.creation.default.replication.factor": 1,
            **connector,
        },
    )
    config = {
        "version": 1,
        "kafka": {"bootstrap.servers": kafka},
        "source": {"topic_prefix": prefix, **source},
        "target": {"path": str(folder / "lake")},
        "checkpoint": str(folder / "checkpoint"),
        "spark": {"spark.driver.memory": "1g", "spark.sql.shuffle.partitions": 2},
        "tables": [{"match": "*.*"}],
        "trigger": {"interval": "1s"},
        "http": {"enabled": False},
    }
    (folder / "config.yaml").write_text(yaml.safe_dump(config), "utf-8")
    command = [sys.executable, "-m", "distributary", "run", "-c", str(folder / "config.yaml")]
    log = folder / "service.log"
    with log.open("wb") as sink:
        service = subprocess.Popen(command, stdout=sink, stderr=subprocess.STDOUT)
    try:
        yield Pipeline(postgres, service, folder / "lake", log)
    finally:
        service.kill()
        service.wait()
        connect.delete_connector(prefix)


@pytest.fixture
def pipeline(postgres: Postgres, connect: Connect, kafka: str, tmp_path: Path) -> Iterator[Pipeline]:
    with postgres.connect() as source:
        source.execute(SCHEMA)
        source.execute(CUSTOMERS, (1, 30))
    # Truncates are left out by default.
    settings = {"skipped.operations": "none", "topic.creation.default.partitions": 3}
    with running_pipeline(postgres, connect, kafka, tmp_path, settings, {}) as running:
        yield running


@pytest.fixture
def avro_pipeline(
    postgres: Postgres, connect: Connect, kafka: str, registry: RegistryAddress, tmp_path: Path
) -> Iterator[Pipeline]:
    with postgres.connect() as source:
        source.execute(KINDS)
    settings = {
        "table.include.list": "public.kinds",
        "topic.creation.default.partitions": 1,
        "schema.name.adjustment.mode": "avro",
        **avro_converter(registry.root),
    }
    own = {"format": "avro", "schema_registry": {"url": registry.url}}
    with running_pipeline(postgres, connect, kafka, tmp_path, settings, own) as running:
        yield running


@pytest.mark.timeout(2400)
def test_the_tables_follow_the_source_while_it_changes(pipeline: Pipeline) -> None:
    with pipeline.postgres.connect() as source:
        snapshot(pipeline)
        inserts_updates_deletes(pipeline, source)
        primary_key_changes(pipeline, source)
        truncate(pipeline, source)
        added_column(pipeline, source)
        table_created_later(pipeline, source)
        many_transactions(pipeline, source)
    pipeline.service.send_signal(signal.SIGTERM)
    assert pipeline.service.wait(STOP_SECONDS) == 0, pipeline.log_end()
    assert not [found for found in map(pipeline.difference, ("customers", "Order lines", "journal", "late")) if found]


@pytest.mark.timeout(1800)
def test_types_and_a_change_of_the_schema_arrive_through_the_converter(avro_pipeline: Pipeline) -> None:
    avro_pipeline.expect_equal("kinds")
    with avro_pipeline.postgres.connect() as source:
        source.execute("UPDATE kinds SET exact = exact * 2, texts = NULL WHERE id % 2 = 0")
        source.execute("DELETE FROM kinds WHERE id = 3")
        source.execute("UPDATE kinds SET id = 400 WHERE id = 4")
        source.execute("ALTER TABLE kinds ADD COLUMN more numeric(5,2) DEFAULT 1.5, ADD COLUMN later timestamptz[]")
        source.execute("UPDATE kinds SET more = id / 100.0, later = ARRAY[now()] WHERE id < 10")
        source.execute("INSERT INTO kinds (id) VALUES (101)")
        source.execute("UPDATE kinds SET text_ = upper(text_)")
    avro_pipeline.expect_equal("kinds")


def snapshot(pipeline: Pipeline) -> None:
    """What was there before the connector started."""
    pipeline.expect_equal("customers", "Order lines", "journal")
    assert len(pipeline.postgres.table("public", "customers").rows) == 30


def inserts_updates_deletes(pipeline: Pipeline, source: psycopg.Connection) -> None:
    source.execute(CUSTOMERS, (31, 60))
    source.execute("UPDATE customers SET name = upper(name), balance = balance + 0.01, email = NULL WHERE id % 4 = 0")
    source.execute("DELETE FROM customers WHERE id % 5 = 0")
    with source.transaction():
        source.execute('DELETE FROM "Order lines" WHERE line = 1')
        source.execute("INSERT INTO \"Order lines\" VALUES (7, 1, 'again', NULL, 0.0001)")
        source.execute('UPDATE "Order lines" SET quantity = -quantity WHERE order_id = 7')
    pipeline.expect_equal("customers", "Order lines", "journal")


def primary_key_changes(pipeline: Pipeline, source: psycopg.Connection) -> None:
    source.execute("UPDATE customers SET id = id + 1000 WHERE id BETWEEN 1 AND 8")
    source.execute("UPDATE \"Order lines\" SET order_id = order_id + 100, product = 'moved' WHERE line = 2")
    source.execute("UPDATE customers SET name = 'moved, then changed' WHERE id = 1001")
    source.execute("DELETE FROM customers WHERE id = 1002")
    source.execute(CUSTOMERS, (2, 2))
    pipeline.expect_equal("customers", "Order lines", "journal")


def truncate(pipeline: Pipeline, source: psycopg.Connection) -> None:
    source.execute("TRUNCATE journal")
    pipeline.expect_equal("journal")
    with source.transaction():
        source.execute("INSERT INTO journal VALUES (1, 'before the second truncate'), (2, 'gone')")
        source.execute("TRUNCATE journal")
        source.execute("INSERT INTO journal VALUES (1, 'after it'), (3, 'new')")
    pipeline.expect_equal("customers", "Order lines", "journal")


def added_column(pipeline: Pipeline, source: psycopg.Connection) -> None:
    source.execute("UPDATE customers SET vip = NOT vip WHERE id > 1000")
    source.execute('ALTER TABLE customers ADD COLUMN discount numeric(5,2), ADD COLUMN "new name" text')
    source.execute('UPDATE customers SET discount = id / 100.0, "new name" = name WHERE id % 2 = 1')
    pipeline.expect_equal("customers", "Order lines", "journal")


def table_created_later(pipeline: Pipeline, source: psycopg.Connection) -> None:
    source.execute("CREATE TABLE late (code text PRIMARY KEY, amount real, at timestamptz)")
    source.execute("INSERT INTO late SELECT 'c' || n, n / 4.0, now() FROM generate_series(1, 20) n")
    source.execute("UPDATE late SET amount = NULL WHERE code = 'c7'")
    source.execute("DELETE FROM late WHERE code IN ('c1', 'c2')")
    pipeline.expect_equal("customers", "Order lines", "journal", "late")


def many_transactions(pipeline: Pipeline, source: psycopg.Connection) -> None:
    """Small transactions over several batches of the service, each touching keys that others touched before."""
    chance = random.Random(20261121)
    for number in range(400):
        key, other = chance.randint(1, 25), chance.randint(1, 25)
        with source.transaction():
            match chance.randrange(4):
                case 0:
                    source.execute("DELETE FROM journal WHERE id = %s", (key,))
                case 1 if key != other:
                    source.execute("DELETE FROM journal WHERE id = %s", (other,))
                    source.execute("UPDATE journal SET id = %s WHERE id = %s", (other, key))
                case _:
                    source.execute(
                        "INSERT INTO journal VALUES (%(key)s, %(entry)s)"
                        " ON CONFLICT (id) DO UPDATE SET entry = excluded.entry",
                        {"key": key, "entry": f"change {number}"},
                    )
        time.sleep(0.01)
    pipeline.expect_equal("customers", "Order lines", "journal", "late")
