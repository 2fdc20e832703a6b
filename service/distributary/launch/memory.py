"""How much memory this machine has; a container's limit counts."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from pyspark.sql import SparkSession

from distributary.launch.classes import java_class

_OUTSIDE_OF_HEAP = 1 << 30  # what Java has outside of its heap: compiled code, threads, buffers


def machine_memory(root: Path = Path("/")) -> tuple[int | None, int | None]:
    """All memory and the free one, in bytes; a container's limit counts for both. None where the system tells none."""
    try:
        lines = (root / "proc/meminfo").read_text(encoding="ascii").splitlines()
    except OSError:
        return None, None
    sizes = {name: int(rest.split()[0]) * 1024 for name, _, rest in (line.partition(":") for line in lines)}
    total, free = sizes.get("MemTotal"), sizes.get("MemAvailable")
    if total is None or free is None:
        return total, free
    limit = min(_limits(root), default=total)
    return min(total, limit), min(free, limit)


def _limits(root: Path) -> Iterator[int]:
    """Of the control groups that this process is in; within a container its own one is the root."""
    places = {Path("memory.max"), Path("memory/memory.limit_in_bytes")}
    with suppress(OSError):
        for line in (root / "proc/self/cgroup").read_text(encoding="utf-8").splitlines():
            number, _, group = line.split(":", 2)
            if number == "0":  # version 2, where a group has what those above it leave to it
                mine = Path(group.lstrip("/"))
                places |= {part / "memory.max" for part in (mine, *mine.parents)}
    for place in places:
        with suppress(OSError, ValueError):  # `max`: no limit
            yield int((root / "sys/fs/cgroup" / place).read_text(encoding="ascii"))


def java_heap(session: SparkSession) -> int:
    """Bytes that objects in the driver's JVM have at most. With the parallel collector that is a ninth less than the
    heap itself."""
    return int(java_class(session, "java.lang.Runtime").getRuntime().maxMemory())


def beside_java(heap: int, memory: tuple[int | None, int | None]) -> int:
    """Bytes that are left beside a JVM with such a heap (see java_heap), of all memory and the free one as
    machine_memory tells them; 0 where it does not."""
    total, free = memory
    if total is None or free is None:
        return 0
    return max(0, min(free, total - heap * 9 // 8 - _OUTSIDE_OF_HEAP))
