"""Servers that all processes of a test run share: the controlling process starts each when a worker first asks for it.

Without xdist there is one process, which starts them for itself.
"""

from __future__ import annotations

import tempfile
import threading
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, ExitStack, suppress
from multiprocessing.connection import Client, Listener
from pathlib import Path
from typing import Any

import pytest

Start = Callable[[Path], AbstractContextManager[str]]
"""Starts a server that keeps its files in a directory; gives its address."""

ADDRESS = "shared_servers"
"""The key of the controlling process's address in a worker's input from xdist."""

_KEY = b"tests of one run"


class SharedServers:
    """A pytest plugin of the controlling process; `servers` are the servers that it can start, by name."""

    def __init__(self, servers: Mapping[str, Start]) -> None:
        self._servers = servers
        self._running: dict[str, str] = {}
        self._stack = ExitStack()
        self._lock = threading.Lock()
        self._listener: Listener | None = None

    def address_of(self, name: str) -> str:
        """The address of a server, which is started now unless it is there. Raises the error of a failed start."""
        with self._lock:
            if name not in self._running:
                directory = self._stack.enter_context(tempfile.TemporaryDirectory(prefix=f"tests-{name}-"))
                self._running[name] = self._stack.enter_context(self._servers[name](Path(directory)))
            return self._running[name]

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: Any) -> None:
        """Gives a worker the address of the controlling process."""
        if self._listener is None:
            self._listener = Listener(authkey=_KEY)
            threading.Thread(target=self._answer, args=(self._listener,), daemon=True).start()
        node.workerinput[ADDRESS] = self._listener.address

    def pytest_unconfigure(self) -> None:
        """Stops all started servers."""
        if self._listener is not None:
            self._listener.close()
        self._stack.close()

    def _answer(self, listener: Listener) -> None:
        with suppress(OSError):  # closed at the end
            while True:
                threading.Thread(target=self._answer_one, args=(listener.accept(),), daemon=True).start()

    def _answer_one(self, connection: Any) -> None:
        with connection:
            try:
                connection.send((self.address_of(connection.recv()), None))
            except Exception as error:
                # Whatever keeps the server from starting: the worker that waits for it must be told, and raises.
                connection.send((None, f"{type(error).__name__}: {error}"))


def address_of(config: pytest.Config, name: str) -> str:
    """The address of a shared server. Raises RuntimeError where it can't be started."""
    worker_input = getattr(config, "workerinput", None)
    if worker_input is None:
        servers = config.pluginmanager.get_plugin(ADDRESS)
        assert isinstance(servers, SharedServers)
        return servers.address_of(name)
    with Client(worker_input[ADDRESS], authkey=_KEY) as connection:
        connection.send(name)
        address, error = connection.recv()
    if error is not None:
        raise RuntimeError(f"the shared server {name} did not start: {error}")
    return str(address)
