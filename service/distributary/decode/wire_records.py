"""The state of reading one batch: the change of each record, or the reason why it is rejected."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Any

from distributary.reasons import RANK, Reason


class Faults:
    """Why records are rejected, by their indexes in the batch. Of several reasons the first in the order of
    reasons.REASONS counts."""

    def __init__(self) -> None:
        self.found: dict[int, tuple[Reason, str]] = {}

    def add(self, index: int, reason: Reason, detail: str = "") -> None:
        """Notes a reason; `detail` follows its message."""
        known = self.found.get(index)
        if known is None or RANK[reason.code] < RANK[known[0].code]:
            self.found[index] = (reason, detail)


class WireRows:
    """The rows of one side of the batch (the keys, or the rows after or before the change): per record the row of wire
    values, or None, and the reader that knows its columns."""

    def __init__(self, count: int) -> None:
        self.rows: list[Any] = [None] * count
        self.readers: list[Any] = [None] * count
        self.bad: dict[int, list[int]] = {}
        self.unavailable: dict[int, list[int]] = {}

    def put(self, index: int, reader: Any, row: Any, bad: Iterable[int] = (), unavailable: Iterable[int] = ()) -> None:
        """Keeps a row, with the indexes of the columns whose values can't be restated (`bad`) or were not sent."""
        self.rows[index] = row
        self.readers[index] = reader
        if bad:
            self.bad[index] = list(bad)
        if unavailable:
            self.unavailable[index] = list(unavailable)


class WireRecords:
    """Parsed records: for each its position, its key and its rows as wire values."""

    def __init__(self, count: int) -> None:
        self.count = count
        self.faults = Faults()
        self.sizes = [0] * count
        """Bytes of each value, without the schema beside it."""
        self.operations: list[str | None] = [None] * count
        self.positions: list[str | None] = [None] * count
        self.transactions: list[str | None] = [None] * count
        self.times: list[int | None] = [None] * count
        self.connector_times: list[int | str | None] = [None] * count
        """When the connector processed each change, from its envelope."""
        self.snapshots: list[str | None] = [None] * count
        self.identities: list[str | None] = [None] * count
        self.blocks: list[Any] = [None] * count
        self.keys = WireRows(count)
        self.after = WireRows(count)
        self.before = WireRows(count)
        self.old_keys = WireRows(count)
        self.new_keys = WireRows(count)
        self.source_tables: list[str | None] = [None] * count
        """The name of each change's source table."""
        self.truncated: dict[int, str | None] = {}
        """The topics of truncated source tables, by the indexes of truncates, see source_topic."""
        self.references: defaultdict[int, set[str]] = defaultdict(set)
        """The large values that rows need and nobody has fetched yet, by the record (see large_values.py)."""
        self.moved_in = [False] * count
        self.moved_out = [False] * count
