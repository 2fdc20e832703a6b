"""What `run` would do with each table: looked up in Kafka and in the lake, without Spark and without a change."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

from distributary.config import Config
from distributary.consume.broker import Broker, Topic
from distributary.errors import DistributaryError, TableHalt
from distributary.ingest.continuity import two_topics
from distributary.ingest.registry import Registry, registry_of
from distributary.ingest.source_types import Told, told_to
from distributary.ingest.tables import ConfiguredTable, listed
from distributary.preflight.config_warnings import overall
from distributary.preflight.existing_table import stored
from distributary.preflight.plan_warning import Concern
from distributary.preflight.sample import sample
from distributary.preflight.skipped_topics import PassedOver, passed_over
from distributary.preflight.table_context import Scene
from distributary.preflight.table_plan import HALT, TablePlan, planned, refused
from distributary.storage.lake_files import newest_record

_SIDE_BY_SIDE = 8  # topics looked at at once; each look waits for Kafka most of the time


@dataclass(frozen=True)
class Plan:
    """The tables by name, the topics that are left alone, and what is to be said of the config as a whole."""

    tables: tuple[TablePlan, ...]
    passed_over: tuple[PassedOver, ...]
    warnings: tuple[Concern, ...]

    @property
    def halts(self) -> bool:
        """Whether some table would halt."""
        return any(table.action == HALT for table in self.tables)

    def as_json(self) -> dict[str, Any]:
        """The same with JSON's types only."""
        return {
            "tables": [table.as_json() for table in self.tables],
            "passed_over": [topic.as_json() for topic in self.passed_over],
            "warnings": [concern.as_json() for concern in self.warnings],
        }


def plan(config: Config) -> Plan:
    """The plan of a config. Raises TransientError where Kafka or the registry does not answer."""
    registry = registry_of(config.source)
    broker = Broker(config.kafka_properties())
    names = broker.names()
    tables = listed(config, broker)
    topics = broker.topics([one.topic for one in tables])
    settings = broker.settings(topics)
    told = told_to(config, broker).of
    with ThreadPoolExecutor(_SIDE_BY_SIDE) as pool:
        looked = list(pool.map(lambda one: _look(one, config, broker, topics, settings, registry, told), tables))
    scenes = [scene for _, scene in looked if scene is not None]
    return Plan(
        tables=tuple(one_place_each([table for table, _ in looked])),
        passed_over=tuple(passed_over(config, names, {one.topic for one in tables})),
        warnings=tuple(overall(config, scenes, {one.settings.match for one in tables})),
    )


def _look(
    one: ConfiguredTable,
    config: Config,
    broker: Broker,
    topics: Mapping[str, Topic],
    settings: Mapping[str, Mapping[str, str]],
    registry: Registry | None,
    told: Told,
) -> tuple[TablePlan, Scene | None]:
    try:
        topic = topics.get(one.topic)
        if topic is None:
            raise TableHalt("topic-gone", f"the topic {one.topic} was deleted just now", "look again")
        newest = newest_record(one.path)
        progress = newest.progress if newest else None
        # Where somebody deleted the topic meanwhile, or may not read it, the others are still told.
        records = sample(broker, topic, progress.next if progress else {}, settings.get(one.topic), registry)
        return planned(one, config, records, progress, stored(one.path), round(time.time() * 1000), told)
    except DistributaryError as error:
        return refused(one, error), None


def one_place_each(tables: list[TablePlan]) -> Iterator[TablePlan]:
    """Of several topics for one place in the lake the first one counts, the others would halt."""
    taken: dict[str, str] = {}
    for table in tables:
        other = taken.setdefault(table.path, table.topic)
        if other == table.topic:
            yield table
            continue
        halt = two_topics(table.topic, other, table.path)
        yield replace(table, action=HALT, error=halt.told())
