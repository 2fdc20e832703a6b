"""The recipes of docs/read-tables.md and docs/read-warehouses.md, under a mark `<!-- read: NAME -->` each."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

_DOCS = Path(__file__).parents[2] / "docs"
PAGES = "".join((_DOCS / name).read_text(encoding="utf-8") for name in ("read-tables.md", "read-warehouses.md"))
FEATURES = (_DOCS / "reader-features.md").read_text(encoding="utf-8")
_BLOCK = re.compile(r"<!-- read: (?P<name>[a-z-]+) -->\n```\w+\n(?P<text>.*?)^```$", re.DOTALL | re.MULTILINE)


def recipes(lake: Path) -> Mapping[str, str]:
    """Each recipe by its name, with `lake` instead of the pages' /data/lake."""
    return {found["name"]: found["text"].replace("/data/lake", str(lake)) for found in _BLOCK.finditer(PAGES)}


def reader_table() -> Mapping[str, Mapping[str, str]]:
    """The page's entry for each reader by feature, without footnote and code marks."""
    lines = FEATURES[FEATURES.index("| reader | `timestampNtz`") :].split("\n\n")[0].splitlines()
    heads, _, *rows = [[cell.strip() for cell in line.strip("| ").split(" | ")] for line in lines]
    features = [head.strip("`") for head in heads[1:]]
    return {row[0]: dict(zip(features, (re.sub(" [¹²³]$", "", cell) for cell in row[1:]), strict=True)) for row in rows}
