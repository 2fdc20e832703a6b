"""A read-only view of a table's version, for other threads than the one that writes it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from distributary.delta.key_index import KeyIndex
from distributary.delta.snapshot import DeltaSnapshot


@dataclass(frozen=True)
class TableView:
    """`snapshot` and `key` of a version, and the `index` of its keys (None for a table without any). Nothing here
    reads or writes a file."""

    snapshot: DeltaSnapshot
    key: tuple[str, ...]
    index: KeyIndex | None

    @property
    def columns(self) -> Mapping[str, str]:
        """All columns: name to Delta's type, as text."""
        fields = msgspec.json.decode(self.snapshot.metadata["schemaString"])["fields"]
        return {field["name"]: _type_text(field["type"]) for field in fields}

    @property
    def partitioned_by(self) -> tuple[str, ...]:
        """The columns by which the files are partitioned."""
        return tuple(self.snapshot.metadata.get("partitionColumns") or ())

    @property
    def bytes(self) -> int:
        """The size of all live files."""
        return sum(file.size for file in self.snapshot.files.values())

    @property
    def rows(self) -> int | None:
        """The live rows; None if the log does not count those of a file."""
        total = 0
        for file in self.snapshot.files.values():
            if file.row_count is None:
                return None
            total += file.row_count - (file.vector.cardinality if file.vector else 0)
        return total

    @property
    def files_with_vectors(self) -> int:
        """The files with deletion vectors."""
        return sum(bool(file.action.get("deletionVector")) for file in self.snapshot.files.values())

    @property
    def indexed_files(self) -> int:
        """The files whose index is in memory or on this machine's disk; the others get theirs when a key needs it."""
        return 0 if self.index is None else sum(map(self.index.is_ready, self.snapshot.files.values()))


def _type_text(kind: Any) -> str:
    if isinstance(kind, str):
        return kind
    if kind["type"] == "array":
        return f"array<{_type_text(kind['elementType'])}>"
    if kind["type"] == "map":
        return f"map<{_type_text(kind['keyType'])}, {_type_text(kind['valueType'])}>"
    fields = (f"{field['name']}: {_type_text(field['type'])}" for field in kind["fields"])
    return f"struct<{', '.join(fields)}>"
