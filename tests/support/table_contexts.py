"""A table's plan from a few hand-written records."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any

from pydantic import TypeAdapter
from tests.support.decoding import SQLSERVER_SOURCE

from distributary.config import Config
from distributary.config.table import TableSettings
from distributary.consume.kafka_client import Topic
from distributary.consume.sample import SampledRecord
from distributary.consume.topics import TableId
from distributary.ingest.tables import ConfiguredTable
from distributary.preflight.existing_table import ExistingTable
from distributary.preflight.plan_warning import PlanWarning
from distributary.preflight.sample import Sample
from distributary.preflight.table_plan import TablePlan
from distributary.preflight.table_planner import plan_table
from distributary.progress.record import Progress, first_progress

TOPIC = "server1.dbo.t"
NOW = 1_700_000_000_000
HOUR = 3600 * 1000
DELETE = MappingProxyType({"cleanup.policy": "delete", "retention.ms": "-1"})
_NOTHING: Mapping[str, Any] = MappingProxyType({})


def config(properties: Mapping[str, str] = MappingProxyType({}), **more: Any) -> Config:
    """A config with one entry for all tables; `more` are its sections."""
    return TypeAdapter(Config).validate_python(
        {
            "version": 1,
            "kafka": {"bootstrap.servers": "localhost:9092"},
            "source": {"topic_prefix": "server1", "connector_properties": dict(properties)},
            "target": {"path": "/data/lake"},
            "checkpoint": "/data/checkpoints",
            "tables": [{"match": "*.*"}],
            **more,
        },
        context={"directory": "/"},
    )


def envelope(
    op: str,
    after: Mapping[str, Any] | None = None,
    before: Mapping[str, Any] | None = None,
    *,
    key: Mapping[str, Any] | None = MappingProxyType({"id": 1}),
    connector: str = "sqlserver",
    snapshot: str = "false",
) -> tuple[Any, Any]:
    """Key and value of an envelope without schema."""
    position = SQLSERVER_SOURCE if connector == "sqlserver" else {}
    source = {**position, "connector": connector, "snapshot": snapshot}
    return key, {"op": op, "before": before, "after": after, "source": source}


def records(pairs: Iterable[tuple[Any, Any]], first: int = 0, timestamp: int = NOW) -> tuple[SampledRecord, ...]:
    """Records of partition 0 from keys and values, None for nothing."""
    return tuple(
        SampledRecord(0, offset, _bytes(key), _bytes(value), (), timestamp)
        for offset, (key, value) in enumerate(pairs, first)
    )


def _bytes(value: Any) -> bytes | None:
    return None if value is None else json.dumps(dict(value)).encode()


def sample(
    *pairs: tuple[Any, Any],
    first: int = 0,
    taken: int | None = None,
    settings: Mapping[str, str] | None = DELETE,
    partitions: int = 1,
    timestamp: int = NOW,
    topic_id: str = "id",
) -> Sample:
    """A topic with those records in partition 0, from the offset `first` on, of which a table has applied all below
    `taken`."""
    every = records(pairs, first, timestamp)
    start = first if taken is None else taken
    ids = tuple(range(partitions))
    return Sample(
        topic=Topic(TOPIC, topic_id, ids),
        first={p: first if p == 0 else 0 for p in ids},
        start={p: start if p == 0 else 0 for p in ids},
        end={p: first + len(every) if p == 0 else 0 for p in ids},
        head=tuple(record for record in every if record.offset >= start),
        newest=every,
        settings=settings,
    )


def progress(taken: int, **changes: Any) -> Progress:
    """The record of a table that has applied partition 0 up to there."""
    first = first_progress(TOPIC, "id", "sqlserver", changes.pop("mode", "upsert"), changes.pop("key", ("id",)))
    return first.next_commit(next={0: taken}, **changes)


def plan_of(
    found: Sample,
    settings: Mapping[str, Any] = _NOTHING,
    known: Progress | None = None,
    lake: ExistingTable | None = None,
    properties: Mapping[str, str] = MappingProxyType({}),
    told: Mapping[str, str] = MappingProxyType({}),
) -> TablePlan:
    """What `plan` says of the table; `told` are types that the schema-change topic tells."""
    said = TableSettings(**{"match": "*.*", "where": "c.yaml:6", **settings})
    one = ConfiguredTable(TableId("dbo", "t"), TOPIC, said, "/lake/dbo/t")
    return plan_table(one, config(properties), found, known, lake, NOW, lambda _topic: told)[0]


def warnings_of(plan: TablePlan) -> dict[str, PlanWarning]:
    """The warnings by code."""
    return {concern.code.value: concern for concern in plan.warnings}
