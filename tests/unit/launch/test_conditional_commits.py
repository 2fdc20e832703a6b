"""Whether a store refuses to replace a file."""

from __future__ import annotations

import pytest
from py4j.protocol import Py4JError

from distributary.launch.conditional_commits import replaces_files


class Store:
    """Takes a file so many times."""

    def __init__(self, times: int) -> None:
        self._times = times

    def create(self) -> None:
        if not self._times:
            raise Py4JError("refused")
        self._times -= 1


def test_a_store_that_takes_a_file_once_protects_commits() -> None:
    assert not replaces_files(Store(1).create)
    assert replaces_files(Store(2).create)


def test_a_store_that_takes_no_file_is_another_fault() -> None:
    with pytest.raises(Py4JError, match="refused"):
        replaces_files(Store(0).create)
