"""The paths of the tables, and of the records that can't be applied."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import AfterValidator, ConfigDict, Field, model_validator

from distributary.config import placement
from distributary.config.problem import Problem
from distributary.config.properties import revealed
from distributary.config.scalars import Duration, Location, Number, Section, Text, seconds

WAREHOUSE = "spark.sql.warehouse.dir"
"""Spark's property for the directory of a catalog's tables."""
WHOLE_LOCATION = re.compile(r"/|[A-Za-z][A-Za-z0-9+.-]*:")


def root_of(target: Target, spark: Mapping[str, Any] | None) -> str | None:
    """The directory below which the tables lie; None if neither target nor Spark's properties name it."""
    return target.path or revealed(spark or {}).get(WAREHOUSE)


def _template(value: str) -> str:
    if problem := placement.template_problem(value):
        raise problem.error()
    return value


class Target(Section):
    """Either `path`, the directory of the tables, or `catalog`, whose warehouse has the tables and which has their
    names."""

    model_config = ConfigDict(json_schema_extra={"oneOf": [{"required": ["path"]}, {"required": ["catalog"]}]})

    path: Location | None = Field(
        None,
        description="Directory of all tables, on any file system that Spark supports: a path, s3a://, abfss://, "
        "gs://, … A relative path starts at the config's directory.",
    )
    catalog: Text | None = Field(
        None,
        description="Instead of `path`: the name of a Spark catalog. The tables are in spark.sql.warehouse.dir (set "
        "it under `spark`) and are registered as <schema>.<table>.",
    )
    table: Annotated[Text, AfterValidator(_template)] = Field(
        "{schema}/{table}",
        description="A table's path within the directory or the warehouse. May contain {database}, {schema} and "
        "{table}.",
    )
    consistent_every: Duration | None = Field(
        None,
        description="Writes the Delta versions at which all tables have the newest complete transaction to the Delta "
        "table _distributary/consistent, at most once in that time: 1m. Rows are kept as long as old files "
        "(`defaults.maintenance.keep`). Default: never. Needs the connector's provide.transaction.metadata.",
    )

    def consistent_seconds(self) -> float | None:
        """The least time between two writes to the table of complete transactions, in seconds; None for never."""
        return None if self.consistent_every is None else seconds(self.consistent_every)

    @model_validator(mode="after")
    def _one_of_two(self) -> Target:
        if (self.path is None) == (self.catalog is None):
            how = "path and catalog are both given" if self.path else "path or catalog is missing"
            raise Problem("target-choice", how, "give one of the two").error()
        return self


class Quarantine(Section):
    """The table of records that can't be applied: their raw bytes, topic, partition and offset, the reason and the
    time."""

    path: Location | None = Field(
        None, description="The Delta table of these records. Default: _quarantine below target.path."
    )
    max_ratio: Number = Field(
        0.1,
        ge=0,
        le=1,
        description="A table halts if more than this share of its last 1,000 records, and at least 100 of them, "
        "went to quarantine.",
    )
    keep: Duration | None = Field(
        None,
        description="How long records stay there, whether applied or not: 90d. They are deleted with the VACUUM of "
        "`defaults.maintenance`. Default: forever.",
    )

    def keep_seconds(self) -> float | None:
        """How long records stay, in seconds; None for ever."""
        return None if self.keep is None else seconds(self.keep)
