"""Spark's temporary directories. Cleaners of /tmp delete what looks unused, and Spark never makes these again: each job
that needs one would fail until the service is started anew."""

from __future__ import annotations

import os
from pathlib import Path

from pyspark.sql import SparkSession

_SUBDIRECTORIES = "spark.diskStore.subDirectories"


class TemporaryDirectories:
    """The directories of the driver for shuffles and results, and for what Python sends to Java."""

    def __init__(self, session: SparkSession) -> None:
        context = session.sparkContext
        disks = context._jvm.org.apache.spark.SparkEnv.get().blockManager().diskBlockManager()  # type: ignore[union-attr]
        count = int(context.getConf().get(_SUBDIRECTORIES, "64") or 64)
        self._directories = [Path(context._temp_dir)]
        for directory in disks.localDirsString():
            self._directories += [Path(directory, f"{number:02x}") for number in range(count)]

    def keep(self) -> None:
        """Makes those that are missing, and marks all as used just now. Raises OSError."""
        for directory in self._directories:
            _make(directory)
            os.utime(directory)
        for parent in {directory.parent for directory in self._directories}:
            os.utime(parent)


def _make(directory: Path) -> None:
    """For this user alone: rows may be in there."""
    if not directory.parent.exists():
        _make(directory.parent)
    directory.mkdir(mode=0o700, exist_ok=True)
