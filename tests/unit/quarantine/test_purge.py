"""Old records are deleted from the quarantine table."""

from __future__ import annotations

import json
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pyarrow as pa
import pytest
from click.testing import CliRunner
from deltalake import DeltaTable, write_deltalake
from tests.support.config_files import write_config

from distributary.cli import main

NOW = datetime.now(timezone.utc)
AGES = {"s.t": (1, 40, 90), "s.o'clock": (40,)}
"""Days, by table."""


@pytest.fixture
def config_file(tmp_path: Path) -> Path:
    return write_config(tmp_path, tables=[{"match": "*.*"}])


def fill(config_file: Path) -> Path:
    rows = [(table, NOW - timedelta(days=days)) for table, ages in AGES.items() for days in ages]
    columns = {
        "table": [name for name, _ in rows],
        "quarantined_at": pa.array([at for _, at in rows], pa.timestamp("us", "UTC")),
    }
    place = config_file.parent / "lake/_quarantine"
    write_deltalake(place, pa.table(columns))
    return place


def purge(config_file: Path, *words: str) -> int:
    done = CliRunner().invoke(main, ["quarantine", "purge", "-c", str(config_file), *words, "--output", "json"])
    assert done.exit_code == 0, done.output
    found: int = json.loads(done.output)["deleted"]
    return found


def left(place: Path) -> list[tuple[str, int]]:
    rows = DeltaTable(place).to_pyarrow_table().to_pylist()
    return sorted((row["table"], (NOW - row["quarantined_at"]).days) for row in rows)


def test_records_that_are_older_go(config_file: Path) -> None:
    place = fill(config_file)
    assert purge(config_file, "--older-than", "60d") == 1
    assert left(place) == [("s.o'clock", 40), ("s.t", 1), ("s.t", 40)]
    assert purge(config_file, "--older-than", "30d", "s.o'clock") == 1
    assert left(place) == [("s.t", 1), ("s.t", 40)]
    assert purge(config_file, "--older-than", "0s") == 2
    assert left(place) == []


def test_where_there_is_no_quarantine_nothing_is_done(config_file: Path) -> None:
    assert purge(config_file, "--older-than", "60d") == 0


def test_what_is_no_duration_is_refused(config_file: Path) -> None:
    done = CliRunner().invoke(main, ["quarantine", "purge", "-c", str(config_file), "--older-than", "60 days"])
    assert done.exit_code == 2
    assert "bad-duration" in done.output
