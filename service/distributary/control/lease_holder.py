"""The driver that holds a lease, and whether its process still runs on this machine."""

from __future__ import annotations

import os
import socket
import time
import uuid
from dataclasses import asdict, dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from distributary.errors import AlreadyRunning

_PROC = Path("/proc")


@dataclass(frozen=True)
class Holder:
    """A driver. `id` is unique; `host` and `pid` are for people. `home`: the file that decides who runs the config (see
    lease.py). `since` and `beat`: its start and its last heartbeat by its own clock, in seconds since 1970. `machine`
    (one boot, one container) and `born` (the process's start) identify the process together with `pid`; None if the
    machine does not show them.
    """

    id: str
    host: str
    pid: int
    home: str
    since: float
    beat: float
    machine: str | None = None
    born: str | None = None

    def to_json(self) -> dict[str, Any]:
        """The content of the lease's file."""
        return asdict(self)

    @property
    def is_alive(self) -> bool:
        """Whether its process runs on this machine. False if it may run elsewhere."""
        return self._is_here() and _start_of(self.pid) == self.born

    @property
    def is_gone(self) -> bool:
        """Whether its process ran on this machine and has ended. False if it may run elsewhere."""
        return self._is_here() and _start_of(self.pid) != self.born

    def __str__(self) -> str:
        return f"process {self.pid} on {self.host}, since {_utc(self.since)}, last sign of life {_utc(self.beat)}"

    def _is_here(self) -> bool:
        return self.machine is not None and self.machine == _machine()


def this_process(home: str) -> Holder:
    """This process as a holder that starts now."""
    now, pid = time.time(), os.getpid()
    return Holder(uuid.uuid4().hex, socket.gethostname(), pid, home, now, now, _machine(), _start_of(pid))


def holder_of(plain: Any) -> Holder | None:
    """The holder in a lease's file; None if the content is invalid."""
    try:
        return TypeAdapter(Holder).validate_python(plain)
    except ValidationError:
        return None


def already_running(holder: Holder, action: str) -> AlreadyRunning:
    """The error of the driver that has to stop; `action`: what the other one does."""
    return AlreadyRunning(
        "already-running",
        f"another driver {action} this config: {holder}",
        "to run this one, stop the other driver first. Two drivers repeat each other's work. To run both,"
        " give this one a config with its own target.path and checkpoint, and with the same source.topic_prefix its own"
        " consumer_group.name",
    )


def _machine() -> str | None:
    """The boot and process namespace in which process numbers are unique; None if unknown (no Linux)."""
    try:
        boot = (_PROC / "sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        return f"{boot} {(_PROC / 'self/ns/pid').readlink()}"
    except OSError:
        return None


def _start_of(pid: int) -> str | None:
    """The start of the process in the kernel's clock ticks; None if there is no such process, or only a zombie."""
    try:
        # The process name in brackets may contain anything.
        fields = (_PROC / str(pid) / "stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
    except OSError:
        return None
    return None if fields[0] in "ZX" else fields[19]


def _utc(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, timezone.utc).strftime("%Y-%m-%d %H:%M:%S UTC")
