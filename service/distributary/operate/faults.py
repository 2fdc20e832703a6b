"""What an error of a layer below means for a table: try again, or halt. Decided by the type of the error alone, but for
a disk without room: that is told apart from other faults of storage by the system's own words."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from confluent_kafka import KafkaException
from py4j.protocol import Py4JError, Py4JJavaError, Py4JNetworkError
from pyspark.errors import PySparkException
from pyspark.sql.streaming.query import StreamingQuery

from distributary.consume.refusals import java_refusal, refusal
from distributary.errors import DistributaryError, TableHalt, TransientError

# Java exceptions (by the end of their class name) after which the same work may succeed.
_PASSING = (
    "ConcurrentModificationException", "ConcurrentAppendException", "ConcurrentDeleteReadException",
    "ConcurrentDeleteDeleteException", "ConcurrentTransactionException", "ConcurrentWriteException",
    "MetadataChangedException", "ProtocolChangedException", "DeltaConcurrentModificationException",
    "TimeoutException", "SocketException", "SocketTimeoutException", "ConnectException", "UnknownHostException",
    "NoRouteToHostException", "EOFException", "DisconnectException", "RetriableException",
    "NotEnoughReplicasException", "IOException", "FileSystemException",
)  # fmt: skip
_DENIED = ("java.nio.file.AccessDeniedException", "org.apache.hadoop.security.AccessControlException")
_FILE_SYSTEMS = "org.apache.hadoop.fs."
_LOOKED_AT = "the table looks at its topic again; if records were lost it halts and names them"
_LOST = ("OffsetOutOfRangeException", "KafkaIllegalStateException")
_NO_ROOM = ("No space left on device", "Disk quota exceeded")
DISK_FULL = "disk-full"
"""The code of an error that only room on a disk helps against."""


def classified(error: BaseException) -> DistributaryError:
    """The error as one of the service's own. The text names types and conditions, never users' values."""
    if isinstance(error, DistributaryError):
        return error
    if isinstance(error, KafkaException):
        return refusal("answer", error.args[0])
    if isinstance(error, Py4JNetworkError | ConnectionError):
        return TransientError(
            "spark-gone",
            f"Spark's JVM does not answer ({type(error).__name__})",
            "where it has ended, so does the service",
        )
    java = getattr(error, "java_exception", None) if isinstance(error, Py4JJavaError) else None
    # Delta's own exceptions come as Python's, with the same name and without Java's behind them.
    causes = list(_causes(java or getattr(error, "_origin", None)))
    names = [type(error).__name__, *(name for name, _ in causes)]
    texts = [str(error) if isinstance(error, OSError) else "", *(text for _, text in causes)]
    return _passing(names, texts) or _unexpected(
        names, error.getCondition() if isinstance(error, PySparkException) else None
    )


def stream_fault(query: StreamingQuery) -> DistributaryError | None:
    """What ended a stream, as one of the service's own; None where it runs or came to its end."""
    error = query.exception()
    # PySpark's error keeps of the Java ones behind it nothing but the text.
    if error is None:
        return None
    causes = list(_causes(query._jsq.exception().get()))
    names = [type(error).__name__, *(name for name, _ in causes)]
    return _passing(names, [text for _, text in causes]) or _unexpected(names)


def _passing(names: list[str], texts: list[str]) -> TransientError | None:
    """What may pass, by the class names and the texts of an error and its causes, the outermost first."""
    if any(name.endswith("OutOfMemoryError") for name in names):
        return TransientError(
            "out-of-memory",
            "Java's memory was used up",
            "raise spark.driver.memory in the config, or lower trigger.max_records, and start the service again",
        )
    if any(words in text for text in texts for words in _NO_ROOM):
        return TransientError(
            DISK_FULL,
            "a disk has no room left",
            "make room where the tables, the checkpoint and Spark's local directory (spark.local.dir) lie;"
            " then it goes on by itself",
        )
    for name in names:
        if any(name.endswith(lost) for lost in _LOST):
            return TransientError(
                "kafka-offsets", f"Kafka no longer has the offsets that were read ({name})", _LOOKED_AT
            )
    if (told := java_refusal(names)) is not None:
        return told
    if denied := next((name for name in names if name in _DENIED), None):
        return TransientError(
            "storage-not-allowed",
            f"the storage refuses access ({denied})",
            "allow this config's user to list, read, write and delete below target.path and quarantine.path, and in"
            " checkpoint; then it goes on by itself",
        )
    for name in names:
        if any(name.endswith(passing) for passing in _PASSING):
            return TransientError("storage-or-network", f"a part of the work failed: {name}", "it is tried again")
    return None


def _unexpected(names: list[str], condition: str | None = None) -> TableHalt:
    detail = f"{names[-1]} ({condition})" if condition else names[-1]
    return TableHalt(
        "unexpected-error",
        f"the batch failed with {detail}",
        "run with DISTRIBUTARY_LOG=debug for the whole error; if it is a fault of distributary, report it",
    )


def _causes(java: Any) -> Iterator[tuple[str, str]]:
    """The class names and the texts of a Java error and its causes, the outermost first."""
    count = 0
    try:
        while java is not None and count < 20:
            yield _name_of(java.getClass()), str(java.getMessage())
            java, count = java.getCause(), count + 1
    except (Py4JError, OSError, AttributeError):
        pass  # the JVM is gone: what is known by then must do


def _name_of(java_class: Any) -> str:
    """The class's name; of an error of a file system's own also what it is: AWSServiceThrottledException, say, is an
    IOException."""
    own = name = str(java_class.getName())
    while name.startswith(_FILE_SYSTEMS):
        java_class = java_class.getSuperclass()
        name = str(java_class.getName())
    return f"{own}, a {name}" if own != name == "java.io.IOException" else own
