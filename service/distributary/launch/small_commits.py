"""Settings of Spark and Delta that make small commits cheap.

On a local file system the defaults use the interface of Hadoop that is made for HDFS. Where Hadoop's native library is
missing, that starts eight processes (readlink) to rename a file, and two (chmod) to create it, which takes longer than
all else in a small commit. Hadoop's other interface starts those two alone.
"""

from __future__ import annotations

from urllib.parse import urlsplit

from pyspark.sql import SparkSession

LOCAL_LOG_STORE = "spark.delta.logStore.file.impl"
"""What writes commits to local files."""
ANY_LOG_STORE = "spark.delta.logStore.class"
"""What writes all commits; Delta refuses to have both."""
SELDOM = 1000
"""Commits. Of a table whose `delta.checkpointInterval` this is, Delta itself writes checkpoints hardly ever."""
SMALL_COMMITS = {
    # Like the default it may replace the file of a process that commits in the same moment, which is shorter here.
    LOCAL_LOG_STORE: "io.delta.storage.LocalLogStore",
    # New tables get this property. With each commit whose number it divides, Delta computes the state of the whole
    # table, which takes a second or more. The service has an interval of its own for its checkpoints.
    "spark.databricks.delta.properties.defaults.checkpointInterval": str(SELDOM),
    # How many tasks compute that state, of 50 by default.
    "spark.databricks.delta.snapshotPartitions": "1",
}
_FILE_MANAGER = "spark.sql.streaming.checkpointFileManagerClass"
_BY_FILE_SYSTEM = "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"


def write_simply(session: SparkSession, path: str) -> None:
    """If `path` is local and nothing else is set: the session's streams write their checkpoints, and its Delta commits
    their checksums, without those processes."""
    if urlsplit(path).scheme in ("", "file") and session.conf.get(_FILE_MANAGER, None) is None:
        session.conf.set(_FILE_MANAGER, _BY_FILE_SYSTEM)
