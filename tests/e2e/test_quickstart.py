"""The quickstarts of PostgreSQL and MariaDB from their pages: SQL, connector, config; then the table is read."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import polars
import pytest
import yaml
from tests.support.connect import MARIADB_CONNECTOR, POSTGRES_CONNECTOR, Connect, running_connect
from tests.support.kafka import end_offsets
from tests.support.mariadb import running_mariadb
from tests.support.postgres import Postgres, running_postgres

from distributary.launch.bundle import sha256

# A PostgreSQL with a connector is in test_postgres.py, too; here it is about the pages.
pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
SNAPSHOT_SECONDS = 300


@pytest.fixture(scope="module")
def connect(kafka: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Connect]:
    with running_connect(kafka, tmp_path_factory.mktemp("connect"), MARIADB_CONNECTOR) as worker:
        yield worker


def blocks(page: str, language: str) -> list[str]:
    """The blocks of a language on a quickstart's page."""
    return blocks_of(f"quickstart-{page}", language)


def blocks_of(page: str, language: str) -> list[str]:
    """The blocks of a language on a page."""
    text = (ROOT / f"docs/{page}.md").read_text()
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)


def shown_table(page: str, begin: str) -> list[list[str]]:
    """The cells of the table on a page that begins so."""
    text = (ROOT / f"docs/quickstart-{page}.md").read_text()
    table = text[text.index(begin) :].split("\n\n")[0]
    return [[cell.strip() for cell in line.strip("| ").split(" | ")] for line in table.splitlines()]


def statements(sql: str) -> list[str]:
    """The statements of a block of SQL."""
    return [text for text in re.sub(r"--.*", "", sql).split(";") if text.strip()]


def await_records(kafka: str, expected: Mapping[str, int]) -> None:
    """Waits until the snapshots of the tables are in their topics: topic and number of records."""
    deadline = time.monotonic() + SNAPSHOT_SECONDS
    while True:
        counts = {topic: sum(end_offsets(kafka, topic).values()) for topic in expected}
        if counts == expected:
            return
        assert time.monotonic() < deadline, counts
        time.sleep(0.5)


def run_config(page: str, kafka: str, folder: Path, **source: Any) -> None:
    """Runs the page's config once, with this Kafka and a lake below `folder`."""
    config = yaml.safe_load(blocks(page, "yaml")[0])
    config["kafka"]["bootstrap.servers"] = kafka
    config["source"].update(source)
    config["target"]["path"], config["checkpoint"] = str(folder / "lake"), str(folder / "checkpoints")
    config["spark"] = {"spark.driver.memory": "1g"}
    (folder / "config.yaml").write_text(yaml.safe_dump(config))
    command = [sys.executable, "-m", "distributary", "run", "-c", str(folder / "config.yaml"), "--once"]
    run = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    assert run.returncode == 0, run.stderr


@pytest.fixture(scope="module")
def postgres() -> Iterator[Postgres]:
    with running_postgres() as server:
        yield server


def test_the_quickstart_of_postgresql_fills_tables(
    postgres: Postgres, connect: Connect, kafka: str, tmp_path: Path
) -> None:
    with postgres.connect() as source:
        source.execute((ROOT / "deploy/debezium/schema.sql").read_bytes())
        for statement in statements(blocks("postgresql", "sql")[0]):
            source.execute(statement.encode())
        signal_table, signal = blocks_of("snapshots", "sql")
        for statement in statements(signal_table):
            source.execute(statement.encode())
    # What the page says to change for a database of one's own.
    own = {
        "database.hostname": "127.0.0.1",
        "database.port": postgres.port,
        "database.dbname": postgres.database,
        "database.user": "debezium",
        "publication.autocreate.mode": "disabled",
        "signal.data.collection": json.loads(blocks_of("snapshots", "json")[0])["signal.data.collection"],
    }
    connect.create_connector("shop", {**json.loads(blocks("postgresql", "json")[0]), **own})
    try:
        await_records(kafka, {"shop.inventory.customers": 3, "shop.inventory.order_lines": 3})
        run_config("postgresql", kafka, tmp_path)
        # The connector's role may write the marks of an incremental snapshot into the signal table.
        with postgres.connect() as source:
            source.execute(signal.encode())
        await_records(kafka, {"shop.inventory.customers": 6, "shop.inventory.order_lines": 3})
    finally:
        connect.delete_connector("shop")
    heads, _, *rows = shown_table("postgresql", "| id | name |")
    customers = polars.read_delta(str(tmp_path / "lake/inventory/customers")).sort("id").select(heads)
    assert [["NULL" if value is None else str(value) for value in row] for row in customers.rows()] == rows
    assert polars.read_delta(str(tmp_path / "lake/inventory/order_lines")).height == 3


def test_the_checksum_on_the_page_is_that_of_the_connector() -> None:
    [archive] = POSTGRES_CONNECTOR.cached().glob("*.tar.gz")
    [commands] = [block for block in blocks("postgresql", "sh") if "sha256sum" in block]
    assert f'echo "{sha256(archive)}  $connector" | sha256sum --check' in commands


def test_the_quickstart_of_mariadb_fills_a_table(connect: Connect, kafka: str, tmp_path: Path) -> None:
    with running_mariadb() as server, server.connect() as source, source.cursor() as cursor:
        for statement in (
            "CREATE DATABASE shop",
            "CREATE TABLE shop.customers (id INT PRIMARY KEY, name VARCHAR(40), born DATE)",
            "INSERT INTO shop.customers VALUES (1, 'Ada Lovelace', '1815-12-10'), (2, 'Zoë Müller', NULL)",
            *statements(blocks("mysql", "sql")[0]),
        ):
            cursor.execute(statement)
        mysql, differs = (json.loads(text) for text in blocks("mysql", "json"))
        here = {"database.hostname": "127.0.0.1", "database.port": server.port, "database.password": "..."}
        history = {"schema.history.internal.kafka.bootstrap.servers": kafka}
        connect.create_connector("mariadb", {**mysql, **differs, **here, **history})
        try:
            await_records(kafka, {"server1.shop.customers": 2})
            run_config("mysql", kafka, tmp_path, connector="mariadb")
        finally:
            connect.delete_connector("mariadb")
    customers = polars.read_delta(str(tmp_path / "lake/shop/customers")).sort("id")
    assert [(row["id"], row["name"], str(row["born"])) for row in customers.to_dicts()] == [
        (1, "Ada Lovelace", "1815-12-10"),
        (2, "Zoë Müller", "None"),
    ]
