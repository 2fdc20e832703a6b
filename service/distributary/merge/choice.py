"""Which engine commits a slice: Spark, or this process by itself (direct.py). Pure: each function gives the reason for
Spark, None where there is none.

In this process a slice is spared Spark's planning and jobs, and no row becomes an object of Java again. The limits are
what fits into its memory, what the `deltalake` library can write at all, and what it would write otherwise than Spark.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from distributary.merge.facts import Facts

RECORDS = 100_000
"""Records of a slice, at most: the folded rows come into this process's memory."""

PAYLOAD_BYTES = 32 * 1024 * 1024
"""The same for the records' payloads together."""

VALUES = 4_000_000
"""The same for what Arrow has of them, records times columns: up to 16 bytes each, where Avro has 1 for a NULL."""

TOUCHED_BYTES = 128 * 1024 * 1024
"""Of the table's files that may have one of the keys: they are read and rewritten in this process."""

SMALL_ROW = 1024
"""Bytes of a row in those files, up to which more of them are taken where there is memory: the library has some
thousand rows in memory at a time, however large they are."""

AT_ONCE = 192 * 1024 * 1024
"""Bytes of such files and of folded rows that are written at one time, of all tables. Rows of other tables may wait
beside them."""

AT_MOST = 8
"""So many times as much of each where there is memory for it, or where the config asks for this process: Spark hands
over 1 GiB at most (`spark.driver.maxResultSize`)."""

MEMORY = 1024 * 1024 * 1024
"""Bytes of memory beside Java that there must be for each time as much."""

HEAP = 400 * 1024 * 1024
"""The same of Java's heap: Spark hands the rows over from there."""

# Features of a table that it may have; each that is not here is refused by the library, or not seen to be kept.
_FEATURES = {
    *("appendOnly", "invariants", "timestampNtz", "columnMapping"),
    # An old protocol version counts as all of these; whether they are in use the table's settings tell.
    *("checkConstraints", "generatedColumns", "changeDataFeed"),
}
_IN_USE = ("delta.enableChangeDataFeed", "delta.enableDeletionVectors", "delta.appendOnly")
_NEW_READER, _NEW_WRITER = 3, 7  # from these versions on features are named
_OLD_WRITER = 5  # all up to column mapping
_TYPES = re.compile(
    r"string|byte|short|integer|long|float|double|boolean|binary|date|timestamp|timestamp_ntz|decimal\(\d+,\d+\)"
)
# Files without one of the keys are passed over by what the log tells of the smallest and largest value in them. Only of
# these types that is known exactly: Spark cuts timestamps to milliseconds there, JSON numbers lose digits of decimals.
_KEY_TYPES = {"byte", "short", "integer", "long", "string", "date"}


def why_not_table(
    protocol: tuple[int, int, Sequence[str] | None], properties: Mapping[str, str], schema: Mapping[str, Any]
) -> str | None:
    """`protocol`: least reader and writer version, and the names of all features; `schema`: the table's, as in its
    log."""
    reader, writer, features = protocol
    if writer < _NEW_WRITER and (writer > _OLD_WRITER or reader >= _NEW_READER):
        return f"the table's protocol has versions {reader} and {writer}"
    if others := sorted(set(features or ()) - _FEATURES):
        return f"the table has {', '.join(others)}"
    if used := [name for name in _IN_USE if properties.get(name, "").lower() == "true"]:
        return f"the table has {', '.join(used)}"
    if any(name.startswith("delta.constraints.") for name in properties):
        return "the table has constraints"
    if properties.get("delta.columnMapping.mode", "none") not in ("none", "name"):
        return "the table's columns are mapped by their ids"
    return next(_unfit(schema["fields"]), None)


def why_not_key(schema: Mapping[str, Any], key: Sequence[str]) -> str | None:
    """`key`: the names of the key's columns."""
    types = {field["name"]: field["type"] for field in schema["fields"]}
    if not key:
        return "the table has no key"
    other = [name for name in key if types.get(name) not in _KEY_TYPES]
    return f"the key's column {other[0]} is {types.get(other[0])}" if other else None


def times(heap: int, spare: int) -> int:
    """How many times as much of each this process takes, with so many bytes of Java's heap and so many beside Java."""
    return max(1, min(AT_MOST, heap // HEAP, spare // MEMORY))


def why_not_size(found: Facts, columns: int, times: int = 1) -> str | None:
    """Whether the slice's rows, of so many columns, fit into this process's memory; `times` as much of it as usual."""
    sizes = {
        "records": (found.records, RECORDS),
        "bytes": (found.payload, PAYLOAD_BYTES),
        "values": (found.records * columns, VALUES),
    }
    return next((f"the slice has {n} {what}" for what, (n, limit) in sizes.items() if n > times * limit), None)


def why_not_touched(size: int, rows: int, times: int = 1) -> str | None:
    """`size`: bytes of the table's files that may have one of the keys, `rows`: how many rows they have, 0 where the
    log does not tell."""
    limit = TOUCHED_BYTES * (times if size <= rows * SMALL_ROW else 1)
    return f"{size} bytes of files may have one of the keys" if size > limit else None


def _unfit(fields: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    for field in fields:
        others = [name for name in field.get("metadata", {}) if name.startswith("delta.")]
        others = [name for name in others if not name.startswith("delta.columnMapping.")]
        if others:
            yield f"the column {field['name']} has {', '.join(sorted(others))}"
        if not field.get("nullable", True):
            yield f"the column {field['name']} must not be NULL"
        for kind in _leaves(field["type"]):
            if not _TYPES.fullmatch(kind):
                yield f"the column {field['name']} has {kind}"


def _leaves(kind: Any) -> Iterator[str]:
    """The simple types that a type is made of."""
    if isinstance(kind, str):
        yield kind
        return
    for inner in (kind.get("elementType"), kind.get("keyType"), kind.get("valueType")):
        if inner is not None:
            yield from _leaves(inner)
    for field in kind.get("fields", ()):
        yield from _leaves(field["type"])
