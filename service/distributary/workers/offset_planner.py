"""The stream that sets the target offsets of all tables. It is started again after each error.

No table depends on it or on its checkpoint: it may be cut, fail and start with a new checkpoint at any time.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

from confluent_kafka import KafkaException
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql.streaming.query import StreamingQuery

from distributary import failpoints
from distributary.config import Config
from distributary.consume import kafka_errors
from distributary.consume.checkpoint import OffsetLog
from distributary.consume.offsets import Offsets
from distributary.consume.source import stream
from distributary.consume.topics import subscription_pattern
from distributary.error_mapping import DISK_FULL, SPARK_GONE, classify, pause_after, stream_fault
from distributary.errors import DistributaryError, TransientError, UsageError
from distributary.launch.small_commits import write_simply
from distributary.logs import get_logger
from distributary.workers.context import WorkerContext

_RESTARTS = 5  # failed restarts, after which the checkpoint may be at fault and `--once` gives up
# Errors that no new checkpoint would end.
_OTHERS_FAULTS = (
    *(*kafka_errors.CODES, DISK_FULL, SPARK_GONE),
    *("storage-not-allowed", "python-out-of-memory", "too-many-threads"),
)
_TRUSTED_FOR = 600.0  # seconds in which a new checkpoint is not taken for the cause of an error
_SEEN_EVERY = 5.0  # seconds
_WAITING = "Waiting for"  # the beginning of Spark's status message of a stream without new records
_log = get_logger(__name__)


class OffsetPlanner:
    """The readStream over the topics of the config's tables.

    `plan` is given the offsets that a batch reaches, by topic, and `schedule` is called after each batch, both in the
    stream's own thread. With `once` it ends where the topics ended when it began.
    """

    def __init__(
        self, context: WorkerContext, plan: Callable[[Mapping[str, Offsets]], None], schedule: Callable[[], None]
    ) -> None:
        self._context = context
        self._config = context.config
        self._plan = plan
        self._schedule = schedule
        self._offsets = OffsetLog(context.session, context.config.checkpoint)
        self._once = False
        self._query: StreamingQuery | None = None
        self._failures = 0  # since it last planned anything
        self._failed: StreamingQuery | None = None
        self._start_at = 0.0
        self._seen_at = 0.0
        self._new_checkpoint_at: float | None = None
        self._batch_fault: DistributaryError | None = None  # what ended the stream, if its batch did

    @property
    def fails(self) -> bool:
        """Whether it has failed, and planned nothing since."""
        return self._failures > 0

    @property
    def pattern(self) -> str:
        """The topics that it reads, as a regular expression."""
        return subscription_pattern(self._config.source.topic_prefix, [rule.match for rule in self._config.tables])

    def begin(self, *, once: bool) -> None:
        """Plans the last planned offsets again, and starts the stream; with a new checkpoint if the old one can't be
        used."""
        self._once = once
        try:
            self.plan_newest()
            self._query = self._start()
            return
        except Exception as error:
            # Truncated files look like a network error. Only errors of other sources are surely not the checkpoint's.
            if isinstance(error, DistributaryError | KafkaException):
                raise
            self._move_checkpoint_away(classify(error))
        self._query = self._start()

    def plan_newest(self) -> None:
        """Plans the offsets of the newest batch again. Raises what Spark and the storage raise."""
        self._plan(self._offsets.newest())

    def keep_running(self) -> bool:
        """Starts the stream again if it failed, after a pause. Gives whether it has ended, as it does with `once`.
        Raises UsageError for a permanent error, with `once` also for one that keeps coming back."""
        query = self._query
        if query is None:
            return False
        if query.isActive:
            self._see(query)
        elif query is self._failed:
            if time.monotonic() >= self._start_at:
                self._restart(query)
        elif (fault := stream_fault(query)) is not None:
            self._failing(query, self._batch_fault or fault)
        else:
            return True
        return False

    def _see(self, query: StreamingQuery) -> None:
        """Notes every few seconds that the stream has planned all records and waits for its next trigger."""
        now = time.monotonic()
        if now < self._seen_at + _SEEN_EVERY and not self._failures:
            return
        if query.status["message"].startswith(_WAITING):
            self._seen_at = now
            self._context.status.note_planned()
            if self._failures:
                self._failures = 0
                self._context.status.show_stream(None)

    def follow(self, config: Config) -> None:
        """Reads the topics of this config from now on."""
        before, self._config = self.pattern, config
        if self.pattern != before and self._query is not None and self._query.isActive:
            # A stream's pattern is fixed when it starts.
            self.stop()
            if self._query.isActive:  # it is still ending: the next one is started afterwards
                self._failed, self._start_at = self._query, 0.0
            else:
                self._restart(self._query)

    def stop(self) -> None:
        """Stops the stream, without waiting for the batch that it plans."""
        if self._query is None:
            return
        try:
            self._query.stop()
        except (PySparkException, Py4JError) as error:  # also where its thread does not end in time
            _log.debug("the stream ended with an error", error=type(error).__name__)

    def _start(self) -> StreamingQuery:
        self._batch_fault = None
        write_simply(self._context.session, self._config.checkpoint)
        frame = stream(self._context.session, self._context.options, self.pattern)
        writer = frame.writeStream.foreachBatch(self._batch).option("checkpointLocation", self._config.checkpoint)
        if self._once:
            return writer.trigger(availableNow=True).start()
        return writer.trigger(processingTime=f"{self._config.trigger.interval_seconds()} seconds").start()

    def _batch(self, _frame: DataFrame, batch_id: int) -> None:
        """Sets the target offsets of each table.

        Each table reaches them in its own batches: a slow table does not delay others, and a planned batch that the
        checkpoint loses or repeats changes nothing.
        """
        self._batch_fault = None
        try:
            failpoints.passing("before-plan")
            self._plan(self._offsets.of(batch_id))
            self._schedule()
        except BaseException as error:
            # Of an error in here Spark passes on the text alone.
            self._batch_fault = classify(error)
            raise

    def _restart(self, ended: StreamingQuery) -> None:
        """Starts the stream in place of one that has ended. If that fails it is tried again after a pause."""
        try:
            self._query = self._start()
        except Exception as error:  # starting a stream reads and writes its checkpoint
            self._failing(ended, classify(error))

    def _failing(self, failed: StreamingQuery, fault: DistributaryError) -> None:
        """Handles an error: another try after a pause, or one with a new checkpoint."""
        self._failed, self._start_at = failed, 0.0
        self._failures += 1
        lasting = not isinstance(fault, TransientError)
        if lasting or self._failures > _RESTARTS:
            # Truncated files of the checkpoint look like a storage that does not answer.
            if fault.code not in _OTHERS_FAULTS and self._move_checkpoint_away(fault):
                return
            if lasting or self._once:
                raise UsageError("stream-failed", f"the stream ended: {fault.message}", fault.fix)
        self._context.status.show_stream(fault.as_dict())
        _log.warning("the stream ended and is started again", code=fault.code, reason=fault.message, fix=fault.fix)
        self._start_at = time.monotonic() + pause_after(self._failures, self._config.trigger.interval_seconds())

    def _move_checkpoint_away(self, fault: DistributaryError) -> bool:
        """Moves the checkpoint away, unless it is new: the tables have their own progress. Returns whether there was
        one."""
        if self._new_checkpoint_at is not None and time.monotonic() < self._new_checkpoint_at + _TRUSTED_FOR:
            return False
        try:
            aside = self._offsets.move_away()
        except Exception as error:  # the storage does not answer, which may be the fault itself
            _log.warning("the checkpoint can't be moved", reason=classify(error).message)
            return False
        self._new_checkpoint_at = time.monotonic()
        if aside is not None:
            _log.warning(
                "the checkpoint can't be used: the stream starts a new one, each table continues from its own offsets",
                reason=fault.message,
                moved_to=aside,
            )
        return aside is not None
