"""A server that runs beside this process, writes its log into a file, and never outlives this process."""

from __future__ import annotations

import atexit
import os
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from distributary.errors import SetupError

STOP_SECONDS = 30
LOG_LINES = 25

# Ends the group when the pipe on standard input closes, which it does however this process ends, SIGKILL included.
# The group's id can't be given to another process while the watching shell is in it.
_WATCHED = 'exec 3<&0; (read -r _ <&3; kill -s TERM -- -$$) & exec 3<&- "$@" </dev/null'


class ServerProcess:
    """A server as a child process, in a process group of its own: Ctrl-C reaches this process alone."""

    def __init__(
        self,
        name: str,
        command: Sequence[str],
        log: Path,
        *,
        directory: Path | None = None,
        environment: Mapping[str, str] | None = None,
        stop_signal: signal.Signals = signal.SIGTERM,
    ) -> None:
        """Start `command` in `directory` (else in this process's) with `environment` over this process's own.

        `stop_signal` is the signal for a clean stop.
        """
        self.name = name
        self.log = log
        self._stop_signal = stop_signal
        with log.open("ab") as sink:
            self._process = subprocess.Popen(
                ["/bin/sh", "-c", _WATCHED, "sh", *command],
                stdin=subprocess.PIPE,
                stdout=sink,
                stderr=subprocess.STDOUT,
                cwd=directory,
                env={**os.environ, **(environment or {})},
                start_new_session=True,
            )
        atexit.register(self.stop)

    @property
    def pid(self) -> int:
        """The server's process id."""
        return self._process.pid

    def wait_until(self, ready: Callable[[], bool], seconds: float) -> None:
        """Wait until `ready` returns True; stop the server and raise SetupError `server-not-ready` if it never does."""
        deadline = time.monotonic() + seconds
        while not ready():
            code = self._process.poll()
            if code is not None:
                raise self._not_ready(f"{self.name} ended while it started, exit code {code}")
            if time.monotonic() > deadline:
                raise self._not_ready(f"{self.name} did not answer within {seconds:g} s")
            time.sleep(0.1)

    def stop(self) -> None:
        """End it in good order, after 30 s by SIGKILL, and wait for its end. Does nothing if it was stopped before."""
        atexit.unregister(self.stop)
        self._signal(self._stop_signal)
        try:
            self._process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self.kill()
        if self._process.stdin:
            self._process.stdin.close()

    def kill(self) -> None:
        """End it at once, as a crash would, and wait for its end."""
        atexit.unregister(self.stop)  # later the process id may be another's
        self._signal(signal.SIGKILL)
        self._process.wait()

    def _signal(self, number: signal.Signals) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, number)

    def _not_ready(self, message: str) -> SetupError:
        self.stop()
        lines = self.log.read_text("utf-8", errors="replace").splitlines()[-LOG_LINES:]
        return SetupError(
            "server-not-ready", f"{message}; the end of its log:\n" + "\n".join(lines), f"the whole log: {self.log}"
        )


def free_ports(count: int) -> list[int]:
    """TCP ports of this machine that nobody listens on at the moment, all different."""
    probes = [socket.socket() for _ in range(count)]
    try:
        for probe in probes:
            probe.bind(("127.0.0.1", 0))
        return [int(probe.getsockname()[1]) for probe in probes]
    finally:
        for probe in probes:
            probe.close()


def listens(port: int) -> bool:
    """Whether somebody on this machine accepts connections on the TCP port."""
    with socket.socket() as probe:
        probe.settimeout(1)
        return probe.connect_ex(("127.0.0.1", port)) == 0
