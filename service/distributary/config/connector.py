"""The connector's settings that define the form of its records, and their possible values.

Debezium ignores the case of values, and uses its default for an unknown value. So an unknown value or a misspelt name
in the config would describe other records than the connector writes, and is refused. Any other setting of the connector
is allowed, unless its name is almost one of these.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from difflib import get_close_matches

from distributary.config.problem import Problem

_MODES: Mapping[str, tuple[str, ...]] = {
    "bigint.unsigned.handling.mode": ("long", "precise"),
    "binary.handling.mode": ("bytes", "base64", "base64-url-safe", "hex"),
    "decimal.handling.mode": ("precise", "double", "string"),
    "interval.handling.mode": ("numeric", "string"),
    "time.precision.mode": (
        *("adaptive", "adaptive_time_microseconds", "connect", "isostring", "microseconds", "nanoseconds"),
        "structured",
    ),
}
PLACEHOLDER = "unavailable.value.placeholder"
"""The setting for the placeholder of values that the source did not send (see decode.placeholder)."""
_ALIKE = 0.84
"""The similarity to a known name (difflib's ratio) from which a name counts as misspelt: of Debezium's other settings
the nearest is delete.handling.mode, with 0.83."""


def faults(properties: Mapping[str, str]) -> Iterator[Problem]:
    """The names that are misspelt, and the values that the connector would not take."""
    for name in properties:
        near = get_close_matches(_plain(name), [*_MODES, PLACEHOLDER], n=1, cutoff=_ALIKE)
        if near and name not in (*_MODES, PLACEHOLDER):
            yield Problem("bad-property", "the connector has no setting of this name", f"write {near[0]}", (name,))
    for name, known in _MODES.items():
        value = properties.get(name)
        if value is not None and _plain(value) not in known:
            close = get_close_matches(_plain(value), known, n=1)
            fix = f"did you mean {close[0]}?" if close else "write the value that the connector's own config has"
            yield Problem("bad-value", f"must be one of {', '.join(known)}", fix, (name,))
    given = properties.get(PLACEHOLDER, "")
    if given.startswith("hex:") and not _is_hex(given[4:]):
        yield Problem("bad-value", "has no hexadecimal digits after hex:", "write two for each byte", (PLACEHOLDER,))


def spelled(properties: Mapping[str, str]) -> dict[str, str]:
    """The settings, with known values in this service's spelling."""
    return {name: _plain(value) if name in _MODES else value for name, value in properties.items()}


def _plain(value: str) -> str:
    return value.strip().lower()


def _is_hex(text: str) -> bool:
    try:
        bytes.fromhex(text)
    except ValueError:
        return False
    return True
