"""A Delta table whose log is written by hand, as JSON: without Spark, and without the code under test."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from distributary.delta.commit import CommitPayload, concurrent_change
from distributary.errors import TableHalt

PROTOCOL_OF_VECTORS: dict[str, Any] = {
    "minReaderVersion": 3,
    "minWriterVersion": 7,
    "readerFeatures": ["deletionVectors", "columnMapping", "timestampNtz"],
    "writerFeatures": ["deletionVectors", "columnMapping", "timestampNtz", "appendOnly", "invariants"],
}
"""Of a table with deletion vectors and mapped columns."""


def field(
    name: str,
    kind: Any,
    details: Mapping[str, Any] | None = None,
    *,
    nullable: bool = True,
    number: int | None = None,
) -> dict[str, Any]:
    """A column as in the log's schema, `details` its metadata; with a `number` it is mapped: that id, and a physical
    name made of it."""
    found = dict(details or {})
    if number is not None:
        found |= {"delta.columnMapping.id": number, "delta.columnMapping.physicalName": f"col-{number}"}
    return {"name": name, "type": kind, "nullable": nullable, "metadata": found}


def array_of(kind: Any) -> dict[str, Any]:
    """An array's type."""
    return {"type": "array", "elementType": kind, "containsNull": True}


def map_to(kind: Any) -> dict[str, Any]:
    """The type of a map from texts."""
    return {"type": "map", "keyType": "string", "valueType": kind, "valueContainsNull": True}


def struct(*fields: Mapping[str, Any]) -> dict[str, Any]:
    """A struct's type."""
    return {"type": "struct", "fields": list(fields)}


class HandMadeTable:
    """The table in a directory."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @property
    def version(self) -> int:
        """The newest version; -1 where there is none."""
        return max((int(found.stem) for found in self.path.glob("_delta_log/*[0-9].json")), default=-1)

    def commit(self, *actions: Mapping[str, Any]) -> int:
        """Writes the next version; returns its number."""
        log = self.path / "_delta_log"
        log.mkdir(parents=True, exist_ok=True)
        version = self.version + 1
        info = {"commitInfo": {"timestamp": 0, "operation": "TEST", "operationParameters": {}}}
        lines = [json.dumps(action) for action in (info, *actions)]
        with (log / f"{version:020d}.json").open("x", encoding="utf-8") as file:
            file.write("\n".join(lines) + "\n")
        return version

    def create(
        self,
        *fields: Mapping[str, Any],
        partition_by: Sequence[str] = (),
        properties: Mapping[str, str] | None = None,
        protocol: Mapping[str, Any] | None = None,
    ) -> HandMadeTable:
        """Makes the table with these columns; with vectors and the modes that its columns ask for. An empty property is
        left out."""
        mapped = any("delta.columnMapping.id" in one["metadata"] for one in fields)
        configuration = {
            "delta.enableDeletionVectors": "true",
            **({"delta.columnMapping.mode": "name", "delta.columnMapping.maxColumnId": "99"} if mapped else {}),
            **(properties or {}),
        }
        known = {name: value for name, value in configuration.items() if value}
        self.commit({"protocol": protocol or PROTOCOL_OF_VECTORS}, metadata(fields, partition_by, known))
        return self


def metadata(
    fields: Sequence[Mapping[str, Any]], partition_by: Sequence[str] = (), properties: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """The metaData action of a table."""
    return {
        "metaData": {
            "id": "00000000-0000-0000-0000-000000000001",
            "format": {"provider": "parquet", "options": {}},
            "schemaString": json.dumps(struct(*fields)),
            "partitionColumns": list(partition_by),
            "configuration": dict(properties or {}),
            "createdTime": 0,
        }
    }


class HandCommitter:
    """Commits actions as JSON if no other commit has the version."""

    def __init__(self, table: HandMadeTable) -> None:
        self.table = table
        self.records: list[CommitPayload] = []

    def commit(
        self,
        seen: int,
        actions: Sequence[Mapping[str, Any]],
        record: CommitPayload,
        *,
        changes_rows: bool = True,
    ) -> int:
        """See Committer."""
        changing = {kind for action in actions for kind, found in action.items() if found.get("dataChange")}
        assert changes_rows or not changing, f"a commit that changes no row has {changing}"
        if seen != self.table.version:
            raise concurrent_change(str(self.table.path), seen)
        self.records.append(record)
        return self.table.commit(*actions)

    def check(self, rows: pa.Table, constraints: Mapping[str, str]) -> None:
        """See Committer; understands only constraints such as `id > 0`."""
        for name, condition in constraints.items():
            column, least = condition.split(" > ")
            if not pc.all(pc.greater(rows[column], int(least))).as_py():
                raise TableHalt("constraint-broken", f"the constraint {name}")

    def enable_vectors(self) -> None:
        """See Committer."""
        log = self.table.path / "_delta_log"
        lines = (log / f"{0:020d}.json").read_text(encoding="utf-8").splitlines()
        (known,) = (json.loads(line)["metaData"] for line in lines if line.startswith('{"metaData"'))
        known["configuration"]["delta.enableDeletionVectors"] = "true"
        self.table.commit({"metaData": known})
