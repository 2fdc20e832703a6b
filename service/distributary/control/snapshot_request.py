"""Requests a snapshot from a connector: finds the tables and their names at the source, sends the signal, and waits
until the rows are applied."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from distributary.config import Config
from distributary.consume.kafka_client import KafkaClient
from distributary.consume.topics import is_signal_table, table_of
from distributary.consume.write import write_not_allowed
from distributary.control.halts import read_halts
from distributary.control.notifications import Arrival
from distributary.control.pauses import ALL, read_pauses
from distributary.control.signals import INCREMENTAL, Name, Signal, parts_of, source_name
from distributary.decode.source_block import BY_OFFSET
from distributary.errors import TableHalt, TransientError, UsageError
from distributary.halt_actions import PAUSED_IN_CONFIG
from distributary.ingest.tables import (
    ConfiguredTable,
    did_you_mean,
    find_table,
    lake_path,
    list_tables,
    name_of,
    settings_of,
)
from distributary.progress.record import Progress
from distributary.storage.lake_files import newest_record

_EVERY = 2.0  # seconds between two reads of the tables' records


@dataclass(frozen=True)
class SnapshotTarget:
    """A table to be snapshotted, and its progress record before the request; None if it has none. `topic_missing`: what
    to say if the table has no topic yet, which the first record of the snapshot creates; None if it has one."""

    table: ConfiguredTable
    before: Progress | None
    topic_missing: str | None = None


@dataclass(frozen=True)
class SnapshotProgress:
    """The progress of a table's snapshot: records applied since the request, and whether it is complete."""

    table: str
    applied: int
    complete: bool
    orphaned_rows: int | None = None


def snapshot_targets(
    config: Config, kafka: KafkaClient, names: Sequence[str], database: str | None = None
) -> list[SnapshotTarget]:
    """The tables with these names; a new one may have no topic yet. `database`: of those, if their names lack it.
    Raises UsageError if a table is not in the config, if it is paused, or if several source tables are merged into
    it."""
    tables = list_tables(config, kafka)
    pauses = read_pauses(config)
    targets = []
    for name in dict.fromkeys(names):
        new = None if name in _names(tables) else _table_without_topic(config, name, database)
        configured = new or find_table(name, tables)
        if configured.settings.paused or ALL in pauses or configured.topic in pauses:
            why = PAUSED_IN_CONFIG if configured.settings.paused else str(pauses.get(ALL) or pauses[configured.topic])
            raise UsageError(
                "snapshot-of-paused-table",
                f"{name} is paused ({why}): the rows of a snapshot would wait in its topic",
                "let it continue first: `distributary unpause`, or remove `paused: true` from the config",
            )
        if configured.settings.merge_sources:
            raise UsageError(
                "snapshot-of-several-tables",
                f"several source tables are merged into {name} (merge_sources), and their names are not known here",
                "write the signal by hand with the name of each: docs/snapshots.md has its format",
            )
        newest = newest_record(configured.path)
        missing = _topic_missing(name, new.topic, tables) if new else None
        targets.append(SnapshotTarget(configured, newest.progress if newest else None, missing))
    return targets


def _names(tables: Iterable[ConfiguredTable]) -> set[str]:
    """All names by which the tables can be given."""
    return {name for one in tables for name in (one.name, str(one.table), one.table.in_full)}


def _table_without_topic(config: Config, name: str, database: str | None) -> ConfiguredTable | None:
    """The table as the config would have it once its topic exists; None if the config has no such table."""
    connector, prefix = config.source.connector, config.source.topic_prefix
    has_database = connector == "sqlserver" and database is not None and name.count(".") == 1
    topic = ".".join((prefix, str(database), name) if has_database else (prefix, name))
    table = table_of(topic, prefix, connector)
    settings = settings_of(table, config)
    if table is None or settings is None:
        return None
    return ConfiguredTable(table, topic, settings, lake_path(config, table), name_of(config, table))


def _topic_missing(name: str, topic: str, tables: list[ConfiguredTable]) -> str:
    return (
        f"Kafka has no topic {topic} yet: the snapshot creates it if the connector captures the table; check the name"
        f" {name}{did_you_mean(name, tables)}"
    )


def signal_for(
    config: Config, wanted: Sequence[SnapshotTarget], kind: str, where: str | None, database: str | None = None
) -> Signal:
    """The signal for a snapshot of the tables. Raises UsageError if the connector or a source name is unknown, and for
    an empty condition."""
    if where is not None and not where.strip():
        raise UsageError("empty-condition", "--where has no condition", "leave it out for all rows")
    connector = _connector(config, wanted)
    names = tuple(_source_name(connector, target, database) for target in wanted)
    return Signal(f"snapshot-{uuid.uuid4().hex}", connector, names, kind, where)


def _connector(config: Config, wanted: Sequence[SnapshotTarget]) -> str:
    connectors = {
        target.before.connector for target in wanted if target.before and target.before.connector != BY_OFFSET
    }
    connector = config.source.connector or (connectors.pop() if len(connectors) == 1 else None)
    if connector is None:
        raise UsageError(
            "connector-unknown",
            "no table shows its connector yet, and names and SQL depend on the connector",
            "set source.connector in the config",
        )
    return connector


def _source_name(connector: str, target: SnapshotTarget, database: str | None) -> Name:
    table = target.table.table
    by_topic = (*filter(None, (table.database,)), table.schema, table.table)
    return source_name(connector, by_topic, target.before.source_table if target.before else None, database)


def signal_table_of(config: Config, kafka: KafkaClient, given: str | None) -> Name:
    """The signal table's name: as given, or from the config, or from its topic. Raises UsageError if its schema is
    unknown."""
    for name in (given, config.source.signal_table):
        if name and len(parts := parts_of(name)) > 1:
            return parts
    prefix, connector = config.source.topic_prefix, config.source.connector
    tables = [table for topic in kafka.names() if (table := table_of(topic, prefix, connector))]
    signal_tables = {table for table in tables if is_signal_table(table, given or config.source.signal_table)}
    if len(signal_tables) != 1:
        raise UsageError(
            "signal-table-unknown",
            "the signal table of the source is not known",
            "set it with its schema: --signal-table SCHEMA.TABLE, or source.signal_table in the config",
        )
    table = signal_tables.pop()
    return (*filter(None, (table.database,)), table.schema, table.table)


def send(config: Config, kafka: KafkaClient, signal: Signal, topic: str) -> None:
    """Writes the signal to the signal topic. Raises UsageError if there is no such topic, TransientError if this user
    may not write to it or Kafka does not answer."""
    try:
        there = kafka.topics([topic])
    except TransientError as fault:
        raise write_not_allowed(topic, fault) if fault.code == "kafka-not-allowed" else fault from fault
    if topic not in there:
        raise UsageError(
            "signal-topic-unknown",
            f"Kafka has no topic {topic}, or this user may not see it",
            "use the connector's signal.kafka.topic; it must have one partition",
        )
    kafka.write(topic, config.source.topic_prefix.encode(), signal.record())


def check_can_follow(wanted: Sequence[SnapshotTarget], kind: str, notifications: str | None = None) -> None:
    """Raises UsageError if the end of the snapshot can't be recognized. `notifications`: their topic, where known."""
    if kind == INCREMENTAL:
        if notifications is not None:
            return
        raise UsageError(
            "follow-needs-blocking",
            "an incremental snapshot does not mark its end, so --follow can't recognize it",
            "name the connector's notification topic (--notifications-topic, or notification.sink.topic.name under"
            " source.connector_properties), or use --type blocking",
        )
    for target in wanted:
        progress, name = target.before, target.table.name
        if target.table.settings.mode != "upsert" or (progress and progress.connector == BY_OFFSET):
            raise UsageError(
                "follow-not-for-table",
                f"{name} does not record its last snapshot: only tables with mode: upsert and positions in the source's"
                " log do",
                "leave --follow out and watch `distributary status`",
            )


def snapshot_progress(target: SnapshotTarget, now: Progress | None, arrival: Arrival | None = None) -> SnapshotProgress:
    """The snapshot's progress by the table's record. It is complete if a newer snapshot than before has ended and all
    rows that may belong to it are applied; an incremental one if `arrival` has its end."""
    if arrival is not None:
        records = (now.records if now else 0) - (target.before.records if target.before else 0)
        return SnapshotProgress(target.table.name, records, arrival.is_complete(target.table.topic, now))
    snapshot, before = now.snapshot if now else None, target.before.snapshot if target.before else None
    is_newer = snapshot is not None and (before is None or snapshot.position > before.position)
    applied = (now.records if now else 0) - (target.before.records if target.before else 0)
    complete = snapshot is not None and is_newer and not snapshot.open
    return SnapshotProgress(
        target.table.name, applied, complete, snapshot.orphaned_rows if snapshot and complete else None
    )


def follow(
    config: Config,
    wanted: Sequence[SnapshotTarget],
    timeout: float,
    show: Callable[[SnapshotProgress], None],
    arrival: Arrival | None = None,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> list[SnapshotProgress]:
    """Waits up to `timeout` seconds until the tables have the snapshot; calls `show` at each change. `arrival` knows
    the end of an incremental snapshot.

    Raises TableHalt if a table halts meanwhile, TransientError after the timeout, or if the snapshot failed.
    """
    until = clock() + timeout
    shown: dict[str, SnapshotProgress] = {}
    while True:
        _check_halts(wanted, read_halts(config))
        if arrival is not None:
            arrival.poll()
        for target in wanted:
            newest = newest_record(target.table.path)
            snapshot = snapshot_progress(target, newest.progress if newest else None, arrival)
            if shown.get(snapshot.table) != snapshot:
                shown[snapshot.table] = snapshot
                show(snapshot)
        incomplete = [snapshot.table for snapshot in shown.values() if not snapshot.complete]
        if not incomplete:
            return list(shown.values())
        if clock() >= until:
            raise TransientError(
                "snapshot-not-arrived",
                f"the snapshot is not complete after {timeout:g} s in: {', '.join(incomplete)}",
                "check that the service runs (`distributary status`), that the connector's log has the signal"
                " (\"Requested 'BLOCKING' snapshot\"), that the signal table is captured or kafka is in"
                " signal.enabled.channels, and that the table has rows: an empty one does not mark its end. A running"
                " snapshot continues; wait longer with --timeout",
            )
        sleep(_EVERY)


def _check_halts(wanted: Sequence[SnapshotTarget], halts: Mapping[str, dict[str, str]]) -> None:
    for target in wanted:
        if halt := halts.get(target.table.topic):
            raise TableHalt(halt["code"], f"{target.table.name} is halted: {halt['message']}", halt["fix"])
