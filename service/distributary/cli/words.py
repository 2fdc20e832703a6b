"""Numbers and times as people read them."""

from __future__ import annotations

_UNITS = ("B", "kB", "MB", "GB", "TB")


def count(number: int, singular: str = "", many: str = "") -> str:
    """`1,204 tables`; `many` where that is not `singular` with an s. Without words the number alone."""
    return f"{number:,} {singular if number == 1 else many or singular + 's'}" if singular else f"{number:,}"


def duration(seconds: float) -> str:
    """`4.2 s`, `12 min`, `3 h`, `5 d`."""
    if seconds < 10:
        return f"{seconds:.1f} s" if seconds else "0 s"
    for limit, step, unit in ((60, 1, "s"), (3_600, 60, "min"), (172_800, 3_600, "h")):
        if seconds < limit:
            return f"{seconds // step:.0f} {unit}"
    return f"{seconds // 86_400:.0f} d"


def size(number: int) -> str:
    """`312 B`, `2.1 kB`, `340 MB`."""
    value, unit = float(number), 0
    while value >= 1000 and unit < len(_UNITS) - 1:
        value, unit = value / 1000, unit + 1
    return f"{value:.1f} {_UNITS[unit]}" if unit and value < 100 else f"{value:.0f} {_UNITS[unit]}"
