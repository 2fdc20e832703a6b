"""One Delta table: made, given columns, and committed to, always by one session of its own."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager

from delta.tables import DeltaMergeBuilder, DeltaTable, DeltaTableBuilder
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructField, StructType, _parse_datatype_string

from distributary.errors import TransientError
from distributary.merge.log import DeltaLog
from distributary.merge.progress import APP_ID, Head, Progress

_USER_METADATA = "spark.databricks.delta.commitInfo.userMetadata"
_TXN_APP_ID = "spark.databricks.delta.write.txnAppId"
_TXN_VERSION = "spark.databricks.delta.write.txnVersion"
# For a slice of a few records planning and compiling is all the cost: no code is generated, one task a stage.
SMALL_SLICE = 20_000
_SMALL_SETTINGS = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.shuffle.partitions": "1",
}
# Characters that a Parquet column name can't have: such a table needs Delta's column mapping.
_NEEDS_MAPPING = set(" ,;{}()\n\t=")
_MAPPING = {"delta.columnMapping.mode": "name", "delta.minReaderVersion": "2", "delta.minWriterVersion": "5"}


class LakeTable:
    """A table of the lake at `path`; `service_columns` are those it has beside the source's, name to Spark type.

    It keeps a session of its own: Delta takes a commit's metadata from the session's settings, which threads of one
    session share.
    """

    def __init__(
        self, session: SparkSession, path: str, service_columns: Mapping[str, str], fixed: Collection[str] = ()
    ) -> None:
        self._service_columns = service_columns
        self.session = session.newSession()
        self.path = path
        self._usual = {key: str(self.session.conf.get(key)) for key in _SMALL_SETTINGS if key not in fixed}
        self._log = DeltaLog(self.session, path)

    def suit(self, records: int) -> None:
        """Suits the session to a slice of so many records: a small one is over before compiled code would pay."""
        settings = _SMALL_SETTINGS if records <= SMALL_SLICE else self._usual
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
        fields = self.session.read.format("delta").load(self.path).schema.fields
        return {f.name: f.dataType.simpleString() for f in fields}

    def create(self, columns: Mapping[str, str]) -> None:
        """Makes an empty table with the source's columns and the service's own, in the place of a cleared one where
        there is one (see clear())."""
        self._make(DeltaTable.replace if self.exists() else DeltaTable.create, columns)

    def _make(self, make: Callable[[SparkSession], DeltaTableBuilder], columns: Mapping[str, str]) -> None:
        builder = make(self.session).location(self.path)
        builder = builder.addColumns(_struct({**columns, **self._service_columns}))
        builder = builder.property("delta.feature.timestampNtz", "supported")
        if _needs_mapping(columns):
            for key, value in _MAPPING.items():
                builder = builder.property(key, value)
        builder.execute()

    def add_columns(self, columns: Mapping[str, str]) -> None:
        """Adds columns that the source got; older rows have NULL in them."""
        if _needs_mapping(columns):
            properties = ", ".join(f"'{k}' = '{v}'" for k, v in _MAPPING.items())
            self.session.sql(f"ALTER TABLE {self._name()} SET TBLPROPERTIES ({properties})")
        new = ", ".join(f"{_quoted(name)} {kind}" for name, kind in columns.items())
        self.session.sql(f"ALTER TABLE {self._name()} ADD COLUMNS ({new})")

    def _name(self) -> str:
        return f"delta.{_quoted(self.path)}"

    def rows(self) -> DataFrame:
        """All rows, the service's columns included."""
        return self.session.read.format("delta").load(self.path)

    def delta(self) -> DeltaTable:
        """Delta's handle on the table."""
        return DeltaTable.forPath(self.session, self.path)

    def append(self, rows: DataFrame) -> Callable[[], None]:
        """A write that adds rows, to be run by commit()."""
        return lambda: rows.write.format("delta").mode("append").save(self.path)

    @staticmethod
    def merge(merge: DeltaMergeBuilder) -> Callable[[], None]:
        """A write that merges, to be run by commit()."""

        def run() -> None:
            merge.execute()

        return run

    def clear(self) -> Callable[[], None]:
        """A write that takes all rows and the source's columns away, to be run by commit()."""
        return lambda: self._make(DeltaTable.replace, {})

    def nothing(self) -> Callable[[], None]:
        """A write that changes no row: only the progress moves."""
        empty = self.session.createDataFrame([], _struct(self._schema()))
        return self.append(empty)

    def commit(self, head: Head, progress: Progress, write: Callable[[], object]) -> Head:
        """Runs `write` so that its commit carries `progress`; gives the new head.

        Raises TransientError when another writer's commit got in between or Delta skipped the write: nothing of it is
        in the table then, and the caller starts over from the table's own record.
        """
        with self._carrying(progress):
            write()
        now = self._log.since(head)
        if now.progress is None or now.progress.commit != progress.commit:
            raise TransientError(
                "commit-lost",
                f"the commit to {self.path} did not come about: another driver was faster",
                "run one driver per config",
            )
        return now

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


def _needs_mapping(columns: Mapping[str, str]) -> bool:
    return any(_NEEDS_MAPPING & set(name) for name in columns) or any("`" in kind for kind in columns.values())


def _struct(columns: Mapping[str, str]) -> StructType:
    return StructType([StructField(name, _parse_datatype_string(kind)) for name, kind in columns.items()])


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"
