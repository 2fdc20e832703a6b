"""Reads rows of one version of a table: by their keys, by their places, or all of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyroaring import BitMap64

from distributary.delta.data_reader import DataReader
from distributary.delta.group_facts import GroupFact, GroupFacts
from distributary.delta.index_cache import IndexCache
from distributary.delta.key_codec import KeyCodec, Keys
from distributary.delta.key_index import FoundInFile, KeyIndex, KeyReader
from distributary.delta.live_file import LiveFile
from distributary.delta.log_reader import LogReader, LogState
from distributary.delta.partitions import without_empty_texts
from distributary.delta.prune import files_with
from distributary.delta.snapshot import DeltaSnapshot
from distributary.delta.storage import TableFiles
from distributary.delta.stored_rows import StoredRows, chosen_rows
from distributary.delta.table_view import TableView
from distributary.delta.vectors import read_vector
from distributary.errors import TableHalt

_T = TypeVar("_T")


class TableReader:
    """Reads rows of the table in `files`, at the version of the last `sync`.

    `key`: the names of its key columns; `cache`: the key indexes of its files. Not for several threads at once. Raises
    TableHalt if the table can't be read, and errors of the storage unchanged.
    """

    def __init__(self, files: TableFiles, key: Sequence[str], cache: IndexCache) -> None:
        self._files, self._key, self._cache = files, tuple(key), cache
        self._log = LogReader(files)
        self._state: LogState | None = None
        self._vectors: dict[str, tuple[str, BitMap64]] = {}  # by path: which vector, and its rows
        self._facts = GroupFacts()

    @property
    def snapshot(self) -> DeltaSnapshot:
        """The version that reads and writes are about."""
        if self._state is None:
            self.sync()
        assert self._state is not None
        return self._state.snapshot

    @property
    def column_names(self) -> list[str] | None:
        """The columns of `snapshot`; None if it is not known now."""
        return None if self._state is None else [column.name for column in self._state.snapshot.schema.columns]

    def view(self) -> TableView | None:
        """The version of `snapshot`, for other threads; None if it is not known now."""
        if self._state is None:
            return None
        return TableView(self._state.snapshot, self._key, self._index() if self._key else None)

    def sync(self) -> int:
        """Takes the newest version, and gives its number."""
        return self._use(self._log.newest(self._state))

    def _use(self, state: LogState) -> int:
        files = state.snapshot.files
        if self._state is not None and self._state is not state:
            self._remove_indexes(self._state.snapshot.files, files)
        self._state = state
        self._vectors = {path: known for path, known in self._vectors.items() if path in files}
        self._facts.forget(files.values())
        return state.snapshot.version

    def _remove_indexes(self, before: Mapping[str, LiveFile], now: Mapping[str, LiveFile]) -> None:
        """Removes the indexes of files that are gone: each small commit adds a file, which a compaction removes."""
        if self._key and (gone := before.keys() - now.keys()):
            with suppress(TableHalt):  # the key's columns are gone: it has no indexes that anybody could use
                self._index().remove(before[path] for path in gone)

    def read_rows(self, keys: pa.Table, columns: Sequence[str]) -> StoredRows:
        """The rows that have these keys (a table of the key columns), with the named columns."""
        return self.read_found(self.locate(keys), columns)

    def locate(self, keys: pa.Table) -> list[FoundInFile]:
        """Where the rows are that have these keys (a table of the key columns)."""
        keys = without_empty_texts(keys.select(self._key), self.snapshot.schema.partition_columns)
        return self._locate(keys, self._codec().encode(keys))

    def facts(self, fact: GroupFact[_T], locations: Iterable[FoundInFile]) -> Iterator[_T]:
        """The fact about each row group that has one of the rows."""
        reader = DataReader(self._files, self.snapshot.schema)
        return (found for location in locations for found in self._facts.of(fact, reader, location))

    def read_found(self, locations: Sequence[FoundInFile], columns: Sequence[str]) -> StoredRows:
        """The rows that are there, with the named columns."""
        reader = DataReader(self._files, self.snapshot.schema)
        parts = [reader.rows(location.file, location.rows, columns) for location in locations]
        numbers = [location.keys for location in locations]
        return StoredRows(
            np.concatenate([np.empty(0, np.int64), *numbers]),
            pa.concat_tables([reader.schema_of(columns).empty_table(), *parts]),
            tuple(locations),
        )

    def read_all(self, columns: Sequence[str], choose: Callable[[pa.Table], npt.NDArray[np.bool_]]) -> StoredRows:
        """All rows for which `choose` returns true, with the named columns. Reads these columns of the whole table, and
        passes them to `choose` piece by piece."""
        reader = DataReader(self._files, self.snapshot.schema)
        files = ((file, row_numbers(self._dead_rows(file))) for file in self.snapshot.files.values())
        return chosen_rows(reader, files, columns, choose)

    def read_file(self, file: LiveFile, columns: Sequence[str]) -> pa.Table:
        """These columns of all rows of a file, in their order. No version needs to have the file."""
        reader = DataReader(self._files, self.snapshot.schema)
        return pa.concat_tables([reader.schema_of(columns).empty_table(), *reader.pieces(file, columns)])

    def _codec(self) -> KeyCodec:
        """The key's columns as the table has them now. Raises TableHalt if they can't be a key."""
        columns = self.snapshot.schema.by_name
        try:
            return KeyCodec([(name, columns[name].logical.type) for name in self._key])
        except (KeyError, ValueError) as error:
            reason = f"the table lacks the key column {error}" if isinstance(error, KeyError) else str(error)
            raise TableHalt(
                "key-not-usable",
                f"rows can't be found by the key: {reason}",
                "name other columns by `key` in the config",
            ) from error

    def _index(self) -> KeyIndex:
        reader = DataReader(self._files, self.snapshot.schema)
        table = f"{self._files.root} {self.snapshot.metadata.get('id')}"
        return KeyIndex(table, self._codec(), self._cache, self._key_reader(reader))

    def _key_reader(self, reader: DataReader) -> KeyReader:
        def read(file: LiveFile) -> Iterator[pa.Table]:
            return reader.pieces(file, self._key)

        return read

    def _locate(self, key_rows: pa.Table, keys: Keys) -> list[FoundInFile]:
        table = self.snapshot
        columns = [table.schema.by_name[name] for name in self._key]
        candidates = files_with(table.files.values(), key_rows, columns) if len(keys) else []
        return self._index().locate(keys, candidates, self._dead_rows)

    def _dead_rows(self, file: LiveFile) -> BitMap64:
        if file.vector is None:
            return BitMap64()
        known = self._vectors.get(file.path)
        if known is None or known[0] != file.vector.unique_id:
            known = file.vector.unique_id, read_vector(self._files, file.vector)
            self._vectors[file.path] = known
        return known[1]


def row_numbers(rows: BitMap64) -> npt.NDArray[np.int64]:
    """The numbers in the bitmap, ascending."""
    return np.fromiter(rows, np.int64, len(rows))
