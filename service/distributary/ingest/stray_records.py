"""Stray records: single records that do not fit their table, because of other types of columns, another key, or a name
that is in use.

A change at the source shows in every record that follows it, and then the table halts, because somebody has to decide.
A single such record, followed by records that fit the table, is a stray record: it goes to quarantine, and the table
continues. The table halts before its batch is committed if there is a second one nearby in the partition, or if no
later record of the partition fits the table, neither in the batch nor behind it in the topic.

A second source table halts the table at its first record: its rows would replace others.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise

import pyarrow as pa
import pyarrow.compute as pc

from distributary.config.table import TableSettings
from distributary.decode.decoder import Decoded, Decoder
from distributary.decode.envelope import TOMBSTONE
from distributary.errors import TableHalt
from distributary.evolve.policy import ColumnPolicy
from distributary.ingest.source_tables import check_source_tables, filled_table
from distributary.progress.record import Progress
from distributary.reasons import NEEDS_DECISION
from distributary.types.record_schema import RecordSchema

NEAR = 100
"""Offsets within which two such records count as a change at the source: while producers are changed one after the
other, they send records of both forms."""


DecodeWaiting = Callable[[Mapping[int, int]], Decoded]
"""Decodes the next records of the topic from these offsets on, as those of the batch are decoded."""


def check_strays(
    decoded: Decoded,
    known: str | None,
    topic: str,
    settings: TableSettings,
    key: Collection[str],
    progress: Progress | None,
    decode_waiting: DecodeWaiting,
) -> str | None:
    """The source table of a table's rows; `known`: the one so far (see check_source_tables). Raises TableHalt if the
    decoded records show a change at the source, or belong to several source tables."""
    known = check_source_tables(decoded.source_tables, known, topic, settings, key)
    if decoded.conflict is not None and show_change(decoded, progress, decode_waiting):
        raise _with_place(decoded.conflict, decoded.rejected, topic)
    return known


def _with_place(conflict: TableHalt, rejected: pa.Table, topic: str) -> TableHalt:
    """The halt with one of the records that cause it: the first one of the lowest partition."""
    places = [f"{topic}:{partition}:{offsets[0]}" for partition, offsets in sorted(_strays(rejected).items())]
    if not places:
        return conflict
    return TableHalt(
        conflict.code,
        f"{conflict.message} (first in {places[0]})",
        f"{conflict.fix}. If only this record is wrong: `distributary quarantine add -c FILE TABLE {places[0]}`, then"
        " `resume`",
    )


def without_strays(
    decoded: Decoded,
    decoder: Decoder,
    raw: pa.Table,
    policy: ColumnPolicy,
    schema: RecordSchema,
    key: tuple[str, ...],
    settings: TableSettings,
) -> tuple[Decoded, Decoder, RecordSchema]:
    """The records `raw`, which `decoder` has decoded for a table with the columns of `schema` (none: it is new):
    rejects the records that do not fit the table once it has the columns of all others. Also returns the columns with
    which later records are decoded."""
    fitting = policy.fitting(schema.row, decoded.observed, key)
    changes = policy.changes(schema.row, fitting, key)
    columns = {**schema.row, **changes.added, **changes.widened}
    filled = RecordSchema(columns, {name: columns[name] for name in key if name in columns})
    strict = Decoder(replace(decoder.options, filled=filled_table(settings, key)))
    again = strict.decode(raw, filled)
    if again.conflict is None:
        return decoded, decoder, schema
    return replace(again, observed=tuple(fitting)), strict, filled


def last_strays(rejected: pa.Table) -> dict[int, int]:
    """The offset of the last such record of each partition among the rejected records of a batch."""
    return {partition: offsets[-1] for partition, offsets in _strays(rejected).items()}


def show_change(decoded: Decoded, progress: Progress | None, decode_waiting: DecodeWaiting) -> bool:
    """Whether two such records of a partition are near each other, also across batches, or one is the last of its
    partition in the topic. Records below the table's offsets do not count."""
    last: dict[int, int] = {}
    for partition, offsets in _strays(decoded.rejected).items():
        start = 0 if progress is None else progress.next.get(partition, 0)
        new = [offset for offset in offsets if offset >= start]
        before = None if progress is None or progress.strays is None else progress.strays.get(partition)
        known = [before] if before is not None and before < start else []
        if _has_near([*known, *new]):
            return True
        if new and _last_applicable(decoded.events, partition) < new[-1]:
            last[partition] = new[-1]
    if not last:
        return False
    waiting = decode_waiting({partition: offset + 1 for partition, offset in last.items()})
    strays = _strays(waiting.rejected)
    return any(
        _has_near([offset, *strays.get(partition, ())]) or _last_applicable(waiting.events, partition) < offset
        for partition, offset in last.items()
    )


def _has_near(offsets: Sequence[int]) -> bool:
    return any(later - earlier <= NEAR for earlier, later in pairwise(offsets))


def _last_applicable(events: pa.Table, partition: int) -> int:
    """The last offset of a change of the partition that the table can have; -1 if there is none."""
    is_change = pc.and_(pc.equal(events["partition"], partition), pc.not_equal(events["operation"], TOMBSTONE))
    last = pc.max(events["offset"].filter(pc.fill_null(is_change, False))).as_py()
    return -1 if last is None else int(last)


def _strays(rejected: pa.Table) -> Mapping[int, list[int]]:
    """Their offsets by partition, in order; without tombstones, which follow the delete of the same key."""
    is_tombstone = pc.fill_null(pc.equal(rejected["operation"], TOMBSTONE), False)
    needs_decision = pc.equal(rejected["reason"], NEEDS_DECISION.code)
    without_tombstones = rejected.filter(pc.and_(needs_decision, pc.invert(is_tombstone)))
    strays: dict[int, list[int]] = {}
    for partition, offset in zip(
        without_tombstones["partition"].to_pylist(), without_tombstones["offset"].to_pylist(), strict=True
    ):
        strays.setdefault(partition, []).append(offset)
    return {partition: sorted(offsets) for partition, offsets in strays.items()}
