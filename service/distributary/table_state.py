"""The states of a table: the same words in the commands, in `/status`, on the page and in the metrics."""

from __future__ import annotations

from enum import Enum


class TableState(str, Enum):
    """The state of a table. A `str`, so that JSON and labels show its value.

    STARTING and RETRYING are states of a running service. Without one, a table whose last
    batch failed is BEHIND.
    """

    STARTING = "starting"
    """The service has not read the table's progress yet."""
    NEW = "new"
    """Nothing is applied yet. Only `distributary status`, which reads the lake and not the service, reports it."""
    UP_TO_DATE = "up_to_date"
    """All records are applied. A running service also reports it while at most two batches are not."""
    BEHIND = "behind"
    """Records in Kafka are not applied yet."""
    RETRYING = "retrying"
    """The last batch failed with a temporary error. The service retries it."""
    PAUSED = "paused"
    """`distributary pause` or the config paused it."""
    HALTED = "halted"
    """It applies nothing until an operator resumes it. Its error has the reason and the fix."""
