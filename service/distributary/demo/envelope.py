"""Debezium's envelope: the schema of a record's value, and the times in it."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from typing import Any

from distributary.demo.connect import EPOCH, INT64, STRING, Column, struct

SNAPSHOT_VALUES = "true,first,first_in_data_collection,last_in_data_collection,last,false,incremental"


def times(at: dt.datetime) -> dict[str, int]:
    """A moment (UTC, without time zone) in the three units that Debezium writes it in."""
    micros = (at - EPOCH) // dt.timedelta(microseconds=1)
    return {"ts_ms": micros // 1000, "ts_us": micros, "ts_ns": micros * 1000}


def value_schema(topic: str, row: list[dict[str, Any]], connector: str, positions: Sequence[Column]) -> dict[str, Any]:
    """The schema of the values in `topic`: `row` has the table's columns, `positions` the connector's own fields."""
    return struct(
        f"{topic}.Envelope",
        [
            struct(f"{topic}.Value", row, optional=True, at="before"),
            struct(f"{topic}.Value", row, optional=True, at="after"),
            _source_schema(connector, positions),
            _transaction_schema(),
            Column("op", STRING).schema(),
            *(Column(name, INT64, optional=True).schema() for name in ("ts_ms", "ts_us", "ts_ns")),
        ],
        version=2,
    )


def _source_schema(connector: str, positions: Sequence[Column]) -> dict[str, Any]:
    snapshot = {
        "type": "string",
        "optional": True,
        "name": "io.debezium.data.Enum",
        "version": 1,
        "parameters": {"allowed": SNAPSHOT_VALUES},
        "default": "false",
        "field": "snapshot",
    }
    fields = [
        *(Column(name, STRING).schema() for name in ("version", "connector", "name")),
        Column("ts_ms", INT64).schema(),
        snapshot,
        Column("db", STRING).schema(),
        Column("sequence", STRING, optional=True).schema(),
        Column("ts_us", INT64, optional=True).schema(),
        Column("ts_ns", INT64, optional=True).schema(),
        Column("schema", STRING).schema(),
        Column("table", STRING).schema(),
        *(column.schema() for column in positions),
    ]
    return struct(f"io.debezium.connector.{connector}.Source", fields, version=1, at="source")


def _transaction_schema() -> dict[str, Any]:
    fields = [Column("id", STRING), Column("total_order", INT64), Column("data_collection_order", INT64)]
    return struct("event.block", [field.schema() for field in fields], optional=True, version=1, at="transaction")
