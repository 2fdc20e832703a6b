"""The plan: what `run` would do with each table, read from Kafka and the lake. Needs no Spark and writes nothing."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

from distributary.config import Config
from distributary.consume.kafka_client import KafkaClient, Topic
from distributary.errors import DistributaryError, TableHalt
from distributary.former_names import with_former_names
from distributary.ingest.continuity import two_topics
from distributary.ingest.registry import Registry, registry_of
from distributary.ingest.source_types import AnnouncedTypes, announced_source_types
from distributary.ingest.tables import ConfiguredTable, list_tables
from distributary.preflight.config_warnings import config_warnings
from distributary.preflight.existing_table import read_existing_table
from distributary.preflight.plan_warning import PlanWarning
from distributary.preflight.sample import sample
from distributary.preflight.skipped_topics import SkippedTopic, skipped_topics
from distributary.preflight.table_context import TableContext
from distributary.preflight.table_plan import HALT, TablePlan
from distributary.preflight.table_planner import halted_plan, plan_table
from distributary.storage.lake_files import newest_record

_THREADS = 8  # tables planned at once; each waits for Kafka most of the time


@dataclass(frozen=True)
class Plan:
    """The tables by name, the topics that become no table, and the warnings about the config as a whole."""

    tables: tuple[TablePlan, ...]
    skipped_topics: tuple[SkippedTopic, ...]
    warnings: tuple[PlanWarning, ...]

    @property
    def halts(self) -> bool:
        """Whether some table would halt."""
        return any(table.action == HALT for table in self.tables)

    def as_json(self) -> dict[str, Any]:
        """The plan in JSON's types."""
        fields = {
            "tables": [table.as_json() for table in self.tables],
            "skipped_topics": [topic.as_json() for topic in self.skipped_topics],
            "warnings": [warning.as_json() for warning in self.warnings],
        }
        return with_former_names(fields)


def plan(config: Config, show_progress: Callable[[int, int], None] = lambda _done, _total: None) -> Plan:
    """The plan of a config; `show_progress` is given how many tables are planned so far, and of how many. Raises
    TransientError if Kafka or the registry does not answer."""
    registry = registry_of(config.source)
    kafka = KafkaClient(config.kafka_properties())
    names = kafka.names()
    tables = list_tables(config, kafka)
    topics = kafka.topics([table.topic for table in tables])
    settings = kafka.settings(topics)
    announced_types = announced_source_types(config, kafka).of
    with ThreadPoolExecutor(_THREADS) as pool:
        planned = []
        for table_plan in pool.map(
            lambda table: _plan_table(table, config, kafka, topics, settings, registry, announced_types), tables
        ):
            planned.append(table_plan)
            show_progress(len(planned), len(tables))
    contexts = [context for _, context in planned if context is not None]
    return Plan(
        tables=tuple(halt_shared_paths([table for table, _ in planned])),
        skipped_topics=tuple(skipped_topics(config, names, {table.topic for table in tables})),
        warnings=tuple(config_warnings(config, contexts, {table.settings.match for table in tables})),
    )


def _plan_table(
    table: ConfiguredTable,
    config: Config,
    kafka: KafkaClient,
    topics: Mapping[str, Topic],
    settings: Mapping[str, Mapping[str, str]],
    registry: Registry | None,
    announced_types: AnnouncedTypes,
) -> tuple[TablePlan, TableContext | None]:
    try:
        topic = topics.get(table.topic)
        if topic is None:
            raise TableHalt("topic-gone", f"the topic {table.topic} was deleted just now", "run the command again")
        newest = newest_record(table.path)
        progress = newest.progress if newest else None
        # A topic that was deleted meanwhile or that may not be read halts its own table only.
        records = sample(kafka, topic, progress.next if progress else {}, settings.get(table.topic), registry)
        return plan_table(
            table,
            config,
            records,
            progress,
            read_existing_table(table.path),
            round(time.time() * 1000),
            announced_types,
        )
    except DistributaryError as error:
        return halted_plan(table, error), None


def halt_shared_paths(tables: list[TablePlan]) -> Iterator[TablePlan]:
    """The plans; if several topics write to one path, all but the first would halt."""
    topic_of_path: dict[str, str] = {}
    for table in tables:
        other = topic_of_path.setdefault(table.path, table.topic)
        if other == table.topic:
            yield table
            continue
        halt = two_topics(table.topic, other, table.path)
        yield replace(table, action=HALT, error=halt.as_dict())
