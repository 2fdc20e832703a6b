"""Compares a table with the live table of the source: first all rows, then the keys that differ once more.

The two can't be read at the same moment. Keys that differ are read again on both sides: if a change was in flight, they
are equal then. Rows of the lake that are newer than the read of the source are known by their position.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from distributary import sql
from distributary.config import Config
from distributary.consume.kafka_client import KafkaClient
from distributary.decode.renames import Renames
from distributary.errors import TableHalt, UsageError
from distributary.ingest.service_columns import service_columns_of
from distributary.ingest.tables import ConfiguredTable
from distributary.lake.table import LakeTable
from distributary.progress.record import Progress
from distributary.verify.comparison import Comparison, ComparisonSpec, value_struct
from distributary.verify.db2 import DB2
from distributary.verify.mysql import MYSQL
from distributary.verify.oracle import ORACLE
from distributary.verify.postgresql import POSTGRESQL
from distributary.verify.report import CHANGED_MEANWHILE, State, TableReport
from distributary.verify.source import ReadPoint, Source, SourceColumns, SourceTable
from distributary.verify.sqlserver import SQLSERVER
from distributary.verify.table_version import TableVersion

MAX_RECHECKED_KEYS = 1_000
"""If more keys differ, waiting does not help."""
_MAX_READS = 3
_PAUSE = 5.0  # seconds
_NOTHING = "CAST(array() AS ARRAY<STRING>)"
_EVENT = "CAST(NULL AS STRUCT<partition: INT, offset: BIGINT, position: STRING, op: STRING>)"
_SOURCES = (POSTGRESQL, MYSQL, SQLSERVER, ORACLE, DB2)


def pause() -> None:
    """Waits between two reads."""
    time.sleep(_PAUSE)


def source_of(dsn: str) -> Source:
    """The kind of database that a DSN names. Raises UsageError for an unsupported one."""
    scheme = dsn.partition("://")[0].lower() if "://" in dsn else "postgresql"
    for source in _SOURCES:
        if scheme in source.schemes:
            return source
    raise UsageError(
        "source-not-built",
        "--source-dsn supports only PostgreSQL, MySQL, MariaDB, SQL Server, Oracle and Db2",
        "begin the DSN with postgresql://, mysql://, mssql://, oracle:// or db2://; without --source-dsn the table is"
        " compared with its topic",
    )


@dataclass(frozen=True)
class _Attempt:
    compared: Comparison
    at: ReadPoint
    version: int
    progress: Progress


@dataclass(frozen=True)
class _SourceRows:
    """Rows that were read from the source's table, as texts."""

    table: SourceTable
    texts: DataFrame
    at: ReadPoint


class SourceCheck:
    """The comparison of one table with the source; `dsn` has been checked."""

    def __init__(
        self, config: Config, table: ConfiguredTable, session: SparkSession, kafka: KafkaClient, dsn: str
    ) -> None:
        self._config = config
        self._table = table
        self._session = session
        self._kafka = kafka
        self._dsn = dsn
        self._source = source_of(dsn)
        self._service_columns = service_columns_of(table.settings)
        self._renames = Renames(table.settings.rename)

    def report(self, empty: TableReport, limit: int) -> TableReport:
        """The report. Raises TableHalt if the table can't be compared, UsageError if the database does not answer."""
        table = self._table
        if table.settings.mode == "append":
            raise TableHalt(
                "append-has-no-rows",
                f"{table.name} is in mode: append: it has changes, and the source has rows",
                "leave --source-dsn out to compare with the topic",
            )
        if not str(self._session.sparkContext.master).startswith("local"):
            raise UsageError(
                "source-needs-local",
                "--source-dsn writes the source's rows to local files, which a cluster's executors can't read",
                "use a copy of the config with spark.master: local[*]",
            )
        self._head()  # its errors come before those of the database
        with (
            self._source.table(self._dsn, table.table.schema, table.table.table, self._renames) as source,
            tempfile.TemporaryDirectory(prefix="distributary-verify-") as folder,
        ):
            attempt = self._attempt(source, Path(folder) / "all", None)
            first, settled, reads = attempt, 0, 1
            while 0 < attempt.compared.counts.different <= MAX_RECHECKED_KEYS and reads < _MAX_READS:
                pause()
                again = self._attempt(source, Path(folder) / str(reads), attempt.compared.keys())
                settled += attempt.compared.counts.different - again.compared.counts.different
                attempt, reads = again, reads + 1
            counts = first.compared.counts
            not_checked = {**counts.not_checked, CHANGED_MEANWHILE: counts.not_checked[CHANGED_MEANWHILE] + settled}
            counts = replace(counts, faults=attempt.compared.counts.faults, not_checked=not_checked)
            return replace(
                empty,
                state=State.DIFFERENT if counts.different else State.EQUAL,
                compared_with="source",
                version=first.version,
                position=first.progress.position,
                counts=counts,
                differences=attempt.compared.differences(limit, None),
                notes=tuple(self._notes(first, source)),
            )

    def _head(self) -> tuple[int, Progress]:
        """The table's version and progress. Raises TableHalt if it is empty or from another kind of source."""
        head = LakeTable(self._session, self._table.path, self._service_columns).head()
        if head is None or head.progress is None or head.progress.is_new:
            raise TableHalt("nothing-taken-in", f"{self._table.name} has applied nothing yet", "run the service first")
        if head.progress.connector not in self._source.connectors:
            raise TableHalt(
                "source-of-another-kind",
                f"{self._table.name} is not from {self._source.name}, which --source-dsn names"
                f" (its connector: {head.progress.connector})",
                "name the database that the connector reads; SQL Server, Db2 and Oracle are not supported",
            )
        return head.version, head.progress

    def _attempt(self, source: SourceTable, folder: Path, keys: DataFrame | None) -> _Attempt:
        version, progress = self._head()
        lake = TableVersion(self._session, self._table.path, self._service_columns, version)
        columns = lake.columns()
        key = progress.key
        source_columns = self._columns(source, columns, key)
        folder.mkdir()
        if keys is None:
            at = source.read(source_columns.types, folder)
        else:
            texts = keys.select(*(F.col(f"k.k{i}").cast("string") for i in range(len(key)))).collect()
            at = source.read_keys(source_columns.types, key, [list(row) for row in texts], folder)
        rows = lake.rows()
        if self._table.settings.mode == "history":
            rows = rows.where("__current")
        elif "__deleted" in rows.columns:
            rows = rows.where("NOT coalesce(__deleted, false)")
        read = _SourceRows(source, lake.session.read.parquet(str(folder)), at)
        compared = self._compare(rows, read, columns, source_columns, key, keys)
        return _Attempt(compared, at, version, progress)

    def _columns(self, source: SourceTable, columns: Mapping[str, str], key: tuple[str, ...]) -> SourceColumns:
        source_columns = source.comparable(columns, self._renames.all_of(self._table.settings.mask))
        if lacking := [
            name for name in key if name not in source_columns.types or not source.is_key(name, columns[name])
        ]:
            raise TableHalt(
                "key-not-comparable",
                f"{self._table.name}: the key column {lacking[0]} can't be compared with the source's"
                f" ({source_columns.left_out.get(lacking[0], source_columns.types.get(lacking[0]))})",
                "leave --source-dsn out to compare with the topic",
            )
        return source_columns

    def _compare(
        self,
        rows: DataFrame,
        read: _SourceRows,
        columns: Mapping[str, str],
        source_columns: SourceColumns,
        key: tuple[str, ...],
        keys: DataFrame | None,
    ) -> Comparison:
        index = {name: i for i, name in enumerate(source_columns.types)}
        typed = {name: read.table.value(name, f"c{i}", columns[name]) for name, i in index.items()}
        values = [name for name in source_columns.types if name not in key]
        lost = ", ".join(
            f"CASE WHEN c{index[name]} IS NOT NULL AND {typed[name]} IS NULL THEN {sql.text(name)} END"
            for name in values
        )
        expected = read.texts.select(
            F.struct(*(F.expr(typed[name]).alias(f"k{i}") for i, name in enumerate(key))).alias("k"),
            F.lit(1).alias("times"),
            value_struct([F.expr(typed[name]) for name in values]).alias("v"),
            F.expr(_EVENT).alias("event"),
            F.expr(f"array_compact(array({lost}))" if lost else _NOTHING).alias("unknown_columns"),
            F.lit(False).alias("orphaned"),
        )
        as_compared = {
            name: F.expr(read.table.lake_value(name, sql.name(name), columns[name])) for name in source_columns.types
        }
        of_key = F.struct(*(as_compared[n].cast(columns[n]).alias(f"k{i}") for i, n in enumerate(key)))
        lake = rows.select(
            of_key.alias("k"),
            value_struct([as_compared[name] for name in values]).alias("v"),
            F.expr(
                "named_struct('partition', __partition, 'offset', __offset, 'position', __position, 'op', __op)"
            ).alias("origin"),
            F.lit(False).alias("deleted"),
        )
        if keys is not None:
            # The source's collation may treat keys as equal that the lake does not, such as letters in another case.
            expected, lake = (side.join(F.broadcast(keys), "k", "left_semi") for side in (expected, lake))
        later = lake.where(read.at.is_later("origin.position"))
        suspects = later.select("k", F.lit(CHANGED_MEANWHILE).alias("why"))
        spec = ComparisonSpec(key, {name: columns[name] for name in values}, None, skips_unknown=True)
        return Comparison(spec, expected, lake, suspects)

    def _notes(self, attempt: _Attempt, source: SourceTable) -> list[str]:
        notes = [f"the source was read at {attempt.at.description}"]
        topic = self._kafka.topics([self._table.topic]).get(self._table.topic)
        ends = self._kafka.latest(topic) if topic is not None else {}
        behind = sum(max(0, end - attempt.progress.next.get(p, 0)) for p, end in ends.items())
        if behind:
            notes.append(f"the topic had {behind:,} records that were not applied yet: their keys may differ")
        lake = TableVersion(self._session, self._table.path, self._service_columns, attempt.version)
        left_out = source.comparable(lake.columns(), self._renames.all_of(self._table.settings.mask)).left_out
        notes += [f"the column {name} is not compared: {why}" for name, why in left_out.items()]
        return notes
