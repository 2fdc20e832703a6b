"""Applies one batch of events: decides which rows of the table are removed and which are written."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from distributary.apply.appended import appended_rows
from distributary.apply.decoded_events import event_columns, events_of
from distributary.apply.key_text import keys_of
from distributary.apply.memory import Memory, TableSpec
from distributary.apply.new_rows import NewRows
from distributary.apply.repeated_offsets import check_offsets
from distributary.apply.table_rows import KeyLookup, TableRows
from distributary.apply.task_rows import NO_FILES, TaskRows, UsedFile, WrittenRows
from distributary.apply.values import (
    TRANSACTION_COLUMNS,
    ValueSources,
    no_values,
    values_of_events,
    values_of_rows,
    with_columns,
)
from distributary.apply.versions import new_versions
from distributary.decode.envelope import MESSAGE
from distributary.rules.column_batch import apply_columns
from distributary.rules.columns import DELETE, EventColumns, Ints, one_array
from distributary.rules.event import Event, Pointer
from distributary.rules.event_processor import needed
from distributary.rules.outcome import BatchChanges
from distributary.rules.plain_keys import PlainKeys
from distributary.rules.pointers import records_of
from distributary.rules.state import Row


@dataclass(frozen=True)
class Applied:
    """The changes that a batch makes to a table. First `truncates` end the rows below them, then the rows of the keys
    `removed` are deleted, then `rows` replace the rows of their keys. In `mode: history` only the versions that the
    records `opened_by` opened (partition, offset; one for each of `removed`) are deleted, and `rows` are versions.
    `changes` has the counts, and the events to be quarantined; if it is refused, nothing else is valid. `plain`: the
    number of keys that were processed as columns. `files`: rows that are in data files already, see TaskRows."""

    changes: BatchChanges
    truncates: Sequence[Event]
    removed: pa.StructArray
    rows: pa.Table
    opened_by: pa.Table | None = None
    plain: int = 0
    files: Sequence[UsedFile] = ()


def apply_events(
    spec: TableSpec,
    memory: Memory,
    events: pa.Table,
    stored: KeyLookup,
    *,
    quarantined: pa.Array | None = None,
    replayed: pa.Table | None = None,
    written: WrittenRows = NO_FILES,
) -> Applied:
    """Applies decoded events (see decode.events.make_events). Changes the memory to the one that has to be committed
    with the rows.

    `quarantined` (bool for each event): it is in quarantine. `replayed`: events that come back from quarantine.
    `written` (`mode: upsert`): rows that the events lack.
    """
    is_change = pc.not_equal(events["operation"], MESSAGE)  # rule 1.2: messages are skipped
    if not pc.all(is_change, min_count=0).as_py():
        events = events.filter(is_change)
        quarantined = None if quarantined is None else quarantined.filter(one_array(is_change))
    columns = event_columns(spec.rules, events, quarantined)
    again = [] if replayed is None else events_of(event_columns(spec.rules, replayed))
    keys = keys_of([], spec.key) if spec.rules.keyless else _keys(columns, again, events, replayed)
    rows = TableRows(spec.rules, stored, keys, [truncate.position for truncate in memory.state.truncates])
    plain, changes = apply_columns(spec.rules, memory.state, columns, rows, again)
    nothing = keys_of([], spec.key)
    if changes.is_refused:
        return Applied(changes, (), nothing, events.slice(0, 0))
    batch = _Batch(spec, memory, events, replayed, rows, written)
    if spec.rules.mode == "append":
        return batch.appended(plain, changes)
    if spec.rules.mode == "history":
        return batch.versions(changes)
    return batch.upserted(columns, plain, changes)


def _keys(columns: EventColumns, again: Sequence[Event], events: pa.Table, replayed: pa.Table | None) -> pa.StructArray:
    """The keys of all events, each once. `again` are the events of `replayed`."""
    rows = np.flatnonzero(columns.key_numbers >= 0)[::-1]
    first = np.zeros(len(columns.keys), np.int64)
    first[columns.key_numbers[rows]] = rows  # the last write counts, and that is the first row
    keys = one_array(events["key"]).take(pa.array(first))
    if replayed is None:
        return keys
    others = one_array(replayed["key"])
    known = {None, *columns.keys.to_pylist()}
    places = {event.key: index for index, event in enumerate(again) if event.key not in known}
    return pa.concat_arrays([keys, others.take(pa.array(list(places.values()), pa.int64()))])


class _Batch:
    """Finds the values of new rows, and those to keep."""

    def __init__(
        self,
        spec: TableSpec,
        memory: Memory,
        events: pa.Table,
        replayed: pa.Table | None,
        rows: TableRows,
        written: WrittenRows,
    ) -> None:
        self._spec, self._memory, self._rows = spec, memory, rows
        self._task_rows = TaskRows(written, events)
        self._events = [events] if replayed is None else [replayed, events]
        self._begin = memory.values.num_rows + sum(events_table.num_rows for events_table in self._events[:-1])
        """The index of the batch's first event among the sources."""

    def upserted(self, columns: EventColumns, plain: PlainKeys, changes: BatchChanges) -> Applied:
        """The new rows of `mode: upsert`. Keeps the values that the state names."""
        spec = self._spec
        outcomes = {key: outcome.row for key, outcome in changes.outcomes.items()}
        is_deleted = columns.operation[plain.last] == DELETE
        plain_keys = np.asarray(plain.keys)
        marked = plain_keys[is_deleted & (plain.put < 0)].tolist() if spec.rules.deletes == "soft" else []
        files, put, rows = self._use_files(columns, plain.put[~is_deleted], outcomes, changes)
        pointers = _pointers(rows)
        self._restore(np.concatenate([put, plain.put[is_deleted]]), pointers)
        sources = self._sources(pointers, marked)
        new = NewRows(spec.row, spec.topic, sources, marks_deleted=spec.rules.marks_deleted)
        new.add(put + self._begin)
        removed = [key for key, row in outcomes.items() if row is None]
        if spec.rules.deletes == "soft":
            self._mark_plain(new, plain, np.flatnonzero(is_deleted), sources)
        else:
            removed += plain_keys[is_deleted].tolist()
        for row in rows:
            new.add_row(spec.rules.connector, row)
        self._keep(sources)
        removed_keys = keys_of(removed, spec.key)
        return Applied(changes, changes.truncates, removed_keys, new.table(), plain=len(plain.keys), files=files)

    def _use_files(
        self, columns: EventColumns, put: Ints, outcomes: Mapping[str, Row | None], changes: BatchChanges
    ) -> tuple[list[UsedFile], Ints, list[Row]]:
        """The files of tasks that have new rows alone, and all other new rows: those of the events `put` of plain keys,
        and those of `outcomes`."""
        rows = {key: row for key, row in outcomes.items() if row is not None}
        # After a truncate, rows of other keys than those of the written rows have to be found and removed.
        if changes.truncates or not self._task_rows.has_files:
            return [], put, list(rows.values())
        unchanged = self._unchanged(columns, rows)
        files, in_files = self._task_rows.used(np.concatenate([put, np.array(list(unchanged.values()), np.int64)]))
        remaining = [row for key, row in rows.items() if key not in unchanged or not in_files[unchanged[key]]]
        return files, put[~in_files[put]], remaining

    def _unchanged(self, columns: EventColumns, rows: Mapping[str, Row]) -> dict[str, int]:
        """The event of each key whose new row is that of an event of the key, unchanged."""
        unchanged = {key: row.at for key, row in rows.items() if not row.origins and not row.ended}
        places = self._task_rows.places_of(list(unchanged.values()))
        codes = np.where(places >= 0, columns.key_numbers[places], -1)
        names = columns.keys.take(pa.array(codes, mask=codes < 0)).to_pylist()
        found = zip(unchanged, places.tolist(), names, strict=True)
        return {key: place for key, place, name in found if name == key}

    def _restore(self, places: Ints, pointers: set[Pointer]) -> None:
        """Gives the events at these places (-1: none), and those of the pointers and of the memory, their values."""
        if self._task_rows.has_files:
            others = self._task_rows.places_of(sorted(pointers | self._named()))
            places = np.concatenate([places, others])
            self._events[-1] = self._task_rows.restored(places[places >= 0])

    def versions(self, changes: BatchChanges) -> Applied:
        """The new versions of `mode: history`. Keeps the values that the state names."""
        spec, memory = self._spec, self._memory
        outcomes = changes.outcomes
        sources = self._sources(_pointers(version.row for outcome in outcomes.values() for version in outcome.versions))
        new = new_versions(
            outcomes,
            sources,
            memory.aliases,
            spec.key,
            spec.topic,
            spec.rules.connector,
            with_transactions=spec.transactions,
        )
        pointers = needed(memory.state)
        memory.aliases = {at: first for at, first in {**memory.aliases, **new.aliases}.items() if at in pointers}
        self._keep(sources)
        return Applied(changes, changes.truncates, new.removed_keys, new.rows, new.removed)

    def appended(self, plain: PlainKeys, changes: BatchChanges) -> Applied:
        """The rows of `mode: append`."""
        spec = self._spec
        events = pa.concat_tables(self._events)
        sources = ValueSources([values_of_events(events)])
        event_places = (sources.place(event.at) for event in changes.appended)
        places = [place for place in event_places if place is not None]
        begin = events.num_rows - self._events[-1].num_rows
        every = np.concatenate([np.array(places, np.int64), plain.appended + begin]).astype(np.int64)
        rows = appended_rows(events, every, spec.row, spec.topic, with_transactions=spec.transactions)
        return Applied(changes, (), keys_of([], spec.key), rows, plain=len(plain.keys))

    def _named(self) -> set[Pointer]:
        """The records that the memory names."""
        aliases = self._memory.aliases
        named = needed(self._memory.state)
        return named | {aliases[at] for at in named if at in aliases}

    def _sources(self, pointers: set[Pointer], keys: Sequence[str] = ()) -> ValueSources:
        """The values of these records and of the rows of these keys, and those in the memory."""
        aliases = self._memory.aliases
        wanted = pointers | self._named() | {aliases[at] for at in pointers if at in aliases}
        events = [values_of_events(table) for table in self._events]
        remembered = with_columns(self._memory.values, self._spec.row, self._spec.defaults, self._spec.rules.connector)
        return ValueSources([remembered, *events, self._read_rows(wanted, keys)])

    def _keep(self, sources: ValueSources) -> None:
        """Keeps the values that the memory names."""
        places = [place for pointer in sorted(self._named()) if (place := sources.place(pointer)) is not None]
        self._memory.values = sources.table.take(pa.array(places, pa.int64()))

    def _read_rows(self, pointers: set[Pointer], keys: Sequence[str]) -> pa.Table:
        """The values of the table's rows that those records wrote, and of some keys' rows."""
        spec = self._spec
        wanted = list(dict.fromkeys([*keys, *self._rows.keys_at(pointers)]))
        if not wanted:
            return no_values(spec.row)
        columns = [field.name for field in spec.row]
        service = ["__op", "__position", "__partition", "__offset", "__source_ts"]
        if spec.rules.mode == "history":
            service += ["__start_at", "__moved_from"]
        if spec.transactions:
            service += TRANSACTION_COLUMNS.values()
        rows = self._rows.read_whole(wanted, [*columns, *service])
        check_offsets(rows, self._rows.texts_of(rows), self._events)
        return values_of_rows(rows, spec.row)

    def _mark_plain(self, new: NewRows, plain: PlainKeys, deleted: Ints, sources: ValueSources) -> None:
        """Keeps the last row of deleted plain keys, marked as deleted, if there is one."""
        for place in deleted.tolist():
            put, last = int(plain.put[place]), int(plain.last[place])
            if put >= 0:
                source: int | None = put + self._begin
            else:
                row = self._rows.row(plain.keys[place].as_py())
                source = None if row is None else sources.place(row.at)
            if source is not None:
                new.add_deleted(source, last + self._begin)


def _pointers(rows: Iterable[Row | None]) -> set[Pointer]:
    return {pointer for row in rows if row is not None for pointer in records_of(row)}
