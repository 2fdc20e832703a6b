"""Stores a table's memory from one commit to the next: as text in the progress record or, if it is long, in a file that
the record names."""

from __future__ import annotations

import time
import uuid
from itertools import pairwise

from pyarrow import fs

from distributary.apply.memory import Memory, TableSpec, first_memory
from distributary.apply.memory_file import UnreadableMemory, read_memory, read_text, short_text, write_memory
from distributary.delta.storage import TableFiles
from distributary.errors import TableHalt
from distributary.progress.record import Progress

_FOLDER = "_distributary/memory"
"""Delta's VACUUM does not touch names that begin with an underscore."""


class MemoryStore:
    """That of one table. The memory after the last commit is kept in the process."""

    def __init__(self) -> None:
        self._known: tuple[str, Memory] | None = None

    def load(self, files: TableFiles, spec: TableSpec, before: Progress | None, partitions: int) -> Memory:
        """The memory after the commit `before`, as a copy that may be changed; for a table without commit a new memory,
        for a topic with so many partitions. Raises TableHalt."""
        known, self._known = self._known, None
        if before is None:
            return first_memory(spec, partitions)
        if known is not None and known[0] == before.commit:
            return known[1]
        try:
            if before.memory is not None:
                with files.open(before.memory) as stream:
                    return read_memory(stream.read())
            if before.recalled is not None:
                return read_text(before.recalled, spec.row)
        except UnreadableMemory as error:
            raise _unreadable(spec.topic, before.memory or "its last commit", error) from error
        if before.records:
            raise _of_older_version(spec.topic)
        return first_memory(spec, partitions)

    def put(self, files: TableFiles, memory: Memory, progress: Progress) -> Progress:
        """The record with the memory and its size; writes a file where that is needed."""
        text, name = short_text(memory), None
        if text is None:
            name, data = f"{_FOLDER}/{uuid.uuid4()}.parquet", write_memory(memory)
            files.write(name, data)
            size = len(data)
        else:
            size = len(text)
        counts = {"remembered_keys": len(memory.state.special), "memory_bytes": size}
        return progress.model_copy(update={"memory": name, "recalled": text, **counts})

    def keep(self, commit: str, memory: Memory) -> None:
        """The commit with the memory is in the table."""
        self._known = commit, memory

    def remove_old(self, files: TableFiles, seconds: float, named: str | None) -> None:
        """Removes the files that have not been needed for `seconds`, except the one that is `named`. A file is needed
        until the next one is written, with a later commit."""
        folder = fs.FileSelector(files.filesystem_path(_FOLDER), allow_not_found=True)
        memory_files = [info for info in files.filesystem.get_file_info(folder) if info.mtime is not None]
        memory_files.sort(key=lambda info: info.mtime)
        for info, follower in pairwise(memory_files):
            name = f"{_FOLDER}/{info.base_name}"
            if follower.mtime.timestamp() < time.time() - seconds and name != named:
                files.delete([name])


def _unreadable(topic: str, where: str, error: UnreadableMemory) -> TableHalt:
    return TableHalt(
        "memory-unreadable",
        f"the memory of the table of {topic} can't be read ({where}: {error})",
        "run the version of the service that wrote it, or restore the file; else fill the table again:"
        " `distributary resume -c FILE TABLE --rebuild`",
    )


def _of_older_version(topic: str) -> TableHalt:
    return TableHalt(
        "table-of-older-version",
        f"the table of {topic} was written by an earlier version, whose memory is in columns (`__moved`, `__filled`,"
        " `__snapshot`, `__trace`); this version can't read it",
        "fill the table again: `distributary resume -c FILE TABLE --rebuild` (Kafka must still have its records, or the"
        " connector must send a snapshot); until then it stays as it is",
    )
