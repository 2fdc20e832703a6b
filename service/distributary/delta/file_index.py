"""The keys of one data file, sorted, with the rows that have them; and the cache file that holds it.

A cache file has the name of its data file, its own length and a checksum. A damaged one is made again from the data
file.
"""

from __future__ import annotations

import mmap
import os
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import xxhash

from distributary.delta.key_codec import Keys

_MAGIC = b"DSTRKEY1"
# Magic; the data file's identity; how many word arrays, keys, and rows whose key is NULL; checksum of all that follows.
_HEADER = struct.Struct("<8s16sQQQQ")
_CHECK = struct.Struct("<Q")  # of the header, behind it
_START = _HEADER.size + _CHECK.size
_MAPPED_FROM = 1024 * 1024
"""Bytes of a cache file from which on it is mapped instead of read: fewer are quicker read than mapped."""
_MOST_ROWS = 2**32

FoundRows = tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]
"""Numbers of keys and row numbers, pair by pair."""
_NOTHING = np.empty(0, np.int64)


class DamagedIndex(ValueError):
    """The cache file is not the requested index: it is that of another data file, cut short, or changed."""


@dataclass(frozen=True)
class FileIndex:
    """`words[0]` is sorted; keys that are equal in it alone may stand in any order. `rows[i]` is the row number of key
    i; `null_rows` have NULL as their key."""

    words: tuple[npt.NDArray[Any], ...]
    rows: npt.NDArray[np.uint32]
    null_rows: npt.NDArray[np.uint32]

    @staticmethod
    def of(keys: Keys) -> FileIndex:
        """The index of a data file whose row i has the key i."""
        if len(keys) >= _MOST_ROWS:
            raise ValueError(f"a data file has {len(keys)} rows; an index holds less than {_MOST_ROWS}")
        rows = np.arange(len(keys), dtype=np.uint32)
        null_rows = np.empty(0, np.uint32)
        words = keys.words
        if keys.null is not None:
            null_rows, rows = rows[keys.null], rows[~keys.null]
            words = tuple(word[~keys.null] for word in words)
        if len(rows) and not np.all(words[0][:-1] <= words[0][1:]):
            order = np.argsort(words[0], kind="stable")
            words, rows = tuple(word[order] for word in words), rows[order]
        return FileIndex(words, rows, null_rows)

    @property
    def size(self) -> int:
        """Its bytes, in memory and in a file."""
        return _START + sum(part.nbytes for part in (*self.words, self.rows, self.null_rows))

    def find(self, keys: Keys) -> FoundRows:
        """Which of the keys are in the file, and where: numbers of keys and row numbers, pair by pair. A key that
        several rows have comes once for each."""
        first, wanted = self.words[0], keys.words[0]
        low = first.searchsorted(wanted, "left")
        near = (low < len(first)).nonzero()[0]
        hit = near[first[low[near]] == wanted[near]]
        if keys.null is not None:
            hit = hit[~keys.null[hit]]
        elif not len(hit):  # as in most files
            return _NOTHING, _NOTHING
        counts = first.searchsorted(wanted[hit], "right") - low[hit]
        numbers = np.repeat(hit, counts)
        within = np.arange(len(numbers)) - np.repeat(np.cumsum(counts) - counts, counts)
        places = np.repeat(low[hit], counts) + within
        if len(self.words) > 1:
            same = self.words[1][places] == keys.words[1][numbers]
            numbers, places = numbers[same], places[same]
        rows = self.rows[places].astype(np.int64)
        if keys.null is not None and len(self.null_rows) and keys.null.any():
            nulls = np.flatnonzero(keys.null)
            numbers = np.concatenate([numbers, np.repeat(nulls, len(self.null_rows))])
            rows = np.concatenate([rows, np.tile(self.null_rows.astype(np.int64), len(nulls))])
        return numbers.astype(np.int64), rows


def write_index(path: Path, identity: bytes, index: FileIndex) -> None:
    """Writes the index of the data file with that identity (16 bytes), so that a reader finds all of it or none."""
    parts = [np.ascontiguousarray(part) for part in (*index.words, index.rows, index.null_rows)]
    checksum = xxhash.xxh3_64()
    for part in parts:
        checksum.update(part.data)
    counts = len(index.words), len(index.rows), len(index.null_rows)
    header = _HEADER.pack(_MAGIC, identity, *counts, checksum.intdigest())
    unfinished = path.with_name(f"{path.name}.{os.getpid()}.{os.urandom(4).hex()}.tmp")
    try:
        with unfinished.open("wb") as file:
            file.write(header + _CHECK.pack(xxhash.xxh3_64_intdigest(header)))
            for part in parts:
                file.write(part.data)
        unfinished.chmod(0o400)
        unfinished.replace(path)
    except OSError:
        unfinished.unlink(missing_ok=True)
        raise


def read_index(path: Path, identity: bytes, word_count: int) -> tuple[FileIndex, bool]:
    """The index in a cache file, and whether the file stays mapped. Each byte is checked once, here.

    Raises DamagedIndex where the file is not that of this data file, and OSError if it can't be read.
    """
    with path.open("rb") as file:
        size = os.fstat(file.fileno()).st_size
        if size < _START:
            raise DamagedIndex(f"{path.name} is cut short")
        mapped = size >= _MAPPED_FROM
        content: Any = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) if mapped else file.read()
    header = bytes(content[: _HEADER.size])
    (check,) = _CHECK.unpack(content[_HEADER.size : _START])
    if xxhash.xxh3_64_intdigest(header) != check:
        raise DamagedIndex(f"{path.name} has a damaged header")
    magic, owner, words, count, nulls, checksum = _HEADER.unpack(header)
    if (magic, owner, words) != (_MAGIC, identity, word_count):
        raise DamagedIndex(f"{path.name} is the index of another data file")
    if len(content) != _START + words * 8 * count + 4 * (count + nulls):
        raise DamagedIndex(f"{path.name} is not as long as its header says")
    if xxhash.xxh3_64_intdigest(memoryview(content)[_START:]) != checksum:
        raise DamagedIndex(f"{path.name} is damaged")
    kind = np.int64 if words == 1 else np.uint64
    arrays = tuple(np.frombuffer(content, kind, count, _START + 8 * count * i) for i in range(words))
    rest = _START + 8 * count * words
    rows = np.frombuffer(content, np.uint32, count, rest)
    return FileIndex(arrays, rows, np.frombuffer(content, np.uint32, nulls, rest + 4 * count)), mapped
