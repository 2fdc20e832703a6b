"""The columns that the service adds to a table beside those of the source."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from distributary.apply.origin_columns import DELETED
from distributary.apply.values import SERVICE, TRANSACTION_COLUMNS
from distributary.config.source import Source
from distributary.config.table import TableSettings
from distributary.evolve.policy import ColumnPolicy

ORIGIN_COLUMNS: Mapping[str, str] = {
    "__op": "string",
    "__source_ts": "timestamp",
    "__position": "string",
    "__topic": "string",
    "__partition": "int",
    "__offset": "bigint",
}
"""The origin of a row; tables of every mode have these columns."""
_SPARK_TYPES = {pa.string(): "string", pa.int64(): "bigint"}


def service_columns_of(settings: TableSettings) -> Mapping[str, str]:
    """The columns that a table has beside the source's: name to Spark type."""
    of_transactions = {}
    if settings.has_transactions:
        of_transactions = {column: _SPARK_TYPES[SERVICE[name]] for name, column in TRANSACTION_COLUMNS.items()}
    if settings.mode == "history":
        ends = {"__start_at": "string", "__end_at": "string", "__current": "boolean"}
        return {**ends, **ORIGIN_COLUMNS, "__moved_from": "string", **of_transactions}
    if settings.mode == "append":
        return {**ORIGIN_COLUMNS, "__unavailable": "array<string>", **of_transactions}
    return {**ORIGIN_COLUMNS, **({DELETED: "boolean"} if settings.marks_deleted else {})}


def column_policy(source: Source, settings: TableSettings) -> ColumnPolicy:
    """How a table gets the columns of its records."""
    return ColumnPolicy(settings.schema_changes, tuple(service_columns_of(settings)), source.limits.columns)
