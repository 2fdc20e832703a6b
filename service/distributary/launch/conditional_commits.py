"""Commits to S3 that never replace another driver's.

Delta's log store for S3 checks whether a version exists, and then writes it: the later of two drivers replaces the
commit of the earlier one. S3 can refuse to replace a file if Hadoop requests this, as ConditionalLogStore.java does.
Janino compiles it, which Spark brings along for its generated code: so neither a compiler nor a jar of our own has to
be installed.
"""

from __future__ import annotations

import atexit
import shutil
import tempfile
import zipfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from uuid import uuid4

from py4j.protocol import Py4JError
from pyspark.sql import SparkSession

from distributary import logs
from distributary.launch.classes import HADOOP_PATH, java_class
from distributary.launch.network import is_local
from distributary.launch.small_commits import ANY_LOG_STORE

LOG_STORE = "distributary.ConditionalLogStore"
_SOURCE = Path(__file__).with_name("ConditionalLogStore.java")
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
    loader = java_class(session, "java.lang.Thread").currentThread().getContextClassLoader()
    if not _has_class(loader, _CONNECTOR):
        return
    try:
        if not _has_class(loader, LOG_STORE):
            _load(session, loader)
    except (Py4JError, TypeError, OSError) as error:  # a class loader that can't be added to has no method addURL
        _log.warning(
            "commits to S3 are not protected from another driver's",
            reason=_first_line(error),
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
            reason=_first_line(error),
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


def _first_line(error: Exception) -> str:
    return str(getattr(error, "java_exception", error)).strip().splitlines()[0]


def _has_class(loader: Any, name: str) -> bool:
    try:
        loader.loadClass(name)
    except Py4JError:
        return False
    return True


def _load(session: SparkSession, loader: Any) -> None:
    """Compiles the class into a jar. Executors get it, too: their tasks list tables with the log store in a VACUUM."""
    compiler = java_class(session, "org.codehaus.janino.SimpleCompiler")()
    compiler.setParentClassLoader(loader)
    compiler.cook(_SOURCE.read_text(encoding="utf-8"))
    directory = tempfile.mkdtemp(prefix="distributary-")
    atexit.register(shutil.rmtree, directory, ignore_errors=True)
    jar = Path(directory, "conditional-log-store.jar")
    with zipfile.ZipFile(jar, "w") as file:
        file.writestr(f"{LOG_STORE.replace('.', '/')}.class", bytes(compiler.getBytecodes()[LOG_STORE]))
    loader.addURL(java_class(session, "java.io.File")(str(jar)).toURI().toURL())
    loader.loadClass(LOG_STORE)
    if not is_local(session.sparkContext.master or ""):
        session.sparkContext._jsc.sc().addJar(str(jar))
