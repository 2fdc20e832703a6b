"""The change data feed: rows as they were and as they are, beside a commit's data, for tables that have it turned on.

Readers of the feed infer pure inserts from the data files. For every other commit they read only these files, so these
have all changes of the commit.
"""

from __future__ import annotations

import uuid
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from distributary.delta.data_file import FileOptions, as_stored, write_parquet
from distributary.delta.partitions import directory, split
from distributary.delta.snapshot import DeltaSnapshot
from distributary.delta.storage import TableFiles

_KIND = "_change_type"


def changed_rows(upserts: pa.Table, old_keys: npt.NDArray[np.int64], old: pa.Table) -> list[tuple[str, pa.Table]]:
    """The rows of each kind of change, as the feed names them. Row i of `upserts` has the key number i; higher numbers
    are deletes. Row i of `old`, which is removed, has the key number `old_keys[i]`, negative if no row replaces it."""
    replaced = (old_keys >= 0) & (old_keys < upserts.num_rows)
    known = np.zeros(upserts.num_rows, np.bool_)
    known[old_keys[replaced]] = True
    return [
        ("insert", upserts.filter(pa.array(~known))),
        ("update_preimage", old.filter(pa.array(replaced))),
        ("update_postimage", upserts.filter(pa.array(known))),
        ("delete", old.filter(pa.array(~replaced))),
    ]


def write_changes(
    files: TableFiles, table: DeltaSnapshot, changed: list[tuple[str, pa.Table]], options: FileOptions
) -> list[dict[str, Any]]:
    """Writes the feed's files; gives their actions. After an error none of the files is left."""
    kinds = np.repeat([kind for kind, _ in changed], [rows.num_rows for _, rows in changed])
    whole = pa.concat_tables([rows for _, rows in changed]).append_column(_KIND, pa.array(kinds, pa.string()))
    actions: list[dict[str, Any]] = []
    begun: list[str] = []
    try:
        for values, part in split(whole, table.schema.partition_columns):
            name = f"_change_data/{directory(values)}cdc-00000-{uuid.uuid4()}.c000.{options.codec}.parquet"
            begun.append(path := files.log_path(name))
            stored = as_stored(part, table.schema).append_column(_KIND, part.column(_KIND))
            write_parquet(files, path, stored, options)
            cdc = {"path": path, "partitionValues": values, "size": files.size(path), "dataChange": False}
            actions.append({"cdc": cdc})
    except BaseException:
        files.delete(begun)
        raise
    return actions
