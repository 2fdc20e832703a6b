"""A data file that belongs to a version of a table."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from distributary.delta.vectors import VectorDescriptor


@dataclass(frozen=True)
class LiveFile:
    """A data file of an `add` action of the log. `action`: the whole action, with fields that this code does not know.
    Without a `vector` all rows are live."""

    action: Mapping[str, Any]

    @property
    def path(self) -> str:
        """The file's path as in the log."""
        return str(self.action["path"])

    @property
    def size(self) -> int:
        """In bytes."""
        return int(self.action["size"])

    @property
    def content(self) -> tuple[str, int, int | None]:
        """The identity of the file: Delta never uses a file's path twice. Size and time of modification guard against
        files of other origin, which a table that was made anew may have under the paths of old ones."""
        return self.path, self.size, self.action.get("modificationTime")

    @property
    def partition_values(self) -> Mapping[str, str | None]:
        """By physical column names."""
        return self.action.get("partitionValues") or {}

    @cached_property
    def stats(self) -> Mapping[str, Any]:
        """The statistics; empty if the log has none."""
        stats_json = json.loads(self.action.get("stats") or "{}")
        return stats_json if isinstance(stats_json, dict) else {}

    @property
    def row_count(self) -> int | None:
        """Rows in the file, including dead rows; None if the log does not have the count."""
        count = self.stats.get("numRecords")
        return None if count is None else int(count)

    @cached_property
    def vector(self) -> VectorDescriptor | None:
        """The descriptor of its deletion vector; None without one."""
        vector_json = self.action.get("deletionVector")
        return VectorDescriptor.from_json(vector_json) if vector_json else None

    @property
    def entry(self) -> tuple[str, str | None]:
        """The identity of an entry in the log: the path and the deletion vector."""
        return self.path, self.vector.unique_id if self.vector else None
