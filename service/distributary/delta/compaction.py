"""Chooses data files to rewrite: many small files as one, and files with many dead rows. Pure.

Each byte is rewritten a few times at most, however small the commits are. So a file is joined with files of about its
size: sizes below the wanted one are divided into classes by a factor of four, and the files of a class are joined once
there are four of them. The smallest files are always joined, because every commit adds some.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from distributary.delta.live_file import LiveFile

MAX_DEAD_SHARE = 0.3
"""The share of dead rows from which on a file is rewritten without them."""
WORTH_BYTES = 4 * 1024 * 1024
"""Bytes of dead rows from which on they are worth a compaction by themselves."""
_FILES_OF_CLASS = 4
_SIZE_FACTOR = 4
_SMALLEST = 32
"""Files below 1/32 of the wanted size are of the lowest class."""
_GROUP_BYTES = 128 * 1024 * 1024


def next_file_group(files: Iterable[LiveFile], wanted_bytes: int) -> list[LiveFile]:
    """The files to be rewritten by one commit, of one partition of the table; empty if there is nothing to gain.
    Files from half of `wanted_bytes` on are large enough."""
    by_partition: dict[tuple[tuple[str, str | None], ...], list[LiveFile]] = {}
    for file in files:
        by_partition.setdefault(_values(file.partition_values), []).append(file)
    for candidates in by_partition.values():
        group = _group_of(candidates, wanted_bytes)
        if group:
            return group
    return []


def _group_of(files: Iterable[LiveFile], wanted_bytes: int) -> list[LiveFile]:
    with_dead: list[LiveFile] = []
    classes: dict[int, list[LiveFile]] = {}
    for file in files:
        if dead_share(file) >= MAX_DEAD_SHARE:
            with_dead.append(file)
        elif (live := _live_bytes(file)) < wanted_bytes / 2:
            classes.setdefault(_size_class_of(live, wanted_bytes), []).append(file)
    groups = [found for size_class, found in classes.items() if len(found) >= (_FILES_OF_CLASS if size_class else 2)]
    if with_dead and not groups and classes:
        # Its live rows may be as few as those of the other files.
        groups = [found for size_class, found in classes.items() if not size_class]
    small = sorted((file for found in groups for file in found), key=_live_bytes)
    group: list[LiveFile] = []
    size = 0
    for file in [*sorted(with_dead, key=_live_bytes), *small]:
        size += file.size
        if group and size > _GROUP_BYTES:
            break
        group.append(file)
    return group if with_dead or len(group) > 1 else []


def needs_compaction(files: Iterable[LiveFile]) -> bool:
    """Whether dead rows have so large a part of the files' bytes that they should be rewritten soon."""
    size = dead = 0.0
    for file in files:
        size += file.size
        dead += file.size * dead_share(file)
    return dead >= WORTH_BYTES and dead >= MAX_DEAD_SHARE * size


def dead_share(file: LiveFile) -> float:
    """The share of dead rows in a file; 0 if the log does not have its row count."""
    if file.vector is None or not file.row_count:
        return 0.0
    return file.vector.cardinality / file.row_count


def _live_bytes(file: LiveFile) -> float:
    return file.size * (1.0 - dead_share(file))


def _size_class_of(live_bytes: float, wanted_bytes: int) -> int:
    size_class, limit = 0, wanted_bytes / _SMALLEST
    while live_bytes >= limit:
        size_class, limit = size_class + 1, limit * _SIZE_FACTOR
    return size_class


def _values(partition: Mapping[str, str | None]) -> tuple[tuple[str, str | None], ...]:
    return tuple(sorted(partition.items()))
