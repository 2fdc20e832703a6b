"""Recorded change events of Debezium's PostgreSQL connector, and the final contents of the source tables.

The data is a part of one recording: PostgreSQL 15, Debezium 3.6.1, three partitions, REPLICA IDENTITY FULL. Keys,
values, headers and the order in each partition are unchanged; only the topic's prefix is different.
"""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Iterator
from importlib.resources import files
from typing import Any

import pyarrow as pa

from distributary.demo.record import Origin, Record, Truth

DATA = files("distributary.demo") / "data"
PARTITIONS = 3

_ARROW_TYPES = {
    "integer": pa.int32(),
    "bigint": pa.int64(),
    "boolean": pa.bool_(),
    "double precision": pa.float64(),
    "timestamp with time zone": pa.timestamp("us", "UTC"),
    "text": pa.string(),
    "uuid": pa.string(),
}


def records(prefix: str, wave: int) -> list[Record]:
    """The records of one wave (1: the snapshot, 2: changes, 3: with truncates) in the order they were written in."""
    return [
        Record(
            topic=f"{prefix}.{line['topic']}",
            key=_bytes(line["key"]),
            value=_bytes(line["value"]),
            headers=tuple((name, value.encode()) for name, value in line["headers"]),
            partition=line["partition"],
        )
        for line in _lines("postgresql.events.jsonl.gz")
        if line["wave"] == wave
    ]


def truths() -> list[Truth]:
    """The rows of PostgreSQL's tables at the end of the recording, from the text that the database wrote."""
    return [_truth(table) for table in json.loads((DATA / "postgresql.tables.json").read_text("utf-8"))]


def _truth(table: dict[str, Any]) -> Truth:
    lines = list(_lines(f"{table['table']}.truth.jsonl.gz"))
    types = {name: _arrow_type(column) for name, column in table["columns"].items()}
    columns = [pa.array([line[name] for line in lines], pa.string()).cast(type_) for name, type_ in types.items()]
    return Truth(
        table=table["table"],
        origin=Origin.RECORDED_POSTGRESQL,
        key=tuple(table["key"]),
        columns=tuple(types),
        rows=pa.table(columns, names=list(types)).to_pylist(),
        null_arrives_as={
            name: pa.scalar(text).cast(types[name]).as_py() for name, text in table.get("null_arrives_as", {}).items()
        },
    )


def _arrow_type(postgresql: str) -> pa.DataType:
    if numeric := re.fullmatch(r"numeric\((\d+),(\d+)\)", postgresql):
        return pa.decimal128(int(numeric[1]), int(numeric[2]))
    if postgresql.startswith("character varying"):
        return pa.string()
    return _ARROW_TYPES[postgresql]


def _lines(name: str) -> Iterator[dict[str, Any]]:
    for line in gzip.decompress((DATA / name).read_bytes()).splitlines():
        yield json.loads(line)


def _bytes(text: str | None) -> bytes | None:
    return None if text is None else text.encode()
