"""Decoded events (see decode.events.make_events) as the columns that the rules read (see rules.columns)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from distributary.apply.key_text import content_texts, key_texts
from distributary.decode.source_block import truncated_column
from distributary.rules.columns import EventColumns, one_array
from distributary.rules.event import TOMBSTONE, Event, Scope
from distributary.rules.log_traits import BINLOG_CONNECTORS
from distributary.rules.order import change_id
from distributary.rules.position_text import BY_OFFSET_SIGN, read_position
from distributary.rules.state import RuleSettings

_EPOCH = len("000:")
_LSN = 20
_KIND = _EPOCH + _LSN
_BINLOG_LEVEL = _EPOCH + 20 + 1 + 20
_BINLOG_INSIDE = _BINLOG_LEVEL + 1 + 10
_SEPARATOR = "/"
_LOWEST = "\x01"
"""In place of a separator it keeps the order of parts that have not all the same length."""


def event_columns(rules: RuleSettings, events: pa.Table, quarantined: pa.Array | None = None) -> EventColumns:
    """The columns of events of one table. `quarantined` (bool for each): the event is in quarantine."""
    arrays = {name: one_array(events[name]) for name in events.column_names}
    connector = rules.connector
    reader = _EventReader(rules, arrays, quarantined)
    position = reader.position
    level, sub_position = _place(connector, position)
    is_read = pc.fill_null(pc.equal(arrays["operation"], "r"), False)
    columns = {
        "partition": arrays["partition"],
        "offset": arrays["offset"],
        "timestamp": arrays["timestamp"].cast(pa.int64()),
        "time": pc.multiply(pc.fill_null(arrays["source_time"], 0), 1000),
        "operation": arrays["operation"],
        "key": reader.key,
        "level": level,
        "sub_position": sub_position,
        "series": pc.if_else(is_read, None, _series(connector, position)),
        "snapshot_identity": reader.snapshot_identities,
        "content": reader.content,
        "special": is_special(arrays, quarantined),
    }
    return EventColumns(pa.table(columns), reader.event)


def _place(connector: str, position: pa.Array) -> tuple[pa.Array, pa.Array]:
    """Level and sub-position, as texts that sort as the parts do."""
    if connector == "postgresql":
        kind = pc.utf8_slice_codeunits(position, _KIND, _KIND + 1)
        sub_position = pc.utf8_slice_codeunits(position, _KIND + 1, _KIND + 1 + _LSN)
        nowhere = pc.and_(pc.equal(pc.utf8_lower(kind), "r"), pc.equal(sub_position, "0" * _LSN))
        known = pc.and_(pc.is_in(kind, pa.array([".", "R"])), pc.invert(nowhere))
        level = pc.if_else(known, pc.utf8_slice_codeunits(position, _EPOCH, _KIND), None)
        return level, pc.if_else(nowhere, None, sub_position)
    if connector in BINLOG_CONNECTORS:
        level = pc.utf8_slice_codeunits(position, _EPOCH, _BINLOG_LEVEL)
        return level, pc.utf8_slice_codeunits(position, _BINLOG_LEVEL + 1, _BINLOG_INSIDE)
    place = pc.utf8_slice_codeunits(position, _EPOCH, None)
    place = _where_not(pc.starts_with(place, BY_OFFSET_SIGN), place)
    level, sub_position = _split_at_separator(place)
    return level, pc.replace_substring(sub_position, _SEPARATOR, _LOWEST)


def _where_not(condition: pa.Array, values: pa.Array) -> pa.Array:
    """The values, null where the condition holds."""
    return pc.if_else(condition, None, values) if pc.any(condition).as_py() else values


def _split_at_separator(places: pa.Array) -> tuple[pa.Array, pa.Array]:
    """The texts before and behind the first separator. The latter is empty if an order has one field, the level."""
    separator_places = pc.min_max(pc.find_substring(places, _SEPARATOR))
    first, last = separator_places["min"].as_py(), separator_places["max"].as_py()
    if first == last and first is not None and first >= 0:  # nearly always, and several times quicker
        return pc.utf8_slice_codeunits(places, 0, first), pc.utf8_slice_codeunits(places, first + 1, None)
    before = pc.replace_substring_regex(places, f"{_SEPARATOR}.*", "")
    return before, pc.replace_substring_regex(places, f"^[^{_SEPARATOR}]*{_SEPARATOR}?", "")


def _series(connector: str, position: pa.Array) -> pa.Array:
    epoch = pc.utf8_slice_codeunits(position, 0, _EPOCH - 1)
    if connector not in BINLOG_CONNECTORS:
        return epoch
    rest = pc.utf8_slice_codeunits(position, _BINLOG_INSIDE + 1, None)
    server = pc.list_element(pc.split_pattern(rest, _SEPARATOR, max_splits=1), 0) if len(rest) else rest
    return pc.binary_join_element_wise(epoch, server, " ")


def is_special(arrays: Mapping[str, pa.Array], quarantined: pa.Array | None = None) -> pa.Array:
    """Whether each event must be processed as a single event, see rules.columns."""
    special = pc.is_valid(arrays["unavailable"])
    for name in ("moved_in", "moved_out", "old_key", "new_key"):
        column = arrays[name]
        special = pc.or_(special, column if pa.types.is_boolean(column.type) else column.is_valid())
    return special if quarantined is None else pc.or_(special, quarantined)


def _rows(arrays: dict[str, pa.Array]) -> pa.StructArray:
    """The row after each change; for a delete the row before it, if the events have that."""
    if "before" not in arrays:
        return arrays["row"]
    return pc.if_else(pc.fill_null(pc.equal(arrays["operation"], "d"), False), arrays["before"], arrays["row"])


def _contents_at_one_place(connector: str, arrays: dict[str, pa.Array]) -> pa.Array:
    """The contents of changes that may share one place and a key that is not unique: snapshot rows, and rows of one
    COPY into PostgreSQL."""
    operations = ["r", "c"] if connector == "postgresql" else ["r"]
    may_share = pc.is_in(arrays["operation"], pa.array(operations))
    contents = content_texts(arrays["row"].filter(may_share))
    return pc.replace_with_mask(pa.nulls(len(may_share), pa.string()), may_share, contents)


def _snapshot_identities(arrays: dict[str, pa.Array], position: pa.Array) -> pa.Array:
    """The identity of each snapshot row; its place and time, if the event has no identity of its own."""
    is_read = pc.fill_null(pc.equal(arrays["operation"], "r"), False)
    identities = arrays["snapshot_identity"].filter(is_read)
    if identities.null_count:
        time = pc.fill_null(arrays["source_time"].filter(is_read).cast(pa.string()), "")
        place = pc.binary_join_element_wise(position.filter(is_read), time, "@")
        identities = pc.coalesce(identities, place)
    return pc.replace_with_mask(pa.nulls(len(is_read), pa.string()), is_read, identities)


@dataclass
class _EventReader:
    """Makes the event of a row on demand."""

    rules: RuleSettings
    arrays: dict[str, pa.Array]
    quarantined: pa.Array | None

    def __post_init__(self) -> None:
        arrays = self.arrays
        self.content = pa.nulls(len(self), pa.string())
        if self.rules.keyless:  # a change is identified by its row
            self.key = content_texts(_rows(arrays))
        else:
            self.key = key_texts(arrays["key"]) if arrays["key"].type.num_fields else pa.nulls(len(self), pa.string())
        is_truncate = pc.fill_null(pc.equal(arrays["operation"], "t"), False)
        self.key = _where_not(is_truncate, self.key)
        self.old_key, self.new_key = (
            key_texts(arrays[name]) if arrays[name].type.num_fields else pa.nulls(len(self), pa.string())
            for name in ("old_key", "new_key")
        )
        if self.rules.mode == "append" and not self.rules.keyless:
            self.content = _contents_at_one_place(self.rules.connector, arrays)
        column = _truncated_column(arrays["key"].type)
        if column is not None and pc.any(is_truncate).as_py():
            # One statement may truncate several tables at one place.
            names = pc.struct_field(arrays["key"], column)
            self.content = pc.if_else(is_truncate, names, self.content)
        position = arrays["position"]
        by_offset = pc.equal(pc.utf8_slice_codeunits(position, _EPOCH, _EPOCH + 1), BY_OFFSET_SIGN)
        self.position = _where_not(pc.fill_null(by_offset, False), position)
        self.snapshot_identities = _snapshot_identities(arrays, self.position)

    def __len__(self) -> int:
        return len(self.arrays["partition"])

    def event(self, row: int) -> Event:
        """The event of a row."""
        arrays, connector = self.arrays, self.rules.connector
        op, text = arrays["operation"][row].as_py(), self.position[row].as_py()
        at = None
        if text is not None and op != TOMBSTONE:
            time = 1000 * (arrays["source_time"][row].as_py() or 0)
            at = read_position(connector, text, arrays["transaction"][row].as_py(), time)
        scope = self._scope(row) if op == "t" else None
        return Event(
            op,
            self.key[row].as_py(),
            arrays["partition"][row].as_py(),
            arrays["offset"][row].as_py(),
            arrays["timestamp"][row].value,
            at,
            None if op in ("r", TOMBSTONE) else change_id(connector, at, scope),
            self.snapshot_identities[row].as_py(),
            self.old_key[row].as_py(),
            self.new_key[row].as_py(),
            tuple(arrays["unavailable"][row].as_py() or ()),
            False if self.quarantined is None else self.quarantined[row].as_py(),
            content=self.content[row].as_py(),
            scope=scope,
        )

    def _scope(self, row: int) -> Scope | None:
        """The scope of a truncate: its key has the source table's name, if the table has rows of several."""
        key = self.arrays["key"]
        column = _truncated_column(key.type)
        if column is None:
            return None
        return key.type.get_field_index(column), key[row][column].as_py() or ""


def _truncated_column(key: pa.StructType) -> str | None:
    return truncated_column({field.name: "string" if pa.types.is_string(field.type) else "" for field in key})


def events_of(columns: EventColumns) -> list[Event]:
    """All events, one by one."""
    return [columns.event(row) for row in range(columns.count)]
