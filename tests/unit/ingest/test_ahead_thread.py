"""The thread belongs to one owner at a time, until that gives it back or is gone."""

from __future__ import annotations

import threading

import pytest

from distributary.ingest.ahead_thread import AheadThread


class Owner:
    """Anything."""


def test_a_second_owner_has_to_wait_for_the_first_one() -> None:
    thread, first, second = AheadThread(), Owner(), Owner()
    begun = thread.submit(first, lambda: 1)
    assert begun is not None
    assert begun.result() == 1
    assert not thread.is_free, "the result is not taken yet"
    assert thread.submit(second, lambda: 2) is None
    thread.release(second)
    assert thread.submit(second, lambda: 2) is None
    thread.release(first)
    again = thread.submit(second, lambda: 2)
    assert again is not None
    assert again.result() == 2


def test_an_owner_that_is_gone_leaves_the_thread_free() -> None:
    thread, owner = AheadThread(), Owner()
    thread.submit(owner, lambda: None)
    assert not thread.is_free
    del owner
    assert thread.is_free


def test_it_needs_no_thread_that_is_started_later(monkeypatch: pytest.MonkeyPatch) -> None:
    thread, owner = AheadThread(), Owner()
    monkeypatch.delattr(threading.Thread, "start")
    begun = thread.submit(owner, lambda: 1)
    assert begun is not None
    assert begun.result(10) == 1
