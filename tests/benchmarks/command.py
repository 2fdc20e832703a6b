"""The public command as a process, with its CPU time and memory."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml
from tests.benchmarks.separate_process import Cost, cpu_seconds, resident

_LOOK_EVERY = 0.2  # seconds; what a process did after the last look is not counted
PREFIX = "server1"


def write_config(kafka: str, folder: Path, **more: Any) -> Path:
    """A config with defaults: all tables of the prefix, two cores."""
    folder.mkdir(parents=True, exist_ok=True)
    config = {
        "version": 1,
        "kafka": {"bootstrap.servers": kafka},
        "source": {"topic_prefix": PREFIX},
        "target": {"path": str(folder / "lake")},
        "checkpoint": str(folder / "checkpoint"),
        "spark": {"spark.master": "local[2]"},
        "tables": [{"match": "*.*"}],
        "http": {"enabled": False},
        **more,
    }
    file = folder / "config.yaml"
    file.write_text(yaml.safe_dump(config), encoding="utf-8")
    return file


class Process:
    """A running process and those that it starts: what they take is added up while they live."""

    def __init__(self, command: list[str], log: Path) -> None:
        self._began = time.monotonic()
        self._log = log
        with log.open("wb") as output:
            self._process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT)
        self._cpu = 0.0
        self._memory = 0
        self._ended = threading.Event()
        threading.Thread(target=self._look, daemon=True).start()

    def cost(self) -> Cost:
        """Up to now."""
        return Cost(time.monotonic() - self._began, self._cpu, self._memory)

    def wait(self) -> Cost:
        """Until it ends by itself. Raises RuntimeError where it fails."""
        code = self._process.wait()
        cost = self.cost()
        self._ended.set()
        if code:
            raise RuntimeError(f"exit code {code}; see {self._log}:\n{self._log.read_text(errors='replace')[-4000:]}")
        return cost

    def stop(self) -> None:
        """Ends it in order."""
        self._process.send_signal(signal.SIGTERM)
        self._process.wait()
        self._ended.set()

    def _look(self) -> None:
        while not self._ended.wait(_LOOK_EVERY):
            self._cpu = max(self._cpu, cpu_seconds(self._process.pid))
            self._memory = max(self._memory, resident(self._process.pid))


def once(config: Path) -> Cost:
    """`distributary run --once`, from the start of the process to its end."""
    return Process([*_COMMAND, "run", "-c", str(config), "--once"], config.with_suffix(".log")).wait()


@contextmanager
def running(config: Path) -> Iterator[Process]:
    """`distributary run`, until the block ends."""
    process = Process([*_COMMAND, "run", "-c", str(config)], config.with_suffix(".log"))
    try:
        yield process
    finally:
        process.stop()


_COMMAND = [sys.executable, "-m", "distributary"]
