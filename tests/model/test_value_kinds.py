"""Further instances of kinds of values: vectors, structured times, and modes that change within a topic."""

from __future__ import annotations

import base64
import datetime
import json
from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from tests.model.source_instance import Change, Fields, Instance, check_instance, key_and_row
from tests.support.changes import DOUBLE, FLOAT, INT, LONG, SHORT, TEXT, Row, decimal
from tests.support.decoding import struct_schema, with_schema
from tests.support.random_share import thorough_but
from tests.support.source_blocks import change, db2, mysql, oracle, postgresql, sqlserver

DATA, TIME = "io.debezium.data", "io.debezium.time"


def array(items: Mapping[str, Any], **more: Any) -> Row:
    return {"type": "array", "items": items, **more}


def local(text: str) -> datetime.datetime:
    return datetime.datetime.fromisoformat(text)


def optional(kind: Row) -> Row:
    return {**kind, "optional": True}


def time(name: str, kind: Row = LONG) -> Row:
    """A time with a semantic name of Debezium's, or of Connect's, which has dots."""
    return {**kind, "name": name if "." in name else f"{TIME}.{name}"}


SPARSE = struct_schema(
    {"dimensions": SHORT, "vector": {"type": "map", "keys": SHORT, "values": DOUBLE}}, name=f"{DATA}.SparseDoubleVector"
)
VECTORS: Fields = {
    "id": INT,
    "emb": array(DOUBLE, name=f"{DATA}.DoubleVector"),
    "half": array(FLOAT, name=f"{DATA}.FloatVector"),
    "sparse": SPARSE,
}
VECTOR_TYPES = {
    "emb": "array<double>",
    "half": "array<float>",
    "sparse": "struct<dimensions:smallint,vector:map<smallint,double>>",
}
VECTOR_ROWS: list[Row] = [
    {"id": 1, "emb": [1.5, -2.0], "half": [0.5], "sparse": {"dimensions": 9, "vector": [[2, 0.25], [9, -1.0]]}},
    {"id": 2, "emb": [], "half": [], "sparse": {"dimensions": 3, "vector": []}},
    {"id": 3, "emb": None, "half": None, "sparse": None},
]
VECTORS_FOUND = [
    (1, [1.5, -2.0], [0.5], {"dimensions": 9, "vector": [(2, 0.25), (9, -1.0)]}),
    (2, [], [], {"dimensions": 3, "vector": []}),
    (3, None, None, None),
]


def vectors(block: Any, **more: Any) -> Instance:
    records = [key_and_row(VECTORS, row, block(index)) for index, row in enumerate(VECTOR_ROWS, 1)]
    return Instance(records, VECTORS_FOUND, types=VECTOR_TYPES, **more)


NESTED: Fields = {
    "id": INT,
    "tags": array(optional(TEXT)),
    "grid": array(array(optional(INT))),
    "prices": array(decimal(6, 2)),
    "days": array(optional(time("Date", INT))),
    "spot": struct_schema({"x": DOUBLE, "y": DOUBLE, "srid": INT}, name=f"{DATA}.geometry.Point"),
    "counts": {"type": "map", "keys": INT, "values": LONG},
    "attributes": {"type": "map", "keys": TEXT, "values": optional(TEXT)},
}
NESTED_ROW = {
    "id": 1, "tags": ["a", None, ""], "grid": [[1, None], []], "prices": ["BOI="], "days": [20405, None],
    "spot": {"x": 1.0, "y": -1.0, "srid": None}, "counts": [[1, 2]], "attributes": {"k": None, "": "v"},
}  # fmt: skip
NESTED_FOUND = (
    1, ["a", None, ""], [[1, None], []], [Decimal("12.50")], [datetime.date(2025, 11, 13), None],
    {"x": 1.0, "y": -1.0, "srid": None}, [(1, 2)], [("k", None), ("", "v")],
)  # fmt: skip


def whole(row: Mapping[str, Any], fields: Fields, **added: Any) -> Change:
    """A row without an envelope, with its schema."""
    sent = {**fields, **{name: LONG if isinstance(value, int) else TEXT for name, value in added.items()}}
    key = with_schema(struct_schema({"id": fields["id"]}), json.dumps({"id": row["id"]}))
    return Change(key, with_schema(struct_schema(sent), json.dumps({**row, **added})))


_NO_DATE = {"year": None, "month": None, "day": None}
_NO_TIME = {"hour": None, "minute": None, "second": None, "nanos": None}
SPECIAL = {"specialValue": TEXT}
_DATE_PARTS = {"year": INT, "month": {"type": "int8"}, "day": {"type": "int8"}}
_TIME_PARTS = {"hour": {"type": "int8"}, "minute": {"type": "int8"}, "second": {"type": "int8"}, "nanos": INT}
STRUCTURED: Fields = {
    "id": INT,
    "day": struct_schema({**_DATE_PARTS, **SPECIAL}, name=f"{TIME}.StructuredDate"),
    "t": struct_schema({**_TIME_PARTS, "precision": INT}, name=f"{TIME}.StructuredTime"),
    "at": struct_schema(
        {**_DATE_PARTS, **_TIME_PARTS, **SPECIAL, "precision": INT}, name=f"{TIME}.StructuredTimestamp"
    ),
    "zoned": struct_schema(
        {**_DATE_PARTS, **_TIME_PARTS, "offsetSeconds": INT, "zoneId": TEXT, **SPECIAL, "precision": INT},
        name=f"{TIME}.StructuredZonedTimestamp",
    ),
}
DAY = {"year": 2025, "month": 11, "day": 14}
CLOCK = {"hour": 12, "minute": 34, "second": 56, "nanos": 123_456_000}
STRUCTURED_ROWS: list[Row] = [
    {
        "id": 1,
        "day": {**DAY, "specialValue": None},
        "t": {**CLOCK, "precision": 6},
        "at": {**DAY, **CLOCK, "specialValue": None, "precision": 6},
        "zoned": {**DAY, **CLOCK, "offsetSeconds": 3600, "zoneId": None, "specialValue": None, "precision": 6},
    },
    {
        "id": 2,
        "day": {**_NO_DATE, "specialValue": "NEGATIVE_INFINITY"},
        "t": None,
        "at": {**_NO_DATE, **_NO_TIME, "specialValue": "POSITIVE_INFINITY", "precision": 6},
        "zoned": None,
    },
]
AS_STRUCTS = [tuple(row.values()) for row in STRUCTURED_ROWS]
AT = "2025-11-14 12:34:56.123456"
LAST = "9999-12-31 23:59:59.999999"
AS_TIMES = [
    (1, datetime.date(2025, 11, 14), "12:34:56.123456", local(AT), local(AT.replace(" 12", " 11") + "+00:00")),
    (2, datetime.date(1, 1, 1), None, local(LAST), None),
]
TIMES = {"columns": {"day": "date", "t": "string", "at": "timestamp_ntz", "zoned": "timestamp"}}
"""The table's settings that turn structured dates and times into its own types."""


def structured(block: Any, **more: Any) -> Instance:
    return Instance(
        [key_and_row(STRUCTURED, row, block(index)) for index, row in enumerate(STRUCTURED_ROWS, 1)], **more
    )


def changed(
    before: Mapping[str, Any],
    after: Mapping[str, Any],
    values: tuple[Any, Any],
    found: tuple[Any, Any] | str,
    block: Any = sqlserver,
    **more: Any,
) -> Instance:
    """A column whose schema changes between two records; the table's rows of both, or the code of the halt."""
    first, second = (
        key_and_row({"id": INT, "v": kind}, {"id": number, "v": value}, block(number))
        for number, kind, value in ((1, before, values[0]), (2, after, values[1]))
    )
    if isinstance(found, str):
        return Instance([first], later=[second], halt=found, **more)
    return Instance([first], list(enumerate(found, 1)), later=[second], **more)


CONNECT = "org.apache.kafka.connect.data"
NOON = local("2025-11-13 12:00")
MS = 1_763_035_200_000
BYTES = {"type": "bytes"}
SPARSE_TEXTS = ('{"dimensions":9,"vector":[[2,0.25],[9,-1.0]]}', '{"dimensions":3,"vector":[]}', None)
WITHOUT_SCHEMA = [Change({"id": row["id"]}, change("c", mysql(at), row)) for at, row in enumerate(VECTOR_ROWS, 1)]
INSTANCES: Mapping[str, Instance] = {
    "vectors: PostgreSQL": vectors(postgresql),
    "vectors: MySQL": vectors(mysql),
    "vectors: Oracle, in Avro": vectors(oracle, in_avro=True),
    "vectors: rows without an envelope": Instance(
        [whole(row, VECTORS, __file="b.1", __pos=at) for at, row in enumerate(VECTOR_ROWS, 1)],
        VECTORS_FOUND,
        types=VECTOR_TYPES,
    ),
    "vectors: no schema, as text": Instance(
        WITHOUT_SCHEMA,
        [(1, "[1.5,-2.0]", "[0.5]", SPARSE_TEXTS[0]), (2, "[]", "[]", SPARSE_TEXTS[1]), (3, None, None, None)],
    ),
    "vectors: no schema, as arrays": Instance(
        WITHOUT_SCHEMA,
        [(*row[:3], text) for row, text in zip(VECTORS_FOUND, SPARSE_TEXTS, strict=True)],
        {"columns": {"emb": "array<double>", "half": "array<float>"}},
    ),
    "nested values": Instance([key_and_row(NESTED, NESTED_ROW, postgresql(1))], [NESTED_FOUND]),
    "nested values: in Avro": Instance([key_and_row(NESTED, NESTED_ROW, postgresql(1))], [NESTED_FOUND], in_avro=True),
    "structured times: structs": structured(postgresql, rows=AS_STRUCTS),
    "structured times: dates and times": structured(postgresql, rows=AS_TIMES, rule=TIMES),
    "structured times: dates and times of SQL Server": structured(sqlserver, rows=AS_TIMES, rule=TIMES),
    "structured times: in Avro": structured(mysql, rows=AS_STRUCTS, in_avro=True),
    "structured times: dates and times in Avro": structured(mysql, rows=AS_TIMES, rule=TIMES, in_avro=True),
    "structured times: rows without an envelope": Instance(
        [whole(row, STRUCTURED, __file="b.1", __pos=at) for at, row in enumerate(STRUCTURED_ROWS, 1)], AS_TIMES, TIMES
    ),
    "structured times: a year that no date holds": Instance(
        [
            key_and_row(
                STRUCTURED, {**STRUCTURED_ROWS[0], "day": {"year": 10_000_000, "month": 1, "day": 1}}, mysql(1)
            ),
            key_and_row(STRUCTURED, STRUCTURED_ROWS[0], mysql(2)),
        ],
        AS_TIMES[:1],
        TIMES,
        rejected={0: "bad-value"},
    ),
    "structured times: a mode that changes": changed(
        STRUCTURED["day"], time("Date", INT), (STRUCTURED_ROWS[0]["day"], 20405), "column-type-changed"
    ),
    "modes: nanoseconds to connect": changed(
        time("NanoTimestamp"), time(f"{CONNECT}.Timestamp"), (MS * 1_000_000, MS), (NOON, NOON), db2
    ),
    "modes: microseconds to milliseconds": changed(
        time("MicroTimestamp"), time("Timestamp"), (MS * 1000, MS), (NOON, NOON), postgresql
    ),
    "modes: microseconds to ISO": changed(
        time("MicroTimestamp"), time("IsoTimestamp", TEXT), (MS * 1000, "2025-11-13T12:00:00Z"), (NOON, NOON), mysql
    ),
    "modes: days to ISO": changed(
        time("Date", INT), time("IsoDate", TEXT), (20405, "2025-11-13"), (datetime.date(2025, 11, 13),) * 2, oracle
    ),
    "modes: days to connect, in Avro": changed(
        time("Date", INT),
        time(f"{CONNECT}.Date", INT),
        (20405, 20406),
        (datetime.date(2025, 11, 13), datetime.date(2025, 11, 14)),
        in_avro=True,
    ),
    "modes: time of day": changed(
        time("MicroTime"), time(f"{CONNECT}.Time", INT), (1_500_000, 1500), ("00:00:01.500000", "00:00:01.500"), mysql
    ),
    "modes: a time to a text": changed(time("MicroTimestamp"), TEXT, (MS * 1000, "2025"), "column-type-changed"),
    "modes: a zoned time to a local one": changed(
        time("ZonedTimestamp", TEXT), time("MicroTimestamp"), ("2025-11-13T12:00:00Z", MS * 1000), "column-type-changed"
    ),
    "modes: decimal to double": changed(decimal(9, 2), DOUBLE, ("BOI=", 12.5), "column-type-changed"),
    "modes: decimal to text, which `columns` reads": changed(
        decimal(9, 2),
        TEXT,
        ("BOI=", "13.00"),
        (Decimal("12.50"), Decimal("13.00")),
        rule={"columns": {"v": "decimal(9,2)"}},
    ),
    "modes: text to decimal": changed(TEXT, decimal(9, 2), ("12.50", "BOI="), "column-type-changed"),
    "modes: double to decimal": changed(DOUBLE, decimal(9, 2), (12.5, "BOI="), "column-type-changed"),
    "modes: ISO to microseconds": changed(
        time("IsoTimestamp", TEXT), time("MicroTimestamp"), ("2025-11-13T12:00:00Z", MS * 1000), (NOON, NOON), db2
    ),
    "modes: structured to nanoseconds": changed(
        STRUCTURED["at"], time("NanoTimestamp"), (STRUCTURED_ROWS[0]["at"], MS * 1_000_000), "column-type-changed"
    ),
    "modes: structured to nanoseconds, by `columns`": changed(
        STRUCTURED["at"],
        time("NanoTimestamp"),
        (STRUCTURED_ROWS[0]["at"], MS * 1_000_000),
        (local(AT), NOON),
        rule={"columns": {"v": "timestamp_ntz"}},
    ),
    "modes: bytes to hex": changed(
        BYTES, TEXT, (base64.b64encode(b"\x01").decode(), "01"), "column-type-changed", mysql
    ),
    "modes: unsigned numbers": changed(LONG, decimal(20, 0), (5, "BQ=="), "column-type-changed", mysql),
    "modes: a number that grew": changed(SHORT, LONG, (5, 2**40), (5, 2**40), mysql, types={"v": "bigint"}),
}


@pytest.mark.parametrize("instance", thorough_but(12, INSTANCES.values()), ids=INSTANCES)
def test_5_1_values_of_each_kind_are_exact_or_halt_the_table(tmp_path: Path, instance: Instance) -> None:
    check_instance(tmp_path, instance)
