"""The stream that plans batches: how far the topics go. It is begun anew after an error, for as long as one lasts.

Nothing of a table hangs on it or on its checkpoint: it may be cut, fail and begin with a new checkpoint at any time.
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
from distributary.consume import refusals
from distributary.consume.checkpoint import OffsetLog
from distributary.consume.offsets import Offsets
from distributary.consume.source import stream
from distributary.consume.topics import subscription_pattern
from distributary.error_mapping import DISK_FULL, classify, pause_after, stream_fault
from distributary.errors import DistributaryError, TransientError, UsageError
from distributary.logs import get_logger
from distributary.workers.context import WorkerContext

_RESTARTS = 5  # in vain, after which the checkpoint may be at fault; `--once` gives up
_OTHERS_FAULTS = (*refusals.CODES, DISK_FULL, "storage-not-allowed")  # which no new checkpoint would end
_SEEN_EVERY = 5.0  # seconds
_WAITING = "Waiting for"  # what Spark says of a stream that has planned all there is
_log = get_logger(__name__)


class OffsetPlanner:
    """The readStream over the topics of the config's tables.

    `plan` is given the offsets that a batch reaches, by topic, and `nudge` called after each batch, in the stream's own
    thread. With `once` it ends where the topics ended when it began.
    """

    def __init__(
        self, context: WorkerContext, plan: Callable[[Mapping[str, Offsets]], None], nudge: Callable[[], None]
    ) -> None:
        self._context = context
        self._config = context.config
        self._plan = plan
        self._nudge = nudge
        self._offsets = OffsetLog(context.session, context.config.checkpoint)
        self._once = False
        self._query: StreamingQuery | None = None
        self._failures = 0  # since it last planned anything
        self._failed: StreamingQuery | None = None
        self._start_at = 0.0
        self._seen_at = 0.0
        self._has_new_checkpoint = False

    @property
    def fails(self) -> bool:
        """Whether it ended with an error, and has planned nothing since."""
        return self._failures > 0

    @property
    def pattern(self) -> str:
        """The topics that it reads, as a regular expression."""
        return subscription_pattern(self._config.source.topic_prefix, [rule.match for rule in self._config.tables])

    def begin(self, *, once: bool) -> None:
        """Plans what was planned last, and starts; without the checkpoint where that can't be used."""
        self._once = once
        try:
            self.plan_newest()
            self._query = self._start()
            return
        except Exception as error:
            # Files that end too early look like a network that does: only what others told is none of the checkpoint's.
            if isinstance(error, DistributaryError | KafkaException):
                raise
            self._set_aside(classify(error))
        self._query = self._start()

    def plan_newest(self) -> None:
        """Plans as far as the newest batch went. Raises what Spark and the storage raise."""
        self._plan(self._offsets.newest())

    def look(self) -> bool:
        """Starts it again where it failed, after a pause; gives whether it came to its end, as it does with `once`.
        Raises UsageError for an error that can't pass, with `once` for one that lasts."""
        query = self._query
        if query is None:
            return False
        if query.isActive:
            self._see(query)
        elif query is self._failed:
            if time.monotonic() >= self._start_at:
                self._restart(query)
        elif (fault := stream_fault(query)) is not None:
            self._failing(query, fault)
        else:
            return True
        return False

    def _see(self, query: StreamingQuery) -> None:
        """Notes now and then that it has planned all there is, and waits for its next turn."""
        now = time.monotonic()
        if now < self._seen_at + _SEEN_EVERY and not self._failures:
            return
        if query.status["message"].startswith(_WAITING):
            self._seen_at = now
            self._context.status.planned()
            if self._failures:
                self._failures = 0
                self._context.status.show_stream(None)

    def follow(self, config: Config) -> None:
        """From now on it reads the topics of this config."""
        before, self._config = self.pattern, config
        if self.pattern != before and self._query is not None and self._query.isActive:
            # A stream's pattern is fixed when it starts.
            self.stop()
            if self._query.isActive:  # it was told to end, and has not yet: the next one is started then
                self._failed, self._start_at = self._query, 0.0
            else:
                self._restart(self._query)

    def stop(self) -> None:
        """Cuts it."""
        if self._query is None:
            return
        try:
            self._query.stop()
        except (PySparkException, Py4JError) as error:  # also where its thread does not end in time
            _log.debug("the stream ended with an error", error=type(error).__name__)

    def _start(self) -> StreamingQuery:
        frame = stream(self._context.session, self._context.options, self.pattern)
        writer = frame.writeStream.foreachBatch(self._batch).option("checkpointLocation", self._config.checkpoint)
        if self._once:
            return writer.trigger(availableNow=True).start()
        return writer.trigger(processingTime=f"{self._config.trigger.interval_seconds()} seconds").start()

    def _batch(self, _frame: DataFrame, batch_id: int) -> None:
        """A batch of the stream: sets how far each table has to go.

        The tables go there in batches of their own, from where they are themselves, each at its own pace: a slow one
        holds up no other, and a batch that the checkpoint forgets or repeats changes nothing.
        """
        failpoints.passing("before-plan")
        self._plan(self._offsets.of(batch_id))
        self._nudge()

    def _restart(self, ended: StreamingQuery) -> None:
        """Starts it in the place of one that has ended; where that fails it is tried again after a pause."""
        try:
            self._query = self._start()
        except Exception as error:  # a stream reads and writes its checkpoint before it is there
            self._failing(ended, classify(error))

    def _failing(self, failed: StreamingQuery, fault: DistributaryError) -> None:
        """What is to be done after an error: another try after a pause, or one without the checkpoint."""
        self._failed, self._start_at = failed, 0.0
        self._failures += 1
        lasting = not isinstance(fault, TransientError)
        if lasting or self._failures > _RESTARTS:
            # Files of the checkpoint that end too early look like a storage that does not answer.
            if fault.code not in _OTHERS_FAULTS and self._set_aside(fault):
                return
            if lasting or self._once:
                raise UsageError("stream-failed", f"the stream ended: {fault.message}", fault.fix)
        self._context.status.show_stream(fault.as_dict())
        _log.warning("the stream ended and is started again", code=fault.code, reason=fault.message, fix=fault.fix)
        self._start_at = time.monotonic() + pause_after(self._failures, self._config.trigger.interval_seconds())

    def _set_aside(self, fault: DistributaryError) -> bool:
        """Goes on without the checkpoint, once: whatever is wrong with it, the tables know where they are. Whether
        there was one to go on without."""
        if self._has_new_checkpoint:
            return False
        try:
            aside = self._offsets.set_aside()
        except Exception as error:  # its storage does not answer, so that nothing tells that the checkpoint is at fault
            _log.warning("the checkpoint can't be moved", reason=classify(error).message)
            return False
        self._has_new_checkpoint = True
        if aside is not None:
            _log.warning(
                "the checkpoint can't be used: the stream starts a new one, each table continues from its own offsets",
                reason=fault.message,
                moved_to=aside,
            )
        return aside is not None
