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
