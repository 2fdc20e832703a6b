"""Types and changing schemas, as PostgreSQL's connector really sent them, through the public command.

The values are those at the edges: the largest and the smallest of each type, infinity, dates before Christ, text of all
scripts, NULL, what the snapshot and the stream write in two ways. The service runs far from UTC.
"""

from __future__ import annotations

import json
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest
from tests.support.jvm import LONG_LIVED
from tests.support.playback import RUN_TIMEOUT, Playback
from tests.support.recorded import Scenario

pytestmark = pytest.mark.timeout(1800)
"""Seconds: a run takes minutes where other work shares the cores."""

TYPES, EVOLUTION = Scenario("pg_types"), Scenario("pg_schema_evolution")

# The snapshot sent a partitioned table's rows to the parent's topic, too; the stream goes to the partitions' alone.
TYPE_TABLES = sorted(set(TYPES.tables) - {"part"})
GROWING_TABLES = ("evo_late", "evo_renamed", "zz_sentinel")
HALTING_TABLES = {
    "evo": "a column of text was dropped, and one of numbers got its name",
    "evo_pk": "the key got a column",
    "evo_recreate": "a column of text became a decimal when the table was created again",
    "evo_retype": "columns changed their types",
}
BEYOND = ("15", "22", "1015", "1022")
"""Rows of table `special` with a timestamp that the lake's type can't hold."""

ZONE = "America/New_York"

Played = tuple[Playback, dict[str, dict[str, str]]]
"""The playback after its run, and the log's entries on tables that halted."""


@pytest.fixture(scope="module")
def played(kafka: str, tmp_path_factory: pytest.TempPathFactory) -> Played:
    """Both scenarios after one run."""
    folder: Path = tmp_path_factory.mktemp("types")
    playback = Playback(kafka, folder)
    for scenario in (TYPES, EVOLUTION):
        playback.send(scenario, scenario.records)
    names = [(TYPES, name) for name in TYPE_TABLES]
    names += [(EVOLUTION, name) for name in (*GROWING_TABLES, *HALTING_TABLES)]
    tables = [(scenario, scenario.tables[name]) for scenario, name in names]
    playback.configure(
        {"match": f"{playback.schema(scenario, table.topic_schema)}.{table.topic_name}"} for scenario, table in tables
    )
    in_java = f"{LONG_LIVED['JAVA_TOOL_OPTIONS']} -Duser.timezone={ZONE}"
    with playback.start("--once", TZ=ZONE, JAVA_TOOL_OPTIONS=in_java) as running:
        done = running.ended(RUN_TIMEOUT)
    assert done.exit_code == 1, str(done)
    return playback, done.halts()


@pytest.mark.parametrize("name", TYPE_TABLES)
def test_values_of_every_type_equal_the_truth(played: Played, name: str) -> None:
    difference = played[0].difference(TYPES, TYPES.tables[name])
    assert not difference, str(difference)


def test_a_value_that_its_type_can_not_hold_is_quarantined_with_its_bytes(played: Played) -> None:
    special = {(record.partition, record.offset): record for record in TYPES.topic("public", "special")}
    rows = played[0].quarantined()
    records = [special[row["partition"], row["offset"]] for row in rows]
    keys = sorted(record.key or b"" for record in records)
    assert [key.rpartition(b'"id":')[2].strip(b"}").decode() for key in keys] == sorted(BEYOND)
    for row, record in zip(rows, records, strict=True):
        assert row["table"] == "pg_types.special"
        assert (row["key"], row["value"]) == (record.key, record.value)
        assert row["reason"]
        assert row["message"]
        assert row["quarantined_at"] is not None
        assert row["replayed_at"] is None


def test_in_another_time_zone_the_services_own_times_are_right(played: Played) -> None:
    values = (json.loads(record.value) for record in TYPES.topic("public", "rfull") if record.value)
    sent = {value["payload"]["source"]["ts_ms"] for value in values}
    table = played[0].table("pg_types", "rfull")
    assert table is not None
    since = datetime(1970, 1, 1, tzinfo=timezone.utc)
    written = {(time - since) // timedelta(milliseconds=1) for time in table.column("__source_ts").to_pylist()}
    assert written
    assert written <= sent
    for row in played[0].quarantined():
        assert abs(datetime.now(timezone.utc) - row["quarantined_at"]) < timedelta(hours=1)


@pytest.mark.parametrize("name", GROWING_TABLES)
def test_tables_whose_columns_only_grow_equal_the_truth(played: Played, name: str) -> None:
    difference = played[0].difference(EVOLUTION, EVOLUTION.tables[name])
    assert not difference, str(difference)


def test_other_changes_of_a_schema_halt_their_table_alone_and_say_what_to_do(played: Played) -> None:
    halted = played[1]
    assert set(halted) == {f"{EVOLUTION.name}.{name}" for name in HALTING_TABLES}
    for entry in halted.values():
        assert entry["reason"]
        assert entry["fix"]
    assert "tenant" in halted[f"{EVOLUTION.name}.evo_pk"]["reason"]
