"""What an error of a layer below means for a table."""

from __future__ import annotations

from typing import Any

import pytest
from delta import exceptions
from py4j.protocol import Py4JJavaError

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


class Java:
    """An error as py4j hands it over."""

    def __init__(self, name: str, text: str = "", condition: str | None = None, cause: Java | None = None) -> None:
        self._told = {"getName": name, "getMessage": text, "getCondition": condition, "getCause": cause}

    def getClass(self) -> Java:  # noqa: N802
        return self

    def __getattr__(self, method: str) -> Any:
        return lambda: self._told[method]


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
            f"{ABORTED}{LOST}org.apache.spark.SparkException: [CHECKPOINT_RDD_BLOCK_ID_NOT_FOUND] …",
            cause=Java("org.apache.spark.SparkException", condition="CHECKPOINT_RDD_BLOCK_ID_NOT_FOUND"),
        ),
        Java(
            "org.apache.spark.SparkException",
            f"{ABORTED}{LOST}ExecutorLostFailure (executor 5 exited caused by one of the running tasks) Reason: …",
        ),
        Java(
            "org.apache.spark.SparkException",
            "Job aborted due to stage failure: ResultStage 9 (execute at <unknown>:0) has failed the maximum allowable"
            " number of times: 4. Most recent failure reason:\norg.apache.spark.shuffle.FetchFailedException …",
        ),
    ],
    ids=["kept rows", "a task, again and again", "a shuffle, again and again"],
)
def test_what_went_with_an_executor_is_tried_again(java: Java) -> None:
    fault = classified(raised(java))
    assert isinstance(fault, TransientError)
    assert fault.code == "executor-lost"


def test_a_value_that_looks_like_a_lost_executor_is_none() -> None:
    text = f"{ABORTED}{LOST}java.lang.IllegalStateException: {ABORTED}{LOST}ExecutorLostFailure (executor 5"
    assert isinstance(classified(raised(Java("org.apache.spark.SparkException", text))), TableHalt)
