"""Commits to S3 that never replace another driver's.

Delta's log store for S3 checks whether a version exists, and then writes it: the later of two drivers replaces the
commit of the earlier one. S3 can refuse to replace a file if Hadoop requests this, as ConditionalLogStore.java does.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any
from urllib.parse import urlsplit
from uuid import uuid4

from py4j.protocol import Py4JError
from pyspark.sql import SparkSession

from distributary import logs
from distributary.launch.classes import HADOOP_PATH, java_class
from distributary.launch.java_sources import NotLoadedError, class_loader, first_line, has_class, load_from_source
from distributary.launch.network import is_local
from distributary.launch.small_commits import ANY_LOG_STORE

LOG_STORE = "distributary.ConditionalLogStore"
_CONNECTOR = "org.apache.hadoop.fs.s3a.S3AFileSystem"
_SCHEMES = ("s3a", "s3", "s3n")
_IF_ABSENT = "fs.option.create.conditional.overwrite"
"""Hadoop's option of a file, and the capability of a store that has it."""
_FIX = "run one driver per config, and no other writer beside it: see docs/object-stores.md"
_log = logs.get_logger(__name__)


def make_s3_commits_conditional(session: SparkSession) -> None:
    """Lets Delta use ConditionalLogStore for tables on S3, in this JVM from now on.

    Not where Hadoop's connector for S3 is missing, and where the user has named a log store. Logs a warning
    where the class can't be compiled or loaded: then commits are made as Delta makes them.
    """
    # The context's own settings, not a copy: Delta reads them when it first opens a table.
    settings = session.sparkContext._jsc.sc().conf()
    keys = [f"spark.delta.logStore.{scheme}.impl" for scheme in _SCHEMES]
    if any(settings.contains(key) for key in (ANY_LOG_STORE, *keys)):
        return
    if not has_class(class_loader(session), _CONNECTOR):
        return
    try:
        _, jar = load_from_source(session, LOG_STORE.rpartition(".")[2])
        if jar is not None and not is_local(session.sparkContext.master or ""):
            # Tasks of a VACUUM list tables with the log store.
            session.sparkContext._jsc.sc().addJar(str(jar))
    except (NotLoadedError, Py4JError) as error:
        _log.warning(
            "commits to S3 are not protected from another driver's",
            reason=first_line(error),
            fix=_FIX,
        )
        return
    for key in keys:
        settings.set(key, LOG_STORE)


def check_store(session: SparkSession, directory: str) -> None:
    """Logs a warning where the store of a directory replaces a file that is to be written only if it is absent.

    Writes a small file there twice, and deletes it. Does nothing where Delta does not use ConditionalLogStore, or where
    the config has switched conditional writes off.
    """
    key = f"spark.delta.logStore.{urlsplit(directory).scheme}.impl"
    if session.sparkContext.getConf().get(key) != LOG_STORE:
        return
    path = java_class(session, HADOOP_PATH)(f"{directory.rstrip('/')}/conditional-write-{uuid4()}")
    try:
        files = path.getFileSystem(session.sparkContext._jsc.hadoopConfiguration())
        if not files.hasPathCapability(path, _IF_ABSENT):
            return
        replaces = replaces_files(lambda: _create(files, path))
    except Py4JError as error:
        _log.warning(
            "it could not be checked whether the store protects commits from another driver's",
            reason=first_line(error),
            fix="nothing, if tables are written; see docs/object-stores.md if each commit fails for this reason",
        )
        return
    if replaces:
        _log.warning(
            "commits to S3 are not protected from another driver's", reason="the store replaces files", fix=_FIX
        )
    with suppress(Py4JError):  # a file that remains of a check does no harm
        files.delete(path, False)


def replaces_files(create: Callable[[], object]) -> bool:
    """Whether a function that creates a file, if it is absent, does it twice. Raises what the first time raises."""
    create()
    try:
        create()
    except Py4JError:
        return False
    return True


def _create(files: Any, path: Any) -> None:
    file = files.createFile(path)
    file.create()
    file.must(_IF_ABSENT, "true")
    file.build().close()  # the request is made here
