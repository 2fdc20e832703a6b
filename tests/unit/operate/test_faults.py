"""What an error of a layer below means for a table."""

from __future__ import annotations

import errno
import os

import pytest
from delta import exceptions
from py4j.protocol import Py4JNetworkError

from distributary.errors import TableHalt, TransientError
from distributary.operate.faults import classified


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
    fault = classified(error.__new__(error))  # made for real it asks a JVM for its cause
    assert isinstance(fault, TransientError)
    assert error.__name__ in fault.message


def test_what_nobody_expects_halts_the_table_and_shows_no_text_of_it() -> None:
    fault = classified(ValueError("a user's value"))
    assert isinstance(fault, TableHalt)
    assert fault.code == "unexpected-error"
    assert "ValueError" in fault.message
    assert "value" not in fault.message.replace("ValueError", "")


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)), "disk-full"),
        (OSError(errno.EDQUOT, os.strerror(errno.EDQUOT)), "disk-full"),
        (ConnectionRefusedError(errno.ECONNREFUSED, "refused"), "spark-gone"),
        (Py4JNetworkError("no answer"), "spark-gone"),
    ],
)
def test_what_room_or_another_start_helps_against_passes(error: Exception, code: str) -> None:
    fault = classified(error)
    assert (type(fault), fault.code) == (TransientError, code)
    assert fault.fix


def test_a_storage_that_throttles_under_a_name_of_its_own_passes() -> None:
    throttled = [
        "org.apache.hadoop.fs.s3a.AWSServiceThrottledException",
        "org.apache.hadoop.fs.s3a.AWSServiceIOException",
    ]
    fault = classified(FromJava(JavaError([*throttled, IO_EXCEPTION])))
    assert isinstance(fault, TransientError)
    assert fault.code == "storage-or-network"
    assert "AWSServiceThrottledException" in fault.message


def test_a_storage_that_refuses_is_called_so_whatever_lies_around_it() -> None:
    refused = JavaError(["java.nio.file.AccessDeniedException", "java.nio.file.FileSystemException", IO_EXCEPTION])
    fault = classified(FromJava(JavaError([IO_EXCEPTION], refused)))
    assert isinstance(fault, TransientError)
    assert fault.code == "storage-not-allowed"


def test_a_file_of_a_table_that_is_gone_halts_it() -> None:
    assert isinstance(classified(FromJava(JavaError(["java.io.FileNotFoundException", IO_EXCEPTION]))), TableHalt)


IO_EXCEPTION = "java.io.IOException"


class JavaError:
    """A Java error as Python sees it: its class and those that it is one of, and what caused it."""

    def __init__(self, classes: list[str], cause: JavaError | None = None) -> None:
        self._classes = classes
        self._cause = cause

    def getClass(self) -> JavaClass:  # noqa: N802 - the name it has there
        return JavaClass(self._classes)

    def getMessage(self) -> str:  # noqa: N802
        return "a text"

    def getCause(self) -> JavaError | None:  # noqa: N802
        return self._cause


class JavaClass:
    def __init__(self, names: list[str]) -> None:
        self._names = names

    def getName(self) -> str:  # noqa: N802
        return self._names[0]

    def getSuperclass(self) -> JavaClass:  # noqa: N802
        return JavaClass(self._names[1:])


class FromJava(Exception):
    """An error as PySpark makes it of one of Java's."""

    def __init__(self, java: JavaError) -> None:
        super().__init__()
        self._origin = java
