"""Spark's temporary directories. Cleaners of /tmp delete what looks unused, and Spark never makes these again: each job
that needs one would fail until the service is started anew."""

from __future__ import annotations

import os
from pathlib import Path

from pyspark.sql import SparkSession

_SUBDIRECTORIES = "spark.diskStore.subDirectories"


class TemporaryFolders:
    """The directories of the driver for shuffles and results, and for what Python sends to Java."""

    def __init__(self, session: SparkSession) -> None:
        context = session.sparkContext
        disks = context._jvm.org.apache.spark.SparkEnv.get().blockManager().diskBlockManager()  # type: ignore[union-attr]
        count = int(context.getConf().get(_SUBDIRECTORIES, "64") or 64)
        self._folders = [Path(context._temp_dir)]
        for folder in disks.localDirsString():
            self._folders += [Path(folder, f"{number:02x}") for number in range(count)]

    def keep(self) -> None:
        """Makes those that are missing, and marks all as used just now. Raises OSError."""
        for folder in self._folders:
            _make(folder)
            os.utime(folder)
        for parent in {folder.parent for folder in self._folders}:
            os.utime(parent)


def _make(folder: Path) -> None:
    """For this user alone: rows may be in there."""
    if not folder.parent.exists():
        _make(folder.parent)
    folder.mkdir(mode=0o700, exist_ok=True)
