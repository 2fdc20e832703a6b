"""A table's memory as the bytes of one Parquet file, or as a short text, and back.

The rows of the file are the values that the state names, of the columns that the table had when it was written; its
metadata has the rest as JSON. A memory without values that is small is a text instead, which needs no file.
"""

from __future__ import annotations

import base64
import json
import zlib
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from distributary.apply.memory import Memory
from distributary.apply.values import no_values
from distributary.arrow_errors import DATA_ERRORS
from distributary.rules.codec import from_json_value, to_json_value

FORMAT = 1
_KEY = b"distributary"
_SHORT = 8 * 1024


class UnreadableMemory(ValueError):
    """The bytes are no memory that this version can read."""


def short_text(memory: Memory) -> str | None:
    """The memory as a text that a commit may carry; None if it needs a file."""
    if memory.values.num_rows:
        return None
    text = base64.b64encode(zlib.compress(_document(memory))).decode()
    return text if len(text) <= _SHORT else None


def read_text(text: str, row: pa.StructType) -> Memory:
    """The memory in a text that short_text wrote; `row`: the table's columns. Raises UnreadableMemory."""
    try:
        return _memory(zlib.decompress(base64.b64decode(text)), no_values(row))
    except (ValueError, zlib.error) as error:
        raise UnreadableMemory(str(error)) from error


def _document(memory: Memory) -> bytes:
    aliases = [[*at, *first] for at, first in memory.aliases.items()]
    document = {"format": FORMAT, "state": to_json_value(memory.state), "aliases": aliases}
    return json.dumps(document, separators=(",", ":")).encode()


def _memory(data: bytes, values: pa.Table) -> Memory:
    try:
        document: dict[str, Any] = json.loads(data)
        if document["format"] != FORMAT:
            raise UnreadableMemory(f"its format is {document['format']}, and this version reads {FORMAT}")
        aliases = {(p, o): (first_p, first_o) for p, o, first_p, first_o in document["aliases"]}
        return Memory(from_json_value(document["state"]), values, aliases)
    except (KeyError, TypeError, json.JSONDecodeError) as error:
        raise UnreadableMemory(str(error)) from error


def write_memory(memory: Memory) -> bytes:
    """The bytes of the file."""
    table = memory.values.replace_schema_metadata({_KEY: _document(memory)})
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, compression="zstd")
    return bytes(sink.getvalue())


def read_memory(data: bytes) -> Memory:
    """The memory of a file's bytes. Raises UnreadableMemory."""
    try:
        table = pq.read_table(pa.BufferReader(data))
        document = (table.schema.metadata or {})[_KEY]
    except (*DATA_ERRORS, KeyError) as error:
        raise UnreadableMemory(str(error)) from error
    return _memory(document, table.replace_schema_metadata(None))
