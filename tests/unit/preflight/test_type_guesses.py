"""Guesses of types for values without a schema, for the comments of a first config."""

from __future__ import annotations

import re
from typing import Any

import pytest

from distributary.config.column_types import parse
from distributary.preflight.type_guesses import guess

INSTANT = "looks like timestamp (timestamp_ntz if it has no zone)"
CASES: tuple[tuple[str, list[Any], str | None], ...] = (
    ("bigint", [1_700_000_000_000], "looks like timestamp_ms"),
    ("bigint", [1_700_000_000_000_000, None], "looks like timestamp_us"),
    ("bigint", [1_700_000_000_000_000_000], "looks like timestamp_ns"),
    ("bigint", [1, 2, 19_000], "or date, time_ms, time_us, time_ns"),
    ("bigint", [-5, 2_932_896], "or date"),
    ("bigint", [2_932_897, 0], "or time_ms, time_us, time_ns"),
    ("bigint", [86_399_999_999], "or time_us, time_ns, timestamp_ms"),
    ("bigint", [1_700_000_000_000_000, 253_402_300_799_999_999], "or timestamp_us"),
    ("bigint", [1, 1_700_000_000_000_000], None),
    ("bigint", [-(2**63)], None),
    ("double", [1.5, 2, None], "or decimal(p,s), if the source's type is exact"),
    ("boolean", [True], None),
    ("string", ["2026-01-02T03:04:05Z", "2026-01-02T03:04:05.123456Z", None], INSTANT),
    ("string", ["2026-01-02 03:04:05+02:00", ""], INSTANT),
    ("string", ["2026-01-02T03:04:05"], "looks like timestamp_ntz"),
    ("string", ["2026-01-02", "2026-01-02Z"], "looks like date"),
    ("string", ["2026-01-02T03:04:05Z", "infinity?"], None),
    ("string", ["12.50", "-3", "0"], "or decimal(p,s), if decimal.handling.mode is string"),
    ("string", ["AQID", "BTA=", "+/8="], "or decimal(p,s) or binary, as Base64"),
    ("string", ["paid", "Open", "delivery"], None),
    ("string", ["", ""], None),
    ("string", ['{"a": 1}', " [1]"], "or variant, for JSON"),
    ("string", ["{a: 1}"], None),
    ("string", ["[" * 100_000], None),
    ("string", [[1], []], "or variant or array<...>"),
    ("string", [{"a": 1}, {"b": 1}], "or variant, struct<...> or map<string,...>"),
    ("string", [{"scale": 2, "value": "AQ=="}], "looks like io.debezium.data.VariableScaleDecimal"),
    ("string", [{"wkb": "AQ==", "srid": None}], "looks like io.debezium.data.geometry.Geometry"),
    ("string", [{"x": 1, "y": 2, "wkb": "AQ==", "srid": None}], "looks like io.debezium.data.geometry.Point"),
    ("string", [1, 2**63], "or decimal(p,0), which holds more digits than bigint"),
    ("string", [2**63, True], None),
    ("string", [1, "a"], None),
    ("string", [None], None),
    ("string", [], None),
)


@pytest.mark.parametrize(("kind", "values", "expected"), CASES)
def test_what_values_may_be_beside(kind: str, values: list[Any], expected: str | None) -> None:
    assert guess(kind, values) == expected


def test_what_is_guessed_can_stand_under_columns() -> None:
    guessed = " ".join(filter(None, (expected for _, _, expected in CASES)))
    words = set(re.findall(r"[a-z]+_[a-z]+|io\.[A-Za-z.]+|timestamp|date|variant|binary", guessed))
    assert len(words) >= 12
    for word in words:
        assert parse(word) == word
