"""The folder of broken configs: the first lines of each name its faults with file and line."""

from __future__ import annotations

import re
from pathlib import Path

DIRECTORY = Path(__file__).parents[1] / "broken_configs"
FILES = sorted(DIRECTORY.glob("*.yaml"))

Expected = tuple[str, int, str]
"""A fault's code, line and file."""

_EXPECT = re.compile(r"# expect: ([a-z-]+) line (\d+)(?: in (\S+))?")


def expected(path: Path) -> list[Expected]:
    """The faults that the file's first lines announce, sorted."""
    found = []
    for line in path.read_text(encoding="utf-8").splitlines():
        if not line.startswith("# expect: "):
            break
        match = _EXPECT.fullmatch(line)
        assert match is not None, f"{path.name}: {line}"
        code, number, included = match.groups()
        found.append((code, int(number), str(path.parent / included if included else path)))
    assert found, f"{path.name} expects nothing"
    return sorted(found)
