"""Takes over a table that another job has filled (`distributary resume TABLE --adopt`), at an operator's request.

Only tables of `mode: upsert`. Its rows stay as they are, with NULL in the service's columns, and changes from the
starting point on are applied over them. If the starting point is at or before the other job's end, some changes are
applied once more, in their order, and each of their keys gets the row of its last change. So these keys are right
afterwards, and all other keys stay as the job left them.
"""

from __future__ import annotations

import threading
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from pyspark.sql import functions as F

from distributary import sql
from distributary.apply.origin_columns import DELETED
from distributary.config import Config
from distributary.consume.kafka_client import KafkaClient, Topic
from distributary.consume.offsets import Offsets
from distributary.consume.starting_point import StartingPoint
from distributary.control.resume_requests import Request, write_request
from distributary.decode.observed_columns import renames_of, table_columns
from distributary.decode.options import CONNECTORS_WITH_PLACEHOLDER
from distributary.decode.source_order import order_of
from distributary.delta.log_reader import LogReader
from distributary.delta.snapshot import DeltaSnapshot
from distributary.delta.table_storage import table_files
from distributary.error_mapping import classify
from distributary.errors import TableHalt, TransientError, UsageError
from distributary.evolve.adoption import Difference, OtherTable, differences, mode_refused, not_sent
from distributary.halt_actions import ResumeAction
from distributary.ingest.batch_reader import BatchReader
from distributary.ingest.registry import registry_of
from distributary.ingest.service_columns import service_columns_of
from distributary.ingest.source_types import announced_source_types
from distributary.ingest.tables import ConfiguredTable, find_table, list_tables
from distributary.ingest.topic_format import TopicFormat
from distributary.lake.log import last_sequence
from distributary.lake.table import LakeTable
from distributary.launch.session import close_session, open_session, stdout_kept_for_results
from distributary.logs import get_logger
from distributary.progress.record import Head, Progress, first_progress

_EXAMPLES = 5
_EXACT_START = (
    "the source may leave large values out: where a primary key has changed that the table has changed already, they"
    " become NULL, unless the start is exactly where the other job stopped"
)
_log = get_logger(__name__)


@dataclass(frozen=True)
class Adopted:
    """The result of an adoption, or of its check. `differences`: reasons against it; if there are any, nothing was
    done.

    `start` is the next offset per partition, `added` the columns that the service adds, `not_sent` those that no record
    has; `last_written`: by which operation, and when. `warning` is what can't be checked, or None.
    """

    table: str
    differences: tuple[Difference, ...] = ()
    key: tuple[str, ...] = ()
    start: Mapping[int, int] = field(default_factory=dict)
    added: tuple[str, ...] = ()
    not_sent: tuple[str, ...] = ()
    last_written: str = ""
    warning: str | None = None


class Adoption:
    """One table of the config and the Delta table at its path. `lake` has the service's columns of the config."""

    def __init__(self, config: Config, configured: ConfiguredTable, kafka: KafkaClient, lake: LakeTable) -> None:
        self._config, self._configured, self._kafka, self._lake = config, configured, kafka, lake
        self._reader = BatchReader(
            kafka,
            config.source,
            configured.settings,
            lake,
            _log,
            threading.Event(),
            registry_of(config.source),
            lambda: announced_source_types(config, kafka).of(configured.topic),
        )

    def run(self, point: StartingPoint, *, check_only: bool = False) -> Adopted:
        """Checks the table and, unless `check_only`, takes it over if there is no difference. Raises UsageError if
        there is no such table or starting point, TableHalt if the records can't be read or the table can't be written,
        and what Kafka and Spark raise."""
        configured, lake = self._configured, self._lake
        if refused := mode_refused(configured.settings):
            return Adopted(configured.name, (refused,))
        head = self._other_head()
        topic = self._kafka.topics([configured.topic])[configured.topic]
        start = point.of(topic, self._kafka)
        topic_format = self._format(topic, start)
        key = self._reader.sent.renames.all_of(topic_format.key or configured.settings.key)
        snapshot = LogReader(table_files(lake.session, lake.path)).newest().snapshot
        table = OtherTable(lake.all_columns(), self._required(snapshot))
        service = service_columns_of(configured.settings)
        # A delete without a schema counts as having all columns of the table.
        observed = self._reader.observed
        sent = table_columns([columns for columns in observed if columns.has_schema] or observed)
        differences_found = [*self._of_features(snapshot), *differences(configured.settings, table, service, sent, key)]
        if not any(name not in table.columns for name in key):
            differences_found += self._of_rows(key)
        added = tuple(name for name in service if name not in table.columns)
        unknown = not_sent(table, service, sent)
        warning = _EXACT_START if topic_format.order in CONNECTORS_WITH_PLACEHOLDER else None
        adopted = Adopted(
            configured.name, tuple(differences_found), key, start, added, unknown, self._last_written(), warning
        )
        if not (differences_found or check_only):
            self._take_over(
                head, {name: service[name] for name in added}, self._record(topic, topic_format, key, start)
            )
        return adopted

    def _other_head(self) -> Head:
        name, lake = self._configured.name, self._lake
        head = lake.head()
        if head is None:
            raise UsageError(
                "no-table",
                f"there is no Delta table at {lake.path}",
                "set target.path and target.table so that this is the path of the table to be adopted;"
                " `distributary run` creates a table that does not exist",
            )
        if head.progress is not None:
            raise UsageError(
                "already-ours", f"{name} is the service's already", "start it again without --adopt, if it is halted"
            )
        return head

    def _format(self, topic: Topic, start: Offsets) -> TopicFormat:
        """The format of the records from the start on; of earlier ones where none has come yet."""
        topic_format = self._reader.detect_format(topic, start, None)
        topic_format = topic_format or self._reader.detect_format(topic, self._kafka.earliest(topic), None)
        if topic_format is None:
            raise UsageError(
                "no-records-left",
                f"{topic.name} has no record that shows the key and the columns of {self._configured.name}",
                "adopt it once a change has come, or have the connector send a snapshot",
            )
        return topic_format

    @staticmethod
    def _required(snapshot: DeltaSnapshot) -> list[str]:
        return [column.name for column in snapshot.schema.columns if not column.nullable]

    @staticmethod
    def _of_features(snapshot: DeltaSnapshot) -> list[Difference]:
        if not snapshot.is_append_only:
            return []
        return [
            Difference(
                "rows can't change, by the table's property delta.appendOnly",
                "ALTER TABLE … UNSET TBLPROPERTIES ('delta.appendOnly')",
            )
        ]

    def _of_rows(self, key: Sequence[str]) -> list[Difference]:
        """Differences for rows with equal keys, or with NULL in the key. Shows the operator some of the keys."""
        rows = self._lake.rows()
        columns = [F.col(sql.name(name)) for name in key]
        differences_found = []
        empty = F.lit(False)
        for column in columns:
            empty = empty | column.isNull()
        if nulls := rows.filter(empty).count():
            differences_found.append(
                Difference(f"{nulls} rows have NULL in a column of the key", "give them a key or delete them")
            )
        several = rows.filter(~empty).groupBy(*columns).count().filter("count > 1")
        if number := several.count():
            shown = ["(" + ", ".join(map(str, row[:-1])) + ")" for row in several.limit(_EXAMPLES).collect()]
            differences_found.append(
                Difference(
                    f"{number} keys ({', '.join(key)}) have several rows, such as {', '.join(shown)}",
                    "keep one row of each (docs/adopt.md has the statement)",
                )
            )
        return differences_found

    def _last_written(self) -> str:
        row = self._lake.delta().history(1).select("timestamp", "operation", "engineInfo").collect()[0]
        by = f" by {row['engineInfo']}" if row["engineInfo"] else ""
        return f"{row['timestamp']:%Y-%m-%d %H:%M:%S} UTC, {row['operation']}{by}"

    def _record(self, topic: Topic, topic_format: TopicFormat, key: tuple[str, ...], start: Offsets) -> Progress:
        settings = self._configured.settings
        first = first_progress(topic.name, topic.topic_id, topic_format.order, settings.mode, key)
        return first.model_copy(
            update={
                "sequence": last_sequence(self._lake.session, self._lake.path),
                "next": start,
                "adopted": start,
                "order": order_of(topic_format.order, self._config.source.order_fields) or None,
                "unwrapped": topic_format.unwrapped is not None,
                "marks_deleted": settings.marks_deleted,
                "timestamps": None if settings.timestamps == "ntz" else settings.timestamps,
                "renames": dict(renames_of(self._reader.observed).lake) or None,
            }
        )

    def _take_over(self, head: Head, added: Mapping[str, str], record: Progress) -> None:
        """An interrupted adoption is repeated by the next call. Commits of others between check and adoption came from
        the other job: their rows were not checked."""
        lake, signature = self._lake, f"adoption {uuid.uuid4()}"
        self._expect_own(head, lake.head(head), signature)
        with lake.tag_commits(signature):
            if added:
                lake.add_columns(added)
            if self._configured.settings.marks_deleted:
                lake.fill_nulls(DELETED, "false")
        now = lake.head(head)
        self._expect_own(head, now, signature)
        try:
            lake.commit(now or head, record.next_commit(), lake.empty_commit())
        except TransientError as error:
            raise self._still_written() from error

    def _expect_own(self, head: Head, now: Head | None, signature: str) -> None:
        """Raises UsageError where others have committed since `head`."""
        if now is None or now.version < head.version or not self._lake.are_tagged(head, now, signature):
            raise self._still_written()

    def _still_written(self) -> UsageError:
        return UsageError(
            "still-written",
            f"another job wrote to the table {self._configured.name} while it was taken over",
            "stop that job, and adopt the table again",
        )


def adopt(config: Config, name: str, point: StartingPoint, *, check_only: bool = False) -> Adopted:
    """Takes over the table `name`. The service may run meanwhile: it continues with the table at once. Raises
    UsageError if it can't be taken over, and what Kafka and Spark raise."""
    kafka = KafkaClient(config.kafka_properties())
    configured = find_table(name, list_tables(config, kafka))
    with stdout_kept_for_results():
        session = open_session(config.spark_properties())
    try:
        lake = LakeTable(session, configured.path, service_columns_of(configured.settings))
        done = Adoption(config, configured, kafka, lake).run(point, check_only=check_only)
    except TableHalt as halt:
        raise UsageError(halt.code, f"{configured.name} can't be adopted: {halt.message}", halt.fix) from halt
    except Exception as error:
        raise classify(error) from error
    finally:
        close_session(session)
    if not (done.differences or check_only):
        write_request(config, Request(configured.topic, ResumeAction.RETRY))
    return done
