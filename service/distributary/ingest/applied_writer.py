"""Writes the changes of a batch (see apply/) to the Delta table (see delta/), in one commit."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import cmp_to_key, lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from distributary.apply.apply_events import Applied
from distributary.apply.key_text import key_texts
from distributary.apply.memory import TableSpec
from distributary.apply.origin_columns import CURRENT, DELETED, END, columns_of_end, with_origin
from distributary.delta.commit import CommitPayload, Committed
from distributary.delta.data_file import NewFile
from distributary.delta.group_facts import GroupFact
from distributary.delta.key_index import FoundInFile
from distributary.delta.live_file import LiveFile
from distributary.delta.stored_rows import joined
from distributary.delta.writer import TableWriter
from distributary.logs import get_logger
from distributary.rules.columns import as_bools, one_array
from distributary.rules.event import Event, Position
from distributary.rules.order import compare
from distributary.rules.position_columns import follow, precede_truncate
from distributary.rules.position_text import position_order, read_position, write_position

_Mask = npt.NDArray[np.bool_]
_MOST_POSITIONS = 16
"""Of snapshot rows of one row group: one snapshot has one, or few."""


def _snapshot_positions(group: pa.Table) -> frozenset[str] | None:
    """The positions of the rows that a snapshot read; None if they are many."""
    of_snapshots = group["__position"].filter(pc.fill_null(pc.equal(group["__op"], "r"), False))
    positions = of_snapshots.drop_null().unique()
    return frozenset(positions.to_pylist()) if len(positions) <= _MOST_POSITIONS else None


_SNAPSHOT_POSITIONS = GroupFact(("__op", "__position"), _snapshot_positions)
_log = get_logger(__name__)


class AppliedWriter:
    """Reads and writes the rows of one table. `writer` finds rows by the key of `spec`."""

    def __init__(self, writer: TableWriter, spec: TableSpec) -> None:
        self._writer, self._spec = writer, spec
        self._key = [field.name for field in spec.key]
        self._located: tuple[pa.StructArray, Sequence[FoundInFile]] | None = None
        """The rows of the keys that were last asked for: most questions are about all keys of a batch."""

    def read(self, keys: pa.StructArray, columns: Sequence[str]) -> pa.Table:
        """See apply.table_rows.KeyLookup."""
        mode = self._spec.rules.mode
        service = {"history": [CURRENT, END], "append": ["__op", "__position"]}.get(mode, [])
        stored = self._writer.read_found(self._locate(keys), list(dict.fromkeys([*columns, *service])))
        rows, of_keys = stored.rows, self._key_rows(keys).take(pa.array(stored.keys))
        for name in self._key:
            if name not in rows.column_names:  # to read it, too, would take as long as all columns that find() needs
                rows = rows.append_column(name, of_keys[name])
        if mode == "upsert":
            adopted = "__offset" in columns and rows["__offset"].null_count > 0
            return with_origin(rows, self._texts(rows)) if adopted else rows
        return rows.take(pa.array(self._newest(stored.keys, rows), pa.int64()))

    def snapshot_positions(self, keys: pa.StructArray) -> Collection[str] | None:
        """See apply.table_rows.KeyLookup."""
        positions: set[str] = set()
        for of_group in self._writer.facts(_SNAPSHOT_POSITIONS, self._locate(keys)):
            if of_group is None:
                return None
            positions |= of_group
        return positions

    def _locate(self, keys: pa.StructArray) -> Sequence[FoundInFile]:
        if self._located is None or self._located[0] is not keys:
            self._located = keys, self._writer.locate(self._key_rows(keys))
        return self._located[1]

    def _newest(self, numbers: npt.NDArray[np.int64], rows: pa.Table) -> list[int]:
        """The index of each key's newest version, or of its newest streamed change."""
        newest: dict[int, int] = {}
        if self._spec.rules.mode == "history":
            order = position_order(self._spec.rules.connector)
            ends = zip(*_lists(rows, CURRENT, END), strict=True)
            # Rows that others wrote may have none of both.
            rank = [(bool(current), bool(end), order(end) if end else 0) for current, end in ends]
            for index, number in enumerate(numbers.tolist()):
                if number not in newest or rank[index] > rank[newest[number]]:
                    newest[number] = index
            return list(newest.values())
        operations, texts = _lists(rows, "__op", "__position")
        at = [self._position(text) for text in texts]
        for index, number in enumerate(numbers.tolist()):
            if operations[index] not in ("c", "u", "d") or at[index] is None:
                continue
            best = newest.get(number)
            if best is None or self._order(at[index], operations[index], at[best], operations[best]) > 0:
                newest[number] = index
        return list(newest.values())

    def _order(self, one: Position | None, op: str, other: Position | None, other_op: str) -> int:
        assert one is not None
        assert other is not None
        return compare(self._spec.rules.connector, one, other) or (op != "d") - (other_op != "d")

    def write(self, applied: Applied, record: CommitPayload, files: Sequence[LiveFile] = ()) -> Committed:
        """Commits the rows with the record. `files`: those of `applied.files`, by number. Raises what TableWriter
        raises."""
        mode = self._spec.rules.mode
        self._located = None
        partition = [column.name for column in self._writer.snapshot.schema.partition_columns]
        if columns := columns_with_empty_texts(applied.rows, partition):
            warn_of_empty_partitions(self._spec.topic, tuple(columns))
        if mode == "append" or not self._key:  # of truncates alone no key is known, and there is no row yet
            return self._writer.commit_rows(applied.rows, (), record)
        replaced = self._opened_by(applied) if mode == "history" else []
        truncates = [truncate for truncate in applied.truncates if truncate.position]
        ended, truncated = self._truncated(truncates, applied, replaced)
        rows = pa.concat_tables([applied.rows, ended], promote_options="permissive")
        if mode == "history":
            return self._writer.commit_rows(rows, [*replaced, *truncated], record)
        removed = self._key_rows(applied.removed)
        written = [NewFile(files[used.number], self._key_rows(used.keys)) for used in applied.files]
        return self._writer.write(rows, removed, record, truncated, written)

    def _key_rows(self, keys: pa.StructArray) -> pa.Table:
        return pa.Table.from_arrays(keys.flatten(), names=self._key)

    def _opened_by(self, applied: Applied) -> list[FoundInFile]:
        """The versions that the batch replaces."""
        assert applied.opened_by is not None
        keys = self._key_rows(applied.removed)
        texts = key_texts(applied.removed).to_pylist()
        wanted = set(zip(texts, *_lists(applied.opened_by, "partition", "offset"), strict=True))
        first = {text: index for index, text in enumerate(texts)}
        stored = self._writer.read_rows(
            keys.take(pa.array(list(first.values()), pa.int64())), ["__partition", "__offset"]
        )
        names = list(first)
        pointers = zip(*_lists(stored.rows, "__partition", "__offset"), strict=True)
        mask = [(names[key], *at) in wanted for key, at in zip(stored.keys.tolist(), pointers, strict=True)]
        return stored.chosen(np.array(mask, np.bool_))

    def _truncated(
        self, truncates: Sequence[Event], applied: Applied, replaced: Sequence[FoundInFile]
    ) -> tuple[pa.Table, list[FoundInFile]]:
        """Rule 3.6: the new form of the rows that truncates end (none if these rows are removed), and their old
        locations."""
        rules = self._spec.rules
        nothing = applied.rows.slice(0, 0)
        if not truncates:
            return nothing, []
        keeps = rules.mode == "history" or rules.truncate == "soft"
        columns = [*self._key, "__op", "__position", "__partition", "__offset", *columns_of_end(rules)]
        stored = self._writer.read_all(columns, lambda piece: self._is_before(piece, truncates))
        places = stored.chosen(np.ones(stored.rows.num_rows, np.bool_))
        if not keeps:
            return nothing, places
        if rules.mode == "history":
            places = _without(places, replaced)
        else:
            written = pa.concat_arrays([self._texts(applied.rows), key_texts(applied.removed)])
            is_kept = pc.or_kleene(stored.rows[DELETED], pc.is_in(self._texts(stored.rows), written))
            places = stored.chosen(~as_bools(is_kept))
        whole = self._writer.read_found(places, applied.rows.column_names).rows
        return (self._ended_versions if rules.mode == "history" else _marked)(whole, truncates), places

    def _is_before(self, rows: pa.Table, truncates: Sequence[Event]) -> _Mask:
        """Whether a truncate comes after a row and, of versions, before its end."""
        mask: _Mask = np.any([self._ended_by(rows, at) for at in truncates], axis=0)
        return mask

    def _ended_by(self, rows: pa.Table, truncate: Event) -> _Mask:
        """Whether the truncate ends a row."""
        rules, at = self._spec.rules, truncate.position
        assert at is not None
        mask = precede_truncate(rules.connector, one_array(rows["__position"]), at)
        if truncate.scope is not None:
            place, name = truncate.scope
            mask &= as_bools(pc.equal(one_array(rows[self._key[place]]), name))
        return mask & follow(rules.connector, one_array(rows[END]), at) if rules.mode == "history" else mask

    def _ended_versions(self, rows: pa.Table, truncates: Sequence[Event]) -> pa.Table:
        """The versions, each ended by the first truncate that ends it."""
        connector = self._spec.rules.connector
        ascending = sorted(truncates, key=cmp_to_key(self._compare))
        first = np.argmax([self._ended_by(rows, at) for at in ascending], axis=0)
        ends = [write_position(connector, one.position) for one in ascending if one.position is not None]
        texts = pa.array(ends, pa.string()).take(pa.array(first))
        return _with(_with(rows, END, texts), CURRENT, pa.array(np.zeros(rows.num_rows, np.bool_)))

    def _compare(self, one: Event, other: Event) -> int:
        assert one.position is not None
        assert other.position is not None
        return compare(self._spec.rules.connector, one.position, other.position)

    def _texts(self, rows: pa.Table) -> pa.Array:
        arrays = [one_array(rows[field.name]).cast(field.type) for field in self._spec.key]
        return key_texts(pa.StructArray.from_arrays(arrays, fields=list(self._spec.key)))

    def _position(self, text: str | None) -> Position | None:
        return None if text is None else read_position(self._spec.rules.connector, text)


def columns_with_empty_texts(rows: pa.Table, names: Sequence[str]) -> list[str]:
    """Those of the columns in which some row has an empty text."""
    texts = [name for name in names if name in rows.column_names and pa.types.is_string(rows.schema.field(name).type)]
    return [name for name in texts if pc.any(pc.equal(rows[name], "")).as_py()]


@lru_cache
def warn_of_empty_partitions(topic: str, columns: tuple[str, ...]) -> None:
    """Once for each table and its columns."""
    _log.warning(
        "empty texts become NULL: Delta has no empty texts in partition columns",
        code="empty-partition",
        topic=topic,
        columns=list(columns),
        fix="partition by another column if readers must distinguish them from NULL",
    )


def _lists(rows: pa.Table, *names: str) -> list[list[Any]]:
    return [rows[name].to_pylist() for name in names]


def _with(rows: pa.Table, name: str, column: pa.Array) -> pa.Table:
    return rows.set_column(rows.schema.get_field_index(name), name, column)


def _marked(rows: pa.Table, _truncates: Sequence[Event]) -> pa.Table:
    """Rows after a soft truncate."""
    operations = pa.array(["t"] * rows.num_rows, pa.string())
    return _with(_with(rows, "__op", operations), DELETED, pa.array([True] * rows.num_rows, pa.bool_()))


def _without(places: Sequence[FoundInFile], others: Sequence[FoundInFile]) -> list[FoundInFile]:
    """The places that are not among the others."""
    known = {location.file.path: location.rows for location in joined(others)}
    remaining = []
    for location in places:
        is_kept = ~np.isin(location.rows, known.get(location.file.path, np.empty(0, np.int64)))
        if is_kept.any():
            remaining.append(FoundInFile(location.file, location.keys[is_kept], location.rows[is_kept]))
    return remaining
