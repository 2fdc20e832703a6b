"""Compares tables with their topics: reads the lake, Kafka and the quarantine table, and writes nothing."""

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
from distributary.consume.broker import Broker, Topic
from distributary.consume.offsets import OffsetRange
from distributary.delta.table_storage import table_files
from distributary.error_mapping import classified
from distributary.errors import TableHalt, UsageError
from distributary.ingest.batch_writer import service_columns_of
from distributary.ingest.continuity import check_continuity
from distributary.ingest.keyless import as_kept
from distributary.ingest.tables import ConfiguredTable, listed, named, own_path
from distributary.lake.table import LakeTable
from distributary.launch.session import close_session, open_session, stdout_kept_for_results
from distributary.logs import get_logger
from distributary.progress.record import Progress
from distributary.verify.comparison import Compared
from distributary.verify.comparison_sides import Given, sides
from distributary.verify.key_range import KeyRange
from distributary.verify.replay_range import lost_start, range_read
from distributary.verify.replayed_table import copied, settings_of_copy
from distributary.verify.report import State, TableReport
from distributary.verify.source_check import SourceCheck, source_of
from distributary.verify.table_version import FrozenTable

Tell = Callable[[str], None]
"""Takes what is being done, for a person who waits."""
_RECORDS_A_TASK = 250_000  # of a shuffle; the service's own setting is for its batches
_log = get_logger(__name__)


@dataclass(frozen=True)
class Asked:
    """What is to be compared: at most so many differences are shown; `keys`: only those keys; `source_dsn`: with the
    live table of that database and not with the topic."""

    limit: int = 20
    keys: KeyRange | None = None
    source_dsn: str | None = field(default=None, repr=False)


def verify(config: Config, name: str | None, asked: Asked, tell: Tell) -> Iterator[TableReport]:
    """Compares the table `name` with its topic, or all that the config has, one after the other.

    The service may run meanwhile. A table that can't be compared says why in its report. Raises UsageError for a name
    or a range that can't be, and what Kafka and Spark raise before the first table.
    """
    if asked.source_dsn is not None:
        source_of(asked.source_dsn)
        if asked.keys is not None:
            raise UsageError("keys-of-the-topic", "--keys and --source-dsn in one command", "leave one of them out")
    broker = Broker(config.kafka_properties())
    tables = listed(config, broker)
    tables = tables if name is None else [named(name, tables)]
    if not tables:
        return
    tell("starting Spark")
    with stdout_kept_for_results():
        session = open_session(config.spark_properties(), system_properties(config.kafka_properties()))
    try:
        for one in tables:
            yield report(config, one, session, broker, asked, tell)
    finally:
        close_session(session)


def report(
    config: Config, one: ConfiguredTable, session: SparkSession, broker: Broker, asked: Asked, tell: Tell
) -> TableReport:
    """The comparison of one table, in a session that is there. Raises UsageError for a range of keys that can't be."""
    if one.settings.keyless == "append":
        head = LakeTable(session, one.path, service_columns_of(one.settings)).head()
        one = replace(one, settings=as_kept(one.settings, head.progress if head else None))
    empty = TableReport(one.name, one.topic, one.path, one.settings.mode, State.NOT_VERIFIED)
    try:
        if asked.source_dsn is not None:
            tell(f"{one.name}: comparing with the source")
            return SourceCheck(config, one, session, broker, asked.source_dsn).report(empty, asked.limit)
        return _Check(config, one, session, broker, asked, lambda doing: tell(f"{one.name}: {doing}")).report(empty)
    except UsageError:
        raise
    except Exception as error:
        _log.debug("a table could not be verified", table=one.name, exc_info=error)
        return replace(empty, error=classified(error).told())


@contextmanager
def _folder(config: Config, session: SparkSession) -> Iterator[str]:
    """Where the copy of a table lies while it is compared: where the executors of a cluster read it, too."""
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


class _Check:
    """The comparison of one table."""

    def __init__(
        self, config: Config, one: ConfiguredTable, session: SparkSession, broker: Broker, asked: Asked, tell: Tell
    ) -> None:
        self._config = config
        self._one = one
        self._session = session
        self._broker = broker
        self._asked = asked
        self._tell = tell
        self._service_columns = service_columns_of(one.settings)

    def report(self, empty: TableReport) -> TableReport:
        """What comes out. Raises TableHalt where nothing can."""
        one = self._one
        self._tell("looking at the lake and at Kafka")
        topic = self._broker.topics([one.topic]).get(one.topic)
        if topic is None:
            raise TableHalt(
                "topic-gone", f"the topic {one.topic} does not exist any more", "compare with the source (--source-dsn)"
            )
        first = self._broker.earliest(topic)
        head = LakeTable(self._session, one.path, self._service_columns).head()
        progress = head.progress if head else None
        if head is None or progress is None or progress.is_new:
            if self._broker.latest(topic) == first:
                return replace(empty, state=State.EQUAL, notes=("the topic has no records, and the table no rows",))
            raise TableHalt("nothing-taken-in", f"{one.name} has applied nothing yet", "run the service first")
        check_continuity(progress, topic, first, one.settings, one.path)
        part = range_read(one, progress, first)
        told = replace(
            empty,
            version=head.version,
            position=progress.position,
            offsets={p: (part.start[p], end) for p, end in part.end.items()},
        )
        lake = FrozenTable(self._session, one.path, self._service_columns, head.version)
        if part.records > 4 * _RECORDS_A_TASK and "spark.sql.shuffle.partitions" not in self._config.spark:
            lake.session.conf.set("spark.sql.shuffle.partitions", str(part.records // _RECORDS_A_TASK))
        return self._compared(told, topic, part, lake, progress)

    def _compared(
        self, told: TableReport, topic: Topic, part: OffsetRange, lake: FrozenTable, progress: Progress
    ) -> TableReport:
        one, keys = self._one, self._asked.keys
        columns = lake.columns()
        key = {name: columns[name] for name in progress.key}
        rows = lake.rows()
        if keys is not None:
            name, kind = self._first_key(keys, lake, key)
            rows = rows.where(keys.holds(name, kind))
        self._tell(f"reading {part.records:,} records")
        with _folder(self._config, lake.session) as folder:
            copy = copied(self._config, one, self._broker, lake, progress, topic, part, folder)
            settings = self._broker.settings([one.topic]).get(one.topic, {})
            lost = lost_start(progress.records, copy.applied, part.start, settings.get("cleanup.policy", ""))
            self._tell("comparing")
            given = Given(
                copy,
                settings_of_copy(one.settings),
                one.settings,
                progress.connector,
                columns,
                key,
                progress.snapshot,
                rows,
                partial=lost is not None,
                passes_open=lost is not None,
            )
            both = sides(given)
            expected = both.expected if keys is None else both.expected.where(keys.holds("k.k0", kind))
            suspects = copy.suspects() if both.by_key else expected.where("false").withColumn("why", F.lit(""))
            if keys is not None:
                suspects = suspects.where(keys.holds("k.k0", kind))
            compared = Compared(both.how, expected, both.lake, suspects)
            return replace(
                told,
                state=State.DIFFERENT if compared.counts.different else State.EQUAL,
                keys=None if keys is None else str(keys),
                counts=compared.counts,
                quarantined=copy.quarantined(),
                differences=compared.differences(self._asked.limit, copy.records() if both.by_key else None),
                notes=(lost,) if lost else (),
            )

    def _first_key(self, keys: KeyRange, lake: FrozenTable, key: Mapping[str, str]) -> tuple[str, str]:
        """The first key column, quoted, and its type. Raises UsageError where the range is none of such values."""
        if not key:
            raise UsageError("no-key", f"{self._one.name} has no key: there is no range of keys", "leave --keys out")
        name, kind = next(iter(key.items()))
        ends = lake.session.range(1).select(*keys.ends_in(kind)).head()
        if ends is None or None in ends:
            raise UsageError(
                "bad-key-range",
                f"--keys {keys}: the key column {name} of {self._one.name} is {kind}, and the range is not",
                "write both ends as Spark writes such values",
            )
        return sql.name(name), kind
