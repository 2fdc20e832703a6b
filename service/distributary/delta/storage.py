"""The files of one table, wherever pyarrow's file systems reach."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from urllib.parse import quote, unquote, urlsplit

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import fs

from distributary.errors import TableHalt


class TableFiles:
    """The files below the directory `root` of `filesystem` (None: this machine's own).

    Paths are those of the table's log: relative to the root, or whole URIs; in both, characters are escaped by %.
    """

    def __init__(self, root: str, filesystem: fs.FileSystem | None = None) -> None:
        self.root = root.rstrip("/")
        self.filesystem = filesystem or fs.LocalFileSystem()

    def filesystem_path(self, path: str) -> str:
        """The path in the file system of a path in the log."""
        return unquote(in_file_system(path)) if urlsplit(path).scheme else f"{self.root}/{unquote(path)}"

    @staticmethod
    def log_path(relative: str) -> str:
        """A path below the root, in the log's form."""
        return quote(relative, safe="/=-_.~")

    def open(self, path: str) -> pa.NativeFile:
        """A file for reading at any place. Raises TableHalt if it is not there."""
        try:
            return self.filesystem.open_input_file(self.filesystem_path(path))
        except FileNotFoundError as error:
            raise file_missing(path) from error

    def parquet(self, path: str) -> pq.ParquetFile:
        """A data file. Raises TableHalt if it is not there, or is no Parquet file."""
        try:
            # Old writers have times as INT96, which in nanoseconds would not reach beyond the year 2262.
            return pq.ParquetFile(self.open(path), pre_buffer=False, coerce_int96_timestamp_unit="us")
        except pa.ArrowInvalid as error:
            raise file_damaged(path) from error

    def write(self, path: str, content: bytes) -> None:
        """Writes a new file."""
        place = self.filesystem_path(path)
        self.make_parent(place)
        with self.filesystem.open_output_stream(place) as stream:
            stream.write(content)

    def make_parent(self, place: str) -> None:
        """Makes the directory of a file, given as a place in the file system; object stores have none, and none is made
        there."""
        if not isinstance(self.filesystem, fs.S3FileSystem):
            self.filesystem.create_dir(place.rpartition("/")[0], recursive=True)

    def size(self, path: str) -> int:
        """Bytes of a file."""
        return int(self.filesystem.get_file_info(self.filesystem_path(path)).size)

    def delete(self, paths: Iterable[str]) -> None:
        """Deletes files, and ignores failures: the remaining files are orphans, which VACUUM removes."""
        for path in paths:
            with suppress(OSError):
                self.filesystem.delete_file(self.filesystem_path(path))


def in_file_system(uri: str) -> str:
    """Where a URI lies in its pyarrow file system, which knows the server or the account already; a bucket or container
    is a part of the path."""
    parts = urlsplit(uri)
    if parts.scheme in ("hdfs", "viewfs"):
        return parts.path
    container, _, _ = parts.netloc.partition("@")
    return f"{container}{parts.path}"


def file_missing(path: str) -> TableHalt:
    """The log names a file that is not there."""
    return TableHalt(
        "table-file-missing",
        f"the table's log names the file {path}, which is not there",
        "restore the file, or the table (RESTORE TABLE) to a version that does not need it; look for what deleted it:"
        " deltalake's vacuum(full=True) deletes deletion vectors that are in use",
    )


def file_damaged(path: str) -> TableHalt:
    """The halt for a file of the table that does not match the log."""
    return TableHalt(
        "table-file-damaged",
        f"the file {path} of the table is damaged",
        "restore the file, or the table (RESTORE TABLE) to a version that does not need it",
    )
