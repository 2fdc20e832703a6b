"""Decoder and types are pure: no Spark, no Kafka client, no file access, and of the service only what is pure."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[3] / "service" / "distributary"
MODULES = sorted([*(PACKAGE / "decode").rglob("*.py"), *(PACKAGE / "types").rglob("*.py"), PACKAGE / "reasons.py"])
OUTSIDE = {"pyspark", "delta", "py4j", "deltalake", "confluent_kafka", "os", "io", "pathlib", "socket", "subprocess"}
INSIDE = {
    "decode": ("decode", "types", "reasons", "errors", "arrow_errors", "rules.position_", "rules.log_traits"),
    "types": ("types", "reasons", "errors", "arrow_errors"),
}
"""Of the rules, which are pure too, the order of positions and the traits of logs."""


def imported(source: str) -> Iterator[str]:
    """All that a module imports, inside of functions too."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_imports_nothing_that_does_io_or_knows_spark(path: Path) -> None:
    names = set(imported(path.read_text(encoding="utf-8")))
    assert OUTSIDE.isdisjoint(name.partition(".")[0] for name in names)
    allowed = INSIDE.get(path.relative_to(PACKAGE).parts[0], ("errors",))
    of_the_service = {name.partition(".")[2] for name in names if name.startswith("distributary.")}
    assert not [name for name in of_the_service if not name.startswith(allowed)]


def test_opens_no_file() -> None:
    calls = [
        node.func.id
        for path in MODULES
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
    ]
    assert "open" not in calls
