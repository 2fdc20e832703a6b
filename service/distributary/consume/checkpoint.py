"""The offsets that the stream has planned, from the log of Spark's checkpoint.

It only sets targets: what a table has applied is in the table's own progress record.
"""

from __future__ import annotations

from datetime import datetime, timezone

from pyspark.sql import SparkSession

from distributary.consume.offsets import Offsets, offsets_of_log_entry
from distributary.launch.classes import HADOOP_PATH, java_class


class OffsetLog:
    """The `offsets` folder of a checkpoint, on any file system that Hadoop knows."""

    def __init__(self, session: SparkSession, checkpoint: str) -> None:
        self._path = java_class(session, HADOOP_PATH)
        self._streams = java_class(session, "org.apache.commons.io.IOUtils")
        self._root = self._path(checkpoint)
        self._folder = self._path(checkpoint, "offsets")
        self._files = self._folder.getFileSystem(session._jsparkSession.sessionState().newHadoopConf())

    def of(self, batch_id: int) -> dict[str, Offsets]:
        """The offsets per topic and partition that a batch reaches: all subscribed topics, not only changed ones."""
        stream = self._files.open(self._path(self._folder, str(batch_id)))
        try:
            return offsets_of_log_entry(self._streams.toString(stream, "UTF-8"))
        finally:
            stream.close()

    def newest(self) -> dict[str, Offsets]:
        """The offsets that the newest planned batch reaches; empty for a new checkpoint."""
        if not self._files.exists(self._folder):
            return {}
        names = [status.getPath().getName() for status in self._files.listStatus(self._folder)]
        batches = [int(name) for name in names if name.isdigit()]
        return self.of(max(batches)) if batches else {}

    def move_away(self) -> str | None:
        """Moves the checkpoint away, so that the stream begins with a new one. Returns its new path, None if there was
        none."""
        if not self._files.exists(self._root):
            return None
        aside = self._root.suffix(f".unusable-{datetime.now(timezone.utc):%Y%m%d-%H%M%S}")
        self._files.rename(self._root, aside)
        return str(aside.toString())
