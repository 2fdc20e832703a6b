"""The settings of Debezium's connectors, from the connectors' own classes.

The lists are facts of the releases named in them, read once with a few lines of Java (`connector.config().names()`), so
that tests of settings need neither Java nor the connectors.
"""

from __future__ import annotations

import json
from functools import lru_cache
from pathlib import Path
from typing import Any

CONVERTERS = (
    "key.converter",
    "value.converter",
    "schema.history.internal.kafka.",
    "topic.creation.",
    "name",
    "tasks.max",
    "connector.class",
)
"""Beginnings of names that are Connect's own, a converter's or the schema history's: no connector's list has them."""

_FILE = Path(__file__).with_name("debezium_properties.json")


@lru_cache
def _lists() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(_FILE.read_text(encoding="utf-8"))
    return found


def properties_of(connector_class: str) -> frozenset[str]:
    """The names of a connector's settings. Raises KeyError for a class that has no list."""
    return frozenset(_lists()[connector_class]["names"])
