"""A range of values of the first key column, as `verify --keys FROM..TO` takes it."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import Column
from pyspark.sql import functions as F

from distributary import sql
from distributary.errors import UsageError


@dataclass(frozen=True)
class KeyRange:
    """A range that includes both ends; None is an open end."""

    low: str | None
    high: str | None

    @staticmethod
    def parse(text: str) -> KeyRange:
        """Parses `FROM..TO`, `FROM..` or `..TO`. Raises UsageError."""
        low, dots, high = text.partition("..")
        if not dots or not (low or high):
            raise UsageError(
                "bad-key-range",
                f"--keys {text!r} is no range of keys",
                "write FROM..TO, FROM.. or ..TO, with values of the first key column: --keys 1000..1999",
            )
        return KeyRange(low or None, high or None)

    def __str__(self) -> str:
        return f"{self.low or ''}..{self.high or ''}"

    def holds(self, column: str, kind: str) -> Column:
        """BOOLEAN: the column of that Spark type is in the range; NULL for NULL."""
        inside = [f"{column} {than} CAST({sql.text(end)} AS {kind})" for than, end in self._ends()]
        return F.expr(" AND ".join(inside))

    def ends_in(self, kind: str) -> list[Column]:
        """The ends cast to that type; NULL for a text that is no value of the type."""
        return [F.expr(f"CAST({sql.text(end)} AS {kind})") for _, end in self._ends()]

    def _ends(self) -> list[tuple[str, str]]:
        return [(than, end) for than, end in ((">=", self.low), ("<=", self.high)) if end is not None]
