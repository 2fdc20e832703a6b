"""Runs the service for the demo: the public command in a separate process, observed through its `/status` page."""

from __future__ import annotations

import http.client
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from distributary.demo.process import ServerProcess
from distributary.errors import DistributaryError

Ends = Mapping[str, Mapping[int, int]]

# For one wave, Spark's start included: it took five minutes on two cores that ten other processes wanted, too.
WAIT_SECONDS = 600
# As long as a batch in flight may take to finish.
FINISH_SECONDS = 120
POLL_SECONDS = 0.25
LOG_TAIL_LINES = 30


class Service(ServerProcess):
    """`distributary run -c CONFIG` as a child process; its output goes into `log`.

    Every failure is a DistributaryError whose code begins with `demo-service-`.
    """

    def __init__(self, config: Path, log: Path, http_port: int) -> None:
        super().__init__(
            "the service",
            [sys.executable, "-m", "distributary", "run", "-c", str(config)],
            log,
            # A log in a file is JSON otherwise, and people will read the end of this one.
            environment={"DISTRIBUTARY_LOG_FORMAT": os.environ.get("DISTRIBUTARY_LOG_FORMAT", "text")},
        )
        self._http_port = http_port

    def wait_for(self, ends: Ends, show_applied: Callable[[Mapping[str, int]], None]) -> None:
        """Wait until the tables have applied all below `ends`; call `show_applied` with the number of records, per
        topic."""
        deadline = time.monotonic() + WAIT_SECONDS
        while True:
            applied = _applied(self.status(), ends)
            show_applied(applied)
            if all(applied[topic] == sum(partitions.values()) for topic, partitions in ends.items()):
                return
            self.check_running()
            if time.monotonic() > deadline:
                behind = ", ".join(topic for topic, offsets in ends.items() if applied[topic] < sum(offsets.values()))
                raise _failure("demo-service-slow", f"after {WAIT_SECONDS} s the service is still behind in: {behind}")
            time.sleep(POLL_SECONDS)

    def status(self) -> dict[str, Any]:
        """The service's own `/status`; {} while it does not answer yet. Raises if one of its tables has halted."""
        connection = http.client.HTTPConnection("127.0.0.1", self._http_port, timeout=10)
        try:
            connection.request("GET", "/status")
            status: dict[str, Any] = json.loads(connection.getresponse().read())
        except (OSError, http.client.HTTPException):
            return {}
        finally:
            connection.close()
        for name, table in status["tables"].items():
            if table["state"] == "halted":
                error = table["error"] or {}
                raise _failure("demo-service-halted", f"table {name} halted: {error.get('message', 'no reason given')}")
        return status

    def check_running(self) -> None:
        """Raises if the service has ended by itself."""
        if self._process.poll() is not None:
            raise _failure("demo-service-ended", f"the service ended by itself, exit code {self._process.returncode}")

    def finish(self) -> int:
        """Ask it to finish its batch and end; its exit code. Raises if it does not end in time."""
        # To the service alone and not to its group, as an init system or Kubernetes does: its JVM is in the group.
        os.kill(self.pid, signal.SIGTERM)
        try:
            return self._process.wait(FINISH_SECONDS)
        except subprocess.TimeoutExpired:
            message = f"the service did not end within {FINISH_SECONDS} s of SIGTERM"
            raise _failure("demo-service-stuck", message) from None

    def log_tail(self) -> str:
        """The last lines that it wrote."""
        lines = self.log.read_text("utf-8", errors="replace").splitlines()
        return "\n".join(lines[-LOG_TAIL_LINES:])


def _applied(status: Mapping[str, Any], ends: Ends) -> dict[str, int]:
    applied = dict.fromkeys(ends, 0)
    for table in status.get("tables", {}).values():
        for topic, partitions in table["next_offsets"].items():
            for partition, end in ends.get(topic, {}).items():
                applied[topic] += min(partitions.get(str(partition), 0), end)
    return applied


def _failure(code: str, message: str) -> DistributaryError:
    return DistributaryError(code, message, "look into the service's log: its end is above, its path too")
