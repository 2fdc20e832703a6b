"""Service columns, and what a table's mode needs from the decoder."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

# The origin of a row; tables of every mode have these columns.
ORIGIN_COLUMNS: Mapping[str, str] = {
    "__op": "string",
    "__source_ts": "timestamp",
    "__position": "string",
    "__topic": "string",
    "__partition": "int",
    "__offset": "bigint",
}


class Wants(Protocol):
    """What a table's mode needs from the decoder."""

    @property
    def service_columns(self) -> Mapping[str, str]:
        """The columns that the mode adds to the source's columns: name to Spark type."""
        ...

    @property
    def reads_before(self) -> bool:
        """Whether records are decoded with the row before the change."""
        ...
