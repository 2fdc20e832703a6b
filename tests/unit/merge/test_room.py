"""Who may take memory at once."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from distributary.merge.room import Room


def test_no_more_is_taken_at_once_than_there_is() -> None:
    room, taken, most = Room(100), [0], [0]
    lock = threading.Lock()

    def take(size: int) -> None:
        with room.taken(size):
            with lock:
                taken[0] += size
                most[0] = max(most[0], taken[0])
            time.sleep(0.005)
            with lock:
                taken[0] -= size

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(take, [10, 60, 30, 50, 50, 100, 1, 99] * 5))
    assert 60 <= most[0] <= 100


def test_what_is_larger_than_all_of_it_goes_alone() -> None:
    room, inside = Room(100), threading.Event()
    with room.taken(1_000):

        def other() -> None:
            with room.taken(1):
                inside.set()

        thread = threading.Thread(target=other)
        thread.start()
        assert not inside.wait(0.1)
    thread.join(5)
    assert inside.is_set()


def test_a_failure_gives_back_what_it_took() -> None:
    room = Room(10)
    with pytest.raises(ValueError, match="no"), room.taken(10):
        raise ValueError("no")
    with room.taken(10):
        pass
