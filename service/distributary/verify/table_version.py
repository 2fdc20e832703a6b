"""A table of the lake at one version, with the progress record that counts for it. Only read."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import DataFrame, SparkSession

from distributary.lake.table import LakeTable


class FrozenTable(LakeTable):
    """The table at `path` as it was at `version`, whatever is committed to it meanwhile."""

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
