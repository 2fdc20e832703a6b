"""How many processors the service may use: not those that the machine has, but those that it is granted."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

import pyarrow as pa

from distributary.errors import UsageError
from distributary.launch.control_groups import limit_files, read

VARIABLE = "DISTRIBUTARY_CORES"
"""The environment variable with the number of processors, for a pod that only requests processors: without a limit it
sees all processors of its node."""
HEAP_FOR_A_TASK = 512 * 2**20
"""The least bytes of heap per task. A task that reads Kafka holds up to 64 MiB of fetched bytes, the same as rows, and
needs memory for sorting: 64 such tasks do not fit into a heap of 2 GiB."""
_ALL_CORES = re.compile(r"local\[\*(?:,\s*\d+)?\]")


def granted_cores(environment: Mapping[str, str], root: Path = Path("/"), seen: int | None = None) -> int:
    """The number of processors that this process may use, rounded up: the least of DISTRIBUTARY_CORES, of the
    processors that the process may run on (in tests `seen`), and of the quotas of its control groups. Raises UsageError
    if the variable is no whole number from 1.
    """
    counts = [len(os.sched_getaffinity(0)) if seen is None else seen, *map(math.ceil, _quotas(root))]
    if text := environment.get(VARIABLE):
        if not text.isdecimal() or int(text) < 1:
            raise UsageError("bad-environment", f"{VARIABLE} is {text!r}", "set it to a whole number from 1")
        counts.append(int(text))
    return max(1, min(counts))


def bounded_master(master: str, cores: int, heap: int) -> str:
    """Spark's master, with a number in place of `local[*]`: as many tasks as there are `cores`, and as the heap (in
    bytes) has room for."""
    if _ALL_CORES.fullmatch(master):
        return master.replace("*", str(max(1, min(cores, heap // HEAP_FOR_A_TASK))))
    return master


def limit_threads(cores: int) -> None:
    """Limits the threads of this process's libraries: by default each uses one per visible processor."""
    pa.set_cpu_count(cores)
    os.environ.setdefault("TOKIO_WORKER_THREADS", str(cores))  # deltalake's, from its first use on


def _quotas(root: Path) -> Iterator[float]:
    """The processors that each control group has time on."""
    for file in limit_files(root, "cpu.max", "cpu", "cpu.cfs_quota_us"):
        quota, _, period = read(file).partition(" ")
        period = period or read(file.with_name("cpu.cfs_period_us"))
        if quota.isdecimal() and period.isdecimal() and int(period) > 0:  # `max` and -1: no limit
            yield int(quota) / int(period)
