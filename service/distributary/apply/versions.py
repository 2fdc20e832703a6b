"""The versions of `mode: history` (rule 4.2)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from distributary.apply.key_text import keys_of
from distributary.apply.values import TRANSACTION_COLUMNS, ValueSources, source_timestamps
from distributary.rules.columns import one_array
from distributary.rules.event import Event, Pointer
from distributary.rules.key_rows import Version
from distributary.rules.outcome import Outcome
from distributary.rules.position_text import read_position, write_position
from distributary.rules.state import Row

Aliases = Mapping[Pointer, Pointer]
"""By the record of a change that left its row as it was: the record that opened the row's version."""


@dataclass
class _Opened:
    """A version: the places of its opening record and of its values (None: NULL) by column, and how it ended."""

    at: Pointer
    opening: int
    places: tuple[int | None, ...]
    row: Row
    end: Event | None


@dataclass(frozen=True)
class NewVersions:
    """`rows` come in place of the versions that the records `removed` (partition, offset) opened under their keys.
    `aliases` are those of the new versions."""

    rows: pa.Table
    removed_keys: pa.StructArray
    removed: pa.Table
    aliases: Aliases


def new_versions(
    outcomes: Mapping[str, Outcome],
    sources: ValueSources,
    aliases: Aliases,
    key: pa.StructType,
    topic: str,
    connector: str,
    *,
    with_transactions: bool,
) -> NewVersions:
    """The versions that the outcomes of keys mean. Raises KeyError if a value is not among the sources."""
    opened: list[_Opened] = []
    removed: dict[tuple[str, Pointer], None] = {}
    merged_into: dict[Pointer, Pointer] = {}
    gather = _Gatherer(sources)
    for name, outcome in outcomes.items():
        removed.update({(name, aliases.get(at, at)): None for at in sorted(outcome.replaced)})
        of_key: list[_Opened] = []
        for version in outcome.versions:
            version_rows = gather.opened(version, aliases.get(version.row.at, version.row.at))
            before = of_key[-1] if of_key else None
            follows = before is not None and before.end is not None and before.end.at == version.row.at
            if before is not None and follows and gather.is_equal(before.places, version_rows.places):
                # Rule 4.2: a change that leaves the row as it was opens no version.
                before.row, before.end = version_rows.row, version_rows.end
                merged_into[version.row.at] = before.at
                continue
            if version_rows.at != version.row.at:
                merged_into[version.row.at] = version_rows.at
            of_key.append(version_rows)
        opened += of_key
    pointers = [at for _, at in removed]
    return NewVersions(
        gather.table(opened, topic, connector, with_transactions=with_transactions),
        keys_of([name for name, _ in removed], key),
        pa.table(
            {
                "partition": pa.array([partition for partition, _ in pointers], pa.int32()),
                "offset": pa.array([offset for _, offset in pointers], pa.int64()),
            }
        ),
        merged_into,
    )


class _Gatherer:
    def __init__(self, sources: ValueSources) -> None:
        self._sources = sources
        self._struct = one_array(sources.table["row"])
        self._columns = dict(zip((field.name for field in self._struct.type), self._struct.flatten(), strict=True))

    def opened(self, version: Version, at: Pointer) -> _Opened:
        row = version.row
        values = self._sources.place_of(row.at)
        opening = self._sources.place_of(at)
        places: dict[str, int | None] = dict.fromkeys(self._columns, values)
        for column, origin in row.origins:
            places[column] = self._sources.place_of_value(origin)
        return _Opened(at, opening, tuple(places.values()), row, version.end)

    def is_equal(self, one: tuple[int | None, ...], other: tuple[int | None, ...]) -> bool:
        return all(
            self._value(column, left) == self._value(column, right)
            for column, left, right in zip(self._columns.values(), one, other, strict=True)
            if left != right
        )

    @staticmethod
    def _value(column: pa.Array, place: int | None) -> pa.Scalar:
        null = pa.scalar(None, column.type)
        return null if place is None else column[place]

    def table(self, opened: list[_Opened], topic: str, connector: str, *, with_transactions: bool) -> pa.Table:
        opening = pa.array([version.opening for version in opened], pa.int64())
        openings = self._sources.table.take(opening)
        columns = {
            name: column.take(
                pa.array(
                    np.array([version.places[number] or 0 for version in opened], np.int64),
                    mask=np.array([version.places[number] is None for version in opened], np.bool_),
                )
            )
            for number, (name, column) in enumerate(self._columns.items())
        }
        return pa.table(
            {
                **columns,
                "__start_at": openings["start"],
                "__end_at": pa.array([self._end(version, connector) for version in opened], pa.string()),
                "__current": pa.array([version.end is None for version in opened], pa.bool_()),
                "__op": openings["op"],
                "__source_ts": source_timestamps(one_array(openings["source_time"])),
                "__position": openings["position"],
                "__topic": pa.repeat(topic, len(opened)),
                "__partition": openings["partition"],
                "__offset": openings["offset"],
                "__moved_from": openings["moved_from"],
                **({of: openings[name] for name, of in TRANSACTION_COLUMNS.items()} if with_transactions else {}),
            }
        )

    def _end(self, version: _Opened, connector: str) -> str | None:
        """The position at which a version ends. An event without a place in the log ends it at the highest known
        position of its key."""
        if version.end is None:
            return None
        place = self._sources.place(version.end.at)
        text: str | None = None if place is None else self._sources.table["position"][place].as_py()
        at = version.end.position or version.row.highest_position or version.row.effective_position
        if at is not None and at.level is not None and text is not None:
            # The known position may be that of a copy, with the level that this record's position lacks.
            position = read_position(connector, text)
            text = None if position is not None and position.level is None else text
        return text if text is not None or at is None else write_position(connector, at)
