"""Locates the rows of keys: data file and row number.

Each data file has an index of its own. A data file never changes, so its index stays right: nothing has to be repaired
after a crash, another writer's commit or a RESTORE. From version to version only the live files and their dead rows
change, and both are in the log.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyroaring import BitMap64

from distributary.delta.file_index import FileIndex
from distributary.delta.index_cache import IndexCache
from distributary.delta.key_codec import KeyCodec, Keys
from distributary.delta.live_file import LiveFile

KeyReader = Callable[[LiveFile], Iterable[pa.Table]]
"""Reads the key columns of a data file, all rows in their order, piece by piece."""


@dataclass(frozen=True)
class FoundInFile:
    """The live rows of one file with one of the requested keys: `keys[i]` is the number of the key of row `rows[i]`."""

    file: LiveFile
    keys: npt.NDArray[np.int64]
    rows: npt.NDArray[np.int64]


class KeyIndex:
    """Finds rows by keys in the files of one table. `root` names the table, for a cache that several tables share."""

    def __init__(self, root: str, codec: KeyCodec, cache: IndexCache, read_keys: KeyReader) -> None:
        self._root, self._codec, self._cache, self._read_keys = root, codec, cache, read_keys

    def locate(
        self, keys: Keys, files: Iterable[LiveFile], dead_rows: Callable[[LiveFile], BitMap64]
    ) -> list[FoundInFile]:
        """The live rows with these keys, by file. `dead_rows` returns the rows in a file's deletion vector; it is
        called only for files with one of the keys.

        If several rows have the same key, which only another writer can cause, all are found.
        """
        located = []
        for file in files:
            numbers, rows = self._cache.find(self._identity(file), keys, partial(self._build, file))
            if len(rows) and file.vector is not None:
                dead = dead_rows(file)
                live = np.fromiter((row not in dead for row in rows.tolist()), np.bool_, len(rows))
                numbers, rows = numbers[live], rows[live]
            if len(rows):
                located.append(FoundInFile(file, numbers, rows))
        return located

    def add(self, file: LiveFile, keys: Keys) -> None:
        """Stores the index of a new file, whose row i has the key i, so that the file need not be read for it."""
        self._cache.put(self._identity(file), FileIndex.of(keys))

    def remove(self, files: Iterable[LiveFile]) -> None:
        """Forgets the indexes of files that the table no longer has. A RESTORE that brings one back costs reading its
        keys."""
        for file in files:
            self._cache.remove(self._identity(file))

    def is_ready(self, file: LiveFile) -> bool:
        """Whether the file's index is kept here already."""
        return self._cache.holds(self._identity(file))

    def _identity(self, file: LiveFile) -> str:
        path, *written = file.content
        parts = (
            self._root,
            path,
            " ".join(map(str, written)),
            self._codec.signature,
            *map(str, file.partition_values.items()),
        )
        return "\n".join(f"{len(part)}:{part}" for part in parts)

    def _build(self, file: LiveFile) -> FileIndex:
        pieces = [self._codec.encode(piece) for piece in self._read_keys(file)]
        if not pieces:
            empty = np.empty(0, np.int64 if self._codec.is_number else np.uint64)
            return FileIndex.of(Keys((empty,) * self._codec.word_count))
        words = tuple(
            np.concatenate([piece.words[number] for piece in pieces]) for number in range(self._codec.word_count)
        )
        if all(piece.null is None for piece in pieces):
            return FileIndex.of(Keys(words))
        nulls = [np.zeros(len(piece), np.bool_) if piece.null is None else piece.null for piece in pieces]
        return FileIndex.of(Keys(words, np.concatenate(nulls)))
