"""What a table has taken in, read from its topic once more: the decoded records, and those that are in quarantine."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, replace

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from distributary.config import Config
from distributary.consume.broker import Broker, Topic
from distributary.consume.offsets import Slice
from distributary.consume.source import KafkaRecords
from distributary.decode.decoder import Decoder
from distributary.decode.record_schema import RecordSchema
from distributary.ingest.batch_reader import BatchReader
from distributary.ingest.batch_writer import BatchWriter, new_index_cache
from distributary.ingest.merge_table import RecordColumns
from distributary.ingest.raw_records import DecodedRecords, RawSource
from distributary.ingest.registry import registry_of
from distributary.logs import get_logger
from distributary.merge.facts import Facts, facts
from distributary.merge.progress import Progress, first_progress
from distributary.merge.queries import Queries
from distributary.operate.quarantine import Quarantine
from distributary.operate.source_types import told_to
from distributary.operate.tables import Listed
from distributary.verify.compare import event
from distributary.verify.frozen import FrozenTable
from distributary.verify.report import QUARANTINED, Quarantined

_EXAMPLES = 5
_HAS_KEY = "to_json(k) <> '{}'"
_log = get_logger(__name__)


@dataclass(frozen=True)
class Taken:
    """`records` that can be applied, what was `found` in all of them, and the `bad` ones: they are not in the table.
    None where there are none."""

    records: DataFrame
    found: Facts
    bad: DataFrame | None

    def suspects(self) -> DataFrame:
        """k STRUCT, why STRING: the keys of the bad records, as far as they can be read."""
        frame = self.records.where("false") if self.bad is None else self.bad.where(_HAS_KEY)
        return frame.select("k").distinct().withColumn("why", F.lit(QUARANTINED))

    def quarantined(self) -> Quarantined:
        """What the bad ones are (one Spark job where there are some)."""
        if self.bad is None:
            return Quarantined()
        counts = self.bad.agg(
            F.countDistinct("partition", "offset").alias("records"),
            F.expr(f"count(DISTINCT CASE WHEN {_HAS_KEY} THEN k END)").alias("keys"),
            F.expr(f"count_if(NOT {_HAS_KEY})").alias("without_key"),
        ).head()
        place = F.struct("partition", "offset", F.col("pos").alias("position"), F.col("kind").alias("op"))
        some = self.bad.select(place.alias("place")).orderBy("place.partition", "place.offset").limit(_EXAMPLES)
        assert counts is not None
        examples = tuple(found for row in some.collect() if (found := event(row["place"])) is not None)
        return Quarantined(counts["records"], counts["keys"], counts["without_key"], examples)


def taken(
    config: Config,
    one: Listed,
    broker: Broker,
    lake: FrozenTable,
    progress: Progress,
    topic: Topic,
    part: Slice,
    only: Callable[[DataFrame], DataFrame],
) -> Taken:
    """Reads `part` of the topic as the table's worker would have, as one slice into a table that has nothing.

    `only` as in BatchReader. The decoded records are kept on disk. Raises TableHalt where they can't be read.
    """
    queries = Queries()
    reader = BatchReader(
        broker,
        config.source,
        # A column that the table left out when it took the records in is left out here.
        replace(one.settings, schema_changes="ignore"),
        lake,
        BatchWriter(one.settings, new_index_cache),
        _log.bind(table=one.name, topic=one.topic),
        threading.Event(),
        registry_of(config.source),
        lambda: told_to(config, broker).of(topic.name),
    )
    topic_format = reader.detect_format(topic, part.start, progress)
    assert topic_format is not None  # the table has a record of progress
    start = first_progress(one.topic, topic.topic_id, progress.connector, progress.mode, progress.key)
    with closing(KafkaRecords(config.kafka_properties())) as records:
        raw = RawSource(records, lake.session, lambda _: None).of_range(part)

        def decode(decoder: Decoder, schema: RecordSchema) -> DecodedRecords:
            columns = RecordColumns.of(schema.row, schema.key, before=decoder.options.before)
            return raw.decode(decoder, schema, columns, only)

        start = start.model_copy(update={"unwrapped": progress.unwrapped})
        _, came = reader.follow(decode, topic_format, start)
        found = facts(came.records, start, queries)
    waiting = Quarantine(lake.session, config.quarantine_path()).waiting(lake.session, one.topic)
    if waiting is None:
        bad = came.records.where("bad IS NOT NULL") if found.bad else None
        return Taken(came.records.where("bad IS NULL"), found, bad)
    # What can be read by now, but was not applied since, is not in the table either.
    place = ["partition", "offset", "timestamp"]
    marked = came.records.join(waiting.select(*place, F.lit(True).alias("waits")).distinct(), place, "left")
    out = "bad IS NOT NULL OR waits IS NOT NULL"
    return Taken(marked.where(f"NOT ({out})").drop("waits"), found, marked.where(out).drop("waits"))
