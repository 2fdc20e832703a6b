"""Runs a contender in a separate process with its own Spark, so that its cost can be measured separately."""

from __future__ import annotations

import multiprocessing
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.benchmarks.contenders import ANY_NUMBER, Contender, Service, contender

_TICKS = os.sysconf("SC_CLK_TCK")
_mine: Contender | None = None  # in the separate process


@dataclass(frozen=True)
class Cost:
    """What work cost: seconds of wall time, CPU seconds, and the most memory that was resident, in MB (of this much
    most is the JVM's heap, which shrinks seldom)."""

    wall: float
    cpu: float
    memory: int

    def __add__(self, other: Cost) -> Cost:
        return Cost(self.wall + other.wall, self.cpu + other.cpu, max(self.memory, other.memory))


class SeparateProcess:
    """A contender in another process; what it is asked to do comes back with what it cost."""

    def __init__(
        self,
        name: str,
        kafka: str,
        rule: Mapping[str, Any] | None = None,
        options: Mapping[str, Any] | None = None,
    ) -> None:
        self.name = name
        spawn = multiprocessing.get_context("spawn")
        given = (name, kafka, rule, options)
        self._pool = ProcessPoolExecutor(1, mp_context=spawn, initializer=_start, initargs=given)
        self._process = self._pool.submit(os.getpid).result()

    def begin(self, topic: str, folder: Path, at: int = 0) -> None:
        """See Contender."""
        self._pool.submit(_begin, topic, folder, at).result()

    def take(self, end: int, most: int = ANY_NUMBER) -> Cost:
        """See Contender."""
        return cost_of(self._process, lambda: self._pool.submit(_take, end, most).result())

    def grow(self, rows: int) -> None:
        """See contenders.Service."""
        self._pool.submit(_grow, rows).result()

    def held(self, keys: Sequence[int]) -> tuple[int, dict[int, str]]:
        """See contenders.Service."""
        return self._pool.submit(_held, keys).result()

    def end(self) -> None:
        """Ends the process."""
        self._pool.shutdown()


def cost_of(process: int, work: Callable[[], None]) -> Cost:
    """What the work costs a process and those that it started."""
    family = list(processes(process))
    for one in family:
        with suppress(OSError):
            Path(f"/proc/{one}/clear_refs").write_text("5", encoding="ascii")  # what was resident at most is forgotten
    wall, cpu = time.monotonic(), cpu_seconds(process)
    work()
    cost = Cost(time.monotonic() - wall, cpu_seconds(process) - cpu, 0)
    return cost + Cost(0, 0, sum(_status(one, "VmHWM") for one in processes(process)))


def processes(root: int) -> Iterator[int]:
    """A process and those that it started, as far as they run.

    A child that Java has just started, for a `chmod` say, is left out until it runs a program of its own: until then it
    shows all of Java's memory as its own. Python's workers have their parent's command for as long as they live.
    """
    yield root
    mine = _command(root)
    passing = (b"", mine) if _is_java(mine) else (b"",)
    with suppress(OSError):
        for task in Path(f"/proc/{root}/task").iterdir():
            for child in (task / "children").read_text(encoding="ascii").split():
                if _command(int(child)) not in passing:
                    yield from processes(int(child))


def _is_java(command: bytes) -> bool:
    return command.partition(b"\0")[0].endswith(b"java")


def _command(process: int) -> bytes:
    """The process's command line; empty where it has ended."""
    with suppress(OSError):
        return Path(f"/proc/{process}/cmdline").read_bytes()
    return b""


def cpu_seconds(root: int) -> float:
    """Of a process and those that it started, those that ended aside."""
    return sum(map(_cpu, processes(root)))


def resident(root: int) -> int:
    """MB that a process and those that it started have in memory."""
    return sum(_status(process, "VmRSS") for process in processes(root))


def _cpu(process: int) -> float:
    with suppress(OSError):
        fields = Path(f"/proc/{process}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / _TICKS
    return 0.0


def _status(process: int, name: str) -> int:
    with suppress(OSError):
        for line in Path(f"/proc/{process}/status").read_text(encoding="utf-8").splitlines():
            if line.startswith(name):
                return int(line.split()[1]) // 1024
    return 0


def _start(*given: Any) -> None:
    global _mine
    _mine = contender(*given)


def _begin(topic: str, folder: Path, at: int) -> None:
    assert _mine is not None
    _mine.begin(topic, folder, at)


def _take(end: int, most: int) -> None:
    assert _mine is not None
    _mine.take(end, most)


def _grow(rows: int) -> None:
    assert isinstance(_mine, Service)
    _mine.grow(rows)


def _held(keys: Sequence[int]) -> tuple[int, dict[int, str]]:
    assert isinstance(_mine, Service)
    return _mine.held(keys)
