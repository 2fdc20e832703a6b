"""Compares a table with the live table of the source: all rows first, then once more those that differ.

The two are never looked at in one moment. So keys that differ are looked at again, on both sides: where a change was
on its way they are equal then. What the lake has from after the source was read tells by its position.
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
from distributary.consume.broker import Broker
from distributary.decode.renames import Renames
from distributary.errors import TableHalt, UsageError
from distributary.ingest.batch_writer import service_columns_of
from distributary.ingest.tables import ConfiguredTable
from distributary.lake.table import LakeTable
from distributary.progress.record import Progress
from distributary.verify.comparison import Compared, Comparing, side
from distributary.verify.mysql import MYSQL
from distributary.verify.postgresql import POSTGRESQL
from distributary.verify.report import MOVING, State, TableReport
from distributary.verify.source import ReadAt, Source, SourceColumns, SourceTable
from distributary.verify.table_version import FrozenTable

LOOKED_AT_AGAIN = 1_000
"""Where more keys differ, waiting would not help."""
_LOOKS = 3
_PAUSE = 5.0  # seconds
_NOTHING = "CAST(array() AS ARRAY<STRING>)"
_EVENT = "CAST(NULL AS STRUCT<partition: INT, offset: BIGINT, position: STRING, op: STRING>)"
_SOURCES = (POSTGRESQL, MYSQL)


def pause() -> None:
    """Lets some time pass between two looks."""
    time.sleep(_PAUSE)


def source_of(dsn: str) -> Source:
    """The kind of database that a DSN names. Raises UsageError for one that can't be compared with."""
    scheme = dsn.partition("://")[0].lower() if "://" in dsn else "postgresql"
    for source in _SOURCES:
        if scheme in source.schemes:
            return source
    raise UsageError(
        "source-not-built",
        "--source-dsn compares with PostgreSQL, MySQL and MariaDB alone in this version",
        "leave --source-dsn out to compare with the topic",
    )


@dataclass(frozen=True)
class _Look:
    compared: Compared
    at: ReadAt
    version: int
    progress: Progress


@dataclass(frozen=True)
class _Read:
    """What was read of the source's table."""

    table: SourceTable
    texts: DataFrame
    at: ReadAt


class SourceCheck:
    """The comparison of one table with the source; `dsn` has been checked."""

    def __init__(self, config: Config, one: ConfiguredTable, session: SparkSession, broker: Broker, dsn: str) -> None:
        self._config = config
        self._one = one
        self._session = session
        self._broker = broker
        self._dsn = dsn
        self._source = source_of(dsn)
        self._service_columns = service_columns_of(one.settings)
        self._renames = Renames(one.settings.rename)

    def report(self, empty: TableReport, limit: int) -> TableReport:
        """What comes out. Raises TableHalt where nothing can, UsageError where the database does not answer."""
        one = self._one
        if one.settings.mode == "append":
            raise TableHalt(
                "append-has-no-rows",
                f"{one.name} is kept in mode: append: it has changes, and the source has rows",
                "leave --source-dsn out to compare with the topic",
            )
        if not str(self._session.sparkContext.master).startswith("local"):
            raise UsageError(
                "source-needs-local",
                "--source-dsn keeps the source's rows in files of this machine, which a cluster's executors can't read",
                "set spark.master to local[*] in a config for this",
            )
        self._head()  # before the database is asked
        with (
            self._source.table(self._dsn, one.table.schema, one.table.table, self._renames) as table,
            tempfile.TemporaryDirectory(prefix="distributary-verify-") as folder,
        ):
            look = self._look(table, Path(folder) / "all", None)
            first, moved, looks = look, 0, 1
            while 0 < look.compared.counts.different <= LOOKED_AT_AGAIN and looks < _LOOKS:
                pause()
                again = self._look(table, Path(folder) / str(looks), look.compared.keys())
                moved += look.compared.counts.different - again.compared.counts.different
                look, looks = again, looks + 1
            counts = first.compared.counts
            not_checked = {**counts.not_checked, MOVING: counts.not_checked[MOVING] + moved}
            counts = replace(counts, faults=look.compared.counts.faults, not_checked=not_checked)
            return replace(
                empty,
                state=State.DIFFERENT if counts.different else State.EQUAL,
                compared_with="source",
                version=first.version,
                position=first.progress.position,
                counts=counts,
                differences=look.compared.differences(limit, None),
                notes=tuple(self._notes(first, table)),
            )

    def _head(self) -> tuple[int, Progress]:
        """The table's version and progress. Raises TableHalt where what it has is not of this kind of source."""
        head = LakeTable(self._session, self._one.path, self._service_columns).head()
        if head is None or head.progress is None or head.progress.is_new:
            raise TableHalt("nothing-taken-in", f"{self._one.name} has applied nothing yet", "run the service first")
        if head.progress.connector not in self._source.connectors:
            raise TableHalt(
                "source-of-another-kind",
                f"{self._one.name} is not from {self._source.name}, which --source-dsn names"
                f" (its connector: {head.progress.connector})",
                "name the database that the connector reads; SQL Server, Db2 and Oracle can't be compared with",
            )
        return head.version, head.progress

    def _look(self, table: SourceTable, folder: Path, keys: DataFrame | None) -> _Look:
        version, progress = self._head()
        lake = FrozenTable(self._session, self._one.path, self._service_columns, version)
        columns = lake.columns()
        key = progress.key
        found = self._columns(table, columns, key)
        folder.mkdir()
        if keys is None:
            at = table.read(found.types, folder)
        else:
            texts = keys.select(*(F.col(f"k.k{i}").cast("string") for i in range(len(key)))).collect()
            at = table.read_keys(found.types, key, [list(row) for row in texts], folder)
        rows = lake.rows()
        if self._one.settings.mode == "history":
            rows = rows.where("__current")
        elif "__deleted" in rows.columns:
            rows = rows.where("NOT coalesce(__deleted, false)")
        read = _Read(table, lake.session.read.parquet(str(folder)), at)
        compared = self._compared(rows, read, columns, found, key, keys)
        return _Look(compared, at, version, progress)

    def _columns(self, table: SourceTable, columns: Mapping[str, str], key: tuple[str, ...]) -> SourceColumns:
        found = table.comparable(columns, self._renames.all_of(self._one.settings.mask))
        if lacking := [name for name in key if name not in found.types or not table.is_key(name, columns[name])]:
            raise TableHalt(
                "key-not-comparable",
                f"{self._one.name}: the key column {lacking[0]} can't be compared with the source's"
                f" ({found.left_out.get(lacking[0], found.types.get(lacking[0]))})",
                "leave --source-dsn out to compare with the topic",
            )
        return found

    def _compared(
        self,
        rows: DataFrame,
        read: _Read,
        columns: Mapping[str, str],
        found: SourceColumns,
        key: tuple[str, ...],
        keys: DataFrame | None,
    ) -> Compared:
        place = {name: i for i, name in enumerate(found.types)}
        typed = {name: read.table.value(name, f"c{i}", columns[name]) for name, i in place.items()}
        values = [name for name in found.types if name not in key]
        lost = ", ".join(
            f"CASE WHEN c{place[name]} IS NOT NULL AND {typed[name]} IS NULL THEN {sql.text(name)} END"
            for name in values
        )
        source = read.texts.select(
            F.struct(*(F.expr(typed[name]).alias(f"k{i}") for i, name in enumerate(key))).alias("k"),
            F.lit(1).alias("times"),
            side([F.expr(typed[name]) for name in values]).alias("v"),
            F.expr(_EVENT).alias("event"),
            F.expr(f"array_compact(array({lost}))" if lost else _NOTHING).alias("open"),
            F.lit(False).alias("vague"),
            F.lit(False).alias("ghost"),
        )
        as_compared = {name: F.expr(read.table.lake_value(name, sql.name(name), columns[name])) for name in found.types}
        of_key = F.struct(*(as_compared[n].cast(columns[n]).alias(f"k{i}") for i, n in enumerate(key)))
        lake = rows.select(
            of_key.alias("k"),
            side([as_compared[name] for name in values]).alias("v"),
            F.expr(
                "named_struct('partition', __partition, 'offset', __offset, 'position', __position, 'op', __op)"
            ).alias("origin"),
            F.lit(False).alias("deleted"),
        )
        if keys is not None:
            # The source may take for one key what the lake does not: letters of another case.
            source, lake = (one.join(F.broadcast(keys), "k", "left_semi") for one in (source, lake))
        later = lake.where(read.at.is_before("origin.position"))
        suspects = later.select("k", F.lit(MOVING).alias("why"))
        how = Comparing(key, {name: columns[name] for name in values}, None, passes_open=True)
        return Compared(how, source, lake, suspects)

    def _notes(self, look: _Look, table: SourceTable) -> list[str]:
        notes = [f"the source was read at {look.at.told}"]
        topic = self._broker.topics([self._one.topic]).get(self._one.topic)
        ends = self._broker.latest(topic) if topic is not None else {}
        behind = sum(max(0, end - look.progress.next.get(p, 0)) for p, end in ends.items())
        if behind:
            notes.append(f"the topic has {behind:,} records that the table had not applied: their keys differ")
        lake = FrozenTable(self._session, self._one.path, self._service_columns, look.version)
        left_out = table.comparable(lake.columns(), self._renames.all_of(self._one.settings.mask)).left_out
        notes += [f"the column {name} is not compared: {why}" for name, why in left_out.items()]
        return notes
