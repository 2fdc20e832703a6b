"""Records that their table can't have: other types of columns, another key, a name that is taken.

A change at the source shows in every record that follows it, and then the table halts, because somebody has to decide.
A single such record that others follow, which the table can have, is a stray one: it goes to quarantine, and the table
continues. The table halts before its batch is committed if there is a second one nearby in the partition, or if the
batch has no further record of the partition that would show that nothing has changed.

A second source table halts the table at its first record: its rows would replace others.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from itertools import pairwise

import pyarrow as pa
import pyarrow.compute as pc

from distributary.config.table import TableSettings
from distributary.decode.decoder import Decoded
from distributary.decode.envelope import TOMBSTONE
from distributary.ingest.source_tables import check_source_tables
from distributary.progress.record import Progress
from distributary.reasons import NEEDS_DECISION

NEAR = 100
"""Offsets within which two such records count as a change at the source: producers that change one after the other send
records of both forms for a while."""


def check_strays(
    decoded: Decoded,
    known: str | None,
    topic: str,
    settings: TableSettings,
    key: Collection[str],
    progress: Progress | None,
) -> str | None:
    """The source table of a table's rows; `known`: the one so far (see check_source_tables). Raises TableHalt if the
    decoded records show a change at the source, or belong to several source tables."""
    known = check_source_tables(decoded.source_tables, known, topic, settings, key)
    if decoded.conflict is not None and show_change(decoded, progress):
        raise decoded.conflict
    return known


def last_strays(rejected: pa.Table) -> dict[int, int]:
    """The offset of the last such record of each partition among the rejected records of a batch."""
    return {partition: offsets[-1] for partition, offsets in _strays(rejected).items()}


def show_change(decoded: Decoded, progress: Progress | None) -> bool:
    """Whether two such records of a partition are near each other, also across batches, or one is the last of its
    partition in the batch. Records below the table's offsets do not count."""
    for partition, offsets in _strays(decoded.rejected).items():
        start = 0 if progress is None else progress.next.get(partition, 0)
        new = [offset for offset in offsets if offset >= start]
        before = None if progress is None or progress.strays is None else progress.strays.get(partition)
        known = [before] if before is not None and before < start else []
        if any(later - earlier <= NEAR for earlier, later in pairwise([*known, *new])):
            return True
        if new and _last_applicable(decoded.events, partition) < new[-1]:
            return True
    return False


def _last_applicable(events: pa.Table, partition: int) -> int:
    """The last offset of a change of the partition that the table can have; -1 if there is none."""
    is_change = pc.and_(pc.equal(events["partition"], partition), pc.not_equal(events["operation"], TOMBSTONE))
    last = pc.max(events["offset"].filter(pc.fill_null(is_change, False))).as_py()
    return -1 if last is None else int(last)


def _strays(rejected: pa.Table) -> Mapping[int, list[int]]:
    """Their offsets by partition, in order; without tombstones, which follow the delete of the same key."""
    is_tombstone = pc.fill_null(pc.equal(rejected["operation"], TOMBSTONE), False)
    needs_decision = pc.equal(rejected["reason"], NEEDS_DECISION.code)
    found = rejected.filter(pc.and_(needs_decision, pc.invert(is_tombstone)))
    strays: dict[int, list[int]] = {}
    for partition, offset in zip(found["partition"].to_pylist(), found["offset"].to_pylist(), strict=True):
        strays.setdefault(partition, []).append(offset)
    return {partition: sorted(offsets) for partition, offsets in strays.items()}
