"""Who runs a config: a driver's own word, and what another one on the same machine can tell of it without asking."""

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
    """A driver: an `id` of its own, and `host` and `pid` for people. `home` is the file that decides who runs the
    config (see lease.py). `since` and `beat` are its start and its last sign of life by its own clock, in seconds since
    1970. `machine` and `born` tell processes apart: where process numbers mean the same (one boot, one container), and
    when this one began; None where the machine does not say.
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
        """For the file."""
        return asdict(self)

    @property
    def is_alive(self) -> bool:
        """Whether it is seen to live: on this machine. That it is not seen says nothing."""
        return self._is_here() and _born(self.pid) == self.born

    @property
    def is_gone(self) -> bool:
        """Whether it is seen to live no more: on this machine. That it is not seen says nothing."""
        return self._is_here() and _born(self.pid) != self.born

    def __str__(self) -> str:
        return f"process {self.pid} on {self.host}, since {_told(self.since)}, last sign of life {_told(self.beat)}"

    def _is_here(self) -> bool:
        return self.machine is not None and self.machine == _machine()


def this_process(home: str) -> Holder:
    """This process, as a driver that starts now."""
    now, pid = time.time(), os.getpid()
    return Holder(uuid.uuid4().hex, socket.gethostname(), pid, home, now, now, _machine(), _born(pid))


def holder_of(found: Any) -> Holder | None:
    """What a lease's file says; None where it can't be understood."""
    try:
        return TypeAdapter(Holder).validate_python(found)
    except ValidationError:
        return None


def already_running(holder: Holder, what: str) -> AlreadyRunning:
    """The error of the driver that has to stop; `what` the other one does."""
    return AlreadyRunning(
        "already-running",
        f"another driver {what} this config: {holder}",
        "one driver is enough for a config: stop the other one first if this one is to run. Two do each"
        " other's work over, and on S3 one may replace the other's commit. A config of its own needs its own"
        " target.path and checkpoint, and where it has the same source.topic_prefix its own consumer_group.name",
    )


def _machine() -> str | None:
    """Where process numbers mean the same as here; None where that is not known (no Linux)."""
    try:
        boot = (_PROC / "sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        return f"{boot} {(_PROC / 'self/ns/pid').readlink()}"
    except OSError:
        return None


def _born(pid: int) -> str | None:
    """When the process began, in the kernel's own count; None where there is none. One that has ended and that nobody
    has waited for counts as none."""
    try:
        # The name in brackets may hold anything.
        told = (_PROC / str(pid) / "stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
    except OSError:
        return None
    return None if told[0] in "ZX" else told[19]


def _told(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, timezone.utc).strftime("%Y-%m-%d %H:%M:%S UTC")
