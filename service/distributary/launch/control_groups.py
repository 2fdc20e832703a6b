"""The control groups of this process: those of its container or systemd unit, and all above it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path


def limit_files(root: Path, version_2: str, controller: str, version_1: str) -> Iterator[Path]:
    """The files with the limits of this process's control groups, those that exist.

    `version_2` is a file's name in a unified hierarchy, `version_1` in that of the older `controller`. A container sees
    its own group as the root, under any name.
    """
    places = {Path(version_2), Path(controller, version_1)}
    with suppress(OSError):
        for line in (root / "proc/self/cgroup").read_text(encoding="utf-8").splitlines():
            number, controllers, group = line.split(":", 2)
            mine = Path(group.lstrip("/"))
            if number == "0":  # version 2, where a group is also limited by the groups above it
                places |= {part / version_2 for part in (mine, *mine.parents)}
            elif controller in controllers.split(","):
                places |= {controller / part / version_1 for part in (mine, *mine.parents)}
    for place in places:
        file = root / "sys/fs/cgroup" / place
        if file.is_file():
            yield file


def read(file: Path) -> str:
    """The file's text; empty if it can't be read, for example because the group no longer exists."""
    try:
        return file.read_text(encoding="ascii").strip()
    except (OSError, ValueError):
        return ""
