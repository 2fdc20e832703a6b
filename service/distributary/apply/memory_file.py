"""A table's memory as the bytes of one Parquet file, and back.

The rows of the file are the values that the state names, of the columns that the table had when it was written; its
metadata has the rest as JSON.
"""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from distributary.apply.memory import Memory
from distributary.rules.codec import from_plain, to_plain

FORMAT = 1
_KEY = b"distributary"


class UnreadableMemory(ValueError):
    """The bytes are no memory that this version can read."""


def write_memory(memory: Memory) -> bytes:
    """The bytes of the file."""
    aliases = [[*at, *first] for at, first in memory.aliases.items()]
    document = {"format": FORMAT, "state": to_plain(memory.state), "aliases": aliases}
    table = memory.values.replace_schema_metadata({_KEY: json.dumps(document).encode()})
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, compression="zstd")
    return bytes(sink.getvalue())


def read_memory(data: bytes) -> Memory:
    """The memory of a file's bytes. Raises UnreadableMemory."""
    try:
        table = pq.read_table(pa.BufferReader(data))
        document: dict[str, Any] = json.loads((table.schema.metadata or {})[_KEY])
        if document["format"] != FORMAT:
            raise UnreadableMemory(f"its format is {document['format']}, and this version reads {FORMAT}")
        aliases = {(p, o): (first_p, first_o) for p, o, first_p, first_o in document["aliases"]}
        return Memory(from_plain(document["state"]), table.replace_schema_metadata(None), aliases)
    except (pa.ArrowException, KeyError, TypeError, json.JSONDecodeError) as error:
        raise UnreadableMemory(str(error)) from error
