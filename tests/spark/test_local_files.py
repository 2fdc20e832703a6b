"""Local files are as Hadoop makes them, but for the processes (see test_delta_writer.py)."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from distributary.launch import local_files
from distributary.launch.classes import HADOOP_PATH, java_class
from distributary.launch.java_sources import NotLoadedError


@pytest.mark.parametrize("mode", [0o640, 0o4755, 0o1777])
def test_files_get_the_permissions_that_hadoop_gives_them(session: SparkSession, tmp_path: Path, mode: int) -> None:
    path = java_class(session, HADOOP_PATH)(f"file:{tmp_path}/file with space")
    files = path.getFileSystem(session.sparkContext._jsc.hadoopConfiguration())
    files.create(path).close()
    assert (tmp_path / "file with space").stat().st_mode & 0o777 == 0o644
    files.setPermission(path, java_class(session, "org.apache.hadoop.fs.permission.FsPermission")(mode))
    assert (tmp_path / "file with space").stat().st_mode & 0o1777 == mode & 0o1777


def test_directories_keep_the_group_of_their_parents(session: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "lake").mkdir()
    (tmp_path / "lake").chmod(0o2755)
    path = java_class(session, HADOOP_PATH)(f"file:{tmp_path}/lake/dbo/t")
    assert path.getFileSystem(session.sparkContext._jsc.hadoopConfiguration()).mkdirs(path)
    assert [(tmp_path / "lake" / name).stat().st_mode & 0o7777 for name in ("dbo", "dbo/t")] == [0o2755] * 2


def test_a_class_that_can_not_be_loaded_ends_no_session(session: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_given: object) -> None:
        raise NotLoadedError("no Janino")

    monkeypatch.setattr(local_files, "load_from_source", fails)
    local_files.open_files_by_java(session)
