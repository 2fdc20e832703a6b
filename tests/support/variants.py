"""Reads values of Spark's type VARIANT without a JVM."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql.variant_utils import VariantUtils


def variant_as_json(found: Mapping[str, bytes] | None) -> str | None:
    """The JSON text of a variant as the `deltalake` package reads it: its bytes and those of its names. None for NULL,
    and `null` for JSON's null."""
    return None if found is None else str(VariantUtils.to_json(found["value"], found["metadata"]))
