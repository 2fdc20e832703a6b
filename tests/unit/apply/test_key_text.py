"""Keys as texts: different keys differ, and each text names its key."""

from __future__ import annotations

from datetime import date, datetime, timezone
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from distributary.apply.key_text import key_texts, keys_of

VALUES: dict[str, tuple[pa.DataType, list[Any]]] = {
    "int": (pa.int32(), [-1, 0, 2**31 - 1]),
    "bigint": (pa.int64(), [-(2**63), 0, 2**63 - 1]),
    "boolean": (pa.bool_(), [True, False]),
    "double": (pa.float64(), [0.1, 1e300, -2.5, float("inf")]),
    "text": (pa.string(), ["", "-", "1:a", "\u00e9", "a\x00b", "null"]),
    "binary": (pa.binary(), [b"", b"\x00\xff"]),
    "decimal": (pa.decimal128(38, 4), [Decimal("-0.0001"), Decimal("12345678901234567890123456789012.0000")]),
    "date": (pa.date32(), [date(1, 1, 1), date(9999, 12, 31)]),
    "timestamp_ntz": (pa.timestamp("us"), [-(2**55), 0, 2**55 + 1]),
    "timestamp": (pa.timestamp("us", "UTC"), [datetime(2026, 1, 1, tzinfo=timezone.utc)]),
    "array": (pa.list_(pa.int32()), [[], [1, None], [1, 2]]),
}


@pytest.mark.parametrize("name", VALUES)
def test_values_of_each_type_come_back(name: str) -> None:
    kind, values = VALUES[name]
    keys = pa.StructArray.from_arrays([pa.array(values, kind)], names=["k"])
    texts = key_texts(keys).to_pylist()
    assert len(set(texts)) == len(values)
    assert keys_of(texts, keys.type).equals(keys)


PARTS = st.tuples(st.none() | st.text(max_size=4), st.none() | st.integers(-(2**63), 2**63 - 1), st.text(max_size=3))


@pytest.mark.thorough
@given(st.lists(PARTS, min_size=1, max_size=8, unique=True))
def test_keys_of_several_columns_differ_and_come_back(rows: list[tuple[str | None, int | None, str]]) -> None:
    columns = [
        pa.array([row[i] for row in rows], kind) for i, kind in enumerate((pa.string(), pa.int64(), pa.string()))
    ]
    keys = pa.StructArray.from_arrays(columns, names=["a", "b", "c"])
    texts = key_texts(keys).to_pylist()
    assert len(set(texts)) == len(rows)
    assert keys_of(texts, keys.type).equals(keys)


def test_there_is_no_text_without_a_key() -> None:
    for names in (["a"], ["a", "b"]):
        columns = [pa.array([1, None], pa.int64()) for _ in names]
        keys = pa.StructArray.from_arrays(columns, names=names, mask=pa.array([False, True]))
        assert key_texts(keys).is_valid().to_pylist() == [True, False]


def test_zero_has_one_text() -> None:
    keys = pa.StructArray.from_arrays([pa.array([0.0, -0.0])], names=["k"])
    assert len(set(key_texts(keys).to_pylist())) == 1
