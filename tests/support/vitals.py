"""Samples a running service's memory, threads, descriptors and files, to find growth."""

from __future__ import annotations

import os
import re
import statistics
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tests.benchmarks.separate_process import processes

_MB = 2**20
_TOTAL = re.compile(r"^Total\s+\d+\s+(\d+)", re.MULTILINE)
_OF_CLASS = re.compile(r"^\s*\d+:\s+\d+\s+(\d+)\s+(\S+)", re.MULTILINE)
_WORKING_MEMORY = "[J"
"""The class of Spark's pages for sorts and joins: they come and go with the tasks that run at the moment."""
_METASPACE = re.compile(r"Metaspace\s+used (\d+)K")


@dataclass(frozen=True)
class Heap:
    """A JVM's heap after a collection, without Spark's working memory: MB, and bytes of each class."""

    megabytes: float
    classes: Mapping[str, int]

    def grown_since(self, before: Heap, count: int = 15) -> str:
        """The classes that grew most."""
        more = {name: size - before.classes.get(name, 0) for name, size in self.classes.items()}
        most = sorted(more, key=lambda name: -more[name])[:count]
        return "\n".join(f"{more[name] / _MB:+9.2f} MB  {name}" for name in most)


def java_of(root: int) -> int:
    """The JVM that a process started. Raises LookupError where there is none."""
    for process in processes(root):
        if Path(f"/proc/{process}/comm").read_text(encoding="ascii").strip() == "java":
            return process
    raise LookupError(f"process {root} has no JVM")


def heap(java: int) -> Heap:
    """The heap after a full collection, which this call requests."""
    result = _jcmd(java, "GC.class_histogram")
    total = _TOTAL.search(result)
    assert total is not None, result[-500:]
    classes = {name: int(size) for size, name in _OF_CLASS.findall(result)}
    return Heap((int(total[1]) - classes.pop(_WORKING_MEMORY, 0)) / _MB, classes)


def metaspace(java: int) -> float:
    """MB of loaded classes."""
    found = _METASPACE.search(_jcmd(java, "GC.heap_info"))
    assert found is not None
    return int(found[1]) / 1024


def of_process(process: int) -> dict[str, float]:
    """A process's memory in MB, its threads and its open descriptors."""
    result = dict(
        line.split(":", 1) for line in Path(f"/proc/{process}/status").read_text(encoding="utf-8").splitlines()
    )
    return {
        "RSS MB": int(result["VmRSS"].split()[0]) / 1024,
        "threads": int(result["Threads"]),
        "descriptors": len(os.listdir(f"/proc/{process}/fd")),  # noqa: PTH208 - as a Path they vanish while looked at
    }


def files_in(*folders: Path) -> int:
    """How many files lie in the folders, at any depth."""
    return sum(len(names) for folder in folders for _, _, names in os.walk(folder))


def _jcmd(java: int, command: str) -> str:
    return subprocess.run(["jcmd", str(java), command], capture_output=True, text=True, check=True, timeout=120).stdout


@dataclass
class Series:
    """Samples by name, each with the second at which it was taken."""

    samples: dict[str, list[tuple[float, float]]] = field(default_factory=dict)

    def add(self, at: float, values: Mapping[str, float]) -> None:
        """Adds the samples of a moment."""
        for name, value in values.items():
            self.samples.setdefault(name, []).append((at, value))

    def quarter(self, name: str, number: int) -> float:
        """The median of one quarter of the whole time, 1 to 4."""
        of_all = [at for samples in self.samples.values() for at, _ in samples]
        first, whole = min(of_all), max(of_all) - min(of_all)
        start, end = (first + whole * part / 4 for part in (number - 1, number))
        return statistics.median(value for at, value in self.samples[name] if start <= at <= end)

    def growth(self, name: str, share: float, allowance: float) -> str | None:
        """Describes each series whose last quarter exceeds the second by this share and by more than the allowance."""
        before, after = self.quarter(name, 2), self.quarter(name, 4)
        if after <= before * (1 + share) or after <= before + allowance:
            return None
        return f"{name}: {before:.1f} in the second quarter, {after:.1f} in the last"

    def as_dict(self) -> dict[str, dict[str, float]]:
        """Of each series its first value, the medians of its quarters, its last and its largest value."""
        return {
            name: {
                "start": round(samples[0][1], 1),
                **{f"quarter {n}": round(self.quarter(name, n), 1) for n in (1, 2, 3, 4)},
                "end": round(samples[-1][1], 1),
                "most": round(max(value for _, value in samples), 1),
            }
            for name, samples in self.samples.items()
        }

    def __str__(self) -> str:
        """One table."""
        rows = self.as_dict()
        columns = list(next(iter(rows.values())))
        width = max(map(len, rows))
        lines = [" " * width + "".join(f"{column:>12}" for column in columns)]
        for name, row in rows.items():
            lines.append(name.ljust(width) + "".join(f"{row[column]:>12,.1f}" for column in columns))
        return "\n".join(lines)
