"""Stands in for a table's rows in tests without a lake."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa


class NoRows:
    """A table without rows."""

    def read(self, keys: pa.StructArray, columns: Sequence[str]) -> pa.Table:
        kinds = {"__partition": pa.int32(), "__offset": pa.int64()}
        names = dict.fromkeys([field.name for field in keys.type] + list(columns))
        types = {field.name: field.type for field in keys.type}
        return pa.table({name: pa.array([], types.get(name, kinds.get(name, pa.string()))) for name in names})

    def snapshot_positions(self, keys: pa.StructArray) -> None:  # noqa: ARG002
        return None
