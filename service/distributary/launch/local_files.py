"""Local files without processes: see NioLocalFileSystem.java. A commit creates four files, checksums included, and each
process takes longer than all else that is done for its file."""

from __future__ import annotations

from py4j.protocol import Py4JError
from pyspark.sql import SparkSession

from distributary import logs
from distributary.launch.classes import java_class
from distributary.launch.java_sources import NotLoadedError, class_loader, first_line, load_from_source
from distributary.launch.network import is_local

_SETTING = "fs.file.impl"
_log = logs.get_logger(__name__)


def open_files_by_java(session: SparkSession) -> None:
    """Lets Hadoop use NioLocalFileSystem in this JVM from now on. Not where executors are processes of their own, which
    do the work on files there, nor where the user has named a class."""
    hadoop = session.sparkContext._jsc.hadoopConfiguration()
    if not is_local(session.sparkContext.master or "") or hadoop.get(_SETTING) is not None:
        return
    try:
        name, _jar = load_from_source(session, "NioLocalFileSystem")
        # Hadoop keeps one file system for all users of local files: it is replaced by one that is made with other
        # settings, and these are forgotten. So no setting names a class that some class loader may not have.
        settings = java_class(session, "org.apache.hadoop.conf.Configuration")(hadoop)
        settings.setClassLoader(class_loader(session))
        settings.set(_SETTING, name)
        root = java_class(session, "java.net.URI").create("file:///")
        file_systems = java_class(session, "org.apache.hadoop.fs.FileSystem")
        file_systems.get(root, hadoop).close()
        used = file_systems.get(root, settings).getClass().getName()
        if used != name:  # another thread was faster
            _log.debug("local files are created with a process each", reason=used)
    except (NotLoadedError, Py4JError) as error:
        _log.debug("local files are created with a process each", reason=first_line(error))
