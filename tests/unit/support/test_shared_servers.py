"""A server that the processes of a test run share is started once, by the controlling process, on demand."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.support.shared_servers import SharedServers, address_of


class Counted:
    """A server that counts its starts and stops."""

    def __init__(self) -> None:
        self.started: list[Path] = []
        self.stopped = 0

    @contextmanager
    def start(self, directory: Path) -> Iterator[str]:
        assert directory.is_dir()
        self.started.append(directory)
        yield "here:1"
        self.stopped += 1


@contextmanager
def refuse(directory: Path) -> Iterator[str]:
    raise OSError(f"no server in {directory.name[:5]}")
    yield ""


def worker_of(servers: SharedServers) -> Any:
    """The config of a worker of the run."""
    node = SimpleNamespace(workerinput={})
    servers.pytest_configure_node(node)
    return node


def test_all_workers_get_the_one_server_which_stops_with_the_run() -> None:
    counted = Counted()
    servers = SharedServers({"kafka": counted.start})
    workers = [worker_of(servers), worker_of(servers)]
    assert not counted.started
    assert [address_of(worker, "kafka") for worker in workers] == ["here:1"] * 2
    assert len(counted.started) == 1
    servers.pytest_unconfigure()
    assert counted.stopped == 1
    assert not counted.started[0].exists()


def test_without_workers_the_process_starts_it_for_itself() -> None:
    counted = Counted()
    servers = SharedServers({"kafka": counted.start})
    config: Any = SimpleNamespace(pluginmanager=SimpleNamespace(get_plugin=lambda _name: servers))
    assert address_of(config, "kafka") == "here:1"
    servers.pytest_unconfigure()
    assert counted.stopped == 1


def test_a_worker_learns_why_a_server_did_not_start() -> None:
    servers = SharedServers({"kafka": refuse})
    with pytest.raises(RuntimeError, match="the shared server kafka did not start: OSError: no server in tests"):
        address_of(worker_of(servers), "kafka")
    servers.pytest_unconfigure()
