"""A table of the lake at one version, for reading only."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import DataFrame, SparkSession

from distributary.lake.table import LakeTable


class TableVersion(LakeTable):
    """The table at `path` as of `version`; later commits do not change what it returns."""

    def __init__(
        self,
        session: SparkSession,
        path: str,
        service_columns: Mapping[str, str],
        version: int,
    ) -> None:
        super().__init__(session, path, service_columns)
        self.version = version

    def _frame(self) -> DataFrame:
        return self.session.read.format("delta").option("versionAsOf", self.version).load(self.path)
