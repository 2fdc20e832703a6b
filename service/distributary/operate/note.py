"""A small JSON file of the service's own, on any file system that Hadoop knows."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class Note:
    """The file at `path`. It is written beside its place and then moved there: it is whole or not there."""

    def __init__(self, session: SparkSession, path: str) -> None:
        self._session = session
        self._jvm: Any = session._jvm
        self._path = path

    def read(self) -> Any:
        """What was written last; None where nothing was, or where it can't be understood."""
        place, files = self._at(self._path)
        if not files.exists(place):
            return None
        stream = files.open(place)
        try:
            lines = self._jvm.java.io.BufferedReader(self._jvm.java.io.InputStreamReader(stream, "UTF-8"))
            line = lines.readLine()
        finally:
            stream.close()
        try:
            return json.loads(line or "null")
        except ValueError:
            return None

    def write(self, value: Any) -> None:
        """Replaces what was written before."""
        place, files = self._at(self._path)
        beside, _ = self._at(f"{self._path}.new")
        stream = files.create(beside, True)
        try:
            stream.writeBytes(json.dumps(value) + "\n")  # JSON in ASCII: a byte for each character
        finally:
            stream.close()
        files.delete(place, False)
        files.rename(beside, place)

    def remove(self) -> None:
        """Nothing is written any more."""
        place, files = self._at(self._path)
        files.delete(place, False)

    def _at(self, path: str) -> tuple[Any, Any]:
        return _place(self._session, path)


def names_in(session: SparkSession, folder: str) -> list[str]:
    """The names of the files in a folder, sorted; none where there is no such folder."""
    place, files = _place(session, folder)
    if not files.exists(place):
        return []
    return sorted(status.getPath().getName() for status in files.listStatus(place))


def _place(session: SparkSession, path: str) -> tuple[Any, Any]:
    """Hadoop's path, and the file system that has it."""
    jvm: Any = session._jvm
    place = jvm.org.apache.hadoop.fs.Path(path)
    return place, place.getFileSystem(session._jsparkSession.sessionState().newHadoopConf())
