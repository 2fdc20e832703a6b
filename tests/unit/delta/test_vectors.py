"""Deletion vectors are read as they were written, and damaged ones are detected."""

from __future__ import annotations

import uuid
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyroaring import BitMap64

from distributary.delta.storage import TableFiles
from distributary.delta.vectors import (
    VectorDescriptor,
    VectorFile,
    decoded,
    encoded,
    read_vector,
    z85_decoded,
    z85_encoded,
)
from distributary.errors import TableHalt


def test_z85_is_that_of_its_specification() -> None:
    assert z85_encoded(bytes.fromhex("864FD26FB559F75B")) == "HelloWorld"
    assert z85_decoded("HelloWorld") == bytes.fromhex("864FD26FB559F75B")


def test_a_vector_has_the_bytes_of_the_format() -> None:
    """Magic, one bitmap, its high 32 bits, then the bitmap as Roaring's specification has it."""
    bitmap = "3a300000" + "01000000" + "00000500" + "10000000" + "03000400" + "07000b00" + "12001d00"
    data = bytes.fromhex("d1d33964" + "0100000000000000" + "00000000" + bitmap)
    assert encoded(BitMap64([3, 4, 7, 11, 18, 29])) == data
    assert list(decoded(data)) == [3, 4, 7, 11, 18, 29]


def test_an_inline_vector_is_read(tmp_path: Path) -> None:
    text = z85_encoded(encoded(BitMap64([3, 4, 7, 11, 18, 29])) + b"\0\0")
    found = read_vector(TableFiles(str(tmp_path)), VectorDescriptor("i", text, 44, 6))
    assert list(found) == [3, 4, 7, 11, 18, 29]


def test_the_file_of_the_protocols_example_is_named_as_there() -> None:
    vector = VectorDescriptor("u", "ab^-aqEH.-t@S}K{vb[*k^", 40, 6, 4)
    assert vector.path == "ab/deletion_vector_d2c639aa-8816-431a-aaf6-d3fe2512ff61.bin"
    assert vector.unique_id == "uab^-aqEH.-t@S}K{vb[*k^@4"


@pytest.mark.thorough
@given(st.lists(st.sets(st.integers(0, 2**40), min_size=1, max_size=50), min_size=1, max_size=5))
def test_vectors_come_back(tmp_path_factory: pytest.TempPathFactory, sets: list[set[int]]) -> None:
    files = TableFiles(str(tmp_path_factory.mktemp("table")))
    written = VectorFile()
    vectors = [written.add(BitMap64(rows)) for rows in sets]
    written.write(files)
    for rows, vector in zip(sets, vectors, strict=True):
        again = VectorDescriptor.from_json(vector.as_json())
        assert again == vector
        assert set(read_vector(files, again)) == rows
        assert vector.path == written.path


def test_a_file_without_a_vector_has_no_dead_rows(tmp_path: Path) -> None:
    assert not read_vector(TableFiles(str(tmp_path)), None)


@pytest.mark.parametrize("place", range(1, 53))
def test_a_changed_byte_is_noticed(tmp_path: Path, place: int) -> None:
    """Within the vector, its length and its checksum; the byte before is the file's version."""
    written, files = VectorFile(), TableFiles(str(tmp_path))
    vector = written.add(BitMap64([3, 4, 7, 11, 18, 29]))
    written.write(files)
    path = tmp_path / written.path
    content = bytearray(path.read_bytes())
    content[place] ^= 0x10
    path.write_bytes(content)
    with pytest.raises(TableHalt, match="is damaged"):
        read_vector(files, vector)


def test_a_cut_file_and_a_wrong_count_are_noticed(tmp_path: Path) -> None:
    written, files = VectorFile(), TableFiles(str(tmp_path))
    vector = written.add(BitMap64([1, 2]))
    written.write(files)
    with pytest.raises(TableHalt, match="is damaged"):
        read_vector(files, VectorDescriptor("u", vector.place, vector.size, 3, vector.offset))
    path = tmp_path / written.path
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(TableHalt, match="is damaged"):
        read_vector(files, vector)


def test_a_missing_file_says_what_may_have_deleted_it(tmp_path: Path) -> None:
    vector = VectorFile().add(BitMap64([1]))
    with pytest.raises(TableHalt, match="not there") as caught:
        read_vector(TableFiles(str(tmp_path)), vector)
    assert "vacuum(full=True)" in caught.value.fix


def test_an_unknown_kind_of_storage_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TableHalt, match="storage type x"):
        read_vector(TableFiles(str(tmp_path)), VectorDescriptor("x", "", 1, 1))


def test_another_form_of_bitmap_is_refused() -> None:
    with pytest.raises(ValueError, match="not a deletion vector"):
        decoded((1681511376).to_bytes(4, "little") + b"\0" * 8)


def test_a_file_outside_of_the_table_is_read(tmp_path: Path) -> None:
    written = VectorFile()
    vector = written.add(BitMap64([5]))
    other = tmp_path / "other table"
    written.write(TableFiles(str(other)))
    uri = (other / written.path).as_uri()
    found = read_vector(TableFiles(str(tmp_path)), VectorDescriptor("p", uri, vector.size, 1, vector.offset))
    assert list(found) == [5]
    assert uuid.UUID(written.path[len("deletion_vector_") : -len(".bin")])
