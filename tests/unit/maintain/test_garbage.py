"""Python releases its references to Java objects."""

from __future__ import annotations

import gc
import weakref

from distributary.maintain.garbage import Garbage


class Held:
    """As py4j's objects: refers to itself."""

    def __init__(self) -> None:
        self.itself = self


def test_what_refers_to_itself_is_gone_after_a_step() -> None:
    gc.disable()
    try:
        with Garbage().after():
            held = weakref.ref(Held())
            assert held() is not None
        assert held() is None
    finally:
        gc.enable()


def test_looks_take_a_small_part_of_the_time() -> None:
    garbage = Garbage()
    with garbage.after():
        pass
    looks: list[str] = []

    def note(phase: str, _info: dict[str, int]) -> None:
        looks.append(phase)

    gc.collect()
    gc.callbacks.append(note)
    gc.disable()
    try:
        for _ in range(3):
            with garbage.after():
                pass
    finally:
        gc.enable()
        gc.callbacks.remove(note)
    assert len(looks) < 6
