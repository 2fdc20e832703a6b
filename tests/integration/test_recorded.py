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
            *("pg_toast", "maria_json_schema", "pg_unwrap", "pg_unwrap_rewrite"),
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
    # A number of 13,503 digits: its digits are worked out by expressions, which takes minutes.
    "toasty2": "a number too long for a test",
    # Renamed: most of its rows were sent to the topic of the old name.
    "evo_renamed": "rows in another topic",
}
# Scenarios whose other tables show what those of other scenarios do.
SHOWS = {
    "pg_toast": {"docs", "toasty", "toasty_comp", "toasty_full"},
    "pg_unwrap": {"customers", "lsn_race"},
    "pg_unwrap_rewrite": {"customers", "text_keys", "num_keys"},
}
# A column of the source that has the name of one that the service adds: its table can only be had without it.
EXCLUDED = {"__deleted": ["__op"]}
PLAIN_TYPES = {
    "integer": "int",
    "bigint": "bigint",
    "boolean": "boolean",
    "double precision": "double",
    "timestamp with time zone": "timestamp",
}


@pytest.mark.parametrize(
    "every", [pytest.param(False, id="what each shows"), pytest.param(True, id="all", marks=pytest.mark.slow)]
)
def test_each_table_equals_its_truth(kafka: str, tmp_path: Path, every: bool) -> None:
    playback = Playback(kafka, tmp_path)
    for scenario in SCENARIOS:
        playback.send(scenario, scenario.records)
    run(playback, SCENARIOS, every=every)
    check(playback, SCENARIOS, every=every)


def some_or_all(*names: str) -> pytest.MarkDecorator:
    """Each variant with the scenarios that show the most in it, and with all of them in `make test-long`."""
    return pytest.mark.parametrize(
        "scenarios",
        [
            pytest.param(tuple(map(Scenario, names)), id="+".join(names)),
            pytest.param(SCENARIOS, id="all", marks=[pytest.mark.slow, pytest.mark.timeout(3600)]),
        ],
    )


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_small_batches_make_no_difference(kafka: str, tmp_path: Path) -> None:
    playback = Playback(kafka, tmp_path, trigger={"max_records": 50})
    for scenario in SCENARIOS:
        playback.send(scenario, scenario.records)
    run(playback, SCENARIOS)
    check(playback, SCENARIOS)


@pytest.mark.slow  # what a checkpoint may become is told by test_checkpoints.py
@some_or_all("pg_json_schema")
def test_a_lost_checkpoint_loses_nothing_and_doubles_nothing(
    kafka: str, tmp_path: Path, scenarios: tuple[Scenario, ...]
) -> None:
    playback = Playback(kafka, tmp_path)
    parts = [(scenario, *halves(scenario.records)) for scenario in scenarios]
    for scenario, first, _ in parts:
        playback.send(scenario, first)
    run(playback, scenarios)
    playback.lose_checkpoint()
    for scenario, _, second in parts:
        playback.send(scenario, second)
    run(playback, scenarios)
    check(playback, scenarios)


@pytest.mark.slow  # in `make test` the selected histories send parts of theirs again
@some_or_all("pg_full_truncate")
def test_a_suffix_sent_again_changes_nothing(kafka: str, tmp_path: Path, scenarios: tuple[Scenario, ...]) -> None:
    playback = Playback(kafka, tmp_path)
    for scenario in scenarios:
        playback.send(scenario, [*scenario.records, *resent(scenario.records, 1 / 3)])
    run(playback, scenarios)
    check(playback, scenarios)


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


def run(playback: Playback, scenarios: Iterable[Scenario], *, every: bool = True) -> None:
    """Runs the command with every table that can be right in its config."""
    playback.configure(entry(scenario, truth) for scenario in scenarios for truth in compared(scenario, every))
    done = playback.run()
    assert done.exit_code == 0, str(done)


def check(playback: Playback, scenarios: Iterable[Scenario], *, every: bool = True) -> None:
    """Every table equals its truth, no record lies in quarantine, and nothing else became a table."""
    found = [
        difference
        for scenario in scenarios
        for truth in compared(scenario, every)
        if (difference := playback.difference(scenario, truth))
    ]
    assert not found, "\n".join(map(str, found))
    assert not playback.quarantined()
    for scenario in scenarios:
        expected = {truth.topic_name for truth in compared(scenario, every)}
        assert {folder.name for folder in (playback.lake / scenario.name).iterdir()} <= expected


def compared(scenario: Scenario, every: bool = True) -> Iterator[TruthTable]:
    """The tables that the records can bring to the truth; all of them or those that the scenario is there for."""
    for table in scenario.tables.values():
        if table.name not in LEFT_OUT and (every or table.name in SHOWS.get(scenario.name, {table.name})):
            yield table.without(EXCLUDED.get(table.name, ()))


def entry(scenario: Scenario, truth: TruthTable) -> dict[str, Any]:
    """The table's entry in the config. Without a Connect schema it names the columns' types."""
    match: dict[str, Any] = {"match": f"{scenario.name}.{truth.topic_name}"}
    if truth.name in EXCLUDED:
        match["exclude"] = EXCLUDED[truth.name]
    if scenario.connector["value.converter.schemas.enable"] == "true":
        return match
    return {**match, "columns": {column.name: plain_type(column.type) for column in truth.columns}}


def plain_type(name: str) -> str:
    """What `columns` says for a PostgreSQL type."""
    return name.replace("numeric", "decimal") if name.startswith("numeric(") else PLAIN_TYPES.get(name, "string")
