"""The quarantine table: records that can't be applied, as raw bytes with topic, partition, offset, reason and time."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime, timezone

import numpy as np
import pyarrow as pa
from delta.tables import DeltaTable
from pyarrow import fs
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType, _parse_datatype_string
from tenacity import Retrying, retry_if_exception_type, stop_after_attempt, wait_random

from distributary.delta.checkpoint import LogCheckpointer
from distributary.delta.commit import CommitPayload, ConcurrentChange
from distributary.delta.plan_write import RemovalLayout
from distributary.delta.table_storage import table_files
from distributary.delta.transaction import DeltaCommitter
from distributary.delta.writer import TableWriter
from distributary.error_mapping import classify
from distributary.ingest.index_folder import index_cache
from distributary.ingest.offset_ranges import offsets_of
from distributary.lake.reader_batch import read_few_rows_at_once
from distributary.launch.small_commits import CHECKPOINTED
from distributary.quarantine.redaction import redact

_SCHEMA = (
    "topic STRING, partition INT, offset BIGINT, timestamp TIMESTAMP, key BINARY, value BINARY,"
    " headers ARRAY<STRUCT<key: STRING, value: BINARY>>, table STRING, reason STRING, message STRING,"
    " quarantined_at TIMESTAMP, replayed_at TIMESTAMP"
)

_OF_KAFKA = ("key", "value", "topic", "partition", "offset", "timestamp", "headers")
_KEY = ("topic", "partition", "offset", "timestamp")
"""The timestamp, too, because a topic that was created again has other records at the same offsets."""
_APP_ID = "distributary-quarantine"
_TIME = pa.timestamp("us", "UTC")


class Quarantine:
    """One Delta table at `path` for all tables of the service. Adding a record again has no effect."""

    time_column = "quarantined_at"

    def __init__(self, session: SparkSession, path: str) -> None:
        self._session = session.newSession()
        read_few_rows_at_once(self._session)
        self.path = path
        # Others (`quarantine purge`, another service) may write to the table, too.
        self._tries = Retrying(
            retry=retry_if_exception_type(ConcurrentChange),
            stop=stop_after_attempt(5),
            wait=wait_random(max=0.5),
            reraise=True,
        )
        self._open: tuple[TableWriter, LogCheckpointer] | None = None
        self._filesystem: fs.FileSystem | None = None
        self.lock = threading.Lock()
        """Must be held to write to the table."""
        self.writes = 0
        """Number of writes by this process."""

    def add(
        self,
        table: str,
        raw: Callable[[pa.Table], Iterable[pa.Table]],
        bad: pa.Table,
        redacted_columns: Collection[str] = (),
    ) -> dict[str, int]:
        """Adds the records in `bad` (partition, offset, reason, message) without the values of the columns
        `redacted_columns`. `raw` returns the records of given offsets (partition, offset) with all of Kafka's columns,
        in pieces that fit into memory.

        Must be called before the table's own commit counts the records as applied. A repeated batch adds none twice.
        Returns by reason the number of records that `raw` returned.
        """
        added: Counter[str] = Counter()
        named = bad.select(["partition", "offset", "reason", "message"])
        number_of = {coordinates: number for number, coordinates in enumerate(offsets_of(named))}
        for piece in raw(named):
            if not len(piece):
                continue
            verdicts = named.take([number_of[coordinates] for coordinates in offsets_of(piece)])
            count, now = len(piece), datetime.now(timezone.utc)
            rows = redact(piece, redacted_columns).select(_OF_KAFKA)
            for name, values in {
                "table": pa.repeat(table, count),
                "reason": verdicts["reason"],
                "message": verdicts["message"],
                "quarantined_at": pa.repeat(pa.scalar(now, _TIME), count),
                "replayed_at": pa.nulls(count, _TIME),
            }.items():
                rows = rows.append_column(name, values)
            with self._writing():
                self._tries(self._put, rows)
            added.update(verdicts["reason"].to_pylist())
        return dict(added)

    def _put(self, rows: pa.Table) -> None:
        """Commits the rows, except records that are in quarantine and were not replayed. A replayed record is written
        again with `replayed_at` NULL: a rebuild may reject it again."""
        writer, keeper = self._writer()
        writer.sync()
        known = writer.read_rows(rows, ["replayed_at"])
        new = np.ones(len(rows), bool)
        new[known.keys[known.rows["replayed_at"].is_null().to_numpy()]] = False
        if not new.any():
            return
        record = CommitPayload("quarantine", _APP_ID, writer.snapshot.version + 1)
        writer.write(rows.filter(pa.array(new)), None, record)
        if keeper.is_due(writer.snapshot):
            keeper.checkpoint(writer.snapshot)

    def _writer(self) -> tuple[TableWriter, LogCheckpointer]:
        """The writer of the table, which is created where it is missing."""
        if not DeltaTable.isDeltaTable(self._session, self.path):
            self._ensure()
            self._open = None
        files = table_files(self._session, self.path)
        if self._open is None or self._filesystem != files.filesystem:  # keys of an object store may be renewed
            self._filesystem = files.filesystem
            committer = DeltaCommitter(self._session, self.path, files)
            writer = TableWriter(files, _KEY, committer, index_cache(), layout=RemovalLayout.REWRITE)
            self._open = writer, LogCheckpointer(self._session, self.path, files)
        return self._open

    def waiting(self, session: SparkSession, topic: str, but: Collection[str] = ()) -> DataFrame | None:
        """The topic's records that were not applied since, without those with a reason `but`; None if there are none.
        Redacted values are missing (see redaction.py)."""
        if not DeltaTable.isDeltaTable(self._session, self.path):
            return None
        rows = session.read.format("delta").load(self.path)
        wanted = (F.col("topic") == topic) & F.col("replayed_at").isNull() & ~F.col("reason").isin(*but)
        rows = rows.where(wanted).select(*_OF_KAFKA)
        return None if rows.isEmpty() else rows

    def mark_applied(self, topic: str, records: pa.Table) -> None:
        """Marks records as applied. `records` has their partition, offset and timestamp, possibly with duplicates.
        Called after the table's commit: if the call is lost, the records are applied again, which changes nothing."""
        columns = ["partition", "offset", "timestamp"]
        distinct = records.select(columns).group_by(columns).aggregate([])
        named = self._session.createDataFrame(distinct).withColumn("topic", F.lit(topic))
        by_coordinates = " AND ".join(f"q.{name} = a.{name}" for name in ("topic", "partition", "offset"))
        with self._writing():
            merge = (
                DeltaTable.forPath(self._session, self.path)
                .alias("q")
                .merge(named.alias("a"), f"{by_coordinates} AND q.timestamp <=> a.timestamp")
            )
            merge.whenMatchedUpdate(set={"replayed_at": F.current_timestamp()}).execute()

    def end_before_rebuild(self, topic: str, first: Mapping[int, int], but: str) -> None:
        """Marks the topic's waiting records as applied, from the offsets `first` on (by partition), without those with
        the reason `but`. Called before the commit that empties their table: the rebuild reads them again from Kafka,
        and adds those that it rejects again. A replay of the others would bring back rows that were deleted after them,
        as the rebuilt table does not remember these deletes."""
        if not first or self.waiting(self._session, topic, (but,)) is None:
            return
        kept = F.lit(False)
        for partition, offset in first.items():
            kept = kept | ((F.col("partition") == partition) & (F.col("offset") >= offset))
        wanted = (F.col("topic") == topic) & F.col("replayed_at").isNull() & (F.col("reason") != but) & kept
        with self._writing():
            DeltaTable.forPath(self._session, self.path).update(wanted, {"replayed_at": F.current_timestamp()})

    @contextmanager
    def _writing(self) -> Iterator[None]:
        with self.lock:
            try:
                yield
            except Exception as error:
                fault = classify(error)
                message = f"the quarantine table can't be written: {fault.message}"
                is_busy = isinstance(error, ConcurrentChange)  # it is no sign of a second driver for this config
                fix = "if it lasts, find out which other job writes to it all the time" if is_busy else fault.fix
                raise type(fault)(fault.code, message, fix) from error
            finally:
                self.writes += 1

    def _ensure(self) -> None:
        schema = _parse_datatype_string(_SCHEMA)
        assert isinstance(schema, StructType)
        table = DeltaTable.createIfNotExists(self._session).location(self.path).addColumns(schema)
        table.property(*CHECKPOINTED).execute()
