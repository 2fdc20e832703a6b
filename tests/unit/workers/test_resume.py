"""Operators' requests reach the worker of their table, also one that is always busy or a new one."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, cast

import pytest

from distributary.control.resume_requests import Request
from distributary.halt_actions import ResumeAction
from distributary.workers import resume
from distributary.workers.resume import ResumePoller

REQUEST = Request("p.dbo.t", ResumeAction.REBUILD, "1")


@dataclass
class Table:
    topic: str = "p.dbo.t"
    name: str = "dbo.t"
    turn_lock: threading.Lock = field(default_factory=threading.Lock)
    halted: None = None
    failing: bool = False
    resume_action: ResumeAction | None = None

    def resume(self, action: ResumeAction) -> None:
        self.resume_action = action


class Requests:
    """The files, without a storage."""

    def __init__(self) -> None:
        self.files = [REQUEST]

    def waiting(self) -> list[Request]:
        return list(self.files)

    def waits(self, request: Request) -> bool:
        return request in self.files

    def done(self, request: Request) -> None:
        self.files.remove(request)


@pytest.fixture
def requests() -> Requests:
    return Requests()


@pytest.fixture
def found(requests: Requests, monkeypatch: pytest.MonkeyPatch) -> ResumePoller:
    monkeypatch.setattr(resume, "Requests", lambda *_: requests)
    halts = SimpleNamespace(remove=lambda _topic: None)
    return ResumePoller(cast(Any, None), cast(Any, None), cast(Any, halts), lambda _table: None)


def test_a_table_that_is_always_at_work_waits_until_it_was_handed_its_request(
    found: ResumePoller, requests: Requests
) -> None:
    table = Table()
    worker = cast(Any, table)
    with table.turn_lock:
        found.poll([worker], now=True)
        assert found.waits_for(worker)
    found.poll([worker])  # at once, for it stands still
    assert not found.waits_for(worker)
    assert table.resume_action is ResumeAction.REBUILD
    with table.turn_lock:  # what it is at work on now is what was resume_action: it must not wait for that
        found.poll([worker], now=True)
        assert not found.waits_for(worker)
        table.resume_action = None
        found.finish_request(worker)
    assert requests.files == []


def test_what_a_worker_was_handed_is_not_done_because_another_one_took_its_place(
    found: ResumePoller, requests: Requests
) -> None:
    before, after = Table(), Table()
    found.poll([cast(Any, before)], now=True)
    assert before.resume_action is ResumeAction.REBUILD
    found.finish_request(cast(Any, after))  # whose first turn ends before the next look
    assert requests.files == [REQUEST]
    found.poll([cast(Any, after)], now=True)
    assert after.resume_action is ResumeAction.REBUILD
    after.resume_action = None
    found.finish_request(cast(Any, after))
    assert requests.files == []
