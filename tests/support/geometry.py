"""Points and lines as the lake holds them: the bytes of well-known binary, little-endian, beside a point's x and y."""

from __future__ import annotations

import re
import struct

import pyarrow as pa
from tests.support.comparable import Value

POINT = pa.struct([("x", pa.float64()), ("y", pa.float64()), ("wkb", pa.binary()), ("srid", pa.int32())])
GEOMETRY = pa.struct([("wkb", pa.binary()), ("srid", pa.int32())])

_POINT_CODE, _LINE_CODE = 1, 2


def point(x: float, y: float) -> Value:
    """A point without a reference system."""
    return {"x": x, "y": y, "wkb": struct.pack("<BIdd", 1, _POINT_CODE, x, y), "srid": None}


def postgres_point(text: str) -> Value:
    """PostgreSQL's `(1.5,-2.5)`."""
    x, _, y = text.strip("()").partition(",")
    return point(float(x), float(y))


def point_text(text: str) -> Value:
    """Well-known text of a point, `POINT(1.5 -2.5)`."""
    ((x, y),) = _corners(text)
    return point(x, y)


def geometry_text(text: str) -> Value:
    """Well-known text of a line, `LINESTRING(0 0,1 1)`: the only other shape in the recordings."""
    if not text.startswith("LINESTRING("):
        raise ValueError(f"neither a point nor a line: {text}")
    corners = _corners(text)
    head = struct.pack("<BII", 1, _LINE_CODE, len(corners))
    return {"wkb": head + b"".join(struct.pack("<dd", x, y) for x, y in corners), "srid": None}


def _corners(text: str) -> list[tuple[float, float]]:
    match = re.fullmatch(r"[A-Z]+\(([^()]+)\)", text)
    if match is None:
        raise ValueError(f"not a simple geometry: {text}")
    corners = []
    for corner in match.group(1).split(","):
        x, y = corner.split(" ")
        corners.append((float(x), float(y)))
    return corners
