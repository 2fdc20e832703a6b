"""The columns that tables have beside the source's, and what is read for them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

# Where a row comes from; every mode's tables have these.
ORIGIN_COLUMNS: Mapping[str, str] = {
    "__op": "string",
    "__source_ts": "timestamp",
    "__position": "string",
    "__topic": "string",
    "__partition": "int",
    "__offset": "bigint",
}


class Wants(Protocol):
    """What is read for a table."""

    @property
    def service_columns(self) -> Mapping[str, str]:
        """The columns that the mode adds to the source's: name to Spark type."""
        ...

    @property
    def reads_before(self) -> bool:
        """Whether records are decoded with the row before the change."""
        ...
