"""Registers tables in a Spark catalog (`target.catalog`), under their names.

The catalog has the name and the path; columns and files are in Delta's own log. A table that is dropped from the
catalog keeps its files.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from structlog.typing import FilteringBoundLogger

from distributary import sql
from distributary.launch.classes import HADOOP_PATH, java_class

_AGAIN = 60.0  # seconds until the next request to a catalog after a failure
_SESSION_CATALOG = "spark_catalog"
_IN_MEMORY = (
    "set spark.sql.catalogImplementation: hive and how its metastore is reached under `spark` in the config, or name"
    " a catalog that you set up there (spark.sql.catalog.NAME)"
)


class CatalogEntry:
    """One table's entry. `name` is its name in the catalog (catalog, schema, table), `path` its directory. `clock`
    counts seconds."""

    def __init__(
        self,
        session: SparkSession,
        name: Sequence[str],
        path: str,
        log: FilteringBoundLogger,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._session = session
        self._parts = tuple(name)
        self._path = path
        self._log = log
        self._clock = clock
        self._not_before = 0.0
        self.is_there = False
        """Whether the catalog is known to have it."""

    @property
    def name(self) -> str:
        """Its parts joined by dots, without quotes."""
        return ".".join(self._parts)

    @property
    def is_due(self) -> bool:
        """Whether ensure() has something to do: the entry is not known to exist, and was not tried within the last
        minute."""
        return not self.is_there and self._clock() >= self._not_before

    def ensure(self) -> bool:
        """Registers the table, which exists; gives whether the catalog has it now. A failure is logged and tried again
        after a minute: the table is complete without the entry."""
        try:
            self.is_there = self._enter()
        except (PySparkException, Py4JJavaError) as error:
            reason = str(getattr(error, "java_exception", None) or error).strip().partition("\n")[0]
            self._warn(reason, "make sure that the catalog can be reached and takes this name")
        # Counted from the end of the try: a metastore that does not answer takes minutes to fail.
        self._not_before = self._clock() + _AGAIN
        return self.is_there

    def _enter(self) -> bool:
        quoted = ".".join(map(sql.name, self._parts))
        if not self._session.catalog.tableExists(quoted):
            self._session.sql(f"CREATE SCHEMA IF NOT EXISTS {'.'.join(map(sql.name, self._parts[:-1]))}")
            self._session.sql(f"CREATE TABLE IF NOT EXISTS {quoted} USING delta LOCATION {sql.text(self._path)}")
            self._log.info("the table was added to the catalog", catalog_name=self.name)
        if not self._is_ours(quoted):
            self._warn("the catalog has another table of this name", "drop or rename it, or change target.table")
            return False
        if self._is_in_memory():
            self._log.warning("spark_catalog keeps names in this process's memory only", fix=_IN_MEMORY)
        return True

    def _is_ours(self, quoted: str) -> bool:
        described = self._session.sql(f"DESCRIBE TABLE EXTENDED {quoted}").collect()
        values = {row["col_name"]: row["data_type"] for row in described}
        return values.get("Provider") == "delta" and self._qualified(values.get("Location", "")) == self._qualified(
            self._path
        )

    def _qualified(self, location: str) -> str:
        """The location as Hadoop completes it: `/x` may be `file:///x` or `hdfs://…/x`."""
        path = java_class(self._session, HADOOP_PATH)(location)
        configuration = self._session._jsparkSession.sessionState().newHadoopConf()
        return str(path.getFileSystem(configuration).makeQualified(path).toString())

    def _is_in_memory(self) -> bool:
        in_memory = self._session.conf.get("spark.sql.catalogImplementation", "in-memory") == "in-memory"
        return self._parts[0] == _SESSION_CATALOG and in_memory

    def _warn(self, reason: str, fix: str) -> None:
        self._log.warning("the table is not in the catalog", catalog_name=self.name, reason=reason, fix=fix)
