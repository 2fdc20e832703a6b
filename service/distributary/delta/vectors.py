"""Deletion vectors of Delta's format: which rows of a data file are dead.

A vector is a set of row numbers in Roaring's portable 64-bit form after a magic number. Vectors of one commit lie in
one file: a version byte, then each with its length before and its CRC-32 behind it.
"""

from __future__ import annotations

import base64
import struct
import uuid
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pyroaring import BitMap64

from distributary.arrow_errors import DATA_ERRORS
from distributary.delta.storage import TableFiles, file_damaged
from distributary.errors import TableHalt

_MAGIC = struct.pack("<i", 1681511377)  # of the portable form of Delta's RoaringBitmapArray
_VERSION = b"\x01"  # of the file
_UUID_TEXT = 20  # characters of a UUID in Z85
_B85 = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~"
_Z85 = b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
_TO_Z85, _FROM_Z85 = bytes.maketrans(_B85, _Z85), bytes.maketrans(_Z85, _B85)


@dataclass(frozen=True)
class VectorDescriptor:
    """The place of a vector. `storage`: `u` a file of the table, `p` a file anywhere, `i` within the log. `size` in
    bytes without length and checksum; `cardinality` is how many rows are dead."""

    storage: str
    place: str
    size: int
    cardinality: int
    offset: int | None = None

    @staticmethod
    def from_json(action: Mapping[str, Any]) -> VectorDescriptor:
        """From an action's `deletionVector`."""
        offset = action.get("offset")
        return VectorDescriptor(
            action["storageType"],
            action["pathOrInlineDv"],
            int(action["sizeInBytes"]),
            int(action["cardinality"]),
            None if offset is None else int(offset),
        )

    def as_json(self) -> dict[str, Any]:
        """The descriptor as the JSON of an action."""
        fields = {
            "storageType": self.storage,
            "pathOrInlineDv": self.place,
            "offset": self.offset,
            "sizeInBytes": self.size,
            "cardinality": self.cardinality,
        }
        return {name: value for name, value in fields.items() if value is not None}

    @property
    def unique_id(self) -> str:
        """The identity of the vector, in Delta's form."""
        return f"{self.storage}{self.place}" + ("" if self.offset is None else f"@{self.offset}")

    @property
    def path(self) -> str:
        """The path of the vector's file as the log would have it."""
        if self.storage == "p":
            return self.place
        prefix, name = self.place[:-_UUID_TEXT], self.place[-_UUID_TEXT:]
        log_path = TableFiles.log_path(_file_name(uuid.UUID(bytes=z85_decoded(name))))
        return f"{prefix}/{log_path}" if prefix else log_path


class VectorFile:
    """The vectors of one commit, put together in memory and written as one file."""

    def __init__(self) -> None:
        self._id = uuid.uuid4()
        self._content = bytearray(_VERSION)

    @property
    def path(self) -> str:
        """The file's path in the table."""
        return _file_name(self._id)

    def add(self, dead: BitMap64) -> VectorDescriptor:
        """Adds the vector of a file whose rows `dead` are dead."""
        data, offset = encoded(dead), len(self._content)
        self._content += struct.pack(">i", len(data)) + data + struct.pack(">I", zlib.crc32(data))
        return VectorDescriptor("u", z85_encoded(self._id.bytes), len(data), len(dead), offset)

    def write(self, files: TableFiles) -> None:
        """Writes the file."""
        files.write(self.path, bytes(self._content))


def read_vector(files: TableFiles, vector: VectorDescriptor | None) -> BitMap64:
    """The dead rows of a file with that vector.

    Raises TableHalt if the vector is missing, damaged or of a form that this version does not know.
    """
    if vector is None:
        return BitMap64()
    path = "an inline vector" if vector.storage == "i" else vector.path if vector.storage in ("u", "p") else ""
    if not path:
        raise TableHalt(
            "vector-unknown",
            f"the table has a deletion vector of the storage type {vector.storage}",
            "purge the table's deletion vectors (REORG TABLE … APPLY (PURGE)), or run a newer version",
        )
    try:
        data = z85_decoded(vector.place)[: vector.size] if vector.storage == "i" else _stored(files, vector)
        dead = decoded(data)
    except (ValueError, struct.error, *DATA_ERRORS) as error:
        raise file_damaged(path) from error
    if len(dead) != vector.cardinality:
        raise file_damaged(path)
    return dead


def encoded(dead: BitMap64) -> bytes:
    """A vector's bytes."""
    return _MAGIC + bytes(dead.serialize())


def decoded(data: bytes) -> BitMap64:
    """The dead rows. Raises ValueError if the bytes are no vector."""
    if data[:4] != _MAGIC:
        raise ValueError("not a deletion vector in the portable form")
    return BitMap64.deserialize(data[4:])


def z85_encoded(data: bytes) -> str:
    """Bytes as text in ZeroMQ's base 85, in which the log has UUIDs and inline vectors."""
    padded = data + bytes(-len(data) % 4)
    return base64.b85encode(padded).translate(_TO_Z85).decode("ascii")


def z85_decoded(text: str) -> bytes:
    """The bytes of a Z85 text, with up to 3 zero bytes at the end. Raises ValueError for any other text."""
    return base64.b85decode(text.encode("ascii").translate(_FROM_Z85))


def _stored(files: TableFiles, vector: VectorDescriptor) -> bytes:
    with files.open(vector.path) as stream:
        stream.seek(vector.offset or 0)
        length, data, checksum = stream.read(4), stream.read(vector.size), stream.read(4)
    if struct.unpack(">i", length)[0] != vector.size or struct.unpack(">I", checksum)[0] != zlib.crc32(data):
        raise ValueError("length or checksum differs")
    return bytes(data)


def _file_name(name: uuid.UUID) -> str:
    return f"deletion_vector_{name}.bin"
