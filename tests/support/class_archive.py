"""Writes the archive of Spark's classes that the tests' JVMs start with (see tests/support/jvm.py), unless it is there.

`python -m tests.support.class_archive`. Tests run without it, too: a Java that can't write one only starts more slowly.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from tests.support.changes import Topic, key, row
from tests.support.jvm import QUIET, class_archive
from tests.support.memory_kafka import new_address
from tests.support.spark import new_bench

from distributary.launch.java import SHORT_LIVED
from distributary.launch.session import close_session, open_session

_WRITING_SECONDS = 300


def write_class_archive() -> None:
    """At its end the JVM of a session that has made a table and merged into it writes the classes that it loaded. It
    deletes the archives for other versions of Java and PySpark."""
    archive = class_archive()
    if archive.exists():
        return
    archive.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=archive.parent) as folder:
        new = Path(folder) / archive.name
        at_exit = {"spark.driver.extraJavaOptions": f"-XX:ArchiveClassesAtExit={new} {QUIET}"}
        session = open_session({"spark.master": "local[2]", "spark.driver.memory": "3g", **at_exit})
        bench = new_bench(session, new_address(), Path(folder), deletes="soft")
        topic = Topic(bench.create().topic)
        worker = bench.take([topic.change("c", key(1), row(1, "first"), at=1)])
        bench.take([topic.change("u", key(1), row(1, "second"), at=2), topic.change("d", key(1), at=3)], worker)
        gateway = session.sparkContext._gateway
        assert gateway is not None
        process = gateway.proc
        close_session(session)
        process.stdin.close()  # the JVM ends with it
        process.wait(_WRITING_SECONDS)
        if new.exists():
            for other in archive.parent.glob("spark-classes-*.jsa"):
                other.unlink()
            new.replace(archive)


if __name__ == "__main__":
    os.environ.setdefault("JAVA_TOOL_OPTIONS", SHORT_LIVED)
    write_class_archive()
