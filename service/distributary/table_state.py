"""The states of a table: the same words in the commands, in `/status`, on the page and in the metrics."""

from __future__ import annotations

from enum import Enum


class TableState(str, Enum):
    """The state of a table. A `str`, so that JSON and labels show its value.

    STARTING and RETRYING are states of a running service. Without one, a table that it would try again is BEHIND.
    """

    STARTING = "starting"
    """The service has not read the table's progress yet."""
    NEW = "new"
    """Nothing is applied yet, and no service is at work."""
    UP_TO_DATE = "up_to_date"
    """All records are applied; of a running service also: at most what fits into two batches is not."""
    BEHIND = "behind"
    """Records are to be applied."""
    RETRYING = "retrying"
    """The last batch failed, and is tried again by itself."""
    PAUSED = "paused"
    """An operator or the config has paused it."""
    HALTED = "halted"
    """It waits for an operator: see its error."""
