"""Rows to data files: Parquet, sorted by key, with the `add` action that puts each into the table."""

from __future__ import annotations

import math
import time
import uuid
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from distributary.arrow_errors import DATA_ERRORS
from distributary.delta.dictionary_columns import dictionary_columns
from distributary.delta.live_file import LiveFile
from distributary.delta.partitions import directory, split
from distributary.delta.snapshot import DeltaSnapshot
from distributary.delta.statistics import file_statistics, indexed_columns
from distributary.delta.storage import TableFiles
from distributary.delta.table_schema import TableSchema, fitted_column, renamed
from distributary.errors import TableHalt

_MOST_ROWS_OF_BATCH = 1_024
"""pyarrow's default of `write_batch_size`."""
_BYTES_OF_BATCH = 2**20
_MOST_THREADS = 8
_BYTES_FOR_THREADS = 8 * 2**20
"""Bytes of rows whose columns are copied in threads: with 3 MiB on two cores one thread was faster, with 13 two."""
"""Each has a row group in memory."""


@dataclass(frozen=True)
class FileOptions:
    """How data files are written. `codec`: Parquet's name of the compression. `group_rows`: rows per row group; fewer
    rows mean fewer bytes to read for single old values (a reader reads whole columns of a row group), but a larger
    file. `target_bytes` of a file, as its rows are in memory. Files are written at the same time, on all cores: rows of
    fewer bytes become several files for that, each of at least `thread_bytes`; smaller files would soon be
    compacted."""

    codec: str = "snappy"
    group_rows: int = 20_000
    target_bytes: int = 256 * 2**20
    thread_bytes: int = 48 * 2**20


@dataclass(frozen=True)
class NewFile:
    """A written data file, and its rows in the file's order."""

    file: LiveFile
    rows: pa.Table


def write_files(
    files: TableFiles, table: DeltaSnapshot, rows: pa.Table, key: Sequence[str], options: FileOptions
) -> list[NewFile]:
    """Writes rows, see `fitted`, into new files, sorted by `key`. After an error none of the files is left."""
    columns = table.schema.partition_columns
    pieces = [
        (values, piece) for values, part in split(rows, columns) for piece in _pieces(_sorted(part, key), options)
    ]
    paths = [
        files.log_path(f"{directory(values)}part-00000-{uuid.uuid4()}.c000.{options.codec}.parquet")
        for values, _ in pieces
    ]
    indexed = indexed_columns(table.schema.data_columns, table.properties, key)

    def write(values: Mapping[str, str | None], piece: pa.Table, path: str) -> NewFile:
        stored = as_stored(piece, table.schema)
        write_parquet(files, path, stored, options)
        action: dict[str, Any] = {
            "path": path,
            "partitionValues": values,
            "size": files.size(path),
            "modificationTime": int(time.time() * 1000),
            "dataChange": True,
            "stats": file_statistics(stored, indexed),
        }
        return NewFile(LiveFile(action), piece)

    try:
        if len(pieces) == 1:
            return [write(*pieces[0], paths[0])]
        with ThreadPoolExecutor(max(1, min(len(pieces), pa.cpu_count(), _MOST_THREADS))) as pool:
            return list(pool.map(write, *zip(*pieces, strict=True), paths)) if pieces else []
    except BaseException:  # by now every file is written or has failed
        files.delete(paths)
        raise


def _sorted(rows: pa.Table, key: Sequence[str]) -> pa.Table:
    if not key or rows.num_rows < 2:
        return rows
    order = pc.sort_indices(rows, [(name, "ascending") for name in key])
    # Rows of a snapshot are often in order already, and copying them is expensive.
    return rows if (np.diff(order.to_numpy().astype(np.int64)) == 1).all() else _taken(rows, order)


def _taken(rows: pa.Table, order: pa.Array) -> pa.Table:
    if rows.nbytes < _BYTES_FOR_THREADS:
        return rows.take(order)
    with ThreadPoolExecutor(min(pa.cpu_count(), _MOST_THREADS)) as pool:
        return pa.Table.from_arrays(list(pool.map(lambda column: column.take(order), rows.columns)), schema=rows.schema)


def as_stored(rows: pa.Table, schema: TableSchema) -> pa.Table:
    """Rows as data files have them: physical names and ids, without the columns of the partition."""
    columns = schema.data_columns
    arrays = [renamed(rows.column(column.name), column.stored.type) for column in columns]
    return pa.Table.from_arrays(arrays, schema=pa.schema([column.stored for column in columns]))


def write_parquet(files: TableFiles, path: str, rows: pa.Table, options: FileOptions) -> None:
    """Writes rows unchanged into a new file at a path of the log."""
    place = files.filesystem_path(path)
    files.make_parent(place)
    pq.write_table(
        rows,
        place,
        filesystem=files.filesystem,
        compression=options.codec,
        row_group_size=options.group_rows,
        write_batch_size=batch_rows(rows),
        use_dictionary=dictionary_columns(rows),
        store_schema=False,
        store_decimal_as_integer=True,
        write_page_index=True,
    )


def batch_rows(rows: pa.Table) -> int:
    """How many rows Parquet's writer processes at once: it checks the sizes of its dictionary and its page only after
    that many. With 1,024 rows 7 texts of 20 MB took 260 MB more."""
    row_bytes = rows.nbytes / max(1, rows.num_rows)
    return max(1, min(_MOST_ROWS_OF_BATCH, int(_BYTES_OF_BATCH / max(1, row_bytes))))


def _pieces(rows: pa.Table, options: FileOptions) -> list[pa.Table]:
    if not rows.num_rows:
        return []
    of_cores = min(pa.cpu_count(), rows.nbytes // options.thread_bytes)
    count = max(1, math.ceil(rows.nbytes / options.target_bytes), of_cores)
    step = math.ceil(rows.num_rows / count)
    return [rows.slice(start, step) for start in range(0, rows.num_rows, step)]


def fitted(rows: pa.Table, schema: TableSchema) -> pa.Table:
    """Rows with all of the table's columns by users' names, in the table's order and of its types.

    Raises TableHalt if a column is missing or unknown, has another type, or has NULL and must not.
    """
    names = set(rows.column_names)
    missing = [column.name for column in schema.columns if column.name not in names]
    unknown = sorted(names - set(schema.by_name))
    if missing or unknown or len(names) != rows.num_columns:
        raise TableHalt(
            "columns-differ",
            f"the batch's columns differ from the table's: the batch lacks {', '.join(missing) or 'none'}, the table"
            f" lacks {', '.join(unknown) or 'none'}",
            "another writer changed the table's columns: restart the service, which reads them again; if the table"
            " halts again, report it",
        )
    arrays = []
    for column in schema.columns:
        values = rows.column(column.name)
        try:
            converted = fitted_column(values, column.logical.type)
        except DATA_ERRORS as error:  # its text may quote a value
            raise TableHalt(
                "type-differs",
                f"a value of the column {column.name} ({values.type}) does not fit its type {column.logical.type}",
                "widen the table's column, or `distributary resume -c FILE TABLE --rebuild` fills the table again",
            ) from error
        if converted.null_count and not column.nullable:
            raise TableHalt(
                "null-not-allowed",
                f"the column {column.name} must not be NULL, and is NULL in row {_first_null(converted)} of the batch",
                "allow NULL in the column (ALTER TABLE … ALTER COLUMN … DROP NOT NULL), or correct the source",
            )
        arrays.append(converted)
    return pa.Table.from_arrays(arrays, schema=schema.arrow)


def _first_null(column: pa.ChunkedArray) -> int:
    return int(pa.compute.index(column.is_null(), True).as_py())
