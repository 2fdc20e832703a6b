"""Spark works on after its temporary directories were deleted."""

from __future__ import annotations

import os
import shutil
import time

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from distributary.launch.temporary_folders import TemporaryFolders


def shuffled(session: SparkSession) -> int:
    """Needs Spark's directory for shuffles, and PySpark's for what is sent to the JVM."""
    rows = session.createDataFrame([(number, "x" * 100) for number in range(2000)], "id int, v string")
    return int(rows.repartition(3, "id").groupBy("v").count().collect()[0]["count"])


def test_deleted_directories_are_made_again(session: SparkSession) -> None:
    folders = TemporaryFolders(session)
    assert shuffled(session) == 2000
    deleted = {folder.parent if len(folder.name) == 2 else folder for folder in folders._folders}
    assert len(deleted) > 1
    for folder in deleted:
        shutil.rmtree(folder)
    with pytest.raises((PySparkException, OSError)):
        shuffled(session)
    folders.keep()
    assert shuffled(session) == 2000
    assert {folder.stat().st_mode & 0o777 for folder in deleted} == {0o700}
    for folder in deleted:
        os.utime(folder, (0, 0))
    folders.keep()
    assert all(folder.stat().st_mtime > time.time() - 60 for folder in deleted)
