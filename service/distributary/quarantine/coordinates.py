"""How commands name a record: by its coordinates, `topic:partition:offset`."""

from __future__ import annotations

import re
from dataclasses import dataclass

from distributary.errors import UsageError

_COORDINATES = re.compile(r"(?P<topic>[A-Za-z0-9._-]+):(?P<partition>[0-9]{1,9}):(?P<offset>[0-9]{1,18})")


@dataclass(frozen=True)
class RecordCoordinates:
    """The topic, partition and offset of a record; as text `topic:partition:offset`."""

    topic: str
    partition: int
    offset: int

    @staticmethod
    def parse(*words: str) -> RecordCoordinates:
        """Parses `topic:partition:offset`, or the same as three words, as `quarantine show` took it at first. Raises
        UsageError."""
        match = _COORDINATES.fullmatch(":".join(words))
        text = " ".join(words)
        if match is None:
            fix = "write it as topic:partition:offset, such as server1.dbo.orders:0:4711"
            raise UsageError("bad-coordinates", f"{text!r} does not name a record", fix)
        return RecordCoordinates(match["topic"], int(match["partition"]), int(match["offset"]))

    def __str__(self) -> str:
        return f"{self.topic}:{self.partition}:{self.offset}"
