"""Looks after the files of one table: what a task does to them, and what must be done beside it."""

from __future__ import annotations

from datetime import date, datetime, timezone

from distributary.logs import get_logger
from distributary.merge.deletes import RememberedDeletes
from distributary.merge.files import Compacted, compact, vacuum
from distributary.merge.table import SMALL_SLICE, LakeTable
from distributary.operate import failpoints
from distributary.operate.faults import classified
from distributary.operate.place import Place
from distributary.operate.upkeep import APPENDED_FILE, REWRITTEN_FILE, Task

_log = get_logger(__name__)


class Tending:
    """Does the tasks of one table, of the config's `mode`, and moves its `place`. `name` is what failpoints call it."""

    def __init__(self, lake: LakeTable, deletes: RememberedDeletes, place: Place, mode: str, name: str) -> None:
        self._lake = lake
        self._deletes = deletes
        self._place = place
        self._mode = mode
        self._name = name
        self._day: date | None = None

    def forget_old_deletes(self) -> None:
        """Forgets deletes that nothing can come after any more."""
        self._day = _today()
        self._deletes.forget_old(self._day)

    def see_to_deletes(self) -> None:
        """On each new day forgets old deletes and gathers the others, whatever is done to the table's own files: nobody
        else looks after these."""
        if self._day == _today():
            return
        self.forget_old_deletes()
        try:
            self._gather()
        except Exception as error:  # tomorrow again: what is many files is read all the same
            _log.warning("remembered deletes were not gathered", table=self._name, reason=classified(error).message)

    def do(self, task: Task) -> Compacted | None:
        """Does a task of a table that has a record; gives what a compaction did. Raises TransientError and what Spark
        raises; the table's rows are as they were."""
        self._lake.suit(SMALL_SLICE + 1)  # all of its small files are read
        try:
            if task is Task.COMPACT:
                return self._compact()
            vacuum(self._lake.session, self._lake.path)
            self.forget_old_deletes()
            return None
        finally:
            self._lake.leave()

    def _compact(self) -> Compacted | None:
        head, progress = self._place.head, self._place.progress
        if head is None or progress is None:
            return None
        self._place.head = self._lake.renewed(head)
        failpoints.passing("before-compaction", self._name)
        size = APPENDED_FILE if self._mode == "append" else REWRITTEN_FILE
        done = compact(self._lake.session, self._lake.path, size)
        self._gather()
        failpoints.passing("after-compaction", self._name)
        self._place.head = self._lake.head(self._place.head)
        return done

    def _gather(self) -> None:
        progress = self._place.progress
        if progress is not None and (columns := self._lake.columns()):
            key = {name: columns[name] for name in progress.key}
            self._deletes.gather(key, of_changes=self._mode == "history")


def _today() -> date:
    return datetime.now(timezone.utc).date()
