"""Guesses the types of values without a schema, as a hint for the person who sets the type. The service does not use
the guess."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

# From 2001 to 2286 (nanoseconds: to 2262, their maximum) the ranges of the units do not overlap.
_LIKELY = (
    ("timestamp_ms", 10**12, 10**13),
    ("timestamp_us", 10**15, 10**16),
    ("timestamp_ns", 10**18, 2**63),
)
# Days of the years 1 to 9999, times of day, and timestamps up to 9999 without the first months of 1970.
_POSSIBLE = (
    ("date", -719_162, 2_932_897),
    ("time_ms", 0, 86_400_000),
    ("time_us", 0, 86_400_000_000),
    ("time_ns", 0, 86_400_000_000_000),
    ("timestamp_ms", 10**10, 253_402_300_800_000),
    ("timestamp_us", 10**13, 253_402_300_800_000_000),
    ("timestamp_ns", 10**16, 2**63),
)
_DAY = r"\d{4}-\d\d-\d\d"
_TIME = r"\d\d:\d\d(:\d\d(\.\d+)?)?"
_BASE64 = "[A-Za-z0-9+/]"
_TEXTS: tuple[tuple[re.Pattern[str], str | None], ...] = (
    (re.compile(rf"{_DAY}[T ]{_TIME}(Z|[+-]\d\d:?\d\d)"), "looks like timestamp (timestamp_ntz if it has no zone)"),
    (re.compile(rf"{_DAY}[T ]{_TIME}"), "looks like timestamp_ntz"),
    (re.compile(rf"{_DAY}Z?"), "looks like date"),
    (re.compile(r"-?\d+(\.\d+)?"), "or decimal(p,s), if decimal.handling.mode is string"),
    (re.compile(r"[A-Za-z][a-z]*"), None),  # words: those of four or eight letters would match Base64
    (re.compile(rf"(?:{_BASE64}{{4}})*(?:{_BASE64}{{2}}==|{_BASE64}{{3}}=)?"), "or decimal(p,s) or binary, as Base64"),
)
_OBJECTS: Mapping[frozenset[str], str] = {
    frozenset({"scale", "value"}): "looks like io.debezium.data.VariableScaleDecimal",
    frozenset({"wkb", "srid"}): "looks like io.debezium.data.geometry.Geometry",
    frozenset({"x", "y", "wkb", "srid"}): "looks like io.debezium.data.geometry.Point",
}


def guess(kind: str, values: Iterable[Any]) -> str | None:
    """A few words on another possible type of a column than `kind`, the inferred type; None without a guess. The text
    contains none of the values."""
    non_nulls = [value for value in values if value is not None]
    guesser = _GUESSERS.get(kind)
    return guesser(non_nulls) if guesser is not None and non_nulls else None


def _of_whole_numbers(numbers: list[Any]) -> str | None:
    def between(ranges: Iterable[tuple[str, int, int]]) -> list[str]:
        return [kind for kind, low, end in ranges if low <= min(numbers) and max(numbers) < end]

    if likely := between(_LIKELY):
        return f"looks like {likely[0]}"
    possible = between(_POSSIBLE)
    return f"or {', '.join(possible)}" if possible else None


def _of_fractions(_numbers: list[Any]) -> str:
    return "or decimal(p,s), if the source's type is exact"


def _of_others(values: list[Any]) -> str | None:
    if all(isinstance(value, str) for value in values):
        return _of_texts([text for text in values if text])
    if all(type(value) is int for value in values):
        return "or decimal(p,0), which holds more digits than bigint"
    if all(isinstance(value, list) for value in values):
        return "or variant or array<...>"
    if not all(isinstance(value, dict) for value in values):
        return None
    fields = {frozenset(value) for value in values}
    known = _OBJECTS.get(fields.pop()) if len(fields) == 1 else None
    return known or "or variant, struct<...> or map<string,...>"


def _of_texts(texts: list[str]) -> str | None:
    if not texts:
        return None
    for pattern, kind in _TEXTS:
        if all(map(pattern.fullmatch, texts)):
            return kind
    return "or variant, for JSON" if all(map(_is_json, texts)) else None


def _is_json(text: str) -> bool:
    if not text.lstrip().startswith(("{", "[")):
        return False
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


_GUESSERS: Mapping[str, Callable[[list[Any]], str | None]] = {
    "bigint": _of_whole_numbers,
    "double": _of_fractions,
    "string": _of_others,
}
