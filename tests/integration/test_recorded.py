"""Recorded change events through a real Kafka and the public command: every table must equal the source's truth.

One run of the service covers all scenarios, because starting it takes longer than reading them. Each variant is another
way in which the same records may reach the service; the tables may not differ by it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.playback import Playback
from tests.support.recorded import Scenario, TruthTable
from tests.support.replay import halves, resent

pytestmark = pytest.mark.timeout(1800)
"""Seconds: a run takes minutes where other work shares the cores."""

SCENARIOS = tuple(
    map(
        Scenario,
        (
            *("pg_json_schema", "pg_json_plain", "pg_full_truncate", "pg_incremental", "pg_extra"),
            "maria_json_schema",
        ),
    )
)
LEFT_OUT = {
    # Without a key in the source, so that mode upsert halts; one of them does so in a test of its own.
    "audit_log": "no key",
    # Signals to the connector, not a table of the lake.
    "debezium_signal": "the signal table",
    # Custom message keys: several rows under one key; deletes under an empty one, key changes as plain updates.
    "custom_key": "not its primary key",
    "custom_key_default": "not its primary key",
    # Replica identity by an index: deletes come under a made-up key.
    "ri_index": "made-up keys",
    # What a foreign key cascades to is not in MariaDB's log.
    "child": "cascades",
    # Renamed: most of its rows were sent to the topic of the old name.
    "evo_renamed": "rows in another topic",
    # Its column __op has the name of a column that the service adds.
    "__deleted": "the name of a column is taken",
}
PLAIN_TYPES = {
    "integer": "int",
    "bigint": "bigint",
    "boolean": "boolean",
    "double precision": "double",
    "timestamp with time zone": "timestamp",
}


def test_each_table_equals_its_truth(kafka: str, tmp_path: Path) -> None:
    playback = Playback(kafka, tmp_path)
    for scenario in SCENARIOS:
        playback.send(scenario, scenario.records)
    run(playback, SCENARIOS)
    check(playback, SCENARIOS)


def test_small_batches_make_no_difference(kafka: str, tmp_path: Path) -> None:
    playback = Playback(kafka, tmp_path, trigger={"max_records": 50})
    for scenario in SCENARIOS:
        playback.send(scenario, scenario.records)
    run(playback, SCENARIOS)
    check(playback, SCENARIOS)


def test_a_lost_checkpoint_loses_nothing_and_doubles_nothing(kafka: str, tmp_path: Path) -> None:
    playback = Playback(kafka, tmp_path)
    parts = [(scenario, *halves(scenario.records)) for scenario in SCENARIOS]
    for scenario, first, _ in parts:
        playback.send(scenario, first)
    run(playback, SCENARIOS)
    playback.lose_checkpoint()
    for scenario, _, second in parts:
        playback.send(scenario, second)
    run(playback, SCENARIOS)
    check(playback, SCENARIOS)


def test_a_suffix_sent_again_changes_nothing(kafka: str, tmp_path: Path) -> None:
    playback = Playback(kafka, tmp_path)
    for scenario in SCENARIOS:
        playback.send(scenario, [*scenario.records, *resent(scenario.records, 1 / 3)])
    run(playback, SCENARIOS)
    check(playback, SCENARIOS)


def test_a_table_that_can_not_go_on_leaves_the_others_alone(kafka: str, tmp_path: Path) -> None:
    playback = Playback(kafka, tmp_path)
    everyday, extra = Scenario("pg_json_schema"), Scenario("pg_extra")
    for scenario in (everyday, extra):
        playback.send(scenario, scenario.records)
    playback.configure(
        {"match": match}
        for match in (
            *("pg_json_schema.audit_log", "pg_json_schema.lsn_race", "pg_json_schema.num_keys"),
            *("pg_extra.__deleted", "pg_extra.shift_ids"),
        )
    )
    done = playback.run()
    assert done.exit_code == 1, str(done)
    halted = done.halts()
    assert set(halted) == {"pg_json_schema.audit_log", "pg_extra.__deleted"}
    assert "key" in halted["pg_json_schema.audit_log"]["reason"]
    assert "__op" in halted["pg_extra.__deleted"]["reason"]
    assert all(entry["fix"] for entry in halted.values())
    for scenario, name in ((everyday, "lsn_race"), (everyday, "num_keys"), (extra, "shift_ids")):
        difference = playback.difference(scenario, scenario.tables[name])
        assert not difference, str(difference)


def run(playback: Playback, scenarios: Iterable[Scenario]) -> None:
    """Runs the command with every table that can be right in its config."""
    playback.configure(entry(scenario, truth) for scenario in scenarios for truth in compared(scenario))
    done = playback.run()
    assert done.exit_code == 0, str(done)


def check(playback: Playback, scenarios: Iterable[Scenario]) -> None:
    """Every table equals its truth, no record lies in quarantine, and nothing else became a table."""
    found = [
        difference
        for scenario in scenarios
        for truth in compared(scenario)
        if (difference := playback.difference(scenario, truth))
    ]
    assert not found, "\n".join(map(str, found))
    assert not playback.quarantined()
    for scenario in scenarios:
        expected = {truth.topic_name for truth in compared(scenario)}
        assert {folder.name for folder in (playback.lake / scenario.name).iterdir()} <= expected


def compared(scenario: Scenario) -> Iterator[TruthTable]:
    """The tables that the records can bring to the truth."""
    return (table for table in scenario.tables.values() if table.name not in LEFT_OUT)


def entry(scenario: Scenario, truth: TruthTable) -> dict[str, Any]:
    """The table's entry in the config. Without a Connect schema it names the columns' types."""
    match = {"match": f"{scenario.name}.{truth.topic_name}"}
    if scenario.connector["value.converter.schemas.enable"] == "true":
        return match
    return {**match, "columns": {column.name: plain_type(column.type) for column in truth.columns}}


def plain_type(name: str) -> str:
    """What `columns` says for a PostgreSQL type."""
    return name.replace("numeric", "decimal") if name.startswith("numeric(") else PLAIN_TYPES.get(name, "string")
