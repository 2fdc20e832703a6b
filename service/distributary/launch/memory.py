"""How much memory this machine has; a container's limit counts."""

from __future__ import annotations

import re
from pathlib import Path

from pyspark.sql import SparkSession

from distributary.launch.classes import java_class
from distributary.launch.control_groups import limit_files, read

_UNITS = {"": 2**20, "k": 2**10, "m": 2**20, "g": 2**30, "t": 2**40}  # Spark takes a bare number as MiB
_SIZE = re.compile(r"(\d+)\s*([kmgt]?)b?", re.IGNORECASE)
_OUTSIDE_OF_HEAP = 1 << 30  # Java's memory outside of its heap: compiled code, threads, buffers


def machine_memory(root: Path = Path("/")) -> tuple[int | None, int | None]:
    """Total and free memory, in bytes; a container's limit applies to both. None if the system does not show it."""
    try:
        lines = (root / "proc/meminfo").read_text(encoding="ascii").splitlines()
    except OSError:
        return None, None
    sizes = {name: int(rest.split()[0]) * 1024 for name, _, rest in (line.partition(":") for line in lines)}
    total, free = sizes.get("MemTotal"), sizes.get("MemAvailable")
    if total is None or free is None:
        return total, free
    files = limit_files(root, "memory.max", "memory", "memory.limit_in_bytes")
    limit = min((int(text) for text in map(read, files) if text.isdecimal()), default=total)  # `max`: no limit
    return min(total, limit), min(free, limit)


def default_heap(total: int | None) -> str:
    """The default heap of Spark's driver, in Spark's notation: 4 GiB; less if that would leave less than 2 GiB of
    `total`; half of `total` if that is less than 4 GiB."""
    if total is None:
        return "4g"
    mebibytes = total // 2**20
    return f"{min(4096, max(mebibytes - 2048, mebibytes // 2))}m"


def too_tight(heap: int, total: int | None) -> bool:
    """Whether a JVM with such a heap may need more than `total`, both in bytes: then its container is killed."""
    return total is not None and heap + _OUTSIDE_OF_HEAP > total


def spark_bytes(text: str) -> int | None:
    """The bytes of Spark's `4g`, `512m`; None for any other text."""
    match = _SIZE.fullmatch(text.strip())
    return int(match[1]) * _UNITS[match[2].lower()] if match else None


def java_heap(session: SparkSession) -> int:
    """Bytes that objects in the driver's JVM have at most. With the parallel collector that is a ninth less than the
    heap itself."""
    return int(java_class(session, "java.lang.Runtime").getRuntime().maxMemory())


def beside_java(heap: int, memory: tuple[int | None, int | None]) -> int:
    """Bytes that a JVM with such a heap (see java_heap) leaves of all and of free memory, from machine_memory; 0 if
    that is not known."""
    total, free = memory
    if total is None or free is None:
        return 0
    return max(0, min(free, total - heap * 9 // 8 - _OUTSIDE_OF_HEAP))
