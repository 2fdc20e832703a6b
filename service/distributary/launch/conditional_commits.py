"""Commits to S3 that never replace another driver's.

Delta's log store for S3 checks whether a version is there, and then writes it: the later of two drivers replaces the
commit of the earlier one. S3 itself can refuse to replace a file, and Hadoop can ask it to, which
ConditionalLogStore.java does. Janino compiles it, which Spark brings along for its generated code: so neither a
compiler nor a jar of our own has to be installed.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from uuid import uuid4

from py4j.protocol import Py4JError
from pyspark.sql import SparkSession

from distributary import logs
from distributary.launch.classes import HADOOP_PATH, java_class
from distributary.launch.small_commits import ANY_LOG_STORE

LOG_STORE = "distributary.ConditionalLogStore"
_SOURCE = Path(__file__).with_name("ConditionalLogStore.java")
_CONNECTOR = "org.apache.hadoop.fs.s3a.S3AFileSystem"
_SCHEMES = ("s3a", "s3", "s3n")
_log = logs.get_logger(__name__)


def make_s3_commits_conditional(session: SparkSession) -> bool:
    """Lets Delta use ConditionalLogStore for tables on S3, in this JVM from now on. Returns whether it does.

    It does not where Hadoop's connector for S3 is missing, and where the user has named a log store. Logs a warning
    where the class can't be compiled or loaded: then commits are made as Delta makes them.
    """
    # The context's own settings, not a copy: Delta reads them when it first opens a table.
    settings = session.sparkContext._jsc.sc().conf()
    keys = [f"spark.delta.logStore.{scheme}.impl" for scheme in _SCHEMES]
    if any(settings.contains(key) for key in (ANY_LOG_STORE, *keys)):
        return False
    loader = java_class(session, "java.lang.Thread").currentThread().getContextClassLoader()
    if not _has_class(loader, _CONNECTOR):
        return False
    try:
        if not _has_class(loader, LOG_STORE):
            _load(session, loader)
    except (Py4JError, TypeError, OSError) as error:  # a class loader that can't be added to has no method addURL
        _log.warning(
            "commits to S3 are not protected from another driver's",
            reason=_first_line(error),
            fix="run one driver per config, and no other writer beside it: see docs/object-stores.md",
        )
        return False
    for key in keys:
        settings.set(key, LOG_STORE)
    return True


def check_store(session: SparkSession, directory: str) -> None:
    """Logs a warning where the store of a directory does not refuse to replace a file: commits need that.

    Writes a small file there twice, and deletes it. Does nothing where Delta does not use ConditionalLogStore.
    """
    key = f"spark.delta.logStore.{urlsplit(directory).scheme}.impl"
    if session.sparkContext.getConf().get(key) != LOG_STORE:
        return
    hadoop = session.sparkContext._jsc.hadoopConfiguration()
    path = java_class(session, HADOOP_PATH)(f"{directory.rstrip('/')}/conditional-write-{uuid4()}")
    try:
        store = java_class(session, LOG_STORE)(hadoop)
        reason = why_not_refused(lambda text: store.write(path, _lines(session, text), False, hadoop))
        path.getFileSystem(hadoop).delete(path, False)
    except Py4JError as error:
        reason = _first_line(error)
    if reason:
        _log.warning(
            "the store does not protect commits from another driver's",
            reason=reason,
            fix="set spark.hadoop.fs.s3a.create.conditional.enabled: false in the config, run one driver, and no other"
            " writer beside it: see docs/object-stores.md",
        )


def why_not_refused(create: Callable[[str], object]) -> str:
    """Creates a file twice, by a function that is given its content: why the second time is not refused, as it should
    be; empty if it is. Raises what the first time raises."""
    create("1")
    try:
        create("2")
    except Py4JError as error:
        reason = _first_line(error)
        return "" if "FileAlreadyExistsException" in reason else reason
    return "it replaced a file that was to be written only if absent"


def _lines(session: SparkSession, text: str) -> Any:
    lines = java_class(session, "java.util.ArrayList")()
    lines.add(text)
    return lines.iterator()


def _first_line(error: Exception) -> str:
    return str(getattr(error, "java_exception", error)).strip().splitlines()[0]


def _has_class(loader: Any, name: str) -> bool:
    try:
        loader.loadClass(name)
    except Py4JError:
        return False
    return True


def _load(session: SparkSession, loader: Any) -> None:
    """Compiles the class into a directory that is needed until it is loaded."""
    compiler = java_class(session, "org.codehaus.janino.SimpleCompiler")()
    compiler.setParentClassLoader(loader)
    compiler.cook(_SOURCE.read_text(encoding="utf-8"))
    with tempfile.TemporaryDirectory(prefix="distributary-") as directory:
        file = Path(directory, *LOG_STORE.split(".")).with_suffix(".class")
        file.parent.mkdir()
        file.write_bytes(bytes(compiler.getBytecodes()[LOG_STORE]))
        loader.addURL(java_class(session, "java.io.File")(directory).toURI().toURL())
        loader.loadClass(LOG_STORE)
