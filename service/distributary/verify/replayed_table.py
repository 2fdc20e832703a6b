"""Replays a topic into a temporary table with the service's own reader, rules and writer."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Collection, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field, replace

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from distributary.apply.origin_columns import DELETED
from distributary.apply.orphaned_rows import COLUMNS, are_orphaned
from distributary.config import Config
from distributary.config.table import TableSettings
from distributary.consume.kafka_client import KafkaClient, Topic
from distributary.consume.offsets import OffsetRange
from distributary.consume.source import KafkaRecords
from distributary.decode.decoder import Decoded
from distributary.delta.table_storage import table_files
from distributary.ingest.batch_reader import BatchReader
from distributary.ingest.batch_size import BatchSizer, batch_bytes
from distributary.ingest.batch_writer import BatchWriter
from distributary.ingest.decoded_batch import DecodedBatch, ReadBatch, rejecting
from distributary.ingest.index_folder import index_cache
from distributary.ingest.large_values import LargeValueStore
from distributary.ingest.raw_records import RawSource
from distributary.ingest.registry import registry_of
from distributary.ingest.source_checks import went_back
from distributary.ingest.source_types import announced_source_types
from distributary.ingest.tables import ConfiguredTable
from distributary.ingest.topic_format import TopicFormat
from distributary.lake.table import LakeTable
from distributary.logs import get_logger
from distributary.progress.record import Head, Progress, first_progress
from distributary.quarantine.table import Quarantine
from distributary.rules.columns import one_array
from distributary.verify.comparison import event
from distributary.verify.report import QUARANTINED, Quarantined
from distributary.verify.table_version import TableVersion

_EXAMPLES = 5
_RECORDS = "records"
_COORDINATES = ("partition", "offset", "timestamp")
_Coordinates = tuple[int, int, int]
_HAS_KEY = "to_json(k) <> '{}'"
_log = get_logger(__name__)


def replay_settings(settings: TableSettings) -> TableSettings:
    """The settings of the replayed table.

    Deleted rows stay, so that the report can show the delete. A history table is replayed as an upsert, because only
    its current versions are compared. Append tables and tables with soft deletes keep their settings.
    """
    if settings.mode == "append" or (settings.mode == "upsert" and settings.marks_deleted):
        return settings
    truncate = "soft" if settings.truncate in ("apply", "soft") else settings.truncate
    return replace(settings, mode="upsert", deletes="soft", truncate=truncate)


@dataclass
class ReplayedTable:
    """A table in `folder` that is filled from the topic. `applied`: number of records so far."""

    lake: LakeTable
    writer: BatchWriter
    folder: str
    key: tuple[str, ...]
    head: Head | None = None
    applied: int = 0
    _bad: list[pa.Table] = field(default_factory=list)

    def rows(self) -> DataFrame:
        """The rows, deleted ones among them."""
        return self.lake.rows()

    def records(self) -> DataFrame:
        """k STRUCT<k0 …>, kind, pos, partition, offset, timestamp: the records that were applied."""
        return _with_key_struct(self.lake.session.read.parquet(f"{self.folder}/{_RECORDS}"))

    def bad(self) -> DataFrame | None:
        """The records that can't be applied, with the same columns; None if there are none."""
        return _with_key_struct(self.lake.session.createDataFrame(pa.concat_tables(self._bad))) if self._bad else None

    def suspects(self) -> DataFrame:
        """k STRUCT, why STRING: the readable keys of records in quarantine."""
        bad = self.bad()
        frame = self.records().where("false") if bad is None else bad.where(_HAS_KEY)
        return frame.select("k").distinct().withColumn("why", F.lit(QUARANTINED))

    def quarantined(self) -> Quarantined:
        """The records in quarantine. Runs a Spark job if there are some."""
        bad = self.bad()
        if bad is None:
            return Quarantined()
        counts = bad.agg(
            F.countDistinct("partition", "offset").alias("records"),
            F.expr(f"count(DISTINCT CASE WHEN {_HAS_KEY} THEN k END)").alias("keys"),
            F.expr(f"count_if(NOT {_HAS_KEY})").alias("without_key"),
        ).head()
        fields = F.struct("partition", "offset", F.col("pos").alias("position"), F.col("kind").alias("op"))
        some = bad.select(fields.alias("event")).orderBy("event.partition", "event.offset").limit(_EXAMPLES)
        assert counts is not None
        examples = tuple(example for row in some.collect() if (example := event(row["event"])) is not None)
        return Quarantined(counts["records"], counts["keys"], counts["without_key"], examples)

    def orphaned_rows(self, connector: str, snapshot: str) -> DataFrame:
        """k STRUCT: the keys of rows that the complete snapshot at that position does not have."""
        marks = [DELETED] if DELETED in self.writer.service_columns else []
        columns = [*self.key, *COLUMNS, *marks]
        orphans = self.writer.find(self.lake, self.key, columns, lambda rows: are_orphaned(connector, rows, snapshot))
        keys = orphans.select(list(self.key)).rename_columns([f"k{i}" for i in range(len(self.key))])
        return self.lake.session.createDataFrame(keys).select(F.struct("*").alias("k"))

    def add(self, decoded: Decoded) -> None:
        """Counts the batch's records and stores their keys and positions."""
        events, rejected = decoded.events, decoded.rejected
        self.applied += int(pc.sum(pc.not_equal(events["operation"], "m")).as_py() or 0)
        if rejected.num_rows:
            self._bad.append(_index_columns(rejected))
        files = table_files(self.lake.session, self.folder)
        path = files.filesystem_path(f"{_RECORDS}/{uuid.uuid4()}.parquet")
        files.make_parent(path)
        pq.write_table(_index_columns(events), path, filesystem=files.filesystem)


def _index_columns(records: pa.Table) -> pa.Table:
    keys = one_array(records["key"])
    parts = {f"k{i}": part for i, part in enumerate(keys.flatten())}
    names = {
        "partition": "partition",
        "offset": "offset",
        "timestamp": "timestamp",
        "position": "pos",
        "operation": "kind",
    }
    return pa.table({**parts, **{to: records[name] for name, to in names.items()}})


def _with_key_struct(frame: DataFrame) -> DataFrame:
    keys = [name for name in frame.columns if name[0] == "k" and name[1:].isdigit()]
    return frame.select(F.struct(*keys).alias("k"), "kind", "pos", "partition", "offset", "timestamp")


def replay_topic(
    config: Config,
    table: ConfiguredTable,
    kafka: KafkaClient,
    existing: TableVersion,
    progress: Progress,
    topic: Topic,
    offsets: OffsetRange,
    folder: str,
) -> ReplayedTable:
    """Reads `offsets` of the topic into a new table below `folder`, as the table's worker does. Raises TableHalt if the
    records can't be read."""
    settings = replay_settings(table.settings)
    writer = BatchWriter(settings, index_cache)
    lake = LakeTable(existing.session, f"{folder}/rows", writer.service_columns)
    replayed = ReplayedTable(lake, writer, folder, progress.key)
    session = existing.session
    reader = BatchReader(
        kafka,
        config.source,
        # A column that the table does not have was left out when the records were applied; the table's record has which
        # ones were filled.
        replace(table.settings, schema_changes="ignore", column_defaults="null"),
        existing,
        _log.bind(table=table.name, topic=table.topic),
        threading.Event(),
        registry_of(config.source),
        lambda: announced_source_types(config, kafka).of(topic.name),
        large_values=LargeValueStore.of(config.large_messages),
    )
    topic_format = reader.detect_format(topic, offsets.start, progress)
    assert topic_format is not None  # the table has a record of progress
    start = first_progress(table.topic, topic.topic_id, progress.connector, settings.mode, progress.key)
    before = start.model_copy(update={"unwrapped": progress.unwrapped, "order": progress.order})
    quarantined = _quarantined(session, config, table.topic)
    lake.create(reader.columns)
    replayed.head = lake.head()
    is_compacted = kafka.is_compacted(table.topic)
    with closing(KafkaRecords(config.kafka_properties())) as records:
        source = RawSource(records, session, lambda _: None)
        sizer = BatchSizer(kafka, table.topic, config.trigger.max_records, batch_bytes(session, 1))
        applied: Mapping[int, int] = offsets.start
        while next_offsets := sizer.next(applied, offsets.end):
            offsets_of_batch, read = _read_bounded(reader, source, sizer, next_offsets, topic_format, before)
            applied = {**applied, **offsets_of_batch.end}
            decoded = _without(read.decoded, quarantined)
            batch = DecodedBatch(
                table.topic,
                progress.connector,
                reader.columns,
                {name: reader.columns[name] for name in progress.key},
                decoded.events,
                decoded.rejected,
                before if before.next else None,
                len(progress.next) or 1,
                compacted=is_compacted and read.stats.records < offsets_of_batch.records,
                unwrapped=bool(progress.unwrapped),
            )
            assert replayed.head is not None
            ready = writer.prepare(lake, batch, replayed.head)
            if ready.contradicted:  # replayed by now, else they were among the quarantined ones
                rest = rejecting(decoded, ready.contradicted)
                batch = replace(batch, events=rest.events, rejected=rest.rejected)
                ready = writer.prepare(lake, batch, replayed.head)
            if ready.went_back:
                raise went_back(ready.went_back[0], progress.connector, table.settings, table.topic)
            after = before.next_commit(next={**offsets.start, **before.next, **offsets_of_batch.end})
            assert replayed.head is not None
            replayed.head = lake.commit(replayed.head, after, ready.write)
            before = replayed.head.progress or after  # with the memory that the next batch begins with
            replayed.add(decoded)
    return replayed


def _read_bounded(
    reader: BatchReader,
    source: RawSource,
    sizer: BatchSizer,
    batch: OffsetRange,
    topic_format: TopicFormat,
    before: Progress,
) -> tuple[OffsetRange, ReadBatch]:
    """A batch, or as much of its beginning as has few enough bytes and large values."""
    while True:
        raw = source.of_range(batch, sizer.record_bytes, sizer.cut_of(batch))
        read = reader.read_and_change_table(raw, topic_format, before)
        half = sizer.half(raw.offset_range) if read.decoded.has_too_many_large_values else None
        if half is None:
            sizer.learn(read.stats)
            return raw.offset_range, read
        batch = half


def _quarantined(session: SparkSession, config: Config, topic: str) -> Collection[_Coordinates]:
    """The coordinates of the topic's records in quarantine: the table does not have them, even if they can be read now.
    The timestamp is one of them, because a recreated topic has other records at the same offsets."""
    waiting = Quarantine(session, config.quarantine_path()).waiting(session, topic)
    return set() if waiting is None else {*_coordinates(waiting.select(*_COORDINATES).toArrow())}


def _coordinates(records: pa.Table) -> Iterator[_Coordinates]:
    time = pa.timestamp("us", "UTC")
    columns = (records["partition"], records["offset"], records["timestamp"].cast(time).cast(pa.int64()))
    yield from zip(*(column.to_pylist() for column in columns), strict=True)


def _without(decoded: Decoded, quarantined: Collection[_Coordinates]) -> Decoded:
    """The batch with the events at these coordinates moved to the rejected records."""
    if not quarantined:
        return decoded
    is_quarantined = pa.array([one in quarantined for one in _coordinates(decoded.events)], pa.bool_())
    out = decoded.events.filter(is_quarantined)
    rejected = pa.concat_tables([decoded.rejected, out], promote_options="default")
    return replace(decoded, events=decoded.events.filter(pc.invert(is_quarantined)), rejected=rejected)
