"""A table in memory: records are decoded and applied with the service's code; state is only in its columns and its
memory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from functools import cmp_to_key
from typing import Any, Protocol

import pyarrow as pa
from tests.model.case import Kept, Rows, counted
from tests.model.cuts import Batch
from tests.model.delivery import Arrived
from tests.model.encoding import Form, RecordWriter
from tests.model.source.sent import Connector, Sent
from tests.support.decoding import raw_table
from tests.support.recorded import Record

from distributary.apply.apply_events import Applied, apply_events
from distributary.apply.memory import TableSpec, first_memory
from distributary.apply.memory_file import read_memory, read_text, short_text, write_memory
from distributary.apply.origin_columns import row_of
from distributary.decode.decoder import Decoder
from distributary.decode.options import DecodeOptions
from distributary.rules.event import Event, Position
from distributary.rules.order import compare, precedes_truncate
from distributary.rules.passed_positions import add_partitions, note_caught_up, schedule_partition_change_end
from distributary.rules.position_text import read_position, write_position
from distributary.rules.state import RuleSettings
from distributary.types.record_schema import RecordSchema, arrow_of

_TYPES = {"int64": "bigint", "int32": "int", "string": "string"}
_SERVICE = (
    *("__op", "__source_ts", "__position", "__topic", "__partition", "__offset"),
    *("__start_at", "__end_at", "__moved_from", "__unavailable"),
)
Row = dict[str, Any]


class Store(Protocol):
    """The rows of a table."""

    @property
    def rows(self) -> Sequence[Row]:
        """All of them; versions of a key in their order."""
        ...

    def read(self, keys: pa.StructArray, columns: Sequence[str]) -> pa.Table:
        """See apply.table_rows.KeyLookup."""
        ...

    def snapshot_positions(self, keys: pa.StructArray) -> Collection[str] | None:
        """See apply.table_rows.KeyLookup."""
        ...

    def write(self, applied: Applied) -> None:
        """Applies the result of a batch."""
        ...


class AppliedTable:
    """The table of one topic. It has what RulesTable has."""

    def __init__(
        self,
        connector: Connector,
        kept: Kept,
        partitions: int,
        *,
        compacted: bool = False,
        keyless: bool = False,
        make_store: Callable[[TableSpec], Store] | None = None,
    ) -> None:
        fields = connector.layout.fields
        self._schema = RecordSchema(
            {part.name: _TYPES[part.type] for part in fields},
            {} if keyless else {part.name: _TYPES[part.type] for part in connector.layout.key},
        )
        row, key = (
            pa.struct([(name, arrow_of(kind)) for name, kind in columns.items()])
            for columns in (self._schema.row, self._schema.key)
        )
        rules = RuleSettings(
            connector.name, kept.mode, kept.deletes, kept.truncate, compacted=compacted, keyless=keyless
        )
        self._spec = TableSpec(rules, "t", row, key)
        self._memory = first_memory(self._spec, partitions)
        self._decoder = Decoder(DecodeOptions(connector.name, before=kept.mode == "append", keyless=keyless))
        self._writer = RecordWriter(connector, Form())
        self._stored = (make_store or RowList)(self._spec)
        self.ambiguous = self.seen = self.unknown = self.plain = self.rested = 0

    def process(
        self,
        batch: Batch,
        read: Callable[[Arrived], tuple[Event, Sent]],
        partitions: int,
        replayed: Iterable[tuple[Event, Sent]] = (),
    ) -> list[tuple[Event, Sent]]:
        """Applies a batch, and the growth of its topic to `partitions`. Returns the events that went to quarantine."""
        connector, state = self._spec.rules.connector, self._memory.state
        if batch.grown:
            add_partitions(connector, state, partitions)
        records = sorted(map(read, batch.records), key=lambda record: record[0].at)
        quarantined = self._apply(records, list(replayed))
        if batch.settled:
            schedule_partition_change_end(connector, state)
        if batch.caught_up:
            before = state.settled_until
            note_caught_up(connector, state)
            self.rested += state.settled_until != before
        return [record for record in records if record[0].at in quarantined]

    def _apply(
        self, records: Sequence[tuple[Event, Sent]], replayed: Sequence[tuple[Event, Sent]]
    ) -> set[tuple[int, int]]:
        aside = pa.array([event.quarantined for event, _ in records], pa.bool_())
        applied = self._applied(self._decoded(records), aside, self._decoded(replayed) if replayed else None)
        changes = applied.changes
        assert not changes.is_refused
        self.ambiguous += changes.ambiguous
        self.seen += changes.seen
        self.unknown += changes.unknown
        self.plain += applied.plain
        self._stored.write(applied)
        return {event.at for event in changes.quarantined}

    def _applied(self, events: pa.Table, quarantined: pa.Array, replayed: pa.Table | None) -> Applied:
        return apply_events(self._spec, self._memory, events, self._stored, quarantined=quarantined, replayed=replayed)

    def _decoded(self, records: Sequence[tuple[Event, Sent]]) -> pa.Table:
        written = [self._record(event, sent) for event, sent in records]
        decoded = self._decoder.decode(raw_table(written), self._schema)
        assert decoded.events.num_rows == len(records), decoded.rejected.to_pylist()
        return decoded.events

    def _record(self, event: Event, sent: Sent) -> Record:
        writer = self._writer
        return Record(
            "t",
            event.partition,
            event.offset,
            event.timestamp,  # as fetched records have it, in microseconds
            writer.key(sent),
            writer.value(sent),
            writer.headers(sent),
        )

    def reopen_snapshot_row(self) -> None:
        """Continues with the memory as it is read back from a file."""
        text = short_text(self._memory)
        row = self._spec.row
        self._memory = read_memory(write_memory(self._memory)) if text is None else read_text(text, row)

    def rows(self) -> Rows:
        """The table's rows, in the form of Books."""
        rows = self._stored.rows
        return counted(self._as_in_books(row, rows) for row in rows)

    def _as_in_books(self, row: Row, rows: Sequence[Row]) -> Row:
        mode = self._spec.rules.mode
        kept = {name: value for name, value in row.items() if name not in _SERVICE}
        if mode == "append":
            values = {} if row["__op"] == "t" else kept
            return {**values, "__op": row["__op"], "__unavailable": tuple(row["__unavailable"] or ())}
        if mode == "history":
            same = [one for one in rows if self._key_of(one) == self._key_of(row)]
            number = [one is row for one in same].index(True)
            return {**kept, "__number": number}
        return kept

    def content(self) -> Any:
        """Everything that must not depend on the batches' boundaries, the ends of versions included."""
        ends = Counter((self._key_of(row), str(row.get("__end_at"))) for row in self._stored.rows)
        return self.rows(), ends

    def _key_of(self, row: Row) -> tuple[Any, ...]:
        return tuple(row[field.name] for field in self._spec.key)


class RowList:
    """Rows as a Delta table would have them, in the order in which they were written."""

    def __init__(self, spec: TableSpec) -> None:
        self._rules = spec.rules
        self._mode, self._connector = spec.rules.mode, spec.rules.connector
        self._key = [field.name for field in spec.key]
        self.rows: list[Row] = []

    def key_of(self, row: Row) -> tuple[Any, ...]:
        """The values of a row's key."""
        return tuple(row[name] for name in self._key)

    def of_key(self, row: Row) -> list[Row]:
        """The rows that have the key of a row."""
        return [one for one in self.rows if self.key_of(one) == self.key_of(row)]

    def read(self, keys: pa.StructArray, columns: Sequence[str]) -> pa.Table:
        """See Store."""
        found = [list(filter(self._counts, self.of_key(key))) for key in keys.to_pylist()]
        rows = [max(of_key, key=self._recency) for of_key in found if of_key]
        names = list(dict.fromkeys([*self._key, *columns]))
        return pa.table({name: pa.array([row[name] for row in rows], self._type(name, keys)) for name in names})

    def snapshot_positions(self, keys: pa.StructArray) -> Collection[str] | None:
        """See Store. Those of all rows."""
        del keys
        return {row["__position"] for row in self.rows if row["__op"] == "r" and row["__position"] is not None}

    def _type(self, name: str, keys: pa.StructArray) -> pa.DataType:
        if name in self._key:
            return keys.type.field(name).type
        types = {
            "__partition": pa.int32(),
            "__offset": pa.int64(),
            "__deleted": pa.bool_(),
            "__current": pa.bool_(),
            "__source_ts": pa.timestamp("us", "UTC"),
        }
        return types.get(name, pa.string())

    def _truncate(self, truncate: Event) -> None:
        rules, at = self._rules, truncate.position
        assert at is not None
        for row in list(self.rows):
            if not precedes_truncate(rules.connector, row_of(rules.connector, row).effective_position, at):
                continue
            if rules.mode == "history":
                end = row["__end_at"] and read_position(rules.connector, row["__end_at"])
                if end is None or compare(rules.connector, at, end) < 0:
                    row.update({"__end_at": write_position(rules.connector, at), "__current": False})
            elif rules.truncate == "soft":
                if not row["__deleted"]:
                    row.update({"__deleted": True, "__op": "t"})
            else:
                self.rows.remove(row)

    def write(self, applied: Applied) -> None:
        """See Store."""
        for truncate in applied.truncates:
            self._truncate(truncate)
        removed, rows = list(map(self.key_of, applied.removed.to_pylist())), applied.rows.to_pylist()
        if self._mode == "history":
            assert applied.opened_by is not None
            opened_by = [(row["partition"], row["offset"]) for row in applied.opened_by.to_pylist()]
            gone = set(zip(removed, opened_by, strict=True))
            self.rows = [
                row for row in self.rows if (self.key_of(row), (row["__partition"], row["__offset"])) not in gone
            ]
        elif self._mode == "upsert":
            keys = Counter(map(self.key_of, rows))
            assert max(keys.values(), default=1) == 1
            self.rows = [row for row in self.rows if self.key_of(row) not in {*keys, *removed}]
        self.rows += rows

    def _counts(self, row: Row) -> bool:
        return self._mode != "append" or row["__op"] in ("c", "u", "d")

    def _recency(self, row: Row) -> Any:
        if self._mode != "append":
            return row.get("__current", True), row.get("__end_at") or ""
        at = read_position(self._connector, row["__position"])
        assert at is not None
        return cmp_to_key(self._compare)(at), row["__op"] != "d"

    def _compare(self, one: Position, other: Position) -> int:
        return compare(self._connector, one, other)
