"""A column of positions against one position, for the rows of a whole table at once.

The texts sort as the positions that they name: each part has a fixed width or ends with a sign that sorts below all
characters of the parts. Positions that only the rules can compare (another server's binlog, a PostgreSQL transaction of
unknown level) are parsed and compared one by one.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from distributary.rules.columns import Bools, as_bools
from distributary.rules.event import Position
from distributary.rules.log_traits import BINLOG_CONNECTORS, log_traits
from distributary.rules.order import compare, precedes_truncate
from distributary.rules.position_text import (
    BY_OFFSET_SIGN,
    EPOCH_END,
    highest_of,
    lowest_of,
    read_position,
    write_position,
)

_TIME = "@.*$"  # the end of PostgreSQL's positions, and all of Kafka's
_BINLOG_PARTS = r"^((?:[^/]*/){2}[^/]*)(?P<server>(?:/[^/]*)?).*$"


def precede_truncate(connector: str, texts: pa.Array, truncate: Position) -> Bools:
    """Whether the row at each position (null: no position) is older than a truncate: rule 3.6, see
    order.precedes_truncate."""
    exactly = _one_by_one(connector, lambda at: precedes_truncate(connector, at, truncate))
    if not log_traits(connector).truncates_by_sub_position:
        return _compared(connector, texts, truncate, pc.less, exactly)
    written = write_position(connector, truncate)
    same_epoch = as_bools(pc.starts_with(texts, written[:EPOCH_END]))
    lsn = pc.replace_substring_regex(texts, f"^.*[.?rR]([0-9]+){_TIME}", r"\1")
    lower = np.where(same_epoch, as_bools(pc.less(lsn, truncate.sub_position[0])), as_bools(pc.less(texts, written)))
    nowhere = as_bools(pc.match_substring_regex(texts, "[rR]0*@"))  # a snapshot without an LSN
    return _with_exact(lower | nowhere, as_bools(_is_of_source(texts)), texts, exactly)


def follow(connector: str, texts: pa.Array, at: Position) -> Bools:
    """Whether each position is behind `at` in the source's log (rule 2.1). Null, no position, is behind all."""

    def is_behind(one: Position | None) -> bool:
        return one is None or compare(connector, at, one) < 0

    exactly = _one_by_one(connector, is_behind)
    return _compared(connector, texts, at, pc.greater, exactly)


def precede(connector: str, texts: pa.Array, at: str) -> Bools:
    """Whether each position is before `at` in the source's log (rule 2.1), or in Kafka if both are Kafka's. False where
    the order is unknown: one is the source's and the other Kafka's, or one is missing (null, and an empty `at`)."""
    position = read_position(connector, at) if at else None
    if position is None:
        is_like = pc.invert(pc.or_(_is_of_source(texts), _is_of_source(pa.scalar(at))))
        return as_bools(pc.and_(is_like, pc.less(texts, at)))

    def is_before(one: Position | None) -> bool:
        return one is not None and compare(connector, one, position) < 0

    return _compared(connector, texts, position, pc.less, _one_by_one(connector, is_before))


def lowest_position(connector: str, texts: pa.Array) -> str | None:
    """The lowest position; one of the source's if there is any. None without positions."""
    return lowest_of(connector, _extremes(connector, texts, pc.min))


def highest_position(connector: str, texts: pa.Array) -> str | None:
    """The highest position; one of Kafka's if there is any. None without positions."""
    return highest_of(connector, _extremes(connector, texts, pc.max))


def _extremes(connector: str, texts: pa.Array, function: Callable[[pa.Array], pa.Scalar]) -> list[str]:
    """The first or last one of the positions that sort as their texts, and all other positions."""
    texts = texts.drop_null()
    kinds = _kinds(connector, texts)
    extremes = [function(texts.filter(pc.equal(kinds, kind))).as_py() for kind in pc.unique(kinds.drop_null())]
    return [*extremes, *pc.unique(texts.filter(kinds.is_null())).to_pylist()]


def _kinds(connector: str, texts: pa.Array) -> pa.Array:
    """A kind for each position: positions of one kind sort as their texts; null where this is not sure."""
    is_kafka_s = pc.equal(pc.utf8_slice_codeunits(texts, EPOCH_END, EPOCH_END + 1), BY_OFFSET_SIGN)
    kinds = pc.if_else(is_kafka_s, BY_OFFSET_SIGN, "")
    if connector == "postgresql":
        return pc.if_else(pc.or_(is_kafka_s, pc.match_substring(texts, ".")), kinds, None)
    if connector in BINLOG_CONNECTORS:
        return pc.if_else(is_kafka_s, kinds, pc.replace_substring_regex(texts, _BINLOG_PARTS, r"\2"))
    return kinds


def _is_of_source(texts: pa.Array) -> pa.Array:
    """Whether the positions are the source's. Those of records without a position of the source are Kafka's."""
    return pc.invert(pc.match_substring_regex(texts, "^[0-9]+:@"))


def _compared(
    connector: str,
    texts: pa.Array,
    at: Position,
    function: Callable[[pa.Array, str], pa.Array],
    exactly: Callable[[pa.Array], Bools],
) -> Bools:
    written = write_position(connector, at)
    if at.level is None:
        return exactly(texts)
    is_of_source = _is_of_source(texts)
    if connector in BINLOG_CONNECTORS:
        in_files = pc.replace_substring_regex(texts, _BINLOG_PARTS, r"\1")
        servers = pc.replace_substring_regex(texts, _BINLOG_PARTS, r"\2")
        in_file, server = "/".join(written.split("/")[:3]), "" if at.server is None else f"/{at.server}"
        is_plain = as_bools(pc.and_(is_of_source, pc.equal(servers, server)))
        return _with_exact(as_bools(function(in_files, in_file)), is_plain, texts, exactly)
    if connector == "postgresql":
        without_times, without_time = pc.replace_substring_regex(texts, _TIME, ""), written.split("@")[0]
        is_plain = as_bools(pc.match_substring(texts, "."))
        return _with_exact(as_bools(function(without_times, without_time)), is_plain, texts, exactly)
    return _with_exact(as_bools(function(texts, written)), as_bools(is_of_source), texts, exactly)


def _with_exact(by_text: Bools, is_plain: Bools, texts: pa.Array, exactly: Callable[[pa.Array], Bools]) -> Bools:
    """`by_text` where positions are plain, and elsewhere the result of `exactly`, which applies the rules."""
    if not is_plain.all():
        others = np.flatnonzero(~is_plain)
        by_text = by_text.copy()
        by_text[others] = exactly(texts.take(pa.array(others)))
    return by_text


def _one_by_one(connector: str, holds: Callable[[Position | None], bool]) -> Callable[[pa.Array], Bools]:
    def exactly(texts: pa.Array) -> Bools:
        different = texts.dictionary_encode()
        read = [None if text is None else read_position(connector, text) for text in different.dictionary.to_pylist()]
        known = np.array([holds(at) for at in [*read, None]], np.bool_)
        return known[np.asarray(different.indices.fill_null(len(read))).astype(np.int64)]

    return exactly
