"""One version of a table: its columns, and which data files are live. Pure: actions of the log in, versions out."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from distributary.delta.compaction import needs_compaction
from distributary.delta.live_file import LiveFile
from distributary.delta.table_features import (
    allows_vectors,
    check_constraints,
    has_change_feed,
    is_append_only,
    refuses_vectors,
    require_writable,
)
from distributary.delta.table_schema import TableSchema
from distributary.delta.vectors import VectorDescriptor
from distributary.errors import TableHalt

Action = Mapping[str, Any]
"""One line of the log: the action's name and its content."""


@dataclass(frozen=True)
class DeltaSnapshot:
    """A table at a version. `protocol` and `metadata` are as in the log; `files` are by path."""

    version: int
    protocol: Mapping[str, Any]
    metadata: Mapping[str, Any]
    files: Mapping[str, LiveFile] = field(default_factory=dict)

    @cached_property
    def schema(self) -> TableSchema:
        """The table's columns. Raises TableHalt if rows can't be written by their address."""
        schema = json.loads(self.metadata["schemaString"])
        require_writable(self.protocol, self.metadata, schema)
        return TableSchema.of(schema, self.metadata.get("partitionColumns") or ())

    @cached_property
    def needs_compaction(self) -> bool:
        """Whether deleted rows have so much of its data files that a compaction is worth it. Never so of a clustered
        table: Delta's own OPTIMIZE need not remove them."""
        return not self.is_clustered and needs_compaction(self.files.values())

    @property
    def properties(self) -> Mapping[str, str]:
        """The table's properties."""
        return self.metadata.get("configuration") or {}

    @property
    def allows_vectors(self) -> bool:
        """Whether deletion vectors may be written."""
        return allows_vectors(self.metadata)

    @property
    def refuses_vectors(self) -> bool:
        """Whether a property of the table forbids deletion vectors."""
        return refuses_vectors(self.metadata)

    @property
    def has_change_feed(self) -> bool:
        """Whether commits must also write old and new rows (change data feed)."""
        return has_change_feed(self.metadata)

    @property
    def is_clustered(self) -> bool:
        """Whether its files may be laid out by columns that the table names, which only Delta itself does."""
        return "clustering" in (self.protocol.get("writerFeatures") or ())

    @property
    def is_append_only(self) -> bool:
        """Whether no row may be removed."""
        return is_append_only(self.metadata)

    @property
    def constraints(self) -> Mapping[str, str]:
        """Its CHECK constraints: name to Spark's SQL."""
        return check_constraints(self.metadata)

    def after(self, version: int, actions: Iterable[Action]) -> DeltaSnapshot:
        """The table after the commit with these actions. Raises TableHalt if a file would be live twice."""
        changed = _Change(dict(self.files))
        for action in actions:
            changed.apply(action)
        same = changed.protocol is None and changed.metadata is None
        snapshot = DeltaSnapshot(
            version, changed.protocol or self.protocol, changed.metadata or self.metadata, changed.files()
        )
        if same and "schema" in self.__dict__:
            snapshot.__dict__["schema"] = self.schema  # the schema did not change, and need not be parsed again
        return snapshot


def incomplete_log(message: str) -> TableHalt:
    """The halt of a table whose log lacks a part."""
    fix = "restore the log's files (_delta_log), or delete the table's directory to have it filled again"
    return TableHalt("log-incomplete", message, fix)


def first_snapshot(version: int, actions: Iterable[Action]) -> DeltaSnapshot:
    """The table by a checkpoint's actions, or by those of its first commit."""
    changed = _Change({})
    for action in actions:
        changed.apply(action)
    if changed.protocol is None or changed.metadata is None:
        raise incomplete_log(f"the table's log has no protocol or no columns at version {version}")
    return DeltaSnapshot(version, changed.protocol, changed.metadata, changed.files())


class _Change:
    """Gathers the actions of one commit, which stand in any order: an entry is removed before others are added."""

    def __init__(self, live: dict[str, LiveFile]) -> None:
        self._live = live
        self._added: list[LiveFile] = []
        self.protocol: Mapping[str, Any] | None = None
        self.metadata: Mapping[str, Any] | None = None

    def apply(self, action: Action) -> None:
        if fields := action.get("add"):
            self._added.append(LiveFile(fields))
        elif fields := action.get("remove"):
            live = self._live.get(fields["path"])
            if live is not None and live.entry == _entry(fields):
                del self._live[live.path]
        elif fields := action.get("protocol"):
            self.protocol = fields
        elif fields := action.get("metaData"):
            self.metadata = fields

    def files(self) -> dict[str, LiveFile]:
        for file in self._added:
            before = self._live.get(file.path)
            if before is not None and before.entry != file.entry:
                raise TableHalt(
                    "file-live-twice",
                    f"the table's log lists the file {file.path} twice in one version, with two deletion vectors:"
                    " readers see some of its rows twice",
                    "restore the table to an earlier version (RESTORE TABLE), and find the writer that committed this",
                )
            self._live[file.path] = file
        self._added = []
        return self._live


def _entry(remove: Mapping[str, Any]) -> tuple[str, str | None]:
    vector = remove.get("deletionVector")
    return remove["path"], VectorDescriptor.from_json(vector).unique_id if vector else None
