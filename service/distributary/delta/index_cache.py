"""Indexes of data files, kept in memory and on a local disk within limits. Losing any of it costs time alone."""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import xxhash

from distributary.delta.file_index import DamagedIndex, FileIndex, FoundRows, read_index, write_index
from distributary.delta.key_codec import Keys

_SUFFIX = ".keys"
_ABANDONED = 3600.0  # seconds after which an unfinished file of a process that ended is removed
_Seen = tuple[int, int, int]  # inode, bytes, time of the last change in ns


@dataclass(frozen=True)
class _Loaded:
    """`seen`: the cache file as it was when it was checked; None if the index is in memory and needs no file."""

    index: FileIndex
    seen: _Seen | None


class IndexCache:
    """Indexes by the identity of their data file. The least recently used index is removed first.

    `folder` is a directory of this machine which processes may share. `memory_bytes` bounds what is loaded or mapped,
    `disk_bytes` the files. An index beyond a limit works, but is not kept. Threads may share a cache.

    Each lookup checks before and after whether somebody changed the mapped file in place. If a file is cut short during
    a lookup, the process ends (SIGBUS), and nothing is lost. This code replaces files and never changes them.
    """

    def __init__(self, folder: Path, memory_bytes: int, disk_bytes: int) -> None:
        self._folder = folder
        self._memory_bytes, self._disk_bytes = memory_bytes, disk_bytes
        self._lock = threading.Lock()
        self._loaded: OrderedDict[str, _Loaded] = OrderedDict()
        self._loaded_bytes = 0
        self._files: OrderedDict[str, int] = OrderedDict()
        self._files_bytes = 0
        folder.mkdir(parents=True, exist_ok=True)
        self._survey_folder()

    @property
    def memory_used(self) -> int:
        """Bytes that are loaded or mapped."""
        return self._loaded_bytes

    @property
    def disk_used(self) -> int:
        """Bytes of the files, as far as this process knows them."""
        return self._files_bytes

    def find(self, identity: str, keys: Keys, build: Callable[[], FileIndex]) -> FoundRows:
        """Looks keys up in the index of the data file with that identity: see FileIndex.find. Where there is no good
        index, `build` makes it."""
        name = _name_of(identity)
        while True:
            loaded = self._from_memory(name) or self._from_disk(name, identity, len(keys.words))
            if loaded is None:
                return self.put(identity, build()).find(keys)
            found_rows = loaded.index.find(keys)
            if self._is_unchanged(name, loaded):
                return found_rows
            self._forget(name)

    def holds(self, identity: str) -> bool:
        """Whether the index of the data file with that identity is in memory or on the disk, as far as is known."""
        name = _name_of(identity)
        with self._lock:
            return name in self._loaded or name in self._files

    def put(self, identity: str, index: FileIndex) -> FileIndex:
        """Keeps the index of a data file."""
        name = _name_of(identity)
        if index.size <= self._disk_bytes:
            # A full or broken disk costs building the index again.
            with contextlib.suppress(OSError):
                write_index(self._folder / name, _digest(identity), index)
                with self._lock:
                    self._note_file(name, index.size)
                    self._shrink_disk()
        self._keep(name, _Loaded(index, None))
        return index

    def remove(self, identity: str) -> None:
        """Forgets the index of a data file that its table no longer has."""
        name = _name_of(identity)
        self._forget(name)
        self._remove(name)

    def _from_memory(self, name: str) -> _Loaded | None:
        with self._lock:
            loaded = self._loaded.get(name)
            if loaded is None:
                return None
            self._loaded.move_to_end(name)
            if name in self._files:
                self._files.move_to_end(name)
        if self._is_unchanged(name, loaded):
            return loaded
        self._forget(name)
        return None

    def _is_unchanged(self, name: str, loaded: _Loaded) -> bool:
        """Whether an index is still the one that was checked: the pages of a mapped file change with the file."""
        return loaded.seen is None or loaded.seen == _seen(self._folder / name)

    def _from_disk(self, name: str, identity: str, word_count: int) -> _Loaded | None:
        path = self._folder / name
        with contextlib.suppress(OSError):
            os.utime(path)  # the next process starts with the order of use
        file_identity = _seen(path)
        if file_identity is None:
            return None
        try:
            index, mapped = read_index(path, _digest(identity), word_count)
        except (DamagedIndex, OSError):
            self._remove(name)
            return None
        with self._lock:
            self._note_file(name, index.size)
        loaded = _Loaded(index, file_identity if mapped else None)
        self._keep(name, loaded)
        return loaded

    def _keep(self, name: str, loaded: _Loaded) -> None:
        with self._lock:
            self._drop(name)
            self._loaded[name] = loaded
            self._loaded_bytes += loaded.index.size
            while self._loaded_bytes > self._memory_bytes:
                self._drop(next(iter(self._loaded)))

    def _forget(self, name: str) -> None:
        with self._lock:
            self._drop(name)

    def _drop(self, name: str) -> None:
        dropped = self._loaded.pop(name, None)
        if dropped is not None:
            self._loaded_bytes -= dropped.index.size

    def _note_file(self, name: str, size: int) -> None:
        self._files_bytes += size - self._files.get(name, 0)
        self._files[name] = size
        self._files.move_to_end(name)

    def _remove(self, name: str) -> None:
        with self._lock:
            self._files_bytes -= self._files.pop(name, 0)
        with contextlib.suppress(OSError):
            (self._folder / name).unlink()

    def _shrink_disk(self) -> None:
        while self._files_bytes > self._disk_bytes and self._files:
            name, size = self._files.popitem(last=False)
            self._files_bytes -= size
            with contextlib.suppress(OSError):
                (self._folder / name).unlink()

    def _survey_folder(self) -> None:
        """Learns which files are there, the least recently used first."""
        files = []
        for path in self._folder.iterdir():
            with contextlib.suppress(OSError):
                status = path.stat()
                if path.suffix == _SUFFIX:
                    files.append((status.st_mtime, path.name, status.st_size))
                elif path.suffix == ".tmp" and time.time() - status.st_mtime > _ABANDONED:
                    path.unlink()
        for _, name, size in sorted(files):
            self._note_file(name, size)
        self._shrink_disk()


def _name_of(identity: str) -> str:
    return _digest(identity).hex() + _SUFFIX


def _digest(identity: str) -> bytes:
    return xxhash.xxh3_128_digest(identity.encode())


def _seen(path: Path) -> _Seen | None:
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_ino, status.st_size, status.st_mtime_ns
