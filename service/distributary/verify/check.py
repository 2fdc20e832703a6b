"""Compares tables with their topics or their sources, one table after the other."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from tempfile import TemporaryDirectory

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from distributary import sql
from distributary.config import Config
from distributary.config.clients import system_properties
from distributary.consume.kafka_client import KafkaClient, Topic
from distributary.consume.offsets import OffsetRange
from distributary.delta.table_storage import table_files
from distributary.error_mapping import classify
from distributary.errors import TableHalt, UsageError
from distributary.ingest.continuity import check_continuity
from distributary.ingest.keyless import settings_of_filled
from distributary.ingest.service_columns import service_columns_of
from distributary.ingest.tables import ConfiguredTable, find_table, list_tables, own_path
from distributary.lake.table import LakeTable
from distributary.launch.session import close_session, open_session, stdout_kept_for_results
from distributary.logs import get_logger
from distributary.progress.record import Progress
from distributary.verify.comparison import Comparison
from distributary.verify.comparison_sides import ComparisonInput, build_sides
from distributary.verify.key_range import KeyRange
from distributary.verify.replay_range import lost_records_note, replay_range
from distributary.verify.replayed_table import replay_topic
from distributary.verify.report import State, TableReport
from distributary.verify.source_check import SourceCheck, source_of
from distributary.verify.table_version import TableVersion

ShowProgress = Callable[[str], None]
"""Shows the current step to a person."""
_RECORDS_PER_TASK = 250_000  # of a shuffle; the service's own number of partitions is made for small batches
_log = get_logger(__name__)


@dataclass(frozen=True)
class VerifyOptions:
    """`limit`: differences to show; `keys`: compare only these; `source_dsn`: compare with the live table of this
    database instead of the topic."""

    limit: int = 20
    keys: KeyRange | None = None
    source_dsn: str | None = field(default=None, repr=False)


def verify(
    config: Config, name: str | None, options: VerifyOptions, show_progress: ShowProgress
) -> Iterator[TableReport]:
    """Compares the table `name`, or every table of the config, and yields each report at once.

    The service may run meanwhile. The report of a table that can't be compared has the error. Raises UsageError for an
    unknown name or a bad range, and errors of Kafka and Spark before the first table.
    """
    if options.source_dsn is not None:
        source_of(options.source_dsn)
        if options.keys is not None:
            raise UsageError("keys-of-the-topic", "--keys and --source-dsn exclude each other", "give only one of them")
    kafka = KafkaClient(config.kafka_properties())
    tables = list_tables(config, kafka)
    tables = tables if name is None else [find_table(name, tables)]
    if not tables:
        return
    show_progress("starting Spark")
    with stdout_kept_for_results():
        session = open_session(config.spark_properties(), system_properties(config.kafka_properties()))
    try:
        for table in tables:
            yield report(config, table, session, kafka, options, show_progress)
    finally:
        close_session(session)


def report(
    config: Config,
    table: ConfiguredTable,
    session: SparkSession,
    kafka: KafkaClient,
    options: VerifyOptions,
    show_progress: ShowProgress,
) -> TableReport:
    """Compares one table in the given session. Raises UsageError for a range of keys that the table can't have."""
    if table.settings.keyless == "append":
        head = LakeTable(session, table.path, service_columns_of(table.settings)).head()
        table = replace(table, settings=settings_of_filled(table.settings, head.progress if head else None))
    empty = TableReport(table.name, table.topic, table.path, table.settings.mode, State.NOT_VERIFIED)
    try:
        if options.source_dsn is not None:
            show_progress(f"{table.name}: comparing with the source")
            return SourceCheck(config, table, session, kafka, options.source_dsn).report(empty, options.limit)
        return _TopicCheck(
            config, table, session, kafka, options, lambda doing: show_progress(f"{table.name}: {doing}")
        ).report(empty)
    except UsageError:
        raise
    except Exception as error:
        _log.debug("a table could not be verified", table=table.name, exc_info=error)
        return replace(empty, error=classify(error).as_dict())


@contextmanager
def _folder(config: Config, session: SparkSession) -> Iterator[str]:
    """The directory of the replayed table: a local one in local mode, else one in the lake that executors can read."""
    if str(session.sparkContext.master).startswith("local"):
        with TemporaryDirectory(prefix="distributary-verify-", dir=config.spark.get("spark.local.dir")) as folder:
            yield folder
        return
    folder = own_path(config, "verify", str(uuid.uuid4()))
    try:
        yield folder
    finally:
        files = table_files(session, folder)
        with suppress(OSError):
            files.filesystem.delete_dir(files.root)


class _TopicCheck:
    """Compares one table with its topic."""

    def __init__(
        self,
        config: Config,
        table: ConfiguredTable,
        session: SparkSession,
        kafka: KafkaClient,
        options: VerifyOptions,
        show_progress: ShowProgress,
    ) -> None:
        self._config = config
        self._table = table
        self._session = session
        self._kafka = kafka
        self._options = options
        self._show_progress = show_progress
        self._service_columns = service_columns_of(table.settings)

    def report(self, empty: TableReport) -> TableReport:
        """The report. Raises TableHalt if the table can't be compared."""
        table = self._table
        self._show_progress("reading the table's progress and the topic's offsets")
        topic = self._kafka.topics([table.topic]).get(table.topic)
        if topic is None:
            raise TableHalt(
                "topic-gone",
                f"the topic {table.topic} does not exist any more",
                "compare with the source (--source-dsn)",
            )
        first = self._kafka.earliest(topic)
        head = LakeTable(self._session, table.path, self._service_columns).head()
        progress = head.progress if head else None
        if head is None or progress is None or progress.is_new:
            if self._kafka.latest(topic) == first:
                return replace(empty, state=State.EQUAL, notes=("the topic has no records and the table has no rows",))
            raise TableHalt("nothing-taken-in", f"{table.name} has applied nothing yet", "run the service first")
        check_continuity(progress, topic, first, table.settings, table.path)
        offsets = replay_range(table, progress, first)
        report = replace(
            empty,
            version=head.version,
            position=progress.position,
            offsets={p: (offsets.start[p], end) for p, end in offsets.end.items()},
        )
        lake = TableVersion(self._session, table.path, self._service_columns, head.version)
        if offsets.records > 4 * _RECORDS_PER_TASK and "spark.sql.shuffle.partitions" not in self._config.spark:
            lake.session.conf.set("spark.sql.shuffle.partitions", str(offsets.records // _RECORDS_PER_TASK))
        return self._compare(report, topic, offsets, lake, progress)

    def _compare(
        self, report: TableReport, topic: Topic, offsets: OffsetRange, lake: TableVersion, progress: Progress
    ) -> TableReport:
        table, keys = self._table, self._options.keys
        columns = lake.columns()
        key = {name: columns[name] for name in progress.key}
        rows = lake.rows()
        if keys is not None:
            name, kind = self._first_key(keys, lake, key)
            rows = rows.where(keys.holds(name, kind))
        self._show_progress(f"reading {offsets.records:,} records")
        with _folder(self._config, lake.session) as folder:
            replayed = replay_topic(self._config, table, self._kafka, lake, progress, topic, offsets, folder)
            adopted = progress.adopted is not None
            lost = lost_records_note(progress.records, replayed.applied, adopted=adopted)
            self._show_progress("comparing")
            sides_input = ComparisonInput(
                replayed,
                table.settings,
                progress.connector,
                columns,
                key,
                progress.snapshot,
                rows,
                partial=lost is not None,
                skips_unknown=lost is not None,
            )
            both = build_sides(sides_input)
            expected = both.expected if keys is None else both.expected.where(keys.holds("k.k0", kind))
            suspects = replayed.suspects() if both.by_key else expected.where("false").withColumn("why", F.lit(""))
            if keys is not None:
                suspects = suspects.where(keys.holds("k.k0", kind))
            compared = Comparison(both.spec, expected, both.lake, suspects)
            return replace(
                report,
                state=State.DIFFERENT if compared.counts.different else State.EQUAL,
                keys=None if keys is None else str(keys),
                counts=compared.counts,
                quarantined=replayed.quarantined(),
                differences=compared.differences(self._options.limit, replayed.records() if both.by_key else None),
                notes=(lost,) if lost else (),
            )

    def _first_key(self, keys: KeyRange, lake: TableVersion, key: Mapping[str, str]) -> tuple[str, str]:
        """The first key column, quoted, and its type. Raises UsageError if the range has no such values."""
        if not key:
            raise UsageError(
                "no-key", f"{self._table.name} has no key, so --keys can't select a range", "leave --keys out"
            )
        name, kind = next(iter(key.items()))
        ends = lake.session.range(1).select(*keys.ends_in(kind)).head()
        if ends is None or None in ends:
            raise UsageError(
                "bad-key-range",
                f"--keys {keys}: the key column {name} of {self._table.name} is {kind}, and an end of the range is not",
                "write both ends as Spark writes values of that type",
            )
        return sql.name(name), kind
