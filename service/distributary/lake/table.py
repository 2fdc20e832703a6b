"""One Delta table: creates it, alters it and commits to it, always in a separate session."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager

from delta.tables import DeltaTable, DeltaTableBuilder
from py4j.protocol import Py4JJavaError
from pyspark.errors import IllegalArgumentException, PySparkException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from distributary import sql
from distributary.delta.commit import CommitPayload, concurrent_change
from distributary.delta.table_storage import table_files
from distributary.delta.transaction import USER_METADATA, DeltaCommitter
from distributary.lake.column_definitions import literal, needed_properties, struct, with_features
from distributary.lake.layout import Layout, LayoutChanges, changes, check_layout, refused
from distributary.lake.log import DeltaLog
from distributary.launch.classes import DELTA_LOG, HADOOP_PATH, java_class
from distributary.progress.record import APP_ID, Head, Progress

Write = Callable[[Head, Progress], object]
"""Commits to a table on the head's version, with the progress. LakeTable.commit runs it once."""

# Seconds after which the table's record is written again before a commit without one. Delta's log keeps at least a day,
# because the config refuses less.
_RECORD_IS_OLD = 12 * 3600
_TXN_APP_ID = "spark.databricks.delta.write.txnAppId"
_TXN_VERSION = "spark.databricks.delta.write.txnVersion"
# Delta's and Spark's error conditions are at the start of their messages. A conflict with another writer is no refusal.
_CONDITION = re.compile(r"\[((?:DELTA_(?!CONCURRENT|METADATA_CHANGED|PROTOCOL_CHANGED)|UNSUPPORTED_TABLE_)[A-Z0-9_]+)")


_ANY = Layout()


class LakeTable:
    """A table of the lake at `path`. `service_columns`: name to Spark type. `layout`: the layout that the config wants.

    Each table has its own session, because Delta takes a commit's metadata from the session's settings, and all threads
    of a session share these.
    """

    def __init__(
        self,
        session: SparkSession,
        path: str,
        service_columns: Mapping[str, str],
        layout: Layout = _ANY,
    ) -> None:
        self._layout = layout
        self._service_columns = service_columns
        self.session = session.newSession()
        self.path = path
        self._log = DeltaLog(self.session, path)

    def head(self, known: Head | None = None) -> Head | None:
        """The current head. `known`: an earlier head, which saves reading older commits."""
        return self._log.since(known) if known and self._log.exists() else self._log.head()

    def exists(self) -> bool:
        """Whether the table exists."""
        return self._log.exists()

    def columns(self) -> dict[str, str]:
        """The source's columns: name to Spark type."""
        return {n: t for n, t in self._schema().items() if n not in self._service_columns}

    def all_columns(self) -> dict[str, str]:
        """All columns, the service's own included."""
        return self._schema()

    def _schema(self) -> dict[str, str]:
        return {f.name: f.dataType.simpleString() for f in self._frame().schema.fields}

    def create(self, columns: Mapping[str, str]) -> None:
        """Creates an empty table with the source's and the service's columns; replaces an emptied one (see
        removing_all_rows()). Raises TableHalt if it can't have the wanted layout, TransientError if another driver has
        created it in the meantime: it may have rows already."""
        check_layout(self._layout, {**columns, **self._service_columns}, self.path)
        exists = self.exists()
        if exists and self.columns():
            raise concurrent_change(self.path, -1)
        try:
            self._build(DeltaTable.replace if exists else DeltaTable.create, columns, self._layout)
        except PySparkException as error:
            if not exists and self.exists():  # another driver was faster
                raise concurrent_change(self.path, -1) from error
            raise

    def _build(
        self, make: Callable[[SparkSession], DeltaTableBuilder], columns: Mapping[str, str], layout: Layout
    ) -> None:
        builder = make(self.session).location(self.path)
        builder = builder.addColumns(struct({**columns, **self._service_columns}))
        for key, value in with_features({**layout.initial_properties, **needed_properties(columns)}).items():
            builder = builder.property(key, value)
        if layout.partition_by:
            builder = builder.partitionedBy(*layout.partition_by)
        if layout.cluster_by:
            builder = builder.clusterBy(*layout.cluster_by)
        with _halting_on_refusal(layout.properties, [*layout.partition_by, *(layout.cluster_by or ())]):
            builder.execute()

    def layout_diff(self) -> LayoutChanges:
        """The layout changes that the existing table needs. Raises TableHalt if it can't have the wanted layout."""
        check_layout(self._layout, self._schema(), self.path)
        return changes(self._layout, self._current_layout())

    def apply_layout(self, diff: LayoutChanges) -> None:
        """Applies these changes. Raises TableHalt if Delta refuses them."""
        with _halting_on_refusal(diff.properties, diff.cluster_by or ()):
            if diff.properties:
                self._set_properties(diff.properties)
            if diff.cluster_by:
                names = ", ".join(map(sql.name, diff.cluster_by))
                self.session.sql(f"ALTER TABLE {self._name()} CLUSTER BY ({names})")

    def _current_layout(self) -> Layout:
        """The table's current layout."""
        detail = self.delta().detail().select("properties", "partitionColumns", "clusteringColumns", "tableFeatures")
        row = detail.collect()[0]
        return Layout(
            row["properties"], tuple(row["partitionColumns"]), tuple(row["clusteringColumns"]), row["tableFeatures"]
        )

    def _set_properties(self, properties: Mapping[str, str]) -> None:
        given = ", ".join(f"{sql.text(key)} = {sql.text(value)}" for key, value in with_features(properties).items())
        self.session.sql(f"ALTER TABLE {self._name()} SET TBLPROPERTIES ({given})")

    def add_columns(self, columns: Mapping[str, str]) -> None:
        """Adds columns; existing rows have NULL in them."""
        if needed := needed_properties(columns):
            self._set_properties(needed)
        new = ", ".join(f"{sql.name(name)} {kind}" for name, kind in columns.items())
        self.session.sql(f"ALTER TABLE {self._name()} ADD COLUMNS ({new})")

    def fill_nulls(self, column: str, value: str) -> None:
        """Writes a value (SQL) into a column wherever that is NULL."""
        self.session.sql(f"UPDATE {self._name()} SET {sql.name(column)} = {value} WHERE {sql.name(column)} IS NULL")

    def filling(self, values: Mapping[str, str]) -> Write:
        """A write that puts values, texts as in types.column_default, into columns of rows that have NULL there."""

        def run(head: Head, progress: Progress) -> None:
            kinds = self.columns()
            assignments: dict[str, str | Column] = {
                sql.name(name): F.expr(f"coalesce({sql.name(name)}, {literal(value, kinds[name])})")
                for name, value in values.items()
            }
            with self._with_progress(progress):
                self.delta().update(F.expr(" OR ".join(f"{name} IS NULL" for name in assignments)), assignments)
            now = self._log.since(head)
            if now is not None and (now.progress is None or now.progress.commit != progress.commit):
                self.empty_commit()(now, progress)  # no row had NULL, and Delta wrote nothing

        return run

    @contextmanager
    def tag_commits(self, name: str) -> Iterator[None]:
        """Has the commits that add columns or fill them have that text as their user metadata."""
        with self._with_settings({USER_METADATA: name}):
            yield

    def are_tagged(self, after: Head, until: Head, name: str) -> bool:
        """Whether all commits in between were made inside of tag_commits() of that name."""
        return self._log.are_tagged(after.version, until.version, name)

    def widen_columns(self, columns: Mapping[str, str]) -> None:
        """Gives columns wider types; existing files are read as these. If interrupted, the next call repeats it.

        The table then has Delta's type widening feature, which fewer readers support.
        """
        self._set_properties({"delta.enableTypeWidening": "true", **needed_properties(columns)})
        for name, kind in columns.items():
            self.session.sql(f"ALTER TABLE {self._name()} ALTER COLUMN {sql.name(name)} TYPE {kind}")

    def _name(self) -> str:
        return f"delta.{sql.name(self.path)}"

    def rows(self) -> DataFrame:
        """All rows, the service's columns included."""
        return self._frame()

    def _frame(self) -> DataFrame:
        return self.session.read.format("delta").load(self.path)

    def delta(self) -> DeltaTable:
        """Delta's handle on the table."""
        return DeltaTable.forPath(self.session, self.path)

    def empty_commit(self) -> Write:
        """A write that changes only the progress and no row."""

        def run(head: Head, progress: Progress) -> None:
            committer = DeltaCommitter(self.session, self.path, table_files(self.session, self.path))
            committer.commit(head.version, [], CommitPayload(progress.to_json(), APP_ID, progress.sequence))

        return run

    def removing_all_rows(self) -> Write:
        """A write that removes all rows and the source's columns."""

        def run(_head: Head, progress: Progress) -> None:
            with self._with_progress(progress):
                self._build(DeltaTable.replace, {}, _ANY)

        return run

    def commit(self, head: Head, progress: Progress, write: Write) -> Head:
        """Runs `write`, whose commit includes `progress`; returns the new head.

        Raises TransientError if another writer committed in between or Delta skipped the write: then nothing of it is
        in the table, and the caller continues from the table's own record.
        """
        write(head, progress)
        now = self._log.since(head)
        if now is None or now.progress is None or now.progress.commit != progress.commit:
            raise concurrent_change(self.path, head.version)
        return now

    def commit_record_if_old(self, head: Head | None) -> Head | None:
        """Writes the progress record again, in a separate commit, if it is so old that Delta's log cleanup may remove
        it after a commit without a record (OPTIMIZE, ALTER). Returns the head. Raises errors of commit()."""
        if head is None or head.progress is None:
            return head
        if head.at is not None and time.time() - head.at <= _RECORD_IS_OLD:
            return head
        return self.commit(head, head.progress.next_commit(), self.empty_commit())

    def release_cache(self) -> None:
        """Makes Spark drop its cached state of the table after a rare task such as a compaction.

        Otherwise Delta keeps it for an hour: some 3 MB and a shuffle's files for each compacted table.
        """
        place = java_class(self.session, HADOOP_PATH)(self.path)
        java_class(self.session, DELTA_LOG).invalidateCache(self.session._jsparkSession, place)

    @contextmanager
    def _with_progress(self, progress: Progress) -> Iterator[None]:
        """Adds the progress record to Spark's own commits."""
        settings = {
            USER_METADATA: progress.to_json(),
            _TXN_APP_ID: APP_ID,
            _TXN_VERSION: str(progress.sequence),
        }
        with self._with_settings(settings):
            yield

    @contextmanager
    def _with_settings(self, settings: Mapping[str, str]) -> Iterator[None]:
        for key, value in settings.items():
            self.session.conf.set(key, value)
        try:
            yield
        finally:
            for key in settings:
                self.session.conf.unset(key)


@contextmanager
def _halting_on_refusal(properties: Mapping[str, str], columns: Collection[str]) -> Iterator[None]:
    """Raises TableHalt if Delta refuses a setting of the config."""
    try:
        yield
    except (Py4JJavaError, PySparkException) as error:
        match = _CONDITION.search(str(error))
        reason = (
            match[1] if match else "a value that it can't read" if isinstance(error, IllegalArgumentException) else None
        )
        if reason is None or not (properties or columns):
            raise
        raise refused(properties, list(columns), reason) from error
