"""The sockets on which processes listen, from the kernel (`/proc/<pid>/net/tcp`)."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from contextlib import suppress
from ipaddress import IPv4Address, IPv6Address
from pathlib import Path

_LISTENING = "0A"


def listening(pids: Iterable[int]) -> dict[int, set[str]]:
    """The addresses on which the processes listen, by port. IPv4 addresses that are written as IPv6 are IPv4 here."""
    found: dict[int, set[str]] = {}
    for pid in pids:
        own = _sockets(pid)
        for table in ("tcp", "tcp6"):
            with suppress(FileNotFoundError):  # a machine without IPv6
                for line in Path(f"/proc/{pid}/net/{table}").read_text(encoding="ascii").splitlines()[1:]:
                    fields = line.split()
                    if fields[3] == _LISTENING and fields[9] in own:
                        address, _, port = fields[1].partition(":")
                        found.setdefault(int(port, 16), set()).add(_address(address))
    return found


def _sockets(pid: int) -> set[str]:
    """The inodes of the process's sockets."""
    found = set()
    for descriptor in Path(f"/proc/{pid}/fd").iterdir():
        with suppress(FileNotFoundError):  # closed meanwhile
            kind, _, inode = str(descriptor.readlink()).partition(":")
            if kind == "socket":
                found.add(inode.strip("[]"))
    return found


def _address(text: str) -> str:
    """`0100007F` is 127.0.0.1: words of four bytes, each in the machine's own order."""
    words = [int(text[index : index + 8], 16).to_bytes(4, sys.byteorder) for index in range(0, len(text), 8)]
    packed = b"".join(words)
    if len(packed) == 4:
        return str(IPv4Address(packed))
    address = IPv6Address(packed)
    return str(address.ipv4_mapped or address)
