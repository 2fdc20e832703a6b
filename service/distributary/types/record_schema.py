"""The columns that decoded events have: the table's."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache

import pyarrow as pa

from distributary.types.bounds import Bounds
from distributary.types.from_name import type_of_name


@dataclass(frozen=True)
class RecordSchema:
    """Spark types by the lake's names: of the row's columns, and of the key's."""

    row: Mapping[str, str] = field(default_factory=dict)
    key: Mapping[str, str] = field(default_factory=dict)


@lru_cache(maxsize=4096)
def arrow_of(spark: str) -> pa.DataType:
    """The Arrow type of a column of that Spark type. Raises UnknownColumnType."""
    return type_of_name(spark, {}, Bounds()).arrow
