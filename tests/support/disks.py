"""Disks of a few megabytes that a test fills up: file systems in memory, in a mount namespace of their own. Root can
make one; other users need a machine that allows user namespaces."""

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
    """The disks exist only for processes in the namespaces of the process `holder`."""

    holder: int

    @property
    def inside(self) -> tuple[str, ...]:
        """The beginning of a command that must see them; the process id stays the same."""
        return ("nsenter", f"--target={self.holder}", *_namespaces(), "--preserve-credentials", "--")

    def seen(self, place: Path) -> Path:
        """The path by which this process reaches a path on them. Not for readers that resolve links."""
        return Path(f"/proc/{self.holder}/root{place}")

    def fill(self, disk: Path, left: int) -> None:
        """Fills the disk but for `left` bytes."""
        filler = self.seen(disk) / _FILLER
        with filler.open("ab", buffering=0) as file:
            try:
                while True:
                    file.write(bytes(_MEGABYTE // 16))
            except OSError:  # that is what it is about
                file.truncate(max(0, file.tell() - left))

    def empty(self, disk: Path) -> None:
        """Frees the space again."""
        (self.seen(disk) / _FILLER).unlink()


@contextmanager
def small_disks(megabytes: int, *places: Path) -> Iterator[Disks]:
    """A disk of that many megabytes at each path. Raises AssertionError if the machine does not allow it."""
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
            found = holder.stdout.readline()
            assert found == "ready\n", f"no disk can be mounted here, not even in a namespace: {found}"
            yield Disks(holder.pid)
        finally:
            holder.stdin.close()  # which ends it, as this process's own end does


def _namespaces(*of_users: str) -> tuple[str, ...]:
    return ("--mount",) if os.geteuid() == 0 else ("--user", *of_users, "--mount")
