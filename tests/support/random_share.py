"""The number of random cases that tests play: all, or the share in the option `--random-share`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Protocol

import pytest


class Scale(Protocol):
    """From the full number of random cases, or of readings of one case, to the number that a test plays, at least
    `at_least`. `at_least` is what the test needs to be able to fail, such as one case of each mode."""

    def __call__(self, full: int, *, at_least: int) -> int: ...


def scale_by(share: float) -> Scale:
    """Plays this share, a number from 0 to 1. Never more than all."""

    def scale(full: int, *, at_least: int) -> int:
        return min(full, max(round(full * share), at_least))

    return scale


def thorough_but(first: int, cases: Iterable[Any], *, unpack: bool = False) -> list[Any]:
    """Cases as parameters, of which all but the first are for thorough runs only. `unpack`: each is a tuple of several
    parameters."""
    return [
        pytest.param(*(case if unpack else (case,)), marks=pytest.mark.thorough if index >= first else ())
        for index, case in enumerate(cases)
    ]
