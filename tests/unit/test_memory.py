"""The size of the memory, from the system's files."""

from __future__ import annotations

from pathlib import Path

import pytest

from distributary.launch.memory import beside_java, default_heap, machine_memory, spark_bytes, too_tight

GIB = 1 << 30


def system(root: Path, **files: str) -> Path:
    for name, text in {"proc/meminfo": "MemTotal: 16777216 kB\nMemAvailable: 8388608 kB\n", **files}.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return root


def test_a_machine_without_limits(tmp_path: Path) -> None:
    files = {"sys/fs/cgroup/memory.max": "max\n", "proc/self/cgroup": "0::/\n"}
    assert machine_memory(system(tmp_path, **files)) == (16 * GIB, 8 * GIB)


@pytest.mark.parametrize(
    "files",
    [
        {"sys/fs/cgroup/memory.max": f"{4 * GIB}\n"},
        {"sys/fs/cgroup/memory/memory.limit_in_bytes": f"{4 * GIB}\n", "proc/self/cgroup": "5:memory:/docker/x\n"},
        {"sys/fs/cgroup/a.slice/memory.max": f"{4 * GIB}\n", "proc/self/cgroup": "0::/a.slice/b.service\n"},
    ],
    ids=["container", "version 1", "a service's slice"],
)
def test_the_limit_of_a_control_group_counts(tmp_path: Path, files: dict[str, str]) -> None:
    assert machine_memory(system(tmp_path, **files)) == (4 * GIB, 4 * GIB)


def test_a_system_that_tells_nothing(tmp_path: Path) -> None:
    assert machine_memory(tmp_path) == (None, None)
    assert beside_java(GIB, (None, None)) == 0


def test_what_is_left_beside_java() -> None:
    heap = 32 * GIB // 9
    assert round(beside_java(heap, (16 * GIB, 12 * GIB)) / GIB) == 11
    assert beside_java(heap, (16 * GIB, 2 * GIB)) == 2 * GIB
    assert beside_java(heap, (4 * GIB, 4 * GIB)) == 0


@pytest.mark.parametrize(
    ("text", "size"), [("4g", 4 * 2**30), ("512m", 2**29), ("2048", 2**31), ("1 GB", 2**30), ("much", None)]
)
def test_sparks_sizes(text: str, size: int | None) -> None:
    assert spark_bytes(text) == size


@pytest.mark.parametrize(
    ("total", "heap"),
    [(None, 4096), (64 * GIB, 4096), (6 * GIB, 4096), (4 * GIB, 2048), (3 * GIB, 1536), (GIB, 512)],
)
def test_the_heap_that_nobody_sets_leaves_room_beside_it(total: int | None, heap: int) -> None:
    assert spark_bytes(default_heap(total)) == heap * 2**20


def test_a_heap_that_leaves_too_little_beside_it_is_noticed() -> None:
    assert not too_tight(2 * GIB, 4 * GIB)
    assert not too_tight(3 * GIB, 4 * GIB)
    assert too_tight(4 * GIB, 4 * GIB)
    assert not too_tight(4 * GIB, None)
