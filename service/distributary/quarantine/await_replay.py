"""What a replay did, read from the quarantine table: how many records it applied, and how many wait still."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from distributary.config import Config
from distributary.quarantine.listing import replay_state

_POLL_INTERVAL = 1.0  # seconds


@dataclass(frozen=True)
class ReplayOutcome:
    """`handled`: whether the service has taken the request; `applied`: records that the replay applied; `waiting`:
    records that still can't be applied."""

    handled: bool
    applied: int
    waiting: int


def await_replay(
    config: Config,
    table: str,
    before: datetime | None,
    is_open: Callable[[], bool],
    timeout: float,
    sleep: Callable[[float], None] = time.sleep,
) -> ReplayOutcome:
    """Waits until the request is no longer open, at most `timeout` seconds. `before`: when a record of the table was
    applied from quarantine last (see listing.replay_state), as of before the request."""
    end = time.monotonic() + timeout
    while is_open():
        if time.monotonic() >= end:
            return ReplayOutcome(False, 0, replay_state(config, table).waiting)
        sleep(_POLL_INTERVAL)
    after = replay_state(config, table, since=before)
    return ReplayOutcome(True, after.applied_since, after.waiting)
