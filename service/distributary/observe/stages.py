"""How the time from a change at the source to the table's commit is divided: connector, Kafka, table."""

from __future__ import annotations

from dataclasses import dataclass

from distributary.progress.batch_stats import OldestChangeTimes


@dataclass(frozen=True)
class Stages:
    """The seconds that a change took from its commit at the source to the connector, from there to Kafka, and from
    there to the commit to the table; None if not known."""

    to_connector: float | None
    to_kafka: float | None
    to_table: float


def stages_of(oldest_change: OldestChangeTimes | None, at: float) -> Stages | None:
    """The parts of a change's way to the commit, which was `at` (seconds since 1970).

    The times come from clocks of several machines: a negative difference counts as zero.
    """
    if oldest_change is None:
        return None
    read_ms = oldest_change.connector_ms
    return Stages(
        to_connector=None if read_ms is None else max(0.0, (read_ms - oldest_change.source_ms) / 1000),
        to_kafka=None if read_ms is None else max(0.0, (oldest_change.kafka_ms - read_ms) / 1000),
        to_table=max(0.0, round(at - oldest_change.kafka_ms / 1000, 3)),
    )
