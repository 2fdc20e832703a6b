"""What an error of a layer below means for a table: try again, or halt. Decided by the type of the error alone."""

from __future__ import annotations

from confluent_kafka import KafkaException
from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.errors import PySparkException

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
_LOOKED_AT = "the table looks at its topic again; if records were lost it halts and names them"
_LOST = ("OffsetOutOfRangeException", "KafkaIllegalStateException")


def classified(error: BaseException) -> DistributaryError:
    """The error as one of the service's own. The text names types and conditions, never users' values."""
    if isinstance(error, DistributaryError):
        return error
    if isinstance(error, KafkaException):
        return TransientError("kafka-unreachable", f"Kafka: {error.args[0].str()}", "check that the brokers answer")
    # Delta's own exceptions come as Python's, with the same name and without Java's behind them.
    names = [type(error).__name__, *_java_names(error)]
    for name in names:
        if any(name.endswith(lost) for lost in _LOST):
            return TransientError(
                "kafka-offsets", f"Kafka no longer has the offsets that were read ({name})", _LOOKED_AT
            )
    for name in names:
        if any(name.endswith(passing) for passing in _PASSING):
            return TransientError("storage-or-network", f"a part of the work failed: {name}", "it is tried again")
    kind = names[-1]
    condition = error.getCondition() if isinstance(error, PySparkException) else None
    detail = f"{kind} ({condition})" if condition else kind
    return TableHalt(
        "unexpected-error",
        f"the batch failed with {detail}",
        "run with DISTRIBUTARY_LOG=debug for the whole error; if it is a fault of distributary, report it",
    )


def _java_names(error: BaseException) -> list[str]:
    """The class names of a Java error and its causes, the outermost first."""
    java = getattr(error, "java_exception", None) if isinstance(error, Py4JJavaError) else None
    java = java or getattr(error, "_origin", None)
    names: list[str] = []
    try:
        while java is not None and len(names) < 20:
            names.append(str(java.getClass().getName()))
            java = java.getCause()
    except (Py4JError, AttributeError):
        pass  # the JVM is gone: what is known by then must do
    return names
