"""One Delta table: made, given columns, and committed to, always by one session of its own."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cache

from delta.tables import DeltaMergeBuilder, DeltaTable, DeltaTableBuilder
from py4j.protocol import Py4JJavaError
from pyspark.errors import IllegalArgumentException, PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructField, StructType, _parse_datatype_string

from distributary import sql
from distributary.config.table import Engine
from distributary.launch.classes import DELTA_LOG, HADOOP_PATH, java_class
from distributary.launch.memory import beside_java, java_heap, machine_memory
from distributary.merge.choice import times
from distributary.merge.direct import DirectTable, NotByLibrary, commit_lost
from distributary.merge.layout import Layout, LayoutChanges, changes, check_layout, refused
from distributary.merge.log import DeltaLog, log_of_spark
from distributary.merge.progress import APP_ID, Head, Progress
from distributary.merge.row_size import expect_rows_of, most_rows

Write = Callable[[Head, Progress], object]
"""Commits to a table on the version of the head, with the progress; to be run once by LakeTable.commit."""

# Seconds after which the table's record is written anew before commits without one come over it. Delta's log keeps a
# day at least, as the config refuses less.
_RECORD_IS_OLD = 12 * 3600
_USER_METADATA = "spark.databricks.delta.commitInfo.userMetadata"
_TXN_APP_ID = "spark.databricks.delta.write.txnAppId"
_TXN_VERSION = "spark.databricks.delta.write.txnVersion"
# For a slice of a few records planning and compiling is all the cost: no code is generated, no task looks for what its
# expressions have in common, one task a stage. The same made Spark's MERGE into a table of 400,000 rows take most of a
# minute.
SMALL_SLICE = 5_000
SMALL_SETTINGS = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.subexpressionElimination.enabled": "false",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.shuffle.partitions": "1",
}
# Characters that a Parquet column name can't have: such a table needs Delta's column mapping.
_NEEDS_MAPPING = set(" ,;{}()\n\t=")
_MAPPING = {"delta.columnMapping.mode": "name", "delta.minReaderVersion": "2", "delta.minWriterVersion": "5"}
# Delta's and Spark's names of reasons stand in front of their messages. Another writer that was faster is no refusal.
_CONDITION = re.compile(r"\[((?:DELTA_(?!CONCURRENT|METADATA_CHANGED|PROTOCOL_CHANGED)|UNSUPPORTED_TABLE_)[A-Z0-9_]+)")


_ANY = Layout()


class LakeTable:
    """A table of the lake at `path`; `service_columns` are those it has beside the source's, name to Spark type.
    `direct` commits to it without Spark; None where that can't be, or is not wanted (see TableSettings.commit).
    `layout` is what the config wants of its properties and files.

    It keeps a session of its own: Delta takes a commit's metadata from the session's settings, which threads of one
    session share.
    """

    def __init__(
        self,
        session: SparkSession,
        path: str,
        service_columns: Mapping[str, str],
        fixed: Collection[str] = (),
        commit: Engine = "spark",
        layout: Layout = _ANY,
    ) -> None:
        self._layout = layout
        self._service_columns = service_columns
        self.session = session.newSession()
        self.path = path
        self._usual = {key: str(self.session.conf.get(key)) for key in SMALL_SETTINGS if key not in fixed}
        self._most_rows = most_rows(self.session)
        self._is_large = False
        self._log = DeltaLog(self.session, path)
        here = self._log.local_path()
        codec = str(self.session.conf.get("spark.sql.parquet.compression.codec"))
        self.direct = None
        if here is not None and commit != "spark":
            # Where there are executors, what is large is theirs.
            alone = str(self.session.sparkContext.master).startswith("local")
            self.direct = DirectTable(here, codec, _times(java_heap(self.session)) if alone else 1)

    def suit(self, records: int, rows: int = 0, row_bytes: float = 0) -> None:
        """Suits the session to a slice of so many records: a small one is over before compiled code would pay. `rows`:
        how many the table has at most; what reads a large one suits the session to that. `row_bytes`: about how large
        they are, where they may be large."""
        self._is_large = rows > SMALL_SLICE
        self._set(SMALL_SETTINGS if records <= SMALL_SLICE else self._usual)
        expect_rows_of(self.session, row_bytes, self._most_rows)

    def _suit_table(self) -> None:
        if self._is_large:
            self._set(self._usual)

    def _set(self, settings: Mapping[str, str]) -> None:
        for key in self._usual:
            self.session.conf.set(key, settings[key])

    def head(self, known: Head | None = None) -> Head | None:
        """Where the table is now; `known` spares reading what was read before."""
        return self._log.since(known) if known and self._log.exists() else self._log.head()

    def exists(self) -> bool:
        """Whether the table was made."""
        return self._log.exists()

    def columns(self) -> dict[str, str]:
        """The source's columns: name to Spark type."""
        return {n: t for n, t in self._schema().items() if n not in self._service_columns}

    def _schema(self) -> dict[str, str]:
        return {f.name: f.dataType.simpleString() for f in self._frame().schema.fields}

    def create(self, columns: Mapping[str, str]) -> None:
        """Makes an empty table with the source's columns and the service's own, in the place of a cleared one where
        there is one (see clear()). Raises TableHalt where it can't be laid out as the config wants."""
        check_layout(self._layout, {**columns, **self._service_columns}, self.path)
        self._make(DeltaTable.replace if self.exists() else DeltaTable.create, columns, self._layout)

    def _make(
        self, make: Callable[[SparkSession], DeltaTableBuilder], columns: Mapping[str, str], layout: Layout
    ) -> None:
        builder = make(self.session).location(self.path)
        builder = builder.addColumns(_struct({**columns, **self._service_columns}))
        builder = builder.property("delta.feature.timestampNtz", "supported")
        for key, value in {**layout.at_first, **(_MAPPING if _needs_mapping(columns) else {})}.items():
            builder = builder.property(key, value)
        if layout.partition_by:
            builder = builder.partitionedBy(*layout.partition_by)
        if layout.cluster_by:
            builder = builder.clusterBy(*layout.cluster_by)
        with _refusing(layout.properties, [*layout.partition_by, *(layout.cluster_by or ())]):
            builder.execute()

    def lacks(self) -> LayoutChanges:
        """What the config wants and the table, which is there, lacks. Raises TableHalt where it can't be."""
        check_layout(self._layout, self._schema(), self.path)
        return changes(self._layout, self._laid_out())

    def lay_out(self, lacks: LayoutChanges) -> None:
        """Sets it. Raises TableHalt where Delta refuses it."""
        with _refusing(lacks.properties, lacks.cluster_by or ()):
            if lacks.properties:
                self._set_properties(lacks.properties)
            if lacks.cluster_by:
                names = ", ".join(map(_quoted, lacks.cluster_by))
                self.session.sql(f"ALTER TABLE {self._name()} CLUSTER BY ({names})")

    def _laid_out(self) -> Layout:
        """How the table is."""
        found = self.delta().detail().select("properties", "partitionColumns", "clusteringColumns", "tableFeatures")
        row = found.collect()[0]
        return Layout(
            row["properties"], tuple(row["partitionColumns"]), tuple(row["clusteringColumns"]), row["tableFeatures"]
        )

    def _set_properties(self, properties: Mapping[str, str]) -> None:
        given = ", ".join(f"{sql.text(key)} = {sql.text(value)}" for key, value in properties.items())
        self.session.sql(f"ALTER TABLE {self._name()} SET TBLPROPERTIES ({given})")

    def add_columns(self, columns: Mapping[str, str]) -> None:
        """Adds columns that the source got; older rows have NULL in them."""
        if _needs_mapping(columns):
            self._set_properties(_MAPPING)
        new = ", ".join(f"{_quoted(name)} {kind}" for name, kind in columns.items())
        self.session.sql(f"ALTER TABLE {self._name()} ADD COLUMNS ({new})")

    def widen_columns(self, columns: Mapping[str, str]) -> None:
        """Gives columns wider types; files written before are read as these. Cut short, it is done again by the next.

        From then on the table has Delta's feature for that, which fewer readers know, and which the deltalake library
        does not write.
        """
        self._set_properties({"delta.enableTypeWidening": "true"})
        for name, kind in columns.items():
            self.session.sql(f"ALTER TABLE {self._name()} ALTER COLUMN {_quoted(name)} TYPE {kind}")

    def _name(self) -> str:
        return f"delta.{_quoted(self.path)}"

    def rows(self) -> DataFrame:
        """All rows, the service's columns included."""
        self._suit_table()
        return self._frame()

    def _frame(self) -> DataFrame:
        return self.session.read.format("delta").load(self.path)

    def delta(self) -> DeltaTable:
        """Delta's handle on the table."""
        self._suit_table()
        return DeltaTable.forPath(self.session, self.path)

    def append(self, rows: DataFrame) -> Write:
        """A write that adds rows."""
        return lambda _head, _progress: rows.write.format("delta").mode("append").save(self.path)

    @staticmethod
    def merge(merge: DeltaMergeBuilder) -> Write:
        """A write that merges."""
        return lambda _head, _progress: merge.execute()

    def nothing(self) -> Write:
        """A write that changes no row: only the progress moves."""

        def run(head: Head, progress: Progress) -> None:
            if self.direct is not None and self.direct.why_not(head) is None:
                with suppress(NotByLibrary):
                    self.direct.nothing(head, progress)
                    return
            empty = self.session.createDataFrame([], _struct(self._schema()))
            self.append(empty)(head, progress)

        return run

    def clear(self) -> Write:
        """A write that takes all rows and the source's columns away."""
        return lambda _head, _progress: self._make(DeltaTable.replace, {}, _ANY)

    def commit(self, head: Head, progress: Progress, write: Write) -> Head:
        """Runs `write` so that its commit carries `progress`; gives the new head.

        Raises TransientError when another writer's commit got in between or Delta skipped the write: nothing of it is
        in the table then, and the caller starts over from the table's own record.
        """
        with self._carrying(progress):
            write(head, progress)
        now = self._log.since(head)
        if now is None or now.progress is None or now.progress.commit != progress.commit:
            raise commit_lost(self.path)
        if self.direct is not None and self.direct.checkpoint_due(now.version) and not self.direct.checkpoint(now):
            self._checkpoint()
        return now

    def renewed(self, head: Head | None) -> Head | None:
        """The head, where there is one; with a commit for the record alone where its own is so old that Delta may clean
        it up once another commit without a record lies over it (OPTIMIZE, ALTER). Raises what commit() raises."""
        if head is None or head.progress is None:
            return head
        written = head.written.at if head.written else None
        if written is not None and time.time() - written <= _RECORD_IS_OLD:
            return head
        return self.commit(head, head.progress.next_commit(), self.nothing())

    def _checkpoint(self) -> None:
        """Writes a checkpoint of the log as Spark's own commits do, and removes what is old in it."""
        with suppress(Py4JJavaError, PySparkException):  # the commit stands, and the next one tries again
            log, snapshot = log_of_spark(self.session, self.path)
            log.checkpoint(snapshot, java_class(self.session, "scala.Option").empty())
        self.leave()

    def leave(self) -> None:
        """Has Spark forget the table's state where it is asked for it seldom, as this process commits the slices.

        Delta keeps it for an hour, some 3 MB and a shuffle's files for each table that it has compacted.
        """
        if self.direct is not None:
            place = java_class(self.session, HADOOP_PATH)(self.path)
            java_class(self.session, DELTA_LOG).invalidateCache(self.session._jsparkSession, place)

    @contextmanager
    def _carrying(self, progress: Progress) -> Iterator[None]:
        settings = {
            _USER_METADATA: progress.to_json(),
            _TXN_APP_ID: APP_ID,
            _TXN_VERSION: str(progress.sequence),
        }
        for key, value in settings.items():
            self.session.conf.set(key, value)
        try:
            yield
        finally:
            for key in settings:
                self.session.conf.unset(key)


@cache
def _times(heap: int) -> int:
    """See choice.times. Once for all tables: later Java has filled more of its heap, and less memory is free."""
    return times(heap, beside_java(heap, machine_memory()))


@contextmanager
def _refusing(properties: Mapping[str, str], columns: Collection[str]) -> Iterator[None]:
    """Where Delta refuses what the config asks for, TableHalt says so."""
    try:
        yield
    except (Py4JJavaError, PySparkException) as error:
        found = _CONDITION.search(str(error))
        reason = (
            found[1] if found else "a value that it can't read" if isinstance(error, IllegalArgumentException) else None
        )
        if reason is None or not (properties or columns):
            raise
        raise refused(properties, list(columns), reason) from error


def _needs_mapping(columns: Mapping[str, str]) -> bool:
    return any(_NEEDS_MAPPING & set(name) for name in columns) or any("`" in kind for kind in columns.values())


def _struct(columns: Mapping[str, str]) -> StructType:
    return StructType([StructField(name, _parse_datatype_string(kind)) for name, kind in columns.items()])


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"
