"""Removes the rows that a table's last complete snapshot leaves over (rule 3.10), at an operator's request."""

from __future__ import annotations

from pyspark.sql import SparkSession
from tenacity import Retrying, retry_if_exception_type, stop_after_attempt, wait_random_exponential

from distributary.config import Config
from distributary.consume.kafka_client import KafkaClient
from distributary.control.halts import read_halts
from distributary.control.resume_requests import Request, write_request
from distributary.error_mapping import classify
from distributary.errors import SetupError, TransientError, UsageError
from distributary.halt_actions import ResumeAction
from distributary.ingest.batch_writer import BatchWriter
from distributary.ingest.index_folder import index_cache
from distributary.ingest.tables import ConfiguredTable, find_table, list_tables
from distributary.lake.table import LakeTable
from distributary.launch.session import close_session, open_session, stdout_kept_for_results
from distributary.logs import get_logger
from distributary.progress.snapshots import complete_snapshot, not_for_mode
from distributary.workers.orphaned_rows import find_orphaned_rows, prepare_removal

_log = get_logger(__name__)
# The service may commit between the reading and the commit here: then this removal starts over; or, if this commit was
# first, the service's batch does.
_RETRYING = Retrying(
    retry=retry_if_exception_type(TransientError),
    stop=stop_after_attempt(8),
    wait=wait_random_exponential(multiplier=0.5, max=10),
    reraise=True,
)


def reconcile(config: Config, name: str) -> int:
    """Removes the orphaned rows of the table `name`, in one commit. Returns the number of removed rows.

    The service may run meanwhile. Raises UsageError if nothing may be removed, and what Kafka and Spark raise.
    """
    kafka = KafkaClient(config.kafka_properties())
    configured = find_table(name, list_tables(config, kafka))
    if configured.settings.mode != "upsert":
        raise not_for_mode(configured.name, configured.settings.mode)
    with stdout_kept_for_results():
        session = open_session(config.spark_properties())
    try:
        removed = remove_orphaned_rows(configured, session)
    finally:
        close_session(session)
    _request_recheck(config, configured)
    return removed


def _request_recheck(config: Config, configured: ConfiguredTable) -> None:
    """Requests a check of the table: otherwise a running service would not notice the change of a table that gets no
    records."""
    try:
        if configured.topic not in read_halts(config):
            write_request(config, Request(configured.topic, ResumeAction.RETRY))
    except SetupError as error:
        _log.warning("a running service reads this with the table's next records", reason=error.message)


def remove_orphaned_rows(configured: ConfiguredTable, session: SparkSession) -> int:
    """As reconcile, in the given session."""
    writer = BatchWriter(configured.settings, index_cache)
    lake = LakeTable(session, configured.path, writer.service_columns)
    removed: int = _RETRYING(_Removal(configured, lake, writer))
    return removed


class _Removal:
    """The removal from one table, which may have to be tried again.

    If the service commits right after this commit, it looks as if this commit was lost. Then the next try finds no
    orphaned rows, and the result is the number that the first try found.
    """

    def __init__(self, configured: ConfiguredTable, lake: LakeTable, writer: BatchWriter) -> None:
        self._configured = configured
        self._lake = lake
        self._writer = writer
        self._tried = 0

    def __call__(self) -> int:
        try:
            return self._remove()
        except Exception as error:
            raise classify(error) from error

    def _remove(self) -> int:
        lake, configured = self._lake, self._configured
        head = lake.head()
        progress = head.progress if head else None
        if head is None or progress is None:
            raise UsageError(
                "no-table",
                f"{configured.name} has applied nothing yet: there is no table at {configured.path}",
                "run the service first",
            )
        if progress.mode != "upsert":
            raise not_for_mode(configured.name, progress.mode)
        snapshot = complete_snapshot(configured.name, progress)
        orphaned_rows = find_orphaned_rows(lake, self._writer, progress, snapshot.position)
        orphan_count = int(orphaned_rows.num_rows)
        if orphan_count == 0 and snapshot.orphaned_rows == 0:
            return self._tried
        after = progress.next_commit(snapshot=snapshot.model_copy(update={"orphaned_rows": 0}))
        if orphan_count == 0:
            lake.commit(head, after, lake.empty_commit())
            return self._tried
        removal = prepare_removal(lake, self._writer, head, progress, snapshot.position, orphaned_rows)
        self._tried = orphan_count
        lake.commit(head, after, removal.write)
        return orphan_count
