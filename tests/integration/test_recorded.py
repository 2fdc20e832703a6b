"""Recorded change events through a real Kafka and the public command: every table must equal the source's truth.

One run of the command covers all scenarios that need no other config, far from UTC: everyday tables, the values at the
edges of each type (the largest and the smallest, infinity, dates before Christ, text of all scripts, NULL), changing
schemas, records without schema, and tables that can't go on. Each variant in `make test-long` is another way in which
the same records may reach the service; the tables may not differ by it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from tests.support.jvm import short_lived
from tests.support.kafka import delete_topic
from tests.support.playback import RUN_TIMEOUT, Playback, Run
from tests.support.postgres_columns import columns_of
from tests.support.recorded import IDS_BEYOND_TIMESTAMPS, Record, Scenario, TruthTable
from tests.support.sent_again import halves, resent

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


TYPES, TYPES_WITHOUT_SCHEMA = Scenario("pg_types"), Scenario("pg_types_plain")
"""The connector's defaults, and the same without any schema: the config names the types."""
# The snapshot sent a partitioned table's rows to the parent's topic, too; the stream goes to the partitions' alone.
TYPE_TABLES = [
    (scenario, table)
    for scenario in (TYPES, TYPES_WITHOUT_SCHEMA)
    for table in scenario.tables.values()
    if table.name != "part"
]

EVOLUTION = Scenario("pg_schema_evolution")
GROWING_TABLES = ("evo_late", "evo_renamed", "zz_sentinel")
HALTING_TABLES = {
    "evo": "a column of text was dropped, and one of numbers got its name",
    "evo_pk": "the key got a column",
    "evo_recreate": "a column of text became a decimal when the table was created again",
    "evo_retype": "columns changed their types",
}
EVERYDAY, REFUSED = Scenario("pg_json_schema"), Scenario("pg_extra_refused", "pg_extra")
CAN_NOT_GO_ON = {(EVERYDAY, "audit_log"): "key", (REFUSED, "__deleted"): "__op"}
"""Tables that halt at their first record, and what their reason names."""

WITHOUT_SCHEMA = Scenario("maria_told", "maria_json_schema")
"""Records without a schema, whose columns' types are in the connector's schema-change topic."""
TOLD_TABLES = ("all_types", "customers", "dt_keys", "num_keys")

ZONE = "America/New_York"


@dataclass(frozen=True)
class Played:
    """The playback of all scenarios after one run of the command, and how that ended."""

    playback: Playback
    run: Run
    left: list[Record]
    """Records of WITHOUT_SCHEMA that were not sent yet."""

    def quarantined(self, scenario: Scenario) -> list[dict[str, Any]]:
        """The rows of the quarantine table that are of a scenario's tables."""
        schemas = {self.playback.schema(scenario, table.topic_schema) for table in scenario.tables.values()}
        return [row for row in self.playback.quarantined() if row["table"].partition(".")[0] in schemas]


@pytest.fixture(scope="module")
def played(kafka: str, tmp_path_factory: pytest.TempPathFactory) -> Played:
    """All scenarios after one run."""
    playback = Playback(kafka, tmp_path_factory.mktemp("recorded"))
    for scenario in (*SCENARIOS, TYPES, TYPES_WITHOUT_SCHEMA, EVOLUTION, REFUSED):
        playback.send(scenario, scenario.records)
    result, first, left = without_schema()
    playback.send(WITHOUT_SCHEMA, [*result, *first])
    entries = [entry(scenario, truth) for scenario in SCENARIOS for truth in compared(scenario, every=False)]
    for scenario, table in TYPE_TABLES:
        columns = {"columns": columns_of(table)} if scenario is TYPES_WITHOUT_SCHEMA else {}
        entries.append({"match": f"{playback.schema(scenario, table.topic_schema)}.{table.topic_name}", **columns})
    entries += [{"match": f"{EVOLUTION.name}.{name}"} for name in (*GROWING_TABLES, *HALTING_TABLES)]
    entries += [{"match": f"{scenario.name}.{name}"} for scenario, name in CAN_NOT_GO_ON]
    entries += [{"match": f"{WITHOUT_SCHEMA.name}.{name}"} for name in TOLD_TABLES]
    playback.configure(entries)
    in_java = f"{short_lived()} -Duser.timezone={ZONE}"
    with playback.start("--once", TZ=ZONE, JAVA_TOOL_OPTIONS=in_java) as running:
        done = running.ended(RUN_TIMEOUT)
    assert done.exit_code == 1, str(done)
    return Played(playback, done, left)


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: str(scenario.name))
def test_each_table_equals_its_truth(played: Played, scenario: Scenario) -> None:
    halting = {name for of, name in CAN_NOT_GO_ON if of == scenario}
    check_tables(played.playback, [scenario], every=False, more=halting)
    assert not played.quarantined(scenario)


@pytest.mark.parametrize(
    ("scenario", "table"), [pytest.param(*one, id=f"{one[0].name}-{one[1].name}") for one in TYPE_TABLES]
)
def test_values_of_every_type_equal_the_truth(played: Played, scenario: Scenario, table: TruthTable) -> None:
    difference = played.playback.difference(scenario, table)
    assert not difference, str(difference)


def test_a_value_that_its_type_can_not_hold_is_quarantined_with_its_bytes(played: Played) -> None:
    special = {(record.partition, record.offset): record for record in TYPES.topic("public", "special")}
    rows = played.quarantined(TYPES)
    records = [special[row["partition"], row["offset"]] for row in rows]
    keys = sorted(record.key or b"" for record in records)
    assert [key.rpartition(b'"id":')[2].strip(b"}").decode() for key in keys] == sorted(IDS_BEYOND_TIMESTAMPS)
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
    table = played.playback.table("pg_types", "rfull")
    assert table is not None
    since = datetime(1970, 1, 1, tzinfo=timezone.utc)
    written = {(time - since) // timedelta(milliseconds=1) for time in table.column("__source_ts").to_pylist()}
    assert written
    assert written <= sent
    for row in played.playback.quarantined():
        assert abs(datetime.now(timezone.utc) - row["quarantined_at"]) < timedelta(hours=1)


@pytest.mark.parametrize("name", GROWING_TABLES)
def test_tables_whose_columns_only_grow_equal_the_truth(played: Played, name: str) -> None:
    difference = played.playback.difference(EVOLUTION, EVOLUTION.tables[name])
    assert not difference, str(difference)


def test_tables_that_can_not_go_on_halt_alone_and_say_what_to_do(played: Played) -> None:
    halted = played.run.halts()
    refused = {f"{scenario.name}.{name}": named for (scenario, name), named in CAN_NOT_GO_ON.items()}
    assert set(halted) == {*refused, *(f"{EVOLUTION.name}.{name}" for name in HALTING_TABLES)}
    for result in halted.values():
        assert result["reason"]
        assert result["fix"]
    assert "tenant" in halted[f"{EVOLUTION.name}.evo_pk"]["reason"]
    for name, named in refused.items():
        assert named in halted[name]["reason"]


def test_5_1_types_come_from_the_schema_change_topic_and_are_kept(played: Played) -> None:
    """As MariaDB's did. A second run fills the tables to their end; between the two the topic is gone."""
    names = {f"{WITHOUT_SCHEMA.name}.{name}" for name in TOLD_TABLES}
    guessed = [result["table"] for result in played.run.log() if "typed by their values" in result["event"]]
    assert not names.intersection(guessed)
    playback = played.playback
    delete_topic(playback.bootstrap, playback.prefix)
    playback.send(WITHOUT_SCHEMA, played.left)
    playback.configure({"match": name} for name in sorted(names))
    done = playback.run()
    assert done.exit_code == 0, str(done)
    tables = [WITHOUT_SCHEMA.tables[name] for name in TOLD_TABLES]
    differences = [found for table in tables if (found := playback.difference(WITHOUT_SCHEMA, table))]
    assert not differences, "\n".join(map(str, differences))
    assert not played.quarantined(WITHOUT_SCHEMA)


def without_schema() -> tuple[list[Record], list[Record], list[Record]]:
    """The schema-change topic's records, and the first and the second half of those of TOLD_TABLES, as JsonConverter
    writes them with schemas.enable=false; the database is called what the playback calls it."""

    def payload(data: bytes | None) -> bytes | None:
        return None if data is None else json.dumps(json.loads(data)["payload"]).encode()

    def bare(record: Record) -> Record:
        return replace(record, key=payload(record.key), value=payload(record.value))

    prefix = WITHOUT_SCHEMA.prefix
    topics = {f"{prefix}.shop.{name}" for name in TOLD_TABLES}
    result = [bare(record) for record in WITHOUT_SCHEMA.records if record.topic == prefix]
    for number, record in enumerate(result):
        renamed = (record.value or b"").replace(rb"\"shop\".", rf"\"{WITHOUT_SCHEMA.name}\".".encode())
        result[number] = replace(record, value=renamed)
    rows = [bare(record) for record in WITHOUT_SCHEMA.records if record.topic in topics]
    return result, *halves(rows)


@pytest.mark.slow
def test_all_tables_equal_their_truth(kafka: str, tmp_path: Path) -> None:
    playback = Playback(kafka, tmp_path)
    for scenario in SCENARIOS:
        playback.send(scenario, scenario.records)
    run(playback, SCENARIOS)
    check(playback, SCENARIOS)


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


def run(playback: Playback, scenarios: Iterable[Scenario]) -> None:
    """Runs the command with every table that can be right in its config."""
    playback.configure(entry(scenario, truth) for scenario in scenarios for truth in compared(scenario))
    done = playback.run()
    assert done.exit_code == 0, str(done)


def check(playback: Playback, scenarios: Iterable[Scenario]) -> None:
    """Every table equals its truth, no record lies in quarantine, and nothing else became a table."""
    check_tables(playback, scenarios)
    assert not playback.quarantined()


def check_tables(
    playback: Playback, scenarios: Iterable[Scenario], *, every: bool = True, more: Iterable[str] = ()
) -> None:
    """Every table equals its truth, and nothing else became a table, but perhaps those called `more`."""
    for scenario in scenarios:
        truths = list(compared(scenario, every))
        found = [difference for truth in truths if (difference := playback.difference(scenario, truth))]
        assert not found, "\n".join(map(str, found))
        expected = {truth.topic_name for truth in truths}
        assert {folder.name for folder in (playback.lake / scenario.name).iterdir()} <= {*expected, *more}


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
    """The entry of `columns` for a PostgreSQL type."""
    return name.replace("numeric", "decimal") if name.startswith("numeric(") else PLAIN_TYPES.get(name, "string")
