"""Two drivers that commit to one table in a bucket at the same time: no commit is lost, and none replaces another."""

from __future__ import annotations

import json
import sys
from contextlib import ExitStack
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, QueryBuilder, write_deltalake
from tests.support.s3 import BUCKET, ROOT, jars_with_connector, running_s3
from tests.support.s3_writer import START, STORE_VARIABLE
from tests.support.waiting import wait_until

from distributary.demo.process import ServerProcess
from distributary.launch.jars import DIRECTORY_VARIABLE

DRIVERS = ("a", "b")
ON_ITS_WAY = 0.1
"""Seconds between the moment a driver has seen that a version is free, and the moment its commit arrives."""


@pytest.mark.parametrize("count", [10, pytest.param(500, marks=pytest.mark.slow)])
def test_6_1_of_two_commits_of_one_version_on_s3_one_is_refused(tmp_path: Path, count: int) -> None:
    with running_s3(tmp_path, ON_ITS_WAY) as store, ExitStack() as stack:
        options = store.environment()
        place = f"s3://{BUCKET}/t"
        schema = pa.schema({"id": pa.string(), "v": pa.int64()})
        write_deltalake(place, schema.empty_table(), storage_options=options)
        environment = {
            **options,
            STORE_VARIABLE: store.endpoint,
            DIRECTORY_VARIABLE: str(jars_with_connector(tmp_path / "jars")),
        }
        for name in DRIVERS:
            command = [sys.executable, "-m", "tests.support.s3_writer", str(tmp_path), name, str(count)]
            driver = ServerProcess(name, command, tmp_path / f"{name}.log", directory=ROOT, environment=environment)
            stack.callback(driver.stop)
        wait_until(lambda: all((tmp_path / name).exists() for name in DRIVERS), 300, "both drivers are ready")
        (tmp_path / START).touch()
        wait_until(
            lambda: all((tmp_path / name).read_text() for name in DRIVERS), 300 + 2 * count, "both drivers are done"
        )
        lost = [json.loads((tmp_path / name).read_text()) for name in DRIVERS]
        assert sum(lost), "no two commits were made at the same moment"

        table = DeltaTable(place, storage_options=options)
        found = pa.table(QueryBuilder().register("t", table).execute("SELECT id FROM t").read_all())
        assert sorted(found.column("id").to_pylist()) == sorted(f"{name}-{n}" for name in DRIVERS for n in range(count))
        assert table.version() == len(DRIVERS) * count
