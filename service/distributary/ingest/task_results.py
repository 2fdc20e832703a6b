"""What Spark's tasks return to the driver: Arrow tables, each of a kind.

Where the driver does all work itself, a task writes its tables into files, which the driver maps into its memory. From
other machines they come through Spark, whose JVM copies them several times and holds those of all tasks in its heap.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import pairwise
from pathlib import Path
from uuid import uuid4

import numpy as np
import pyarrow as pa
from pyspark import SparkContext

from distributary.errors import TransientError
from distributary.launch.network import is_local

RESULT_COLUMNS = "kind STRING, content BINARY, path STRING"
"""The columns of what a task returns: the kind of a table, and the table as an Arrow stream or the path of its file."""
EVENTS, REJECTED, FILE = "events", "rejected", "file"
"""The kinds."""
TaskResults = Sequence[tuple[str, pa.Table]]
"""The tables of all tasks, each with its kind."""
_ENCRYPTS = "spark.io.encryption.enabled"


def make_result(kind: str, table: pa.Table, folder: str | None) -> pa.RecordBatch:
    """One row of RESULT_COLUMNS. `folder`: where its file may be written, see result_folder()."""
    path = None if folder is None else _write_file(table, folder)
    content = _stream_of(table) if path is None else pa.nulls(1, pa.binary())
    return pa.RecordBatch.from_arrays(
        [pa.array([kind]), content, pa.array([path], pa.string())], names=["kind", "content", "path"]
    )


@contextmanager
def result_folder(context: SparkContext) -> Iterator[str | None]:
    """The folder for files of one job's tasks, for this user alone. It is removed afterwards; tables that were read
    remain. None if tasks may run on other machines, if Spark encrypts what it writes to disks, or if nothing can be
    written there."""
    folder = None
    if is_local(context.master or "") and str(context._conf.get(_ENCRYPTS)).lower() != "true":
        with suppress(OSError):
            # Spark's own directory for what Python exchanges with Java.
            folder = tempfile.mkdtemp(prefix="results-", dir=context._temp_dir)
    try:
        yield folder
    finally:
        if folder is not None:
            _remove(folder)


def _remove(folder: str) -> None:
    """Removes a folder into which tasks of a cancelled job may still write: under its new name they don't find it."""
    removed = f"{folder}-removed"
    try:
        Path(folder).rename(removed)
    except OSError:
        removed = folder
    shutil.rmtree(removed, ignore_errors=True)


def read_results(returned: pa.Table) -> TaskResults:
    """The tables in rows of RESULT_COLUMNS; those of files are mapped, not copied. Raises TransientError if a file is
    gone."""
    results = []
    for kind, content, path in zip(
        returned["kind"].to_pylist(), _contents(returned["content"]), returned["path"].to_pylist(), strict=True
    ):
        # One after the other: a map needs no open file any more once its table is read.
        results.append((kind, pa.ipc.open_stream(content if path is None else _mapped(path)).read_all()))
    return results


def _mapped(path: str) -> pa.MemoryMappedFile:
    try:
        return pa.memory_map(path)
    except FileNotFoundError as error:
        raise TransientError(
            "storage-or-network",
            "a temporary file of Spark's tasks was deleted before it was read",
            "it is tried again; if it stays so, keep cleaners away from spark.local.dir",
        ) from error


def _write_file(table: pa.Table, folder: str) -> str | None:
    """The path of a new file with the table; None if it can't be written: the disk is full, or the job was
    cancelled."""
    path = Path(folder, uuid4().hex)
    try:
        with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_stream(sink, table.schema) as stream:
            stream.write_table(table)
    except OSError:
        with suppress(OSError):
            path.unlink()
        return None
    return str(path)


def _stream_of(table: pa.Table) -> pa.BinaryArray:
    """One value, which is not copied: that of records of 20 MB would be twice more."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as stream:
        stream.write_table(table)
    content = sink.getvalue()
    offsets = pa.array([0, content.size], pa.int32()).buffers()[1]
    return pa.BinaryArray.from_buffers(pa.binary(), 1, [None, offsets, content])


def _contents(streams: pa.ChunkedArray) -> Iterator[pa.Buffer]:
    """The values of a column of bytes, empty where it is null. Arrow's scalars would be copies."""
    for chunk in streams.chunks:
        _, offsets, data = chunk.buffers()
        data = pa.py_buffer(b"") if data is None else data
        ends = np.frombuffer(offsets, np.int32)[chunk.offset : chunk.offset + len(chunk) + 1].tolist()
        for start, end in pairwise(ends):
            yield data.slice(start, end - start)
