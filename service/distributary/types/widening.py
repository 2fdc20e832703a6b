"""Which types of columns hold the values of others, and to which they are widened (all as Spark's simple strings)."""

from __future__ import annotations

import re

WHOLE_NUMBERS = {"tinyint": 3, "smallint": 5, "int": 10, "bigint": 19}
"""Types of whole numbers, each with the decimal digits that hold every value."""
_ORDER = list(WHOLE_NUMBERS)
_LARGEST_PRECISION = 38


def holds(table_type: str, wire_type: str) -> bool:
    """Whether a column of `table_type` holds every value of `wire_type` unchanged."""
    if table_type == wire_type:
        return True
    if wire_type in WHOLE_NUMBERS:
        if table_type in WHOLE_NUMBERS:
            return _ORDER.index(table_type) >= _ORDER.index(wire_type)
        if table_type == "double":
            return wire_type != "bigint"
        whole = _whole_digits(table_type)
        return whole is not None and whole >= WHOLE_NUMBERS[wire_type]
    if (wire_type, table_type) in {("float", "double"), ("date", "timestamp_ntz")}:
        return True
    wire, table = decimal_of(wire_type), decimal_of(table_type)
    return bool(wire and table and table[1] >= wire[1] and table[0] - table[1] >= wire[0] - wire[1])


def wider(table_type: str, wire_type: str) -> str | None:
    """The type to which Delta widens a column in place, so that it holds every value of both; None if there is none.

    https://docs.delta.io/delta-type-widening/ has the list. Whole numbers are widened to whole numbers alone, although
    Delta could widen them to decimals and doubles: readers of the table would see another kind of number.
    """
    if table_type in WHOLE_NUMBERS and wire_type in WHOLE_NUMBERS:
        return max(table_type, wire_type, key=_ORDER.index)
    if (table_type, wire_type) in {("float", "double"), ("date", "timestamp_ntz")}:
        return wire_type
    table, wire = decimal_of(table_type), decimal_of(wire_type)
    if table is None or wire is None:
        return None
    scale = max(table[1], wire[1])
    precision = max(table[0] - table[1], wire[0] - wire[1]) + scale
    return f"decimal({precision},{scale})" if precision <= _LARGEST_PRECISION else None


def decimal_of(spark_type: str) -> tuple[int, int] | None:
    """Precision and scale of a decimal; None for another type."""
    match = re.fullmatch(r"decimal\((\d+),(\d+)\)", spark_type)
    return (int(match[1]), int(match[2])) if match else None


def _whole_digits(spark_type: str) -> int | None:
    precision_and_scale = decimal_of(spark_type)
    return precision_and_scale[0] - precision_and_scale[1] if precision_and_scale else None
