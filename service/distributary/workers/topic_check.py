"""Checks before each batch whether the table can continue with its topic, and applies an operator's action."""

from __future__ import annotations

from structlog.typing import FilteringBoundLogger

from distributary.config.table import TableSettings
from distributary.consume.kafka_client import Topic
from distributary.consume.offsets import Offsets
from distributary.delta.commit import concurrent_change
from distributary.errors import TableHalt
from distributary.halt_actions import ResumeAction
from distributary.ingest.continuity import check_continuity, lost_ends, not_ours, record_after
from distributary.ingest.table_cursor import TableCursor
from distributary.lake.table import LakeTable
from distributary.quarantine.set_aside import REASON as SET_ASIDE
from distributary.workers.context import WorkerContext

_OTHER_OFFSETS = (ResumeAction.LOSS, ResumeAction.RESET, ResumeAction.REBUILD)
"""The actions after which the table continues from other offsets."""


class TopicCheck:
    """The checks of one table and its topic. Moves `cursor` by the commits that it makes."""

    def __init__(
        self,
        context: WorkerContext,
        topic: str,
        settings: TableSettings,
        lake: LakeTable,
        cursor: TableCursor,
        log: FilteringBoundLogger,
    ) -> None:
        self._context = context
        self._topic = topic
        self._settings = settings
        self._lake = lake
        self._cursor = cursor
        self._log = log

    def find(self) -> Topic:
        """The topic as Kafka has it now. Raises TableHalt if it was deleted."""
        topic = self._context.kafka.topics([self._topic]).get(self._topic)
        if topic is None:
            raise TableHalt(
                "topic-gone",
                f"the topic {self._topic} does not exist any more; the table stays as it is",
                "create the topic again; or give the table up: remove it from `tables`, or, if a pattern matches it,"
                " restart the service, which then no longer finds it",
            )
        return topic

    def commit_action(self, action: ResumeAction, topic: Topic) -> Offsets | None:
        """Commits an operator's action: its progress record, and for a rebuild the removal of all rows, after the
        topic's records in quarantine were marked. Commits nothing if the action changes no record. Returns the topic's
        end if the table continues from other offsets, else None."""
        head = self._cursor.head
        if head is None or head.progress is None:
            return None
        anew = action in _OTHER_OFFSETS
        end = self._context.kafka.latest(topic) if anew else {}
        after = record_after(action, head.progress, topic, self._cursor.first, end, self._settings.mode)
        if after is not None:
            self._log.warning("resume action applied", accepted=action.value, next=dict(after.next))
            rebuilt = action is ResumeAction.REBUILD
            # Records of an earlier topic, or of an end that Kafka lost, are not read again: they stay.
            if rebuilt and head.progress.topic_id == topic.topic_id and not head.progress.short:
                self._context.quarantine.end_before_rebuild(topic.name, self._cursor.first, but=SET_ASIDE)
            write = self._lake.removing_all_rows() if rebuilt else self._lake.empty_commit()
            self._cursor.head = self._lake.commit(head, after, write)
        return end if anew else None

    def check(self, topic: Topic) -> None:
        """Raises TableHalt if the table is not the service's own, or Kafka lacks the records that come next."""
        progress = self._cursor.progress
        if progress is not None:
            check_continuity(progress, topic, self._cursor.first, self._settings, self._lake.path)
        elif self._cursor.head is not None and self._lake.columns() and not self._is_empty():
            now = self._lake.head()
            if now is not None and now.progress is not None:  # another driver has filled it meanwhile
                raise concurrent_change(self._lake.path, self._cursor.head.version)
            raise not_ours(self._lake.path)

    def commit_lost_ends(self, topic: Topic, end: Offsets) -> None:
        """Commits which partitions end below the offsets that the table has applied, and raises TableHalt: once the
        topic has grown again, only this record shows it. `end`: the topic's end."""
        head = self._cursor.head
        if head is None or head.progress is None:
            return
        if short := lost_ends(head.progress, end):
            after = head.progress.next_commit(short=short)
            self._cursor.head = self._lake.commit(head, after, self._lake.empty_commit())
            self.check(topic)

    def _is_empty(self) -> bool:
        """Whether the table has no rows: without a progress record, its first batch was never committed."""
        return bool(self._lake.delta().toDF().isEmpty())
