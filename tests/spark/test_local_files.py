"""Local files are created without a process for each."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from distributary.launch import local_files
from distributary.launch.classes import HADOOP_PATH, java_class
from distributary.launch.java_sources import NotLoadedError
from distributary.launch.small_commits import write_simply


def faults_of_ended_processes(session: SparkSession) -> int:
    """A number that grows with each process that the JVM has started and that has ended (`cminflt` of /proc)."""
    gateway = session.sparkContext._gateway
    assert gateway is not None
    fields = Path(f"/proc/{gateway.proc.pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return int(fields[8])


def test_a_commit_starts_no_process(session: SparkSession, tmp_path: Path) -> None:
    place = str(tmp_path / "t")
    writing = session.newSession()
    write_simply(writing, place)
    writing.range(1).write.format("delta").save(place)
    before = faults_of_ended_processes(session)
    writing.range(1).write.format("delta").mode("append").save(place)
    assert faults_of_ended_processes(session) == before
    assert session.read.format("delta").load(place).count() == 2


@pytest.mark.parametrize("mode", [0o640, 0o4755, 0o1777])
def test_files_get_the_permissions_that_hadoop_gives_them(session: SparkSession, tmp_path: Path, mode: int) -> None:
    path = java_class(session, HADOOP_PATH)(f"file:{tmp_path}/file with space")
    files = path.getFileSystem(session.sparkContext._jsc.hadoopConfiguration())
    files.create(path).close()
    assert (tmp_path / "file with space").stat().st_mode & 0o777 == 0o644
    files.setPermission(path, java_class(session, "org.apache.hadoop.fs.permission.FsPermission")(mode))
    assert (tmp_path / "file with space").stat().st_mode & 0o1777 == mode & 0o1777


def test_without_the_class_files_are_created_as_ever(
    session: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_given: object) -> None:
        raise NotLoadedError("no Janino")

    monkeypatch.setattr(local_files, "load_from_source", fails)
    local_files.open_files_by_java(session)
    session.range(1).write.format("delta").save(str(tmp_path / "t"))
