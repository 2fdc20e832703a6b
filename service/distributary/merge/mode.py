"""What every mode of a table (upsert, history, append) does with a slice, behind one small interface."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from pyspark.sql import DataFrame

from distributary.config.table import TableSettings
from distributary.merge.deletes import RememberedDeletes
from distributary.merge.facts import Facts
from distributary.merge.progress import Head
from distributary.merge.queries import Queries
from distributary.merge.slice_keys import SliceKeys
from distributary.merge.table import LakeTable, Write

# Where a row comes from; every mode's tables have these.
ORIGIN_COLUMNS: Mapping[str, str] = {
    "__op": "string",
    "__source_ts": "timestamp",
    "__position": "string",
    "__topic": "string",
    "__partition": "int",
    "__offset": "bigint",
}


@dataclass(frozen=True)
class Destination:
    """The table that slices go into. `columns` and `key`: the source's columns and key columns, name to Spark type, in
    the order of the decoded rows' fields c0, c1 … and k0, k1 …. `tell` takes what a person should know of a slice: an
    event's name and how often it happened; `debug` takes why a slice is committed as it is; `queries` are what the
    table's slices are asked."""

    lake: LakeTable
    deletes: RememberedDeletes
    topic: str
    connector: str
    columns: Mapping[str, str]
    key: Mapping[str, str]
    settings: TableSettings
    tell: Callable[[str, int], None]
    debug: Callable[[str], None]
    queries: Queries


@dataclass(frozen=True)
class DecodedSlice:
    """A slice on its way into a table: decoded records (see ingest.merge_records) with what facts() found in them, and
    their keys.

    `truncated` is the position of the newest truncate in the slice, `truncated_ever` that of the newest one that the
    table has seen, the slice's included; both None where `truncate` in the config leaves rows alone. `first`: the table
    holds nothing yet. `reads_lately`: snapshot rows were taken in not long ago, so that they may be sent again.
    `reached`: per partition the largest position of a change before the slice. `head`: where the table is. `replayed`:
    the records were in quarantine, and lie anywhere in what the table has taken in.
    """

    records: DataFrame
    found: Facts
    keys: SliceKeys
    truncated: str | None
    truncated_ever: str | None
    first: bool
    reads_lately: bool
    reached: Mapping[int, str]
    head: Head
    replayed: bool = False
    events: Any = None


@dataclass(frozen=True)
class Prepared:
    """A slice that is ready to be committed: `write` does it, run once by LakeTable.commit. `undecided` counts the
    slice's deletes of which nothing tells whether they took the new row or the one before it (see doubts.py).
    """

    write: Write
    undecided: int = 0


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


class Mode(Wants, Protocol):
    """How a table is kept. One instance serves one table."""

    def write(self, to: Destination, part: DecodedSlice) -> Prepared:
        """Makes ready what commits the slice; what must be on disk before is written here."""
        ...
