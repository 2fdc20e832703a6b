"""How many random histories the tests of the model play."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.model.random_cases import MODES


@pytest.fixture(scope="session")
def scale_histories(pytestconfig: pytest.Config) -> Callable[[int], int]:
    """From the full number of histories to the share of them that `--histories` asks for: all without the option.
    Never less than one history of each mode, so that every mode is still tested."""
    share: float = pytestconfig.getoption("--histories")

    def scale(full: int) -> int:
        return min(full, max(round(full * share), len(MODES)))

    return scale
