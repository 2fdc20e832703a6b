"""Classes of the driver's JVM, by their names."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from pyspark import SparkContext
from pyspark.sql import DataFrame, SparkSession

HADOOP_PATH = "org.apache.hadoop.fs.Path"
DELTA_LOG = "org.apache.spark.sql.delta.DeltaLog"


def java_class(session: SparkSession | SparkContext, name: str) -> Any:
    """The class of that whole name: it is called to make an object, and has the static methods; a Scala object's class
    ends in `$`, see scala_object.

    Step by step (`jvm.org.apache…`) py4j would look in all jars, each time, for a class of each package's name.
    """
    return _class(session._jvm, name)


def scala_object(session: SparkSession | SparkContext, name: str) -> Any:
    """The Scala object of that whole name, which is given without the `$` of its class."""
    return _object(session._jvm, name)


@lru_cache(maxsize=64)
def _class(jvm: Any, name: str) -> Any:
    return getattr(jvm, name)


@lru_cache(maxsize=64)
def _object(jvm: Any, name: str) -> Any:
    return getattr(_class(jvm, f"{name}$"), "MODULE$")


def newest_snapshot(session: SparkSession, path: str) -> tuple[Any, Any]:
    """Delta's own log (a DeltaLog) of the table at a path, and its newest snapshot. Lists the whole log."""
    none = java_class(session, "scala.Option").empty()
    log = java_class(session, DELTA_LOG).forTable(session._jsparkSession, path)
    return log, log.update(False, none, none)


def frame_of(session: SparkSession, rdd: Any, schema: Any) -> DataFrame:
    """Rows as Spark has them inside (an RDD of InternalRow), of a schema (a StructType), as a DataFrame."""
    return DataFrame(session._jsparkSession.internalCreateDataFrame(rdd, schema, False), session)


def lines_of(session: SparkSession, stream: Any) -> Any:
    """A BufferedReader over a stream of text in UTF-8."""
    characters = java_class(session, "java.io.InputStreamReader")(stream, "UTF-8")
    return java_class(session, "java.io.BufferedReader")(characters)
