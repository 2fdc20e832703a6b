"""Counts the batches that are decoded while the batch before is applied."""

from __future__ import annotations

from concurrent.futures import Future
from typing import Any

import pytest

from distributary.ingest.task_records import TaskRecords


class Begun:
    """How many batches were begun ahead, of how many the result was used, and how many files tasks wrote for these."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.begun = self.used = self.files = 0
        self._last: TaskRecords | None = None
        begin, take = TaskRecords.begin, TaskRecords._take_begun

        def begins(records: TaskRecords, *given: Any) -> bool:
            is_begun = begin(records, *given)
            self.begun += is_begun
            self._last = records
            return is_begun

        def takes(records: TaskRecords, wanted: Any) -> Any:
            taken = take(records, wanted)
            self.used += taken is not None
            self.files += len(records.written.files) if records.written is not None else 0
            return taken

        monkeypatch.setattr(TaskRecords, "begin", begins)
        monkeypatch.setattr(TaskRecords, "_take_begun", takes)

    def wait(self) -> None:
        """Until the last one that was begun is decoded."""
        self.future.result()

    @property
    def future(self) -> Future[Any]:
        """The decoding that was begun last."""
        assert self._last is not None
        assert self._last._begun is not None
        return self._last._begun[1]
