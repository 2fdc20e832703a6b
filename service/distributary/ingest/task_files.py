"""The data files that a batch's tasks wrote: until they are committed, the driver's to delete."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from urllib.parse import urlsplit

from pyarrow import fs

from distributary.config.table import TableSettings
from distributary.delta.commit import ConcurrentChange
from distributary.delta.live_file import LiveFile
from distributary.delta.snapshot import DeltaSnapshot
from distributary.delta.storage import TableFiles
from distributary.ingest.task_writer import TaskFile, TaskWriter
from distributary.launch.network import is_local
from distributary.logs import get_logger

_log = get_logger(__name__)
_THIS_MACHINE = ("127.0.0.1", "localhost")


class WrittenFiles:
    """The files that `writer` wrote in the tasks of one batch."""

    def __init__(self, files: Sequence[TaskFile], writer: TaskWriter) -> None:
        self.files = tuple(files)
        self.writer = writer
        self._unused = {file.file.path for file in files}

    @contextmanager
    def committing(self, numbers: Sequence[int]) -> Iterator[list[LiveFile]]:
        """Returns all files. Within, those with these numbers are committed. After an error other than ConcurrentChange
        they may be in the table: then VACUUM decides."""
        used = {self.files[number].file.path for number in numbers}
        _log.debug("files of tasks", topic=self.writer.topic, written=len(self.files), used=len(numbers))
        try:
            yield [file.file for file in self.files]
        except ConcurrentChange:
            raise
        except BaseException:
            self._unused -= used
            raise
        self._unused -= used

    def delete_unused(self) -> None:
        """Deletes the files that are not in the table."""
        self.writer.files.delete(sorted(self._unused))
        self._unused = set()


def why_driver_must_write(
    settings: TableSettings, table: DeltaSnapshot, files: TableFiles, master: str | None, *, ahead: bool = False
) -> str | None:
    """Why Spark's tasks may write no row of this version of the table; None if they may. `master`: Spark's.
    `ahead`: another batch is committed before theirs."""
    if settings.mode != "upsert":
        return f"the table is one of mode {settings.mode}"
    if table.schema.partition_columns:
        return "the table has partitions, and each would get small files"
    if table.constraints:
        return "the table has constraints, which are checked before rows are written"
    if table.has_change_feed and (table.files or ahead):
        return "the table has a change data feed, which needs the rows that a batch changes"
    if isinstance(files.filesystem, fs.LocalFileSystem) and not _is_on_this_machine(master):
        return "the table is on a disk of this machine, and executors may be on others"
    return None


def _is_on_this_machine(master: str | None) -> bool:
    """Whether all executors are on the driver's machine: a cluster's master that others can't reach has no others."""
    if master is None or is_local(master):
        return True
    return master.startswith("local-cluster[") or urlsplit(master).hostname in _THIS_MACHINE
