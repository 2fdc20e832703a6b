"""Rows of data files, read by where they stand: only the columns and the row groups that are needed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from distributary.arrow_errors import DATA_ERRORS
from distributary.delta.live_file import LiveFile
from distributary.delta.partitions import constant
from distributary.delta.storage import TableFiles, file_damaged
from distributary.delta.storage_errors import storage_error
from distributary.delta.table_schema import Column, TableSchema, renamed, stored_column

_BYTES_FOR_THREADS = 2**20
"""Bytes of a row group whose columns are read in threads: for fewer they take more time than they save."""


class DataReader:
    """Reads data files of one table with its current columns: columns that a file lacks are NULL, narrower values are
    widened, values of the partition come from the log."""

    def __init__(self, files: TableFiles, schema: TableSchema) -> None:
        self._files, self._schema = files, schema

    def pieces(self, file: LiveFile, names: Sequence[str]) -> Iterator[pa.Table]:
        """All rows of a file in their order, dead ones too, row group by row group. Raises TableHalt if the file is
        missing or damaged."""
        with self._files.parquet(file.path) as parquet:
            for group in range(parquet.num_row_groups):
                yield self._group(file, parquet, group, names)

    def groups(self, file: LiveFile, numbers: Sequence[int], names: Sequence[str]) -> Iterator[pa.Table]:
        """As `pieces`, of the row groups with these numbers."""
        if numbers:
            with self._files.parquet(file.path) as parquet:
                for group in numbers:
                    yield self._group(file, parquet, group, names)

    def group_ends(self, file: LiveFile) -> npt.NDArray[np.int64]:
        """For each row group the number of the row behind its last one. Raises TableHalt as `pieces`."""
        with self._files.parquet(file.path) as parquet:
            return _group_ends(parquet)

    def rows(self, file: LiveFile, rows: npt.NDArray[np.int64], names: Sequence[str]) -> pa.Table:
        """The rows with these numbers, in their order. Raises TableHalt as `pieces`, and if a row does not exist."""
        order = np.argsort(rows, kind="stable")
        wanted = rows[order]
        row_groups = []
        with self._files.parquet(file.path) as parquet:
            ends = _group_ends(parquet)
            count = int(ends[-1]) if len(ends) else 0
            if len(wanted) and not 0 <= wanted[0] <= wanted[-1] < count:
                raise file_damaged(file.path)
            groups = np.searchsorted(ends, wanted, "right")
            for group in np.unique(groups).tolist():
                whole = self._group(file, parquet, group, names)
                begin = ends[group] - whole.num_rows
                row_groups.append(whole.take(pa.array(wanted[groups == group] - begin)))
        if not row_groups:
            return self.schema_of(names).empty_table()
        return pa.concat_tables(row_groups).take(pa.array(np.argsort(order, kind="stable")))

    def live_pieces(
        self, file: LiveFile, dead: npt.NDArray[np.int64], names: Sequence[str]
    ) -> Iterator[tuple[pa.Table, npt.NDArray[np.bool_]]]:
        """As `pieces`, each with a mask of the rows that are not among the `dead` ones of the file."""
        begin = 0
        for piece in self.pieces(file, names):
            mask = np.ones(piece.num_rows, np.bool_)
            mask[dead[(dead >= begin) & (dead < begin + piece.num_rows)] - begin] = False
            begin += piece.num_rows
            yield piece, mask

    def survivors(self, file: LiveFile, dead: npt.NDArray[np.int64]) -> Iterator[pa.Table]:
        """All columns of the rows that are not among the `dead` ones, in their order, row group by row group."""
        for piece, mask in self.live_pieces(file, dead, self._schema.arrow.names):
            yield piece if mask.all() else piece.filter(pa.array(mask))

    def schema_of(self, names: Sequence[str]) -> pa.Schema:
        """The columns with these names as Arrow has them."""
        return pa.schema([self._schema.by_name[name].logical for name in names])

    def _group(self, file: LiveFile, parquet: pq.ParquetFile, group: int, names: Sequence[str]) -> pa.Table:
        stored = [self._schema.by_name[name] for name in names if name not in self._schema.partition_by]
        try:
            in_threads = parquet.metadata.row_group(group).total_byte_size >= _BYTES_FOR_THREADS
            read = parquet.read_row_group(group, columns=[column.physical for column in stored], use_threads=in_threads)
        except (*DATA_ERRORS, IndexError, OSError) as error:  # IndexError: the row group does not exist
            if isinstance(error, OSError) and storage_error(error):
                raise  # it may pass
            raise file_damaged(file.path) from error
        count = parquet.metadata.row_group(group).num_rows
        arrays = [self._column(file, read, self._schema.by_name[name], count) for name in names]
        return pa.Table.from_arrays(arrays, schema=self.schema_of(names))

    def _column(self, file: LiveFile, read: pa.Table, column: Column, count: int) -> pa.ChunkedArray:
        if column.name in self._schema.partition_by:
            return constant(file.partition_values.get(column.physical), column, count)
        if column.physical not in read.column_names:
            return pa.chunked_array([pa.nulls(count, column.logical.type)])
        try:
            return renamed(stored_column(read.column(column.physical), column.stored.type), column.logical.type)
        except DATA_ERRORS as error:  # its text may quote a value
            raise file_damaged(file.path) from error


def _group_ends(parquet: pq.ParquetFile) -> npt.NDArray[np.int64]:
    counts = [parquet.metadata.row_group(group).num_rows for group in range(parquet.num_row_groups)]
    return np.cumsum(np.array(counts, np.int64))
