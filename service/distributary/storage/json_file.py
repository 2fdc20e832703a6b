"""A small JSON file of the service's own, on any file system that Hadoop knows."""

from __future__ import annotations

import json
import uuid
from typing import TYPE_CHECKING, Any

from distributary.errors import TransientError
from distributary.launch.classes import HADOOP_PATH, java_class, lines_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


_LOCAL = "file"


class JsonFile:
    """The file at `path`. A reader sees either the old or the new content while it is replaced: on a local file system
    a new file is renamed to it, and object stores show an object only when it is complete."""

    def __init__(self, session: SparkSession, path: str) -> None:
        self._session = session
        self._path = path

    def read(self) -> Any:
        """The last written document; None if there is none, or it can't be read."""
        place, files = self._at(self._path)
        if not files.exists(place):
            return None
        stream = files.open(place)
        try:
            line = lines_of(self._session, stream).readLine()
        finally:
            stream.close()
        try:
            return json.loads(line or "null")
        except ValueError:
            return None

    def exists(self) -> bool:
        """Whether anything is written there."""
        place, files = self._at(self._path)
        return bool(files.exists(place))

    def has_directory(self) -> bool:
        """Whether the file's directory is there; always True on other than local file systems: those that are away give
        errors, and in object stores only objects make directories."""
        place, files = self._at(self._path)
        return files.getUri().getScheme() != _LOCAL or bool(files.exists(place.getParent()))

    def write(self, value: Any) -> None:
        """Replaces the content."""
        place, files = self._at(self._path)
        renames = files.getUri().getScheme() == _LOCAL
        target = self._at(f"{self._path}.{uuid.uuid4().hex}.new")[0] if renames else place
        stream = files.create(target, True)
        try:
            try:
                stream.writeBytes(json.dumps(value) + "\n")  # JSON in ASCII: a byte for each character
            finally:
                stream.close()
        except Exception:
            if renames:  # the part that was written to a full disk would stay for ever
                files.delete(target, False)
            raise
        if renames:
            files.rename(target, place)

    def remove(self) -> None:
        """Nothing is written any more."""
        place, files = self._at(self._path)
        files.delete(place, False)

    def _at(self, path: str) -> tuple[Any, Any]:
        return _place(self._session, path)


def names_in(session: SparkSession, folder: str, *, had_files: bool = False) -> list[str]:
    """The names of the files in a folder, sorted; none where there is no such folder. Raises TransientError if the
    folder of a local file system `had_files` and is gone."""
    place, files = _place(session, folder)
    if not files.exists(place):
        if had_files and files.getUri().getScheme() == _LOCAL:
            raise lake_missing()
        return []
    return sorted(status.getPath().getName() for status in files.listStatus(place))


def lake_missing() -> TransientError:
    """Why files of the service are not there: their volume is not mounted any more."""
    return TransientError(
        "lake-missing",
        "the service's own directory (_distributary) is not at target.path any more",
        "mount the volume that has it: the work then continues. If it was deleted on purpose, restart the service",
    )


def _place(session: SparkSession, path: str) -> tuple[Any, Any]:
    """Hadoop's path, and its file system."""
    place = java_class(session, HADOOP_PATH)(path)
    files = place.getFileSystem(session._jsparkSession.sessionState().newHadoopConf())
    # With Hadoop's checksums a file could not be replaced at once: they are a second file beside it.
    return place, files.getRawFileSystem() if files.getUri().getScheme() == _LOCAL else files
