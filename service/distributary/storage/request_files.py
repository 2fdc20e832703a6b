"""Requests of commands to the service: small JSON files in the lake, so that the service need not run to get them."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from typing import Any

import pyarrow as pa
from pyarrow import fs

from distributary.error_mapping import classify
from distributary.errors import SetupError
from distributary.logs import get_logger
from distributary.storage.lake_files import plain

_log = get_logger(__name__)


def leave_file(folder: str, name: str, document: Mapping[str, Any]) -> None:
    """Writes the file, so that a reader finds all of it or none. Raises SetupError if the lake can't be written."""
    try:
        files, path = fs.FileSystem.from_uri(plain(folder))
        files.create_dir(path, recursive=True)
        beside = f"{path}/.{name}.new"
        with files.open_output_stream(beside) as stream:
            stream.write(json.dumps(document).encode() + b"\n")
        files.move(beside, f"{path}/{name}")
    except (OSError, pa.ArrowException) as error:
        raise unwritable(folder, error) from error


def remove_file(folder: str, name: str) -> bool:
    """Removes the file; whether it was there. Raises SetupError if the lake can't be written."""
    try:
        files, path = fs.FileSystem.from_uri(plain(folder))
        files.delete_file(f"{path}/{name}")
    except FileNotFoundError:
        return False
    except (OSError, pa.ArrowException) as error:
        raise unwritable(folder, error) from error
    return True


def unwritable(folder: str, error: Exception) -> SetupError:
    """The error of a command that can't write to the lake."""
    return SetupError(
        "lake-unwritable",
        f"nothing can be written to {folder} ({type(error).__name__})",
        "check that this machine may write to target.path; keys of an object store are taken from the environment",
    )


class RegularRead:
    """The service's side: calls `read` every so many seconds at most.

    While the storage does not answer, the last result counts; `what` names it in the log.
    """

    def __init__(self, read: Callable[[], None], every: float, what: str) -> None:
        self._read, self._every, self._what = read, every, what
        self._next = 0.0

    def __call__(self) -> None:
        """Reads, if it is time."""
        if time.monotonic() < self._next:
            return
        self._next = time.monotonic() + self._every
        try:
            self._read()
        except Exception as error:
            _log.warning(f"{self._what} could not be read", reason=classify(error).message)
