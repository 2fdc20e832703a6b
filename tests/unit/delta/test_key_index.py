"""The key index finds the same rows as a full search, also after its cache is lost."""

from __future__ import annotations

import os
import random
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyroaring import BitMap64
from tests.support.random_share import Scale

from distributary.delta.file_index import DamagedIndex, FileIndex, read_index, write_index
from distributary.delta.index_cache import IndexCache
from distributary.delta.key_codec import KeyCodec, Keys
from distributary.delta.key_index import FoundInFile, KeyIndex
from distributary.delta.live_file import LiveFile
from distributary.delta.vectors import VectorFile

NUMBER = KeyCodec([("id", pa.int64())])
TEXT = KeyCodec([("id", pa.string())])
PLENTY = 2**30


class Files:
    """Data files in memory: the key column of each. Counts how often each was read."""

    def __init__(self, columns: dict[str, list[Any]], kind: pa.DataType) -> None:
        self.columns, self.kind = columns, kind
        self.reads: list[str] = []

    def read_keys(self, file: LiveFile) -> Iterator[pa.Table]:
        self.reads.append(file.path)
        column = self.columns[file.path]
        for start in range(0, len(column), 3_000):  # in pieces, as a large file comes
            yield pa.table({"id": pa.array(column[start : start + 3_000], self.kind)})

    def live(self, dead: dict[str, set[int]] | None = None) -> list[LiveFile]:
        return [live_file(path, (dead or {}).get(path)) for path in self.columns]


def live_file(path: str, dead: set[int] | None = None) -> LiveFile:
    action: dict[str, Any] = {"path": path, "size": 7, "partitionValues": {}}
    if dead:
        action["deletionVector"] = VectorFile().add(BitMap64(dead)).as_json()
    return LiveFile(action)


def none_dead(_file: LiveFile) -> BitMap64:
    return BitMap64()


def keys_of(codec: KeyCodec, values: list[Any]) -> Keys:
    return codec.encode(pa.table({"id": pa.array(values, codec.columns[0][1])}))


def pairs(found: list[FoundInFile]) -> set[tuple[int, str, int]]:
    """Number of the key, file, row."""
    return {
        (key, one.file.path, row)
        for one in found
        for key, row in zip(one.keys.tolist(), one.rows.tolist(), strict=True)
    }


def searched(values: list[Any], columns: dict[str, list[Any]], dead: dict[str, set[int]]) -> set[tuple[int, str, int]]:
    """The same by a plain search."""
    return {
        (number, path, row)
        for number, value in enumerate(values)
        for path, column in columns.items()
        for row, other in enumerate(column)
        if other == value and row not in dead.get(path, set())
    }


SMALL_INTS = st.none() | st.integers(-5, 5)


@pytest.mark.thorough
@given(
    st.booleans(),
    st.lists(st.tuples(st.lists(SMALL_INTS, max_size=12), st.sets(st.integers(0, 11), max_size=4)), max_size=4),
    st.lists(SMALL_INTS, unique=True, max_size=12),
)
def test_all_live_rows_of_a_key_are_found(
    tmp_path_factory: pytest.TempPathFactory,
    numbers: bool,
    content: list[tuple[list[int | None], set[int]]],
    wanted: list[int | None],
) -> None:
    """Of numbers and of hashed texts, with NULL, with keys that several rows have, with dead rows."""
    codec = NUMBER if numbers else TEXT

    def of(values: list[int | None]) -> list[Any]:
        return list(values) if numbers else [None if value is None else f"{value}" for value in values]

    columns = {f"{i}.parquet": of(column) for i, (column, _) in enumerate(content)}
    dead = {f"{i}.parquet": {row for row in gone if row < len(column)} for i, (column, gone) in enumerate(content)}
    files = Files(columns, codec.columns[0][1])
    cache = IndexCache(tmp_path_factory.mktemp("cache"), PLENTY, PLENTY)
    index = KeyIndex("table", codec, cache, files.read_keys)
    for _ in range(2):  # the second time from the cache
        found = index.locate(keys_of(codec, of(wanted)), files.live(dead), lambda file: BitMap64(dead[file.path]))
        assert pairs(found) == searched(of(wanted), columns, dead)
    assert sorted(files.reads) == sorted(columns)


def test_keys_that_share_half_of_their_hash_are_distinguished() -> None:
    """Equal high halves stand next to each other in any order of the low ones."""
    high, low = np.array([5, 5, 5, 9], np.uint64), np.array([3, 1, 2, 1], np.uint64)
    index = FileIndex.of(Keys((high, low)))
    wanted = Keys((np.array([5, 5, 9, 5], np.uint64), np.array([2, 7, 1, 3], np.uint64)))
    numbers, rows = index.find(wanted)
    assert sorted(zip(numbers.tolist(), rows.tolist(), strict=True)) == [(0, 2), (2, 3), (3, 0)]


def some_index(count: int = 200_000) -> FileIndex:
    return FileIndex.of(Keys((np.random.default_rng(1).permutation(count).astype(np.int64),)))


@pytest.mark.parametrize("count", [0, 1, 100, 200_000])  # read, and mapped
def test_an_index_comes_back_from_its_file(tmp_path: Path, count: int) -> None:
    index, path = some_index(count), tmp_path / "a.keys"
    write_index(path, b"i" * 16, index)
    again, mapped = read_index(path, b"i" * 16, 1)
    assert mapped == (count == 200_000)
    assert path.stat().st_size == index.size
    for one, other in zip((*index.words, index.rows), (*again.words, again.rows), strict=True):
        assert np.array_equal(one, other)
    assert list(tmp_path.iterdir()) == [path]


def damage(path: Path, how: str) -> None:
    """Does one thing to a cache file that a crash, a disk or a person may do to it."""
    path.chmod(0o600)
    content = bytearray(path.read_bytes())
    middle = len(content) // 2
    if how == "cut":
        content = content[:middle]
    elif how == "empty":
        content = bytearray()
    elif how == "longer":
        content += b"\0" * 12
    elif how == "header":
        content[30] ^= 1
    elif how == "flipped":
        content[middle] ^= 1
    elif how == "zeros":
        content[middle:] = bytes(len(content) - middle)
    else:
        path.unlink()
        return
    other = path.with_suffix(".other")
    other.write_bytes(content)
    other.replace(path)


DAMAGES = ["cut", "empty", "longer", "header", "flipped", "zeros"]


@pytest.mark.parametrize("how", DAMAGES)
@pytest.mark.parametrize("count", [50, 200_000])
def test_a_damaged_file_is_refused(tmp_path: Path, how: str, count: int) -> None:
    path = tmp_path / "a.keys"
    write_index(path, b"i" * 16, some_index(count))
    damage(path, how)
    with pytest.raises(DamagedIndex):
        read_index(path, b"i" * 16, 1)


@pytest.mark.parametrize(("identity", "word_count"), [(b"j" * 16, 1), (b"i" * 16, 2)])
def test_another_files_index_is_refused(tmp_path: Path, identity: bytes, word_count: int) -> None:
    path = tmp_path / "a.keys"
    write_index(path, b"i" * 16, some_index(9))
    with pytest.raises(DamagedIndex, match="of another data file"):
        read_index(path, identity, word_count)


@pytest.mark.parametrize("how", [*DAMAGES, "gone"])
def test_a_bad_cache_file_is_made_anew(tmp_path: Path, how: str) -> None:
    files = Files({"a": list(range(200_000))}, pa.int64())
    wanted = keys_of(NUMBER, [199_999, 7])
    for reads in (1, 2):
        index = KeyIndex("table", NUMBER, IndexCache(tmp_path, PLENTY, PLENTY), files.read_keys)
        assert pairs(index.locate(wanted, files.live(), none_dead)) == {(0, "a", 199_999), (1, "a", 7)}
        assert len(files.reads) == reads
        (path,) = tmp_path.iterdir()
        damage(path, how)


def test_a_mapped_file_that_is_changed_in_place_is_not_trusted(tmp_path: Path) -> None:
    files = Files({"a": list(range(200_000))}, pa.int64())
    cache = IndexCache(tmp_path, PLENTY, PLENTY)
    KeyIndex("table", NUMBER, cache, files.read_keys).locate(keys_of(NUMBER, [1]), files.live(), none_dead)
    index = KeyIndex("table", NUMBER, IndexCache(tmp_path, PLENTY, PLENTY), files.read_keys)
    assert index.locate(keys_of(NUMBER, [1]), files.live(), none_dead)  # mapped now
    (path,) = tmp_path.iterdir()
    path.chmod(0o600)
    with path.open("r+b") as file:
        file.seek(100)
        file.write(b"\xff" * 1_000_000)
    wanted = list(range(0, 200_000, 777))
    assert pairs(index.locate(keys_of(NUMBER, wanted), files.live(), none_dead)) == {
        (number, "a", value) for number, value in enumerate(wanted)
    }


def test_files_that_were_swapped_are_noticed(tmp_path: Path) -> None:
    files = Files({"a": [1, 2], "b": [3, 4]}, pa.int64())
    for _ in range(2):
        index = KeyIndex("table", NUMBER, IndexCache(tmp_path, PLENTY, PLENTY), files.read_keys)
        assert pairs(index.locate(keys_of(NUMBER, [3]), files.live(), none_dead)) == {(0, "b", 0)}
        one, other = sorted(tmp_path.iterdir())
        held = one.read_bytes()
        other.replace(one)
        other.write_bytes(held)
    assert sorted(files.reads) == ["a", "a", "b", "b"]


def test_tables_and_keys_that_share_a_cache_are_distinguished(tmp_path: Path) -> None:
    cache = IndexCache(tmp_path, PLENTY, PLENTY)
    one, other = Files({"a": [1, 2]}, pa.int64()), Files({"a": [2, 1]}, pa.int64())
    for root, files in (("x", one), ("y", other)):
        index = KeyIndex(root, NUMBER, cache, files.read_keys)
        assert pairs(index.locate(keys_of(NUMBER, [2]), files.live(), none_dead)) == searched([2], files.columns, {})
    narrow = KeyCodec([("id", pa.int32())])
    found = KeyIndex("x", narrow, cache, one.read_keys).locate(keys_of(narrow, [2]), one.live(), none_dead)
    assert pairs(found) == {(0, "a", 1)}
    assert one.reads == ["a", "a"]


def test_another_file_under_an_old_name_is_distinguished(tmp_path: Path) -> None:
    """As in a table that was deleted, and made anew from files with names of their own."""
    cache = IndexCache(tmp_path, PLENTY, PLENTY)
    for time, column in enumerate(([1, 2], [2, 1])):
        files = Files({"part-0": column}, pa.int64())
        file = LiveFile({**files.live()[0].action, "modificationTime": time})
        found = KeyIndex("table", NUMBER, cache, files.read_keys).locate(keys_of(NUMBER, [2]), [file], none_dead)
        assert pairs(found) == {(0, "part-0", column.index(2))}


def test_a_new_files_index_needs_no_reading(tmp_path: Path) -> None:
    files = Files({"a": [5, 6]}, pa.int64())
    index = KeyIndex("table", NUMBER, IndexCache(tmp_path, PLENTY, PLENTY), files.read_keys)
    index.add(live_file("a"), keys_of(NUMBER, [5, 6]))
    assert pairs(index.locate(keys_of(NUMBER, [6]), files.live(), none_dead)) == {(0, "a", 1)}
    assert files.reads == []


def test_memory_and_disk_keep_to_their_limits(tmp_path: Path) -> None:
    files = Files({name: list(range(10_000)) for name in "abcdefgh"}, pa.int64())
    size = some_index(10_000).size
    cache = IndexCache(tmp_path, 2 * size, 4 * size)
    index = KeyIndex("table", NUMBER, cache, files.read_keys)
    for file in files.live():
        assert index.locate(keys_of(NUMBER, [3]), [file], none_dead)
        assert cache.memory_used <= 2 * size
        assert sum(path.stat().st_size for path in tmp_path.iterdir()) == cache.disk_used <= 4 * size
    index.locate(keys_of(NUMBER, [3]), files.live()[-4:], none_dead)
    assert files.reads == list("abcdefgh")  # the last four were kept
    again = IndexCache(tmp_path, PLENTY, size)
    assert again.disk_used <= size


def test_an_index_larger_than_the_cache_works(tmp_path: Path) -> None:
    files = Files({"a": list(range(1_000))}, pa.int64())
    cache = IndexCache(tmp_path, 10, 10)
    found = KeyIndex("table", NUMBER, cache, files.read_keys).locate(keys_of(NUMBER, [3]), files.live(), none_dead)
    assert pairs(found) == {(0, "a", 3)}
    assert (cache.memory_used, cache.disk_used, list(tmp_path.iterdir())) == (0, 0, [])


def test_a_disk_that_can_not_be_written_costs_only_time(tmp_path: Path) -> None:
    folder = tmp_path / "cache"
    cache = IndexCache(folder, PLENTY, PLENTY)
    folder.rmdir()
    files = Files({"a": [1]}, pa.int64())
    found = KeyIndex("table", NUMBER, cache, files.read_keys).locate(keys_of(NUMBER, [1]), files.live(), none_dead)
    assert pairs(found) == {(0, "a", 0)}


def test_unfinished_files_of_the_past_are_removed(tmp_path: Path) -> None:
    old, new = tmp_path / "a.keys.1.ff.tmp", tmp_path / "b.keys.2.ff.tmp"
    old.touch()
    new.touch()
    os.utime(old, (0, 0))
    IndexCache(tmp_path, PLENTY, PLENTY)
    assert list(tmp_path.iterdir()) == [new]


@pytest.mark.thorough
def test_it_is_right_while_its_files_are_deleted_damaged_and_mixed_up(tmp_path: Path, scale: Scale) -> None:
    """Lookups by two threads with small memory, so that files are read all the time, beside one that does the harm."""
    generator = random.Random(7)
    columns = {name: [ord(name) * 1_000_000 + i for i in generator.sample(range(90_000), 90_000)] for name in "abcd"}
    files = Files(columns, pa.int64())
    cache = IndexCache(tmp_path, some_index(90_000).size + 10, PLENTY)
    index = KeyIndex("table", NUMBER, cache, files.read_keys)
    rows = {value: (name, row) for name, column in columns.items() for row, value in enumerate(column)}
    wrong: list[Any] = []
    done = threading.Event()
    lookups = scale(60, at_least=15)

    def look_up(seed: int) -> None:
        own = random.Random(seed)
        for _ in range(lookups):
            wanted = [own.choice(columns[own.choice("abcd")]) for _ in range(20)]
            found = pairs(index.locate(keys_of(NUMBER, wanted), files.live(), none_dead))
            expected = {(number, *rows[value]) for number, value in enumerate(wanted)}
            if found != expected:
                wrong.append(found ^ expected)

    def harm() -> None:
        while not done.wait(0.01):
            paths = [path for path in tmp_path.iterdir() if path.suffix == ".keys"]
            if len(paths) > 1:
                one, other = generator.sample(paths, 2)
                try:
                    if generator.random() < 0.3:
                        one.replace(other)
                    else:
                        damage(one, generator.choice([*DAMAGES, "gone"]))
                except (FileNotFoundError, IndexError):  # removed, or empty already
                    continue

    threads = [threading.Thread(target=look_up, args=(seed,)) for seed in (1, 2)]
    harming = threading.Thread(target=harm)
    harming.start()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    done.set()
    harming.join()
    assert wrong == []
    assert len(files.reads) > 10  # it was harmed
