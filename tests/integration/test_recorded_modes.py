"""The types of PostgreSQL in the connector's other modes, as it really sent them, through the public command: times as
ISO text, and decimals as text with times in milliseconds.

`test_recorded` has the same rows in the connector's defaults, and without any schema. What the forms of text become is
in tests/spark and tests/unit, too.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import pytest
from tests.support.playback import Playback
from tests.support.recorded import Scenario, TruthTable

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]
"""Seconds: a run takes minutes where other work shares the cores."""

MODES = [Scenario(f"pg_types_{mode}") for mode in ("iso", "string")]

# The snapshot sent a partitioned table's rows to the parent's topic, too; the stream goes to the partitions' alone.
TABLES = [(scenario, table) for scenario in MODES for table in scenario.tables.values() if table.name != "part"]


Play = Callable[[Scenario], Playback]


@pytest.fixture(scope="module")
def played(kafka: str, tmp_path_factory: pytest.TempPathFactory) -> Play:
    """All tables of one of them, after one run."""

    @cache
    def play(scenario: Scenario) -> Playback:
        playback = Playback(kafka, tmp_path_factory.mktemp(scenario.name))
        playback.send(scenario, scenario.records)
        playback.configure(
            {"match": f"{playback.schema(scenario, table.topic_schema)}.{table.topic_name}"}
            for one, table in TABLES
            if one is scenario
        )
        done = playback.run()
        assert done.exit_code == 0, str(done)
        return playback

    return play


@pytest.mark.parametrize(
    ("scenario", "table"), [pytest.param(*one, id=f"{one[0].name}-{one[1].name}") for one in TABLES]
)
def test_values_of_every_type_equal_the_truth(played: Play, scenario: Scenario, table: TruthTable) -> None:
    difference = played(scenario).difference(scenario, table)
    assert not difference, str(difference)
