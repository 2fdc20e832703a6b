"""Spark works on after its temporary directories were deleted."""

from __future__ import annotations

import os
import shutil
import time

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from distributary.launch.temporary_directories import TemporaryDirectories


def shuffled(session: SparkSession) -> int:
    """Needs Spark's directory for shuffles, and PySpark's for what is sent to the JVM."""
    rows = session.createDataFrame([(number, "x" * 100) for number in range(2000)], "id int, v string")
    return int(rows.repartition(3, "id").groupBy("v").count().collect()[0]["count"])


def test_deleted_directories_are_made_again(session: SparkSession) -> None:
    directories = TemporaryDirectories(session)
    assert shuffled(session) == 2000
    deleted = {directory.parent if len(directory.name) == 2 else directory for directory in directories._directories}
    assert len(deleted) > 1
    for directory in deleted:
        shutil.rmtree(directory)
    with pytest.raises((PySparkException, OSError)):
        shuffled(session)
    directories.keep()
    assert shuffled(session) == 2000
    assert {directory.stat().st_mode & 0o777 for directory in deleted} == {0o700}
    for directory in deleted:
        os.utime(directory, (0, 0))
    directories.keep()
    assert all(directory.stat().st_mtime > time.time() - 60 for directory in deleted)
