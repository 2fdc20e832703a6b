"""Keys that need no parser: one column, a whole number or a text without escapes, as JsonConverter writes it.

Most keys are so. To parse one as JSON, and to look for a field that is there twice, takes longer than all else that is
read of a record but its row.
"""

from __future__ import annotations

import re

from distributary.decode import sql
from distributary.decode.shapes import Shape
from distributary.decode.types import STRING, Codec, cast

_NAME = re.compile(r'[^"\\\x00-\x1f]+')  # what stands between the quotes as it is
_ESCAPED = sql.text(r'["\\\x00-\x1f]')


def plain_key(k: str, shape: Shape) -> str | None:
    """STRING: the value of the key's one column, where the JSON text `k` is just that; NULL for others, which have to
    be parsed. None where all have to."""
    if len(shape.key) != 1:
        return None
    [(name, codec)] = shape.key.items()
    sent = shape.renames.source(name)
    if not _NAME.fullmatch(sent):
        return None
    if _is_number(codec):
        return _number(k, f'{{"{sent}":')
    return _text(k, f'{{"{sent}":"') if codec.reads_like(STRING) else None


def _is_number(codec: Codec) -> bool:
    return any(codec.reads_like(cast(kind)) for kind in ("tinyint", "smallint", "int", "bigint"))


def _number(k: str, begin: str) -> str:
    """Written as Java writes a long, so that the text has one reading: no blanks, no fraction, nothing behind."""
    inner = f"substring({k}, {len(begin) + 1}, length({k}) - {len(begin) + 1})"
    return f"CASE WHEN {k} = concat({sql.text(begin)}, try_cast({inner} AS BIGINT), '}}') THEN {inner} END"


def _text(k: str, begin: str) -> str:
    inner = f"substring({k}, {len(begin) + 1}, length({k}) - {len(begin) + 2})"
    framed = f"startswith({k}, {sql.text(begin)}) AND endswith({k}, '\"}}') AND length({k}) >= {len(begin) + 2}"
    return f"CASE WHEN {framed} AND NOT {inner} RLIKE {_ESCAPED} THEN {inner} END"
