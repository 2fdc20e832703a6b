"""How much memory this machine has; a container's limit counts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

_CGROUP_LIMIT = Path("/sys/fs/cgroup/memory.max")
_OUTSIDE_OF_HEAP = 1 << 30  # what Java has outside of its heap: compiled code, threads, buffers


def machine_memory() -> tuple[int | None, int | None]:
    """All memory and the free one, in bytes; a container's limit counts for both. None where the system tells none."""
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
    except OSError:
        return None, None
    sizes = {name: int(rest.split()[0]) * 1024 for name, _, rest in (line.partition(":") for line in lines)}
    total, free = sizes.get("MemTotal"), sizes.get("MemAvailable")
    try:
        limit = _CGROUP_LIMIT.read_text(encoding="ascii").strip()
    except OSError:
        return total, free
    if limit.isdigit() and total is not None and free is not None:
        return min(total, int(limit)), min(free, int(limit))
    return total, free


def java_heap(session: SparkSession) -> int:
    """Bytes that the heap of the driver's JVM has at most."""
    jvm: Any = session._jvm
    return int(jvm.java.lang.Runtime.getRuntime().maxMemory())


def beside_java(session: SparkSession) -> int:
    """Bytes that this machine has beside the driver's JVM; 0 where it can't be told."""
    total, _ = machine_memory()
    return 0 if total is None else max(0, total - java_heap(session) - _OUTSIDE_OF_HEAP)
