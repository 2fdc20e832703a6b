"""Spark's temporary directories. Cleaners of /tmp delete what looks unused, and Spark never makes these again: each job
that needs one would fail until the service is started anew."""

from __future__ import annotations

import os
from pathlib import Path

from pyspark.sql import SparkSession

_SUBDIRECTORIES = "spark.diskStore.subDirectories"


class TemporaryFolders:
    """The temporary directories of the driver's session."""

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
            folder.mkdir(parents=True, exist_ok=True)
            os.utime(folder)
        for parent in {folder.parent for folder in self._folders}:
            os.utime(parent)
