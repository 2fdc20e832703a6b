"""Arrow's errors that come from data. ArrowException is wider: lack of memory and a cancelled call are ones, too."""

from __future__ import annotations

import pyarrow as pa

DATA_ERRORS = (
    pa.ArrowInvalid,
    pa.ArrowTypeError,
    pa.ArrowKeyError,
    pa.ArrowIndexError,
    pa.ArrowCapacityError,
    pa.ArrowNotImplementedError,
    pa.ArrowSerializationError,
)
"""A value does not fit its type, or data is damaged: the same call fails again."""
