"""The recipe as a process of its own: table after table. Its one argument is a file, see many_tables._recipe."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from tests.benchmarks.contenders import Recipe


def main() -> None:
    """Takes each topic from one offset to another."""
    plan = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    recipe = Recipe(plan["kafka"])
    for topic, table, at, end in plan["turns"]:
        recipe.go_on(topic, Path(table), at)
        recipe.take(end)


if __name__ == "__main__":
    main()
