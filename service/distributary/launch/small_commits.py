"""Settings of Spark and Delta that make small commits cheap.

On a local file system the defaults use the interface of Hadoop that is made for HDFS. Where Hadoop's native library is
missing, that starts eight processes (readlink) to rename a file, and two (chmod) to create it, which takes longer than
all else in a small commit. Hadoop's other interface starts those two alone, and local_files.py ends them, too.
"""

from __future__ import annotations

from urllib.parse import urlsplit

from pyspark.sql import SparkSession

LOCAL_LOG_STORE = "spark.delta.logStore.file.impl"
"""The class that writes commits to local files."""
ANY_LOG_STORE = "spark.delta.logStore.class"
"""The class that writes all commits; Delta refuses to have both."""
SELDOM = 1000
"""Commits. Of a table whose `delta.checkpointInterval` this is, Delta itself writes checkpoints hardly ever."""
CHECKPOINT_INTERVAL = 50
"""Commits from one checkpoint of a table's log to the next."""
CHECKPOINTED = ("delta.checkpointInterval", str(CHECKPOINT_INTERVAL))
"""The property of tables into which Spark writes, too: Delta itself writes a checkpoint after such a commit."""
SMALL_COMMITS = {
    # Like the default it may replace the file of a process that commits in the same moment, which is shorter here.
    LOCAL_LOG_STORE: "io.delta.storage.LocalLogStore",
    # New tables get this property. With each commit whose number it divides, Delta computes the state of the whole
    # table, which takes a second or more. The service has an interval of its own for its checkpoints.
    "spark.databricks.delta.properties.defaults.checkpointInterval": str(SELDOM),
    # How many tasks compute that state, of 50 by default.
    "spark.databricks.delta.snapshotPartitions": "1",
    # By default the checksum of each commit lists the table's files while they are few: to make a table takes a third
    # longer with it, and a small commit two thirds.
    "spark.databricks.delta.allFilesInCrc.enabled": "false",
    # By default the checksum of a commit counts the rows that deletion vectors mark. The first commits of a table that
    # gets vectors compute its whole state for that, for some seconds.
    "spark.databricks.delta.checksumDVMetrics.enabled": "false",
}
_FILE_MANAGER = "spark.sql.streaming.checkpointFileManagerClass"
_BY_FILE_SYSTEM = "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"

_CHECKSUMS = "spark.databricks.delta.writeChecksumFile.enabled"


def write_simply(session: SparkSession, path: str) -> None:
    """Sets how the session writes at `path`, unless it is set already.

    On a local file system its streams write their checkpoints, and its Delta commits their checksums, without those
    processes. Elsewhere commits have no checksum: an object store can't rename, and needs twenty requests for that
    file, half of all requests of a commit. Delta then reads the protocol and the columns from the log.
    """
    is_local = urlsplit(path).scheme in ("", "file")
    name, value = (_FILE_MANAGER, _BY_FILE_SYSTEM) if is_local else (_CHECKSUMS, "false")
    if session.conf.get(name, None) is None:
        session.conf.set(name, value)
