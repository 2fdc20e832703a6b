"""Keys as numbers: equal keys have equal numbers, different keys different ones."""

from __future__ import annotations

from datetime import date, datetime, timezone
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import xxhash
from hypothesis import given
from hypothesis import strategies as st

from distributary.delta.key_codec import KeyCodec, Keys

MIXED = (("a", pa.string()), ("b", pa.int64()), ("c", pa.binary()), ("d", pa.decimal128(10, 2)))


def table(columns: tuple[tuple[str, pa.DataType], ...], rows: list[tuple[Any, ...]]) -> pa.Table:
    return pa.table({name: pa.array([row[i] for row in rows], kind) for i, (name, kind) in enumerate(columns)})


def as_tuples(keys: Keys) -> list[tuple[int, ...]]:
    return list(zip(*(word.tolist() for word in keys.words), strict=True))


@pytest.mark.parametrize(
    ("kind", "values", "numbers"),
    [
        (pa.int32(), [3, -1, 2**31 - 1], [3, -1, 2**31 - 1]),
        (pa.int64(), [-(2**63), 2**63 - 1], [-(2**63), 2**63 - 1]),
        (pa.date32(), [date(1970, 1, 2), date(1969, 12, 31)], [1, -1]),
        (pa.timestamp("us", "UTC"), [datetime(1970, 1, 1, 0, 0, 1, 5, timezone.utc)], [1_000_005]),
    ],
)
def test_a_single_number_is_its_own_key(kind: pa.DataType, values: list[Any], numbers: list[int]) -> None:
    codec = KeyCodec([("id", kind)])
    assert codec.is_number
    assert as_tuples(codec.encode(pa.table({"id": pa.array(values, kind)}))) == [(number,) for number in numbers]


def test_null_is_no_number() -> None:
    keys = KeyCodec([("id", pa.int64())]).encode(pa.table({"id": pa.array([0, None, 5], pa.int64())}))
    assert keys.null is not None
    assert keys.null.tolist() == [False, True, False]


def test_the_encoding_is_the_one_that_is_written_down() -> None:
    keys = KeyCodec([("a", pa.string()), ("b", pa.int32())]).encode(
        pa.table({"a": ["é", None], "b": pa.array([7, 8], pa.int32())})
    )
    first = (2).to_bytes(8, "little") + "é".encode() + (8).to_bytes(8, "little") + (7).to_bytes(8, "little")
    second = (-1).to_bytes(8, "little", signed=True) + (8).to_bytes(8, "little") + (8).to_bytes(8, "little")
    assert [(high << 64) | low for high, low in as_tuples(keys)] == [
        xxhash.xxh3_128_intdigest(first),
        xxhash.xxh3_128_intdigest(second),
    ]


MIXED_ROWS = st.lists(
    st.tuples(
        st.none() | st.text(alphabet="ab\0", max_size=3),
        st.none() | st.integers(-2, 2),
        st.none() | st.binary(max_size=2),
        st.none() | st.sampled_from([Decimal("0.00"), Decimal("1.10"), Decimal("-1.10")]),
    ),
    max_size=30,
)


@given(MIXED_ROWS, st.integers(0, 5))
def test_composite_keys_are_equal_where_their_values_are(rows: list[tuple[Any, ...]], start: int) -> None:
    """Also for a part of a table, whose buffers begin before its first row."""
    whole = table(MIXED, rows)
    codec = KeyCodec(MIXED)
    encoded = as_tuples(codec.encode(whole))
    known: dict[tuple[Any, ...], tuple[int, ...]] = {}
    for row, key in zip(rows, encoded, strict=True):
        assert known.setdefault(row, key) == key
    assert len(set(known.values())) == len(known)
    assert as_tuples(codec.encode(whole.slice(start))) == encoded[start:]


def test_columns_do_not_run_into_each_other() -> None:
    codec = KeyCodec([("a", pa.string()), ("b", pa.string())])
    keys = as_tuples(codec.encode(pa.table({"a": ["a", "ab", "", None], "b": ["bc", "c", "", ""]})))
    assert len(set(keys)) == 4


def test_equal_values_of_narrower_types_are_equal_keys() -> None:
    """A table's column may have been widened after a file was written."""
    columns = [("a", pa.int64()), ("b", pa.string())]
    narrow = pa.table({"a": pa.array([1, -2], pa.int32()), "b": pa.array(["x", "y"]).dictionary_encode()})
    wide = pa.table({"a": pa.array([1, -2], pa.int64()), "b": pa.array(["x", "y"], pa.large_string())})
    codec = KeyCodec(columns)
    assert as_tuples(codec.encode(narrow)) == as_tuples(codec.encode(wide))


def test_zeros_and_nans_are_equal_whatever_their_bits() -> None:
    other_nan = np.frombuffer(b"\1\0\0\0\0\0\xf8\xff", np.float64)[0]
    values = np.array([0.0, -0.0, np.nan, other_nan])
    keys = as_tuples(KeyCodec([("a", pa.float64())]).encode(pa.table({"a": values})))
    assert keys[0] == keys[1]
    assert keys[2] == keys[3]
    assert keys[0] != keys[2]


def test_long_tables_are_encoded_in_pieces() -> None:
    texts = [f"key {i}" for i in range(70_000)]
    codec = KeyCodec([("a", pa.string())])
    whole = codec.encode(pa.table({"a": pa.chunked_array([texts[:9], texts[9:]])}))
    assert len({*as_tuples(whole)}) == 70_000
    assert as_tuples(whole)[69_999] == as_tuples(codec.encode(pa.table({"a": [texts[-1]]})))[0]


def test_signatures_distinguish_types_and_names() -> None:
    signatures = {
        KeyCodec(columns).signature
        for columns in (
            [("a", pa.int64())],
            [("b", pa.int64())],
            [("a", pa.string())],
            [("a", pa.string()), ("b", pa.string())],
            [("a;1:b", pa.string())],
        )
    }
    assert len(signatures) == 5


def test_a_list_is_no_key() -> None:
    with pytest.raises(ValueError, match="key column a has the type list"):
        KeyCodec([("a", pa.list_(pa.int64()))])


def test_a_value_that_does_not_fit_is_refused_and_not_quoted() -> None:
    with pytest.raises(ValueError, match="a value of the key column a") as caught:
        KeyCodec([("a", pa.int32())]).encode(pa.table({"a": [2**40]}))
    assert str(2**40) not in str(caught.value)
