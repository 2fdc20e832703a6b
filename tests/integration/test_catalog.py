"""`target.catalog`: tables are found by their names in a metastore that outlives the service."""

from __future__ import annotations

import json
import subprocess
import sys
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.support.changes import Topic, key
from tests.support.kafka import create_topic, produce

_RUN_AND_READ = """
import json, sys
from distributary.cli import main
from distributary.launch.session import close_session, open_session
properties, config_file = sys.argv[1:]
for line in sys.stdin:
    schemas, statements = json.loads(line)
    try:
        main(["run", "--once", "-c", config_file])
    except SystemExit as end:
        if end.code:
            raise
    session = open_session(json.loads(properties))
    def find():
        found = {}
        for schema in schemas:
            for table in session.catalog.listTables(schema):
                rows = session.table(f"`{schema}`.`{table.name}`")
                found[f"{schema}.{table.name}"] = [
                    [row[c] for c in rows.columns if not c.startswith("__")] for row in rows.orderBy("id").collect()
                ]
        return found
    found = [find()]
    for statement in statements:
        session.sql(statement)
        found.append(find())
    close_session(session)
    print("FOUND" + json.dumps(found), flush=True)
"""
"""For each line that it is given a run of the service, and then another Spark session. All in the same Java: to start
that and to load Hive takes most of the time."""


class Lake:
    """A service with a metastore of its own, which is on the disk: one run after another."""

    def __init__(self, kafka: str, folder: Path) -> None:
        self.kafka = kafka
        self.folder = folder
        self.prefix = f"catalog{uuid.uuid4().hex[:8]}"
        self.spark = {
            "spark.master": "local[2]",
            "spark.driver.memory": "1g",
            "spark.sql.catalogImplementation": "hive",
            "spark.hadoop.javax.jdo.option.ConnectionURL": f"jdbc:derby:;databaseName={folder}/metastore;create=true",
            "spark.hadoop.datanucleus.schema.autoCreateAll": "true",
            "spark.hadoop.hive.metastore.schema.verification": "false",
            "spark.sql.warehouse.dir": str(folder / "warehouse"),
        }
        config = {
            "version": 1,
            "kafka": {"bootstrap.servers": kafka},
            "source": {"topic_prefix": self.prefix},
            "target": {"catalog": "spark_catalog"},
            "checkpoint": str(folder / "checkpoint"),
            "spark": self.spark,
            "http": {"enabled": False},
            "tables": [{"match": "*.*"}],
        }
        (folder / "config.yaml").write_text(yaml.safe_dump(config), encoding="utf-8")

    def topic(self, name: str) -> Topic:
        create_topic(self.kafka, f"{self.prefix}.{name}", 1)
        return Topic(f"{self.prefix}.{name}")

    @contextmanager
    def standing(self) -> Iterator[Lake]:
        """With the process that the runs are in, which must end well."""
        command = [sys.executable, "-c", _RUN_AND_READ, json.dumps(self.spark), str(self.folder / "config.yaml")]
        with subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=self.folder
        ) as self._process:
            try:
                yield self
                self._process.communicate(timeout=60)
                assert self._process.returncode == 0
            finally:
                self._process.kill()

    def run_and_read(self, *schemas: str, then: Sequence[str] = ()) -> tuple[list[dict[str, list[list[Any]]]], str]:
        """`run --once`, and then the tables of those schemas with their rows, as any other session finds them by their
        names: as they are, and after each of the statements `then`. With the log."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps([schemas, then]) + "\n")
        self._process.stdin.flush()
        log = ""
        for line in self._process.stdout:
            if line.startswith("FOUND"):
                return json.loads(line.removeprefix("FOUND")), log
            log += line
        raise AssertionError(log)

    def status(self) -> dict[str, Any]:
        """The output of `status`."""
        words = [sys.executable, "-m", "distributary", "status", "--output", "json"]
        done = subprocess.run(
            [*words, "-c", str(self.folder / "config.yaml")], capture_output=True, text=True, timeout=300, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr
        found: dict[str, Any] = json.loads(done.stdout)
        return found


@pytest.fixture
def lake(kafka: str, tmp_path: Path) -> Iterator[Lake]:
    with Lake(kafka, tmp_path).standing() as lake:
        yield lake


def test_tables_are_found_by_their_names_and_follow_new_columns(lake: Lake) -> None:
    customers, orders = lake.topic("dbo.customers"), lake.topic("sales.order_lines")
    customers.change("c", key(1), {**key(1), "name": "Ann"}, at=1)
    orders.change("c", key(7), key(7), at=2)
    produce(lake.kafka, [*customers.records, *orders.records])
    # Dropped there, and without its files: the name comes back with the next start, the rows were never gone. A name
    # that somebody else has taken is left to them.
    drop = "DROP TABLE dbo.customers"
    take = f"CREATE TABLE dbo.taken (id INT) USING delta LOCATION '{lake.folder}/elsewhere'"
    found, _ = lake.run_and_read("dbo", "sales", then=[drop, take])
    assert found == [
        {"dbo.customers": [[1, "Ann"]], "sales.order_lines": [[7]]},
        {"sales.order_lines": [[7]]},
        {"dbo.taken": [], "sales.order_lines": [[7]]},
    ]
    taken = lake.topic("dbo.taken")
    taken.change("c", key(8), key(8), at=3)
    customers.change("c", key(2), {**key(2), "name": "Bob", "mail": "b@x"}, at=4)
    produce(lake.kafka, [*taken.records, *customers.records[1:]])
    found, log = lake.run_and_read("dbo")
    assert "the catalog has another table of this name" in log
    assert found == [{"dbo.customers": [[1, "Ann", None], [2, "Bob", "b@x"]], "dbo.taken": []}]
    for place in ("dbo/customers", "dbo/taken", "sales/order_lines"):
        assert (lake.folder / "warehouse" / place / "_delta_log").is_dir()
    assert [one["table"] for one in lake.status()["tables"]] == ["dbo.customers", "dbo.taken", "sales.order_lines"]
