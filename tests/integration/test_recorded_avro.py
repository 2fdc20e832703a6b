"""Recorded change events written as Avro with their schemas in a real registry, through the public command: every table
must equal the source's truth, as it does from JSON."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator

import pytest
from confluent_kafka.schema_registry import SchemaRegistryClient
from tests.support.avro import AvroWriter
from tests.support.playback import Playback
from tests.support.recorded import IDS_BEYOND_TIMESTAMPS, Record, Scenario, TruthTable
from tests.support.registry import RegistryAddress

pytestmark = pytest.mark.timeout(1800)
"""Seconds: a run takes minutes where other work shares the cores."""

TABLES = {
    "pg_types": ("all_types", "dflt", "nn", "special"),
    "pg_schema_evolution": ("evo_late", "evo_pk", "evo_retype"),
    "pg_toast": ("toasty", "docs"),
    "pg_json_schema": ("num_keys",),
    "maria_json_schema": ("customers",),
    "pg_unwrap": ("customers",),
}
"""Those of each scenario that show the most; tests/spark compares what is read of all the others."""

HALTING = {"evo_pk", "evo_retype"}
COMPARED = [
    (scenario, scenario.tables[name])
    for scenario, names in ((Scenario(name), names) for name, names in TABLES.items())
    for name in names
]

Played = tuple[Playback, dict[str, dict[str, str]]]
"""The playback after its run, and the log's entries on tables that halted."""


@pytest.fixture(scope="module")
def played(kafka: str, registry: RegistryAddress, tmp_path_factory: pytest.TempPathFactory) -> Played:
    """All of them after one run."""
    source = {"format": "avro", "schema_registry": {"url": registry.url}}
    playback = Playback(kafka, tmp_path_factory.mktemp("avro"), source)
    writer = AvroWriter(SchemaRegistryClient({"url": registry.url}))
    for scenario, table in COMPARED:
        playback.send(scenario, in_avro(scenario.topic(table.schema, table.name), writer))
    playback.configure(
        {"match": f"{playback.schema(scenario, table.topic_schema)}.{table.topic_name}"} for scenario, table in COMPARED
    )
    done = playback.run()
    assert done.exit_code == 1, str(done)
    return playback, done.halts()


def in_avro(records: Iterable[Record], writer: AvroWriter) -> Iterator[Record]:
    for record in records:
        key = writer.written(record.key, f"{record.topic}-key")
        value = writer.written(record.value, f"{record.topic}-value")
        yield dataclasses.replace(record, key=key, value=value)


@pytest.mark.parametrize(
    ("scenario", "table"),
    [pytest.param(*one, id=f"{one[0].name}.{one[1].name}") for one in COMPARED if one[1].name not in HALTING],
)
def test_the_table_equals_the_truth(played: Played, scenario: Scenario, table: TruthTable) -> None:
    difference = played[0].difference(scenario, table)
    assert not difference, str(difference)


def test_a_value_that_its_type_can_not_hold_is_quarantined_and_nothing_else(played: Played) -> None:
    rows = played[0].quarantined()
    assert {(row["table"], row["reason"]) for row in rows} == {("pg_types.special", "bad-value")}
    assert len(rows) == len(IDS_BEYOND_TIMESTAMPS)


def test_other_changes_of_a_schema_halt_their_table_alone(played: Played) -> None:
    assert set(played[1]) == {f"pg_schema_evolution.{name}" for name in HALTING}
