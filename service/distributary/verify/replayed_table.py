"""What a table has applied, read from its topic once more into a table of its own, by the same rules."""

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

from distributary.apply.ghosts import COLUMNS, are_ghosts
from distributary.apply.stored_rows import DELETED
from distributary.apply.values import one_array
from distributary.config import Config
from distributary.config.table import TableSettings
from distributary.consume.broker import Broker, Topic
from distributary.consume.offsets import OffsetRange
from distributary.consume.source import KafkaRecords
from distributary.decode.decoder import Decoded
from distributary.delta.table_storage import table_files
from distributary.ingest.batch_reader import BatchReader
from distributary.ingest.batch_size import BatchSizer, batch_bytes
from distributary.ingest.batch_writer import Batch, BatchWriter
from distributary.ingest.index_folder import index_cache
from distributary.ingest.raw_records import RawSource
from distributary.ingest.registry import registry_of
from distributary.ingest.source_checks import went_back
from distributary.ingest.source_types import told_to
from distributary.ingest.tables import ConfiguredTable
from distributary.lake.table import LakeTable
from distributary.logs import get_logger
from distributary.progress.record import Head, Progress, first_progress
from distributary.quarantine.table import Quarantine
from distributary.verify.comparison import event
from distributary.verify.report import QUARANTINED, Quarantined
from distributary.verify.table_version import FrozenTable

_EXAMPLES = 5
_RECORDS = "records"
_PLACE = ("partition", "offset", "timestamp")
_Place = tuple[int, int, int]
_HAS_KEY = "to_json(k) <> '{}'"
_log = get_logger(__name__)


def settings_of_copy(settings: TableSettings) -> TableSettings:
    """How the copy is kept: deleted rows stay, so that their last change can be told; of a history the current versions
    are compared, which are an upsert's rows. A table that marks deleted rows itself is kept as it is."""
    if settings.mode == "append" or (settings.mode == "upsert" and settings.marks_deleted):
        return settings
    truncate = "soft" if settings.truncate in ("apply", "soft") else settings.truncate
    return replace(settings, mode="upsert", deletes="soft", truncate=truncate)


@dataclass
class Copy:
    """A table that is filled from the topic, in `folder`, by `applied` records."""

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
        """k STRUCT<k0 …>, kind, pos, partition, offset, timestamp: all records that were applied."""
        return _named(self.lake.session.read.parquet(f"{self.folder}/{_RECORDS}"))

    def bad(self) -> DataFrame | None:
        """The same of the bad ones; None where there are none."""
        return _named(self.lake.session.createDataFrame(pa.concat_tables(self._bad))) if self._bad else None

    def suspects(self) -> DataFrame:
        """k STRUCT, why STRING: the keys of the bad records, as far as they can be read."""
        bad = self.bad()
        frame = self.records().where("false") if bad is None else bad.where(_HAS_KEY)
        return frame.select("k").distinct().withColumn("why", F.lit(QUARANTINED))

    def quarantined(self) -> Quarantined:
        """What the bad ones are (one Spark job where there are some)."""
        bad = self.bad()
        if bad is None:
            return Quarantined()
        counts = bad.agg(
            F.countDistinct("partition", "offset").alias("records"),
            F.expr(f"count(DISTINCT CASE WHEN {_HAS_KEY} THEN k END)").alias("keys"),
            F.expr(f"count_if(NOT {_HAS_KEY})").alias("without_key"),
        ).head()
        place = F.struct("partition", "offset", F.col("pos").alias("position"), F.col("kind").alias("op"))
        some = bad.select(place.alias("place")).orderBy("place.partition", "place.offset").limit(_EXAMPLES)
        assert counts is not None
        examples = tuple(found for row in some.collect() if (found := event(row["place"])) is not None)
        return Quarantined(counts["records"], counts["keys"], counts["without_key"], examples)

    def ghosts(self, connector: str, snapshot: str) -> DataFrame:
        """k STRUCT: the keys of the rows that the complete snapshot at that position leaves over."""
        marks = [DELETED] if DELETED in self.writer.service_columns else []
        columns = [*self.key, *COLUMNS, *marks]
        found = self.writer.find(self.lake, self.key, columns, lambda rows: are_ghosts(connector, rows, snapshot))
        keys = found.select(list(self.key)).rename_columns([f"k{i}" for i in range(len(self.key))])
        return self.lake.session.createDataFrame(keys).select(F.struct("*").alias("k"))

    def add(self, decoded: Decoded) -> None:
        """Notes what was read."""
        events, rejected = decoded.events, decoded.rejected
        self.applied += int(pc.sum(pc.not_equal(events["operation"], "m")).as_py() or 0)
        if rejected.num_rows:
            self._bad.append(_noted(rejected))
        files = table_files(self.lake.session, self.folder)
        place = files.place(f"{_RECORDS}/{uuid.uuid4()}.parquet")
        files.make_parent(place)
        pq.write_table(_noted(events), place, filesystem=files.filesystem)


def _noted(records: pa.Table) -> pa.Table:
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


def _named(frame: DataFrame) -> DataFrame:
    keys = [name for name in frame.columns if name[0] == "k" and name[1:].isdigit()]
    return frame.select(F.struct(*keys).alias("k"), "kind", "pos", "partition", "offset", "timestamp")


def copied(
    config: Config,
    one: ConfiguredTable,
    broker: Broker,
    frozen: FrozenTable,
    progress: Progress,
    topic: Topic,
    part: OffsetRange,
    folder: str,
) -> Copy:
    """Reads `part` of the topic as the table's worker would have, into a table that has nothing, below `folder`. Raises
    TableHalt where the records can't be read."""
    kept = settings_of_copy(one.settings)
    writer = BatchWriter(kept, index_cache)
    lake = LakeTable(frozen.session, f"{folder}/rows", writer.service_columns)
    copy = Copy(lake, writer, folder, progress.key)
    session = frozen.session
    reader = BatchReader(
        broker,
        config.source,
        # A column that the table left out when it took the records in is left out here.
        replace(one.settings, schema_changes="ignore"),
        frozen,
        writer,
        _log.bind(table=one.name, topic=one.topic),
        threading.Event(),
        registry_of(config.source),
        lambda: told_to(config, broker).of(topic.name),
    )
    topic_format = reader.detect_format(topic, part.start, progress)
    assert topic_format is not None  # the table has a record of progress
    start = first_progress(one.topic, topic.topic_id, progress.connector, kept.mode, progress.key)
    before = start.model_copy(update={"unwrapped": progress.unwrapped, "order": progress.order})
    waiting = _waiting(session, config, one.topic)
    lake.create(reader.columns)
    copy.head = lake.head()
    is_compacted = "compact" in broker.settings([one.topic]).get(one.topic, {}).get("cleanup.policy", "")
    with closing(KafkaRecords(config.kafka_properties())) as records:
        source = RawSource(records, session, lambda _: None)
        for step in _steps(BatchSizer(broker, one.topic, config.trigger.max_records, batch_bytes(session)), part):
            came = reader.read(source.of_range(step), topic_format, before)
            decoded = _without(came.decoded, waiting)
            batch = Batch(
                one.topic,
                progress.connector,
                reader.columns,
                {name: reader.columns[name] for name in progress.key},
                decoded.events,
                decoded.rejected,
                before if before.next else None,
                len(progress.next) or 1,
                compacted=is_compacted and came.found.records < step.records,
                unwrapped=bool(progress.unwrapped),
            )
            assert copy.head is not None
            ready = writer.prepare(lake, batch, copy.head)
            if ready.went_back:
                raise went_back(ready.went_back[0], progress.connector, one.settings, one.topic)
            before = before.next_commit(next={**part.start, **before.next, **step.end})
            assert copy.head is not None
            copy.head = lake.commit(copy.head, before, ready.write)
            copy.add(decoded)
    return copy


def _steps(portion: BatchSizer, part: OffsetRange) -> Iterator[OffsetRange]:
    taken: Mapping[int, int] = part.start
    while step := portion.next(taken, part.end):
        yield step
        taken = {**taken, **step.end}


def _waiting(session: SparkSession, config: Config, topic: str) -> Collection[_Place]:
    """The places of the records in quarantine: what can be read by now, but was not applied since, is not in the table
    either. With their times: a topic that was created again has other records at the same offsets."""
    found = Quarantine(session, config.quarantine_path()).waiting(session, topic)
    return set() if found is None else {*_places(found.select(*_PLACE).toArrow())}


def _places(records: pa.Table) -> Iterator[_Place]:
    time = pa.timestamp("us", "UTC")
    columns = (records["partition"], records["offset"], records["timestamp"].cast(time).cast(pa.int64()))
    yield from zip(*(column.to_pylist() for column in columns), strict=True)


def _without(decoded: Decoded, waiting: Collection[_Place]) -> Decoded:
    """With the events at these places among the rejected records."""
    if not waiting:
        return decoded
    waits = pa.array([place in waiting for place in _places(decoded.events)], pa.bool_())
    out = decoded.events.filter(waits)
    rejected = pa.concat_tables([decoded.rejected, out], promote_options="default")
    return replace(decoded, events=decoded.events.filter(pc.invert(waits)), rejected=rejected)
