"""Remembered deletes: for keys that are gone, the position at which they went.

A row that was deleted leaves nothing in the table, so an older change that arrives after the delete (sent again, or
late from another partition) could bring it back. The deletes of a slice are therefore written down before the slice is
committed: what they say is true whether or not the commit comes about. They are read only for a slice that has records
which are not newer than all that the table has seen.

Plain Parquet files, one directory a day: nothing is ever changed, so that a log of commits would only cost time.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date, timedelta
from pathlib import Path
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType, _parse_datatype_string

from distributary.launch.classes import HADOOP_PATH, java_class
from distributary.merge.log import local_path
from distributary.merge.position_sql import is_later
from distributary.merge.values import VALS, WAITS

REMEMBERED_DAYS = 30
GONE = "pos IS NOT NULL AND (w.kind = 'd' OR if_there OR (wiped AND w IS NULL))"
"""BOOLEAN: a folded key ends deleted, see fold.folded; or perhaps, at a delete up to which all is known of it."""
_DAY = "deleted_on"
_MANY_FILES = 4  # of a day
_OF_CHANGES = "kind STRING, tx STRING"
_OF_UPSERT = f"reads STRING, departure STRING, vals {VALS}, waits {WAITS}"


class RememberedDeletes:
    """The deletes of one table, in the directory `path`.

    Columns: the key as k0, k1 …; position STRING; reads STRING, the snapshot rows that were taken in for the key
    (PostgreSQL); and for a row that left its key for another one the departure's id with the row's last values (see
    values.py); deleted_on DATE.
    """

    def __init__(self, session: SparkSession, path: str) -> None:
        self._session = session
        self.path = path
        self._folder = java_class(session, HADOOP_PATH)(path)
        self._files = self._folder.getFileSystem(session._jsparkSession.sessionState().newHadoopConf())

    def forget_old(self, today: date) -> None:
        """Drops what is older than REMEMBERED_DAYS: whole directories."""
        if not self._exists():
            return
        before = f"{_DAY}={today - timedelta(days=REMEMBERED_DAYS)}"
        for status in self._files.listStatus(self._folder):
            if f"{_DAY}=" <= status.getPath().getName() < before:
                self._files.delete(status.getPath(), True)

    def gather(self, key: Mapping[str, str], *, of_changes: bool) -> None:
        """Makes one file of each day's many. For the one writer of the table alone; another process that reads them at
        this moment has to read again. Cut short, some are there twice, as after a slice that is taken again.

        `of_changes`: what is remembered comes from remember_changes().
        """
        if not self._exists():
            return
        schema = _schema(key, _OF_CHANGES if of_changes else _OF_UPSERT)
        for folder in self._files.listStatus(self._folder):
            name = folder.getPath().getName()
            if not name.startswith(f"{_DAY}="):
                continue
            # Names that begin with an underscore are of files that are being written.
            found = [file.getPath() for file in self._files.listStatus(folder.getPath())]
            small = [path for path in found if path.getName().startswith("part-")]
            if len(small) > _MANY_FILES:
                rows = self._session.read.schema(schema).parquet(*(str(path.toString()) for path in small))
                self._add(rows, date.fromisoformat(name.removeprefix(f"{_DAY}=")))
                for path in small:
                    self._files.delete(path, False)

    def forget_all(self) -> None:
        """Drops everything: the table is filled anew from the start of its topic."""
        self._files.delete(self._folder, True)

    def remember(self, keys: DataFrame, today: date) -> None:
        """Adds the folded keys (see fold.folded) that end deleted; `reads_known` STRING beside them is optional."""
        reads = F.col("reads_known") if "reads_known" in keys.columns else F.lit(None).cast("string")
        gone = keys.where(GONE).select(
            "k.*",
            F.col("pos").alias("position"),
            reads.alias("reads"),
            F.lit(None).cast("string").alias("departure"),
            F.lit(None).cast(VALS).alias("vals"),
            F.lit(None).cast(WAITS).alias("waits"),
        )
        self._add(gone, today)

    def remember_rows(self, gone: pa.Table, today: date) -> None:
        """The same of rows that are in this process, without a Spark job: k0, k1 …, position, reads. Only where the
        lake lies on the local file system."""
        if not gone.num_rows:
            return
        folder = local_path(self._files, self._folder)
        assert folder is not None, "no directory of this machine"
        day = Path(folder) / f"{_DAY}={today}"
        day.mkdir(parents=True, exist_ok=True)
        name = f"part-{uuid4()}.parquet"
        pq.write_table(gone, day / f"_{name}")  # Spark reads no file whose name begins so
        (day / f"_{name}").replace(day / name)

    def remember_departures(self, departures: DataFrame, today: date) -> None:
        """Adds rows that left their key: k STRUCT, id STRING, pos STRING, vals MAP, waits MAP (see values.py)."""
        self._add(
            departures.select(
                "k.*",
                F.col("pos").alias("position"),
                F.lit(None).cast("string").alias("reads"),
                F.col("id").alias("departure"),
                "vals",
                "waits",
            ),
            today,
        )

    def remember_ghosts(self, ghosts: DataFrame, today: date) -> None:
        """Adds keys that the source no longer has (see ghosts.py): k0, k1 …, position STRING, reads STRING.

        The service may write here meanwhile, from another process. What a write has not committed yet lies in the
        directory that it writes to, and is removed with the first commit there: this one writes to the day's.
        """
        ghosts.coalesce(1).write.mode("append").parquet(f"{self.path}/{_DAY}={today}")

    def remember_changes(self, changes: DataFrame, today: date) -> None:
        """Adds deletes and truncates of a table that keeps every version: k0, k1 …, position, kind, tx STRING."""
        self._add(changes, today)

    def changes(self, key: Mapping[str, str]) -> DataFrame | None:
        """What remember_changes() was given; None where nothing was ever remembered."""
        return self._read(key, _OF_CHANGES) if self._exists() else None

    def _add(self, rows: DataFrame, today: date) -> None:
        rows.coalesce(1).withColumn(_DAY, F.lit(today)).write.mode("append").partitionBy(_DAY).parquet(self.path)

    def departures(self, key: Mapping[str, str]) -> DataFrame | None:
        """The remembered departures: id STRING, vals MAP, waits MAP; None where nothing was ever remembered."""
        if not self._exists():
            return None
        return self._read(key).where("departure IS NOT NULL").select(F.col("departure").alias("id"), "vals", "waits")

    def joined(self, keys: DataFrame, key: Mapping[str, str]) -> DataFrame:
        """The folded keys with gone ARRAY<STRING>, the positions of their deletes, and reads_gone STRING, the snapshot
        rows that were taken in before; both NULL where nothing is remembered of the key."""
        if not self._exists():
            nothing = F.lit(None).cast("array<string>").alias("gone"), F.lit(None).cast("string").alias("reads_gone")
            return keys.select("*", *nothing)
        names = [f"k{i}" for i in range(len(key))]
        remembered = (
            self._read(key)
            .groupBy(F.struct(*names).alias("gone_key"))
            .agg(F.collect_set("position").alias("gone"), F.concat_ws("#", F.collect_set("reads")).alias("reads_gone"))
        )
        return keys.join(remembered, F.col("k").eqNullSafe(F.col("gone_key")), "left").drop("gone_key")

    def _read(self, key: Mapping[str, str], beside: str = _OF_UPSERT) -> DataFrame:
        return self._session.read.schema(_schema(key, f"{beside}, {_DAY} DATE")).parquet(self.path)

    def _exists(self) -> bool:
        return bool(self._files.exists(self._folder))


def _schema(key: Mapping[str, str], beside: str) -> StructType:
    fields = ", ".join(f"k{i} {kind}" for i, kind in enumerate(key.values()))
    schema = _parse_datatype_string(f"{fields}, position STRING, {beside}")
    assert isinstance(schema, StructType)
    return schema


def deleted_after(connector: str, position: str) -> str:
    """BOOLEAN: some remembered delete of the key (`gone`, see joined) is newer than `position`. An equal one is not:
    it is the delete itself, when its slice is taken again, or what comes before a create in one step."""
    return f"coalesce(exists(gone, gone_ -> {is_later(connector, 'gone_', position)}), false)"


def newest_delete_after(connector: str, position: str) -> str:
    """STRING: the newest remembered delete of the key (`gone`, see joined) that is newer than `position`, or of all
    where that is NULL; NULL without one."""
    return f"array_max(filter(gone, gone_ -> {position} IS NULL OR {is_later(connector, 'gone_', position)}))"
