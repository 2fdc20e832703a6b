"""Deliberate faults of the service, as patches of its source: the tests must notice each.

A patch names a file of the package, a text that is in it exactly once, and what stands there instead.
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

SERVICE = Path(__file__).parents[2] / "service"


@dataclass(frozen=True)
class Mutation:
    """A fault: which rule it breaks, and how."""

    name: str
    rule: str
    file: str
    old: str
    new: str

    def apply(self, service: Path) -> None:
        """Patches a copy of the package's parent. Raises ValueError where the text is not there exactly once."""
        path = service / "distributary" / self.file
        text = path.read_text(encoding="utf-8")
        if text.count(self.old) != 1:
            raise ValueError(f"{self.name}: the text is {text.count(self.old)} times in {self.file}")
        path.write_text(text.replace(self.old, self.new), encoding="utf-8")


def mutated(mutation: Mutation, folder: Path) -> Path:
    """A copy of the service with the fault; what PYTHONPATH must begin with."""
    copy = folder / "service"
    shutil.copytree(SERVICE, copy, ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
    mutation.apply(copy)
    return copy


MUTATIONS = (
    Mutation(
        "changes go by offset alone",
        "2.1",
        "verify/position_sql.py",
        'return f"({a} > {b})"',
        'return "true"',
    ),
    Mutation(
        "the change number is left out of SQL Server's order",
        "2.1",
        "decode/position.py",
        'return f"{commit}/{change}/{serial}" if commit or op == "r" else None',
        'return f"{commit}//{serial}" if commit or op == "r" else None',
    ),
    Mutation(
        "an unknown commit sorts lowest",
        "2.1",
        "verify/position_sql.py",
        "AND left({a}, 3) = left({b}, 3)",
        "AND false",
    ),
    Mutation(
        "binlog files are ordered as text",
        "2.1",
        "decode/position.py",
        'return f"{number}/{pos}/',
        'return f"{(source.file or str()).rpartition(".")[2]}/{pos}/',
    ),
    Mutation(
        "the placeholder is stored as if it were a value",
        "3.7",
        "decode/options.py",
        'CONNECTORS_WITH_PLACEHOLDER = ("postgresql", "oracle")',
        "CONNECTORS_WITH_PLACEHOLDER = ()",
    ),
    Mutation(
        "the first of two partitions' batches is taken twice",
        "6.1",
        "progress/advance.py",
        "next={**first, **progress.next, **end}",
        "next={**first, **end, **progress.next}",
    ),
)
