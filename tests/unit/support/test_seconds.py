"""Each second of a test run is counted once, for the innermost kind of work."""

from __future__ import annotations

import threading
import time

import pytest
from tests.support.seconds import KINDS, Stopwatch


def test_time_inside_another_kind_of_work_counts_there_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    watch = Stopwatch()

    def pass_time(seconds: float) -> None:
        now[0] += seconds

    inner = watch.timed("inner", pass_time)

    def outer(seconds: float) -> None:
        pass_time(1.0)
        inner(seconds)
        inner(seconds)

    watch.timed("outer", outer)(2.0)
    assert (watch.seconds, watch.calls) == ({"outer": 1.0, "inner": 4.0}, {"outer": 1, "inner": 2})


def test_a_call_that_fails_counts_too_and_other_threads_do_not() -> None:
    watch = Stopwatch()

    def divide(by: int) -> float:
        return 1 / by

    measured = watch.timed("divide", divide)
    with pytest.raises(ZeroDivisionError):
        measured(0)
    thread = threading.Thread(target=measured, args=(1,))
    thread.start()
    thread.join()
    assert watch.calls == {"divide": 1}


@pytest.mark.parametrize("place", [place for places in KINDS.values() for place in places])
def test_each_kind_of_work_names_a_function(place: str) -> None:
    module, _, path = place.partition(":")
    found = __import__(module, fromlist=["_"])
    for name in path.split("."):
        found = getattr(found, name)
    assert callable(found)
