"""Whether a store refuses to replace a file."""

from __future__ import annotations

import pytest
from py4j.protocol import Py4JError

from distributary.launch.conditional_commits import why_not_refused


class Store:
    """Holds one file; answers a second write with `refusal`, or replaces the file."""

    def __init__(self, refusal: str = "") -> None:
        self.content = ""
        self._refusal = refusal

    def create(self, content: str) -> None:
        if self.content and self._refusal:
            raise Py4JError(self._refusal)
        self.content = content


def test_a_store_that_refuses_to_replace_a_file_protects_commits() -> None:
    store = Store("java.nio.file.FileAlreadyExistsException: s3a://lake/x\n\tat ...")
    assert why_not_refused(store.create) == ""
    assert store.content == "1"


def test_a_store_that_replaces_a_file_or_refuses_for_another_reason_does_not() -> None:
    assert why_not_refused(Store().create) == "it replaced a file that was to be written only if absent"
    assert (
        why_not_refused(Store("501 Not Implemented: If-None-Match\nmore").create)
        == "501 Not Implemented: If-None-Match"
    )


def test_a_store_that_takes_no_file_at_all_is_another_fault() -> None:
    store = Store("503")
    store.content = "there"
    with pytest.raises(Py4JError, match="503"):
        why_not_refused(store.create)
