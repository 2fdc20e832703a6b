"""Classes of Java that lie in this folder as source.

Janino compiles them, which Spark brings along for its generated code: so neither a compiler nor a jar of our own has to
be installed.
"""

from __future__ import annotations

import atexit
import shutil
import tempfile
import zipfile
from pathlib import Path
from typing import Any

from py4j.protocol import Py4JError
from pyspark.sql import SparkSession

from distributary.launch.classes import java_class

_PACKAGE = "distributary"


class NotLoadedError(Exception):
    """The class can't be compiled or loaded; the text says why."""


def load_from_source(session: SparkSession, name: str) -> tuple[str, Path | None]:
    """Makes the class of `NAME.java` known to the driver's JVM. Returns its whole name and the jar that it was compiled
    to, None if it was known. Raises NotLoadedError."""
    loader = class_loader(session)
    whole_name = f"{_PACKAGE}.{name}"
    if has_class(loader, whole_name):
        return whole_name, None
    try:
        compiler = java_class(session, "org.codehaus.janino.SimpleCompiler")()
        compiler.setParentClassLoader(loader)
        compiler.cook(Path(__file__).with_name(f"{name}.java").read_text(encoding="utf-8"))
        directory = tempfile.mkdtemp(prefix="distributary-")
        atexit.register(shutil.rmtree, directory, ignore_errors=True)
        jar = Path(directory, f"{name}.jar")
        with zipfile.ZipFile(jar, "w") as file:
            for class_name, content in dict(compiler.getBytecodes()).items():
                file.writestr(f"{class_name.replace('.', '/')}.class", bytes(content))
        loader.addURL(java_class(session, "java.io.File")(str(jar)).toURI().toURL())
        loader.loadClass(whole_name)
    except (Py4JError, TypeError, OSError) as error:  # a class loader that can't be added to has no method addURL
        raise NotLoadedError(first_line(error)) from error
    return whole_name, jar


def class_loader(session: SparkSession) -> Any:
    """The class loader of the driver's JVM by which Spark, Delta and Hadoop find classes by their names."""
    return java_class(session, "java.lang.Thread").currentThread().getContextClassLoader()


def has_class(loader: Any, name: str) -> bool:
    """Whether a class loader knows a class."""
    try:
        loader.loadClass(name)
    except Py4JError:
        return False
    return True


def first_line(error: Exception) -> str:
    """Java's own message, without its stack."""
    return str(getattr(error, "java_exception", error)).strip().splitlines()[0]
