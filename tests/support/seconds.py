"""A pytest plugin that measures the time of a test run by kind of work.

At the end of every run it prints the number of tests, the seconds, the ten slowest tests, and when the last test of
each worker ended. With `--seconds` it adds three tables: seconds by kind of work (exclusive: a sleep inside a batch
counts as sleep), by fixture, and by folder and file. Under xdist each worker measures itself and the controller adds
them up.
"""

from __future__ import annotations

import functools
import importlib
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest

KINDS: dict[str, tuple[str, ...]] = {
    "start Kafka": ("distributary.demo.broker:Broker.start",),
    "start Spark": ("distributary.launch.session:open_session",),
    "start registry": ("tests.support.registry:running_registry",),
    "create and delete topics": ("tests.support.kafka:create_topics", "tests.support.kafka:delete_topic"),
    "produce": ("tests.support.kafka:Sender.send", "tests.support.kafka:produce"),
    "read end offsets": ("tests.support.kafka:end_offsets",),
    "read tables": ("tests.support.lake:read_table",),
    "process a batch": ("distributary.workers.table_worker:TableWorker.step",),
    "wait for a process": ("subprocess:Popen.wait", "subprocess:Popen.communicate"),
    "sleep": ("time:sleep",),
}
"""The functions of each kind of work: `module:name`."""

SLOWEST = 10


class Stopwatch:
    """Exclusive seconds and calls by kind, on the main thread of a process."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = defaultdict(float)
        self.calls: dict[str, int] = defaultdict(int)
        self._open: list[float] = []
        """Per open call the seconds that calls inside it took."""

    def timed(self, kind: str, function: Callable[..., Any]) -> Callable[..., Any]:
        """The function, measured."""

        @functools.wraps(function)
        def measured(*args: Any, **kwargs: Any) -> Any:
            if threading.current_thread() is not threading.main_thread():
                return function(*args, **kwargs)
            begin = time.monotonic()
            self._open.append(0.0)
            try:
                return function(*args, **kwargs)
            finally:
                whole = time.monotonic() - begin
                self.seconds[kind] += whole - self._open.pop()
                self.calls[kind] += 1
                if self._open:
                    self._open[-1] += whole

        return measured

    def install(self) -> None:
        """Replaces the functions of KINDS. Modules that import them by name later get the measured ones."""
        for kind, places in KINDS.items():
            for place in places:
                module, _, path = place.partition(":")
                owner: Any = importlib.import_module(module)
                *outer, name = path.split(".")
                for part in outer:
                    owner = getattr(owner, part)
                raw = owner.__dict__[name]
                if isinstance(raw, (classmethod, staticmethod)):
                    setattr(owner, name, type(raw)(self.timed(kind, raw.__func__)))
                else:
                    setattr(owner, name, self.timed(kind, raw))


class SecondsPlugin:
    """Collects durations, and prints them at the end of the run."""

    def __init__(self, detailed: bool) -> None:
        self._detailed = detailed
        self._begin = time.monotonic()
        self._watch = Stopwatch()
        self._fixtures: dict[str, float] = defaultdict(float)
        self._setups: dict[str, int] = defaultdict(int)
        self._nested: list[float] = []
        self._tests: dict[str, float] = defaultdict(float)
        self._totals: tuple[dict[str, Any], ...] = (
            self._watch.seconds,
            self._watch.calls,
            self._fixtures,
            self._setups,
        )
        """The key of a worker's numbers, which the controller adds up."""
        self._ends: dict[str, float] = {}
        if detailed:
            self._watch.install()

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef: pytest.FixtureDef[Any]) -> Iterator[None]:
        begin = time.monotonic()
        self._nested.append(0.0)
        try:
            return (yield)
        finally:
            whole = time.monotonic() - begin
            self._fixtures[fixturedef.argname] += whole - self._nested.pop()
            self._setups[fixturedef.argname] += 1
            if self._nested:
                self._nested[-1] += whole

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._tests[report.nodeid] += report.duration
        worker = getattr(report, "worker_id", "main")
        self._ends[worker] = time.monotonic() - self._begin

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        output = getattr(session.config, "workeroutput", None)
        if output is not None:
            output["seconds"] = [dict(total) for total in self._totals]

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        for total, part in zip(self._totals, getattr(node, "workeroutput", {}).get("seconds", ()), strict=False):
            for name, number in part.items():
                total[name] += number

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        if not self._tests:
            return
        write = terminalreporter.write_line
        terminalreporter.section("seconds")
        write(f"{len(self._tests)} tests in {time.monotonic() - self._begin:.0f} s; the {SLOWEST} slowest:")
        for name, seconds in _largest(self._tests, SLOWEST):
            write(f"{seconds:8.1f}  {name}")
        for worker, end in sorted(self._ends.items()):
            write(f"{end:8.1f}  the last test of {worker} ended")
        if not self._detailed:
            return
        write("\nby kind of work (main thread, exclusive): seconds, calls")
        for name, seconds in _largest(self._watch.seconds):
            write(f"{seconds:8.1f} {self._watch.calls[name]:7d}  {name}")
        write("\nby fixture (exclusive): seconds, set-ups")
        for name, seconds in _largest(self._fixtures, 25):
            write(f"{seconds:8.1f} {self._setups[name]:7d}  {name}")
        write("\nby folder and file: seconds, tests")
        for depth in (2, None):
            groups: dict[str, float] = defaultdict(float)
            counts: dict[str, int] = defaultdict(int)
            for name, seconds in self._tests.items():
                path = name.partition("::")[0]
                group = path if depth is None else "/".join(path.split("/")[:depth])
                groups[group] += seconds
                counts[group] += 1
            for group, seconds in _largest(groups, 60):
                write(f"{seconds:8.1f} {counts[group]:7d}  {group}")


def _largest(seconds: Mapping[str, float], count: int | None = None) -> list[tuple[str, float]]:
    return sorted(seconds.items(), key=lambda item: item[1], reverse=True)[:count]
