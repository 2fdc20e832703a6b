"""A row whose key differs from its record's key is rejected: it would replace the row of another key."""

from __future__ import annotations

import math
from typing import Any

import pyarrow as pa
import pytest
from tests.support.decoding import plain_change, raw_table, rejections, struct_rows

from distributary.decode.decoder import Decoded, Decoder
from distributary.decode.key_match import differ
from distributary.decode.options import DecodeOptions
from distributary.reasons import RANK, REASONS
from distributary.types.record_schema import RecordSchema

TABLE = {"a": "bigint", "b": "string", "v": "string"}


def decoded(*changes: tuple[dict[str, Any], dict[str, Any] | None, str]) -> Decoded:
    """Changes of these keys, rows and operations, in a table with the key `a`, `b`."""
    records = [plain_change(offset, row, key, op=op) for offset, (key, row, op) in enumerate(changes)]
    schema = RecordSchema(TABLE, {name: TABLE[name] for name in ("a", "b")})
    return Decoder(DecodeOptions("sqlserver")).decode(raw_table(records), schema)


def test_each_reason_has_one_rank() -> None:
    assert len(RANK) == len(REASONS)


@pytest.mark.parametrize("op", ["c", "u", "r"])
@pytest.mark.parametrize(("row", "column"), [({"a": 2, "b": "x"}, "a"), ({"a": 1, "b": "X"}, "b")])
def test_1_6_a_row_with_another_key_is_rejected(op: str, row: dict[str, Any], column: str) -> None:
    key = {"a": 1, "b": "x"}
    found = decoded((key, {**key, "v": "good"}, op), (key, {**row, "v": "bad"}, op))
    assert rejections(found) == {1: "other-key"}
    assert found.rejected["message"].to_pylist() == [
        f"the row has another value than the record's key in the column {column}"
    ]
    assert found.events["offset"].to_pylist() == [0]


def test_1_6_columns_that_row_or_key_lacks_differ_from_nothing() -> None:
    key = {"a": 1, "b": "x"}
    found = decoded((key, {"a": 1, "v": "1"}, "u"), ({"a": 1, "b": None}, {"a": 1, "b": "y", "v": "2"}, "u"))
    assert not found.rejected.num_rows
    assert [row and row["b"] for row in struct_rows(found.events["row"])] == ["x", "y"]


def test_3_2_the_row_of_a_delete_is_not_compared() -> None:
    assert not decoded(({"a": 1, "b": "x"}, {"a": 2, "b": "x"}, "d")).rejected.num_rows


def test_1_6_numbers_are_compared_by_value() -> None:
    numbers = pa.array([0.0, math.nan, math.nan, None, 1.0])
    assert differ(numbers, pa.array([-0.0, math.nan, 1.0, 1.0, 2.0])).to_pylist() == [False, False, True, False, True]
