"""Converts a value of a record, with its schema, to a comparable value of the lake's type."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from tests.support import instants
from tests.support.comparable import Value, float32

Json = Any
LONG = 2**63
_INFINITE_DATES = {
    # as the stream writes them, and as a snapshot does
    -2147472692: instants.LAST_DATE,
    -2147472691: instants.FIRST_DATE,
    -622191234: instants.LAST_DATE,
    -625821272: instants.FIRST_DATE,
}
_INFINITE_MICROSECONDS = {
    9223372036825200000: instants.LAST_INSTANT,
    -9223372036832400000: instants.FIRST_INSTANT,
}


def row(after: Mapping[str, Json], fields: list[Json]) -> dict[str, Value]:
    """A row's values by column. Raises OverflowError for one that the lake's type can't hold."""
    return {part["field"]: value(after.get(part["field"]), part) for part in fields}


def value(raw: Json, schema: Json) -> Value:
    """The comparable value; `schema` is the Connect schema of the field or element. Raises as `row` does."""
    if raw is None:
        return None
    name, kind = schema.get("name", "").rpartition(".")[2], schema["type"]
    if name == "Decimal":
        return _decimal(raw, schema["parameters"])
    if name == "VariableScaleDecimal":
        return _plain(base64.b64decode(raw["value"]), raw["scale"])
    if name in ("Date", "MicroTimestamp", "Timestamp", "Time", "MicroTime", "ZonedTimestamp"):
        return _temporal(raw, name)
    if kind == "bytes":
        return base64.b64decode(raw)
    if kind == "array":
        return [value(item, schema["items"]) for item in raw]
    if kind == "struct":
        return {part["field"]: value(raw.get(part["field"]), part) for part in schema["fields"]}
    if kind in ("float", "double"):
        return float32(float(raw)) if kind == "float" else float(raw)
    return raw


def _temporal(raw: Json, name: str) -> Value:
    if name == "Date":
        return _INFINITE_DATES.get(raw, raw)
    if name == "Time":
        return instants.time_text(raw * 1000, 3)
    if name == "MicroTime":
        return instants.time_text(raw, 6)
    if name == "ZonedTimestamp":
        return _long(instants.instant(raw))
    microseconds = raw * 1000 if name == "Timestamp" else raw
    return _long(_INFINITE_MICROSECONDS.get(microseconds, microseconds))


def _decimal(raw: str, parameters: dict[str, str]) -> Value:
    scale, precision = int(parameters["scale"]), int(parameters.get("connect.decimal.precision", 38))
    if precision > 38 or scale > precision:
        return _plain(base64.b64decode(raw), scale)
    return _exact(base64.b64decode(raw), scale)


def _exact(unscaled: bytes, scale: int) -> Decimal:
    number = int.from_bytes(unscaled, "big", signed=True)
    return Decimal((number < 0, tuple(int(digit) for digit in str(abs(number))), -scale))


def _plain(unscaled: bytes, scale: int) -> str:
    return f"{_exact(unscaled, scale):f}"


def _long(number: int) -> int:
    if not -LONG <= number < LONG:
        raise OverflowError("no timestamp of the lake is that far away")
    return number
