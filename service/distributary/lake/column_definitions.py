"""The columns of a Delta table as Spark and Delta need them: types, the table properties that they need, and values."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql.types import StructField, StructType, _parse_datatype_string

from distributary import sql
from distributary.types.zones import has_no_zone

# Characters that a Parquet column name can't have: such a table needs Delta's column mapping.
_NEEDS_MAPPING = set(" ,;{}()\n\t=")
# A table gets the feature with its first such column.
_NTZ = {"delta.feature.timestampNtz": "supported"}
_MAPPING = {"delta.columnMapping.mode": "name", "delta.minReaderVersion": "2", "delta.minWriterVersion": "5"}


def struct(columns: Mapping[str, str]) -> StructType:
    """The schema of these columns, name to Spark type."""
    return StructType([StructField(name, _parse_datatype_string(kind)) for name, kind in columns.items()])


def needed_properties(columns: Mapping[str, str]) -> Mapping[str, str]:
    """The properties without which a table can't have these columns, name to Spark type."""
    has_ntz = any(map(has_no_zone, columns.values()))
    return {**(_MAPPING if _needs_mapping(columns) else {}), **(_NTZ if has_ntz else {})}


def _needs_mapping(columns: Mapping[str, str]) -> bool:
    return any(_NEEDS_MAPPING & set(name) for name in columns) or any("`" in kind for kind in columns.values())


def with_features(properties: Mapping[str, str]) -> Mapping[str, str]:
    """The properties, and with column mapping a feature of reader version 3: by version 2 the deltalake library does
    not see the mapping, and reads NULL in every column."""
    lower_properties = {name.lower(): value.lower() for name, value in properties.items()}
    is_mapped = lower_properties.get("delta.columnmapping.mode", "none") != "none"
    return {**properties, **_NTZ} if is_mapped else properties


def literal(value: str, kind: str) -> str:
    """The text of a value (see types.column_default) as SQL of the Spark type `kind`."""
    if kind in ("string", "binary", "variant"):
        return {"string": "{}", "binary": "unhex({})", "variant": "parse_json({})"}[kind].format(sql.text(value))
    return f"CAST({sql.text(value + ('Z' if kind == 'timestamp' else ''))} AS {kind})"
