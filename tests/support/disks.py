"""Disks of a few megabytes that a test fills up: file systems in memory, in a mount namespace of their own. Root may
have one; others need a machine that lets them have a user namespace."""

from __future__ import annotations

import os
import shlex
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

_MEGABYTE = 1024 * 1024
_FILLER = "filler"


@dataclass(frozen=True)
class Disks:
    """Where `holder` is the process that keeps them: they are there for processes in its namespaces alone."""

    holder: int

    @property
    def inside(self) -> tuple[str, ...]:
        """What a command begins with that is to see them. The process stays the same one."""
        return ("nsenter", f"--target={self.holder}", *_namespaces(), "--preserve-credentials", "--")

    def seen(self, place: Path) -> Path:
        """How this process gets to a place on them. Not for readers that resolve links."""
        return Path(f"/proc/{self.holder}/root{place}")

    def fill(self, disk: Path, left: int) -> None:
        """Takes all the room but `left` bytes, also what has become free since the last time."""
        filler = self.seen(disk) / _FILLER
        with filler.open("ab", buffering=0) as file:
            try:
                while True:
                    file.write(bytes(_MEGABYTE // 16))
            except OSError:  # that is what it is about
                file.truncate(max(0, file.tell() - left))

    def empty(self, disk: Path) -> None:
        """Gives the room back."""
        (self.seen(disk) / _FILLER).unlink()


@contextmanager
def small_disks(megabytes: int, *places: Path) -> Iterator[Disks]:
    """A disk of so many megabytes at each place. Raises AssertionError where the machine does not allow it."""
    mounts = [f"mount -t tmpfs -o size={megabytes}m tmpfs {shlex.quote(str(place))}" for place in places]
    script = " && ".join([*mounts, "echo ready", "exec cat"])
    command: Sequence[str] = ("unshare", *_namespaces("--map-root-user"), "sh", "-c", script)
    for place in places:
        place.mkdir(parents=True, exist_ok=True)
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as holder:
        assert holder.stdin is not None
        assert holder.stdout is not None
        try:
            said = holder.stdout.readline()
            assert said == "ready\n", f"no disk can be mounted here, not even in a namespace: {said}"
            yield Disks(holder.pid)
        finally:
            holder.stdin.close()  # which ends it, as this process's own end does


def _namespaces(*of_users: str) -> tuple[str, ...]:
    return ("--mount",) if os.geteuid() == 0 else ("--user", *of_users, "--mount")
