"""How many random histories the tests of the model play."""

from __future__ import annotations

from typing import Protocol

import pytest
from tests.model.random_cases import MODES


class ScaleHistories(Protocol):
    """From the full number of histories, or of a case's readings, to how many are played, at least `at_least`."""

    def __call__(self, full: int, at_least: int = len(MODES)) -> int: ...


@pytest.fixture(scope="session")
def scale_histories(pytestconfig: pytest.Config) -> ScaleHistories:
    """Plays the share that `--histories` asks for: all without the option. As a rule not less than one history of each
    mode, so that every mode is still tested."""
    share: float = pytestconfig.getoption("--histories")

    def scale(full: int, at_least: int = len(MODES)) -> int:
        return min(full, max(round(full * share), at_least))

    return scale
