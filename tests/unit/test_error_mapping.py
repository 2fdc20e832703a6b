"""What an error of a lower layer means for a table."""

from __future__ import annotations

import errno
import os
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pytest
from delta import exceptions
from py4j.protocol import Py4JJavaError, Py4JNetworkError

from distributary.consume.offsets import OffsetRange
from distributary.error_mapping import classify, unexpected_in
from distributary.errors import TableHalt, TransientError


@pytest.mark.parametrize(
    "error",
    [
        exceptions.ConcurrentAppendException,
        exceptions.ConcurrentDeleteDeleteException,
        exceptions.ConcurrentDeleteReadException,
        exceptions.ConcurrentTransactionException,
        exceptions.ConcurrentWriteException,
        exceptions.DeltaConcurrentModificationException,
        exceptions.MetadataChangedException,
        exceptions.ProtocolChangedException,
    ],
)
def test_another_writer_s_commit_in_between_passes(error: type[Exception]) -> None:
    fault = classify(error.__new__(error))  # made for real it asks a JVM for its cause
    assert isinstance(fault, TransientError)
    assert error.__name__ in fault.message


def test_what_nobody_expects_halts_the_table_and_shows_no_text_of_it() -> None:
    fault = classify(ValueError("a user's value"))
    assert isinstance(fault, TableHalt)
    assert fault.code == "unexpected-error"
    assert "ValueError" in fault.message
    assert "value" not in fault.message.replace("ValueError", "")


def test_what_nobody_expects_names_the_records_among_which_it_is_and_a_way_out() -> None:
    batch = OffsetRange("p.dbo.t", {0: 5, 1: 7}, {0: 9, 1: 8})
    halt = unexpected_in(ValueError("a user's value"), batch)
    assert halt is not None
    assert "at these offsets of p.dbo.t by partition: 0: 5 to 8, 1: 7 to 7" in halt.message
    assert "quarantine add" in halt.fix
    assert unexpected_in(Py4JNetworkError("no answer"), batch) is None
    assert unexpected_in(halt, batch) is None


PASSES, REFUSES = "storage-or-network", "storage-not-allowed"


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)), "disk-full"),
        (OSError(errno.EDQUOT, os.strerror(errno.EDQUOT)), "disk-full"),
        (ConnectionRefusedError(errno.ECONNREFUSED, "refused"), "spark-gone"),
        (Py4JNetworkError("no answer"), "spark-gone"),
        (MemoryError(), "python-out-of-memory"),
        (pa.ArrowMemoryError("malloc failed"), "python-out-of-memory"),
        (RuntimeError("can't start new thread"), "too-many-threads"),
    ],
)
def test_what_room_or_another_start_helps_against_passes(error: Exception, code: str) -> None:
    fault = classify(error)
    assert (type(fault), fault.code) == (TransientError, code)
    assert fault.fix


@pytest.mark.parametrize(
    ("error", "code", "words"),
    [
        (OSError("When reading 'k': AWS Error SLOW_DOWN during GetObject operation: a text"), PASSES, "SLOW_DOWN"),
        (OSError("AWS Error NETWORK_CONNECTION during HeadObject operation: curlCode: 52"), PASSES, "NETWORK_CONN"),
        (OSError("GetProperties failed. a text. Azure Error: [ServerBusy] 503 a text"), PASSES, "ServerBusy"),
        (OSError("google::cloud::Status(UNAVAILABLE: a text)"), PASSES, "UNAVAILABLE"),
        (OSError("GetProperties failed. Azure Error: [] Fail to get a new connection: a text"), PASSES, "Azure"),
        (OSError("AWS Error [code 100] during GetObject operation: a text"), PASSES, "[code 100]"),
        (OSError("HDFS connection failed: a text"), PASSES, "HDFS"),
        (OSError(errno.EIO, "a text"), PASSES, "OSError EIO"),
        (TimeoutError("a text"), PASSES, "TimeoutError"),
        (OSError("AWS Error ACCESS_DENIED during HeadObject operation: a text"), REFUSES, "ACCESS_DENIED"),
        (OSError("Azure Error: [AuthorizationFailure] 403 a text"), REFUSES, "AuthorizationFailure"),
        (OSError("google::cloud::Status(PERMISSION_DENIED: a text)"), REFUSES, "PERMISSION_DENIED"),
        (PermissionError(errno.EACCES, "a text"), REFUSES, "PermissionError"),
    ],
    ids=str,
)
def test_errors_of_the_storage_that_arrow_and_python_raise_pass(error: OSError, code: str, words: str) -> None:
    fault = classify(error)
    assert (type(fault), fault.code) == (TransientError, code)
    assert words in fault.message
    assert "a text" not in fault.message


@pytest.mark.parametrize(
    "error",
    [
        OSError("Corrupt snappy compressed data."),
        FileNotFoundError(errno.ENOENT, "gone"),
        OSError(errno.EINVAL, "no name"),
    ],
)
def test_damaged_and_missing_data_does_not_pass(error: OSError) -> None:
    assert isinstance(classify(error), TableHalt)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("java.lang.IllegalStateException", "Cannot call methods on a stopped SparkContext.\nThis stopped"),
        ("org.apache.spark.SparkException", "Job 12 cancelled because SparkContext was shut down"),
        ("java.lang.IllegalStateException", "SparkContext has been shutdown"),
        (
            "org.apache.spark.SparkException",
            "Job aborted due to stage failure: Master removed our application: KILLED\nDriver stacktrace:",
        ),
    ],
)
def test_what_fails_after_spark_has_stopped_halts_no_table(name: str, text: str) -> None:
    fault = classify(raised(Java(name, text=text)))
    assert (type(fault), fault.code) == (TransientError, "spark-gone")


def test_a_storage_that_throttles_under_a_name_of_its_own_passes() -> None:
    throttled = [
        "org.apache.hadoop.fs.s3a.AWSServiceThrottledException",
        "org.apache.hadoop.fs.s3a.AWSServiceIOException",
    ]
    fault = classify(raised(Java(*throttled, IO_EXCEPTION)))
    assert isinstance(fault, TransientError)
    assert fault.code == "storage-or-network"
    assert "AWSServiceThrottledException" in fault.message


def test_a_storage_that_refuses_is_called_so_whatever_lies_around_it() -> None:
    refused = Java("java.nio.file.AccessDeniedException", "java.nio.file.FileSystemException", IO_EXCEPTION)
    fault = classify(raised(Java(IO_EXCEPTION, cause=refused)))
    assert isinstance(fault, TransientError)
    assert fault.code == "storage-not-allowed"


def test_a_file_of_a_table_that_is_gone_halts_it() -> None:
    assert isinstance(classify(raised(Java("java.io.FileNotFoundException", IO_EXCEPTION))), TableHalt)


IO_EXCEPTION = "java.io.IOException"


class Java:
    """A Java error as py4j hands it over: its class and those that it is one of, and what caused it."""

    def __init__(self, *classes: str, text: str = "", condition: str | None = None, cause: Java | None = None) -> None:
        self._classes = classes
        self._told = {"getMessage": text, "getCondition": condition, "getCause": cause}

    def getClass(self) -> JavaClass:  # noqa: N802 - the name it has there
        return JavaClass(self._classes)

    def __getattr__(self, method: str) -> Any:
        return lambda: self._told[method]


class JavaClass:
    def __init__(self, names: Sequence[str]) -> None:
        self._names = names

    def getName(self) -> str:  # noqa: N802
        return self._names[0]

    def getSuperclass(self) -> JavaClass:  # noqa: N802
        return JavaClass(self._names[1:])


def raised(java: Java) -> Exception:
    """The same as Python's."""
    error: Exception = Py4JJavaError.__new__(Py4JJavaError)  # made for real it asks a JVM for its text
    vars(error)["java_exception"] = java
    return error


ABORTED = "Job aborted due to stage failure: Task 0 in stage 9.0 failed 4 times, most recent failure: "
LOST = "Lost task 0.3 in stage 9.0 (TID 40) (10.0.0.7 executor 5): "


@pytest.mark.parametrize(
    "java",
    [
        Java(
            "org.apache.spark.SparkException",
            text=f"{ABORTED}{LOST}org.apache.spark.SparkException: [CHECKPOINT_RDD_BLOCK_ID_NOT_FOUND] …",
            cause=Java("org.apache.spark.SparkException", condition="CHECKPOINT_RDD_BLOCK_ID_NOT_FOUND"),
        ),
        Java(
            "org.apache.spark.SparkException",
            text=f"{ABORTED}{LOST}ExecutorLostFailure (executor 5 exited caused by one of the running tasks) Reason: …",
        ),
        Java(
            "org.apache.spark.SparkException",
            text="Job aborted due to stage failure: ResultStage 9 (execute at <unknown>:0) has failed the maximum"
            " allowable number of times: 4. Most recent failure reason:\no.a.s.shuffle.FetchFailedException …",
        ),
    ],
    ids=["kept rows", "a task, again and again", "a shuffle, again and again"],
)
def test_what_went_with_an_executor_is_tried_again(java: Java) -> None:
    fault = classify(raised(java))
    assert isinstance(fault, TransientError)
    assert fault.code == "executor-lost"


def test_a_value_that_looks_like_a_lost_executor_is_none() -> None:
    text = f"{ABORTED}{LOST}java.lang.IllegalStateException: {ABORTED}{LOST}ExecutorLostFailure (executor 5"
    assert isinstance(classify(raised(Java("org.apache.spark.SparkException", text=text))), TableHalt)


TRACEBACK = "Traceback (most recent call last):\n  File worker.py\n"
IN_PYTHON = "org.apache.spark.api.python.PythonException"


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (
            "distributary.errors.TransientError: [kafka-login] Kafka gave no records\n  what to do: check it",
            "kafka-login",
        ),
        ("ModuleNotFoundError: No module named 'distributary.ingest'\n", "executor-python"),
        ("ModuleNotFoundError: No module named 'msgspec'", "executor-python"),
    ],
)
def test_an_error_of_a_python_task_is_what_it_says(text: str, code: str) -> None:
    cause = Java(IN_PYTHON, text=TRACEBACK + text)
    fault = classify(raised(Java("org.apache.spark.SparkException", text="Job aborted", cause=cause)))
    assert isinstance(fault, TransientError)
    assert fault.code == code
    assert fault.fix


def test_a_text_that_looks_like_a_tasks_error_is_none() -> None:
    text = "\ndistributary.errors.TransientError: [kafka-login] told\n"
    assert isinstance(classify(raised(Java("java.lang.IllegalStateException", text=text))), TableHalt)
    assert isinstance(classify(raised(Java(IN_PYTHON, text=f"{TRACEBACK}ValueError: 'x'"))), TableHalt)
