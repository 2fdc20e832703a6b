"""Maps errors of Spark, Java, Kafka and the storage to errors of the service: retry or halt. The type of the error
decides; for Spark's own errors, which share one type, the condition; for a full disk the system's message."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from confluent_kafka import KafkaException
from py4j.protocol import Py4JError, Py4JJavaError, Py4JNetworkError
from pyspark.errors import PySparkException
from pyspark.sql.streaming.query import StreamingQuery

from distributary.consume.kafka_errors import java_refusal, offsets_gone, refusal
from distributary.consume.offsets import OffsetRange
from distributary.delta.storage_errors import is_refusal, storage_error
from distributary.errors import DistributaryError, TableHalt, TransientError

# Java exceptions (by the end of their class name) after which the same work may succeed.
_TRANSIENT = (
    "ConcurrentModificationException", "ConcurrentAppendException", "ConcurrentDeleteReadException",
    "ConcurrentDeleteDeleteException", "ConcurrentTransactionException", "ConcurrentWriteException",
    "MetadataChangedException", "ProtocolChangedException", "DeltaConcurrentModificationException",
    "TimeoutException", "SocketException", "SocketTimeoutException", "ConnectException", "UnknownHostException",
    "NoRouteToHostException", "EOFException", "DisconnectException", "RetriableException",
    "NotEnoughReplicasException", "IOException", "FileSystemException",
)  # fmt: skip
_DENIED = ("java.nio.file.AccessDeniedException", "org.apache.hadoop.security.AccessControlException")
_FILE_SYSTEMS = "org.apache.hadoop.fs."
_SPARK = "org.apache.spark.SparkException"
# Spark's condition for rows of a batch that went with their executor. The service keeps them without a way to make them
# again (see ingest/raw_records.py), so that no two jobs see different ones.
_LOST_ROWS = "CHECKPOINT_RDD_BLOCK_ID_NOT_FOUND"
# A task that was lost with its executor, or a stage that lacked what executors had kept for it, as often as Spark tries
# it again. Only Spark's own text shows that, the part before any text of the failed work.
_LOST_WORK = re.compile(
    r"Job aborted due to stage failure: (?:"
    r"Task \d+ in stage [\d.]+ failed \d+ times, most recent failure: "
    r"Lost task [\d.]+ in stage [\d.]+ \(TID \d+\) \([^)]*\): (?:ExecutorLostFailure|TaskResultLost) \("
    r"|\w*Stage \d+ \([^\n]*\) has failed the maximum allowable number of times"
    r"|A shuffle map stage with indeterminate output was failed and retried)"
)
# The last line of a Python task's traceback: an error of the service, or a package that is not installed.
_TASKS_ERROR = re.compile(
    r"^distributary\.errors\.TransientError: \[([a-z-]+)\] (.*)(?:\n  what to do: (.*))?", re.MULTILINE
)
_NO_PYTHON = re.compile(
    r"^ModuleNotFoundError: No module named '(?:distributary|pyarrow|msgspec|confluent_kafka)\b", re.M
)
# How Spark's errors begin once its context has stopped.
_STOPPED = re.compile(
    r"Cannot call methods on a stopped SparkContext|Job \d+ cancelled because SparkContext was shut down"
    r"|SparkContext has been shutdown|Job aborted due to stage failure: Master removed our application: "
)
_LOST_OFFSETS = ("OffsetOutOfRangeException", "KafkaIllegalStateException")
_NO_THREAD = "can't start new thread"
_FULL_DISK = ("No space left on device", "Disk quota exceeded")
_LONGEST_PAUSE = 60.0  # seconds
UNEXPECTED = "unexpected-error"
"""The code of an error that is in no list: it is not known whether a retry can help."""
SPARK_GONE = "spark-gone"
"""The code of the error for a Spark that has ended."""
DISK_FULL = "disk-full"
"""The code of the error for a full disk."""


@dataclass(frozen=True)
class _Cause:
    """A Java error: its class, its condition if it is one of Spark's own, and its text. The text is never shown,
    because users' values may be in it."""

    name: str
    condition: str | None
    text: str


def classify(error: BaseException) -> DistributaryError:
    """The error as one of the service's own. The text names types and conditions, never users' values."""
    if isinstance(error, DistributaryError):
        return error
    if isinstance(error, KafkaException):
        return refusal("answer", error.args[0])
    if isinstance(error, MemoryError):
        return TransientError(
            "python-out-of-memory",
            "the memory of Python was used up",
            "it is tried again; if it stays so, give the machine or the container more memory, or lower"
            " trigger.max_records",
        )
    if isinstance(error, RuntimeError) and _NO_THREAD in str(error):
        return TransientError(
            "too-many-threads",
            "the system starts no further thread",
            "it is tried again; if it stays so, raise the limit of processes and threads (ulimit -u, or that of the"
            " container)",
        )
    if isinstance(error, Py4JNetworkError | ConnectionError):
        return TransientError(
            SPARK_GONE,
            f"Spark's JVM does not answer ({type(error).__name__})",
            "the service tries again; if the JVM has ended, the service ends too: start it again",
        )
    java = getattr(error, "java_exception", None) if isinstance(error, Py4JJavaError) else None
    # Delta's own exceptions come as Python's, with the same name and without Java's behind them.
    causes = _causes(java or getattr(error, "_origin", None))
    if isinstance(error, OSError):
        causes.append(_Cause(type(error).__name__, None, str(error)))
    mapped = _mapped(error, causes)
    if isinstance(error, OSError) and mapped.code == UNEXPECTED:
        return _storage_fault(error) or mapped
    return mapped


def stream_fault(query: StreamingQuery) -> DistributaryError | None:
    """The error that ended a stream, as an error of the service; None if it runs or has finished."""
    error = query.exception()
    # PySpark's error has only the text of its Java causes, so these are read from the query itself.
    if error is None:
        return None
    return _mapped(error, _causes(query._jsq.exception().get()))


def unexpected_in(error: Exception, batch: OffsetRange) -> TableHalt | None:
    """The halt for an unexpected error, with the offsets of the batch that it may come from; None for other errors."""
    fault = classify(error)
    if fault.code != UNEXPECTED or error is fault:
        return None
    ends = ", ".join(f"{p}: {batch.start[p]} to {end - 1}" for p, end in sorted(batch.end.items()))
    return TableHalt(fault.code, f"{fault.message}, at these offsets of {batch.topic} by partition: {ends}", fault.fix)


def pause_after(faults: int, interval: float) -> float:
    """Seconds until the next try after so many failures in a row. `interval`: the config's time between two batches."""
    return min(_LONGEST_PAUSE, max(1.0, interval) * faults)


def _mapped(error: BaseException, causes: Sequence[_Cause]) -> DistributaryError:
    """The service's error for a Python error and its Java causes, the outermost first."""
    names = [type(error).__name__, *(cause.name for cause in causes)]
    if (
        transient := _stopped(causes)
        or _lost_executor(causes)
        or _task_error(causes)
        or _transient(names, [cause.text for cause in causes])
    ):
        return transient
    return _unexpected(names, error.getCondition() if isinstance(error, PySparkException) else None)


def _stopped(causes: Sequence[_Cause]) -> TransientError | None:
    if not any(_STOPPED.match(cause.text) for cause in causes):
        return None
    return TransientError(SPARK_GONE, "Spark has stopped", "the service ends too: start it again")


def _lost_executor(causes: Sequence[_Cause]) -> TransientError | None:
    if not any(cause.condition == _LOST_ROWS or _LOST_WORK.match(cause.text) for cause in causes):
        return None
    return TransientError(
        "executor-lost",
        "an executor of Spark was lost, with its part of the batch",
        "the batch is processed again; if executors are lost repeatedly, look into their logs: they may need more"
        " memory (spark.executor.memory), or smaller batches (trigger.max_records)",
    )


def _task_error(causes: Sequence[_Cause]) -> TransientError | None:
    """The service's own error that ended a Python task, or the error for executors without this package."""
    for text in (cause.text for cause in causes if cause.name.endswith(".PythonException")):
        if match := _TASKS_ERROR.search(text):
            return TransientError(match[1], match[2], match[3] or "")
        if _NO_PYTHON.search(text):
            return TransientError(
                "executor-python",
                "the Python of Spark's executors lacks this package, or one that it needs",
                "install distributary with its dependencies on the executors at the same path as here, or name their"
                " Python by the environment variable PYSPARK_PYTHON",
            )
    return None


def _transient(names: list[str], texts: list[str]) -> TransientError | None:
    """A temporary error, recognized by the class names and texts of an error and its causes, the outermost first."""
    if any(name.endswith("OutOfMemoryError") for name in names):
        return TransientError(
            "out-of-memory",
            "Java's memory was used up",
            "raise spark.driver.memory in the config, or lower trigger.max_records, and start the service again",
        )
    if any(words in text for text in texts for words in _FULL_DISK):
        return TransientError(
            DISK_FULL,
            "a disk has no room left",
            "make room where the tables, the checkpoint and Spark's local directory (spark.local.dir) are;"
            " the work then continues",
        )
    for name in names:
        if any(name.endswith(lost) for lost in _LOST_OFFSETS):
            return offsets_gone(name)
    if (refused := java_refusal(names)) is not None:
        return refused
    if denied := next((name for name in names if name in _DENIED), None):
        return _not_allowed(denied)
    for name in names:
        if any(name.endswith(transient) for transient in _TRANSIENT):
            return _storage_or_network(name)
    return None


def _storage_fault(error: OSError) -> TransientError | None:
    what = storage_error(error)
    if what is None:
        return None
    return _not_allowed(what) if is_refusal(error) else _storage_or_network(what)


def _not_allowed(what: str) -> TransientError:
    return TransientError(
        "storage-not-allowed",
        f"the storage refuses access ({what})",
        "allow this config's user to list, read, write and delete below target.path and quarantine.path, and in"
        " checkpoint; the work then continues",
    )


def _storage_or_network(what: str) -> TransientError:
    return TransientError("storage-or-network", f"a part of the work failed: {what}", "it is tried again")


def _unexpected(names: list[str], condition: str | None) -> TableHalt:
    detail = f"{names[-1]} ({condition})" if condition else names[-1]
    return TableHalt(
        UNEXPECTED,
        f"the batch failed with {detail}",
        "`distributary resume -c FILE TABLE` tries again. DISTRIBUTARY_LOG=debug logs the whole error, which may quote"
        " values of records: report it. If the same records fail again, a smaller trigger.max_records shows which one;"
        " `distributary quarantine add -c FILE TABLE TOPIC:PARTITION:OFFSET` makes the table skip it",
    )


def _causes(java: Any) -> list[_Cause]:
    """A Java error and its causes, the outermost first."""
    causes: list[_Cause] = []
    try:
        while java is not None and len(causes) < 20:
            name = _name_of(java.getClass())
            condition = java.getCondition() if name == _SPARK else None
            causes.append(_Cause(name, condition, java.getMessage() or ""))
            java = java.getCause()
    except (Py4JError, OSError, AttributeError):
        pass  # the JVM is gone: the causes found so far must do
    return causes


def _name_of(java_class: Any) -> str:
    """The class's name; for a file system's own error also the general class: AWSServiceThrottledException, for
    example, is an IOException."""
    own = name = str(java_class.getName())
    while name.startswith(_FILE_SYSTEMS):
        java_class = java_class.getSuperclass()
        name = str(java_class.getName())
    return f"{own}, a {name}" if own != name == "java.io.IOException" else own


def is_fault(error: BaseException) -> bool:
    """Whether it is an error and no interrupt. A panic of a library in Rust is an error, too, although it is no
    Exception."""
    return isinstance(error, Exception) or type(error).__name__ == "PanicException"
