"""Plans a write: its changes of the table's files, as actions of the log. No I/O."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt
from pyroaring import BitMap64

from distributary.delta.compaction import MAX_DEAD_SHARE
from distributary.delta.live_file import LiveFile
from distributary.delta.snapshot import DeltaSnapshot
from distributary.delta.vectors import VectorDescriptor

REWRITE_FACTOR = 2
"""AUTO rewrites at most this many times the bytes of a batch's changes, or CHEAP_BYTES if that is more: above these, a
commit writes at most three times the bytes of its changes."""
CHEAP_BYTES = 16 * 1024
"""Bytes that may be rewritten for a change of any size, because each file has a fixed cost."""
CHEAP_BYTES_BEFORE_VECTORS = 128 * 1024
"""As CHEAP_BYTES, in a table without vectors: not all readers support them, so a small table should not get them for a
small gain."""


class RemovalLayout(Enum):
    """How rows are removed: REWRITE writes their files without them (every reader can read that), VECTORS marks them by
    deletion vectors, AUTO chooses the cheaper way for each file."""

    AUTO = "auto"
    REWRITE = "rewrite"
    VECTORS = "vectors"


@dataclass(frozen=True)
class TouchedFile:
    """A live file that loses rows. `dead`: rows in its deletion vector; `rows`: numbers of the live rows to remove;
    `row_count`: all rows in the file."""

    file: LiveFile
    dead: BitMap64
    rows: npt.NDArray[np.int64]
    row_count: int


@dataclass(frozen=True)
class RemovalPlan:
    """How rows are removed: files without other live rows are `removed`; others are `marked` by a vector with these
    rows added, or `rewritten` without them: then their other live rows must be written to new files."""

    removed: tuple[TouchedFile, ...]
    marked: tuple[tuple[TouchedFile, BitMap64], ...]
    rewritten: tuple[tuple[TouchedFile, BitMap64], ...]


def plan_removal(
    touched: Iterable[TouchedFile], layout: RemovalLayout, change_bytes: int = 0, *, allows_vectors: bool = True
) -> RemovalPlan:
    """Plans how to remove rows. `change_bytes`: the bytes of the batch's changes; AUTO compares the bytes to rewrite
    with them. It first rewrites the files with the fewest bytes that stay. `allows_vectors`: whether the table may have
    vectors already: then AUTO marks rows also where a rewrite would be within its limit, unless so many of the file are
    dead that it would be compacted soon."""
    removed: list[TouchedFile] = []
    kept: list[tuple[TouchedFile, BitMap64]] = []
    for one in touched:
        if not len(one.rows):
            continue
        dead = one.dead | BitMap64(one.rows.astype(np.uint64))
        if len(dead) >= one.row_count:
            removed.append(one)
        else:
            kept.append((one, dead))
    if layout is RemovalLayout.REWRITE:
        return RemovalPlan(tuple(removed), (), tuple(kept))
    if layout is RemovalLayout.VECTORS:
        return RemovalPlan(tuple(removed), tuple(kept), ())
    cheap = CHEAP_BYTES if allows_vectors else CHEAP_BYTES_BEFORE_VECTORS
    most = max(REWRITE_FACTOR * change_bytes, cheap)
    marked: list[tuple[TouchedFile, BitMap64]] = []
    rewritten: list[tuple[TouchedFile, BitMap64]] = []
    size = 0.0
    for one, dead in sorted(kept, key=lambda found: _bytes_that_stay(*found)):
        with_this = size + _bytes_that_stay(one, dead)
        may_rewrite = not allows_vectors or len(dead) >= MAX_DEAD_SHARE * one.row_count
        if with_this <= cheap or (may_rewrite and with_this <= most):
            rewritten.append((one, dead))
            size = with_this
        else:
            marked.append((one, dead))
    return RemovalPlan(tuple(removed), tuple(marked), tuple(rewritten))


def _bytes_that_stay(touched: TouchedFile, dead: BitMap64) -> float:
    return touched.file.size * (1.0 - len(dead) / touched.row_count)


def write_actions(
    table: DeltaSnapshot,
    plan: RemovalPlan,
    vectors: Sequence[VectorDescriptor],
    new_files: Iterable[LiveFile],
    now: int,
    *,
    changes_rows: bool = True,
) -> list[dict[str, Any]]:
    """The actions of the write. `vectors` are those of the plan's marked files, in order; `now` in ms since 1970.
    Without `changes_rows` they are marked as changing files only (dataChange: false). Raises ValueError if they would
    duplicate or lose a row: Delta itself does not check that.
    """
    removed_files = [*plan.removed, *(touched for touched, _ in plan.rewritten)]
    actions = [_remove(touched.file, now) for touched in removed_files]
    for (touched, dead), vector in zip(plan.marked, vectors, strict=True):
        if vector.cardinality != len(dead):
            raise ValueError(f"the new vector of {touched.file.path} has {vector.cardinality} rows, not {len(dead)}")
        actions += [_remove(touched.file, now), _marked(touched, vector)]
    actions += [{"add": dict(file.action)} for file in new_files]
    if not changes_rows:
        actions = [{kind: {**fields, "dataChange": False} for kind, fields in action.items()} for action in actions]
    check_actions(table, actions)
    return actions


def check_actions(table: DeltaSnapshot, actions: Iterable[Mapping[str, Any]]) -> None:
    """Raises ValueError if actions remove an entry that is not live, or add a live file whose old entry stays."""
    removed: set[str] = set()
    added: set[str] = set()
    for action in actions:
        if (file_entry := action.get("add")) is not None:
            if file_entry["path"] in added:
                raise ValueError(f"the file {file_entry['path']} would be added twice")
            added.add(file_entry["path"])
        elif (file_entry := action.get("remove")) is not None:
            path = file_entry["path"]
            live = table.files.get(path)
            if path in removed or live is None or live.entry != LiveFile(file_entry).entry:
                raise ValueError(f"the file {path} would be removed, and is not live in this form")
            removed.add(path)
    if both := sorted(path for path in added if path in table.files and path not in removed):
        raise ValueError(f"the file {both[0]} would be live twice: its old entry is not removed")


def _remove(file: LiveFile, now: int) -> dict[str, Any]:
    """Has the entry's old vector: without it, Delta would leave the file live."""
    copied = ("path", "partitionValues", "size", "tags", "deletionVector", "baseRowId", "defaultRowCommitVersion")
    known = {name: file.action[name] for name in copied if file.action.get(name) is not None}
    return {"remove": {**known, "deletionTimestamp": now, "dataChange": True, "extendedFileMetadata": True}}


def _marked(touched: TouchedFile, vector: VectorDescriptor) -> dict[str, Any]:
    """The file with its new vector. It is marked as having wide bounds: they may be wider than those of its live
    rows."""
    stats = touched.file.action.get("stats") or "{}"
    if touched.file.row_count is None or touched.file.stats.get("tightBounds") is not False:
        # Numbers keep their digits: a bound that lost some would be wrong.
        known = msgspec.json.decode(stats, type=dict[str, msgspec.Raw])
        known |= {"numRecords": msgspec.Raw(b"%d" % touched.row_count), "tightBounds": msgspec.Raw(b"false")}
        stats = msgspec.json.encode(known).decode()
    return {"add": {**touched.file.action, "stats": stats, "deletionVector": vector.as_json(), "dataChange": True}}
