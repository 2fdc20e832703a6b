"""Documents of VARIANT columns: JSON text in this process, Spark's binary form in data files."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from pyspark.sql.types import VariantVal

VARIANT = pa.struct([pa.field("value", pa.binary(), nullable=False), pa.field("metadata", pa.binary(), nullable=False)])
"""A document as data files have it. No struct of a user has fields that can't be NULL."""

_SPARKS: Any = VariantVal  # untyped


def encoded(texts: pa.Array) -> pa.Array:
    """JSON texts as documents; NULL stays. Raises pa.ArrowInvalid where a text is none."""
    try:
        variants = [None if text is None else _SPARKS.parseJson(text) for text in texts.to_pylist()]
    except Exception as error:  # the parser's own and Python's
        raise pa.ArrowInvalid("a document is no JSON") from error
    values = pa.array([b"" if variant is None else bytes(variant.value) for variant in variants], pa.binary())
    names = pa.array([b"" if variant is None else bytes(variant.metadata) for variant in variants], pa.binary())
    return pa.StructArray.from_arrays([values, names], fields=list(VARIANT), mask=texts.is_null())


def decoded(documents: pa.Array) -> pa.Array:
    """Documents as JSON texts; NULL stays."""
    there = documents.is_valid().to_pylist()
    values, parts = documents.field("value").to_pylist(), documents.field("metadata").to_pylist()
    texts = [
        _SPARKS(value, names).toJson() if exists else None
        for exists, value, names in zip(there, values, parts, strict=True)
    ]
    return pa.array(texts, pa.string())
