"""What the simulated databases don't send: messages, columns that are new, keys of other types."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pytest
from tests.support.decoding import raw_table
from tests.support.no_rows import NoRows
from tests.support.recorded import Record

from distributary.apply.apply_events import Applied, apply_events
from distributary.apply.memory import Memory, TableSpec, first_memory
from distributary.decode.decoder import Decoder
from distributary.decode.options import DecodeOptions
from distributary.errors import TableHalt
from distributary.rules.state import RuleSettings
from distributary.types.column_default import ColumnDefault
from distributary.types.record_schema import RecordSchema, arrow_of


class Table:
    """Applies records of one topic."""

    def __init__(
        self, columns: dict[str, str], key: Sequence[str] = ("id",), connector: str = "postgresql", mode: str = "upsert"
    ) -> None:
        self.transactions = mode != "upsert"
        self.decoder = Decoder(DecodeOptions(connector, transactions=self.transactions))
        self.rules = RuleSettings(connector, mode)
        self.key = key
        self.memory: Memory | None = None
        self.offset = 0
        self.stored: NoRows | OneRow = NoRows()
        self.columns = columns
        self.defaults: dict[str, ColumnDefault] = {}

    def apply(self, *records: dict[str, Any]) -> Applied:
        schema = RecordSchema(self.columns, {name: self.columns[name] for name in self.key})
        row, key = (
            pa.struct([(name, arrow_of(kind)) for name, kind in part.items()]) for part in (schema.row, schema.key)
        )
        spec = TableSpec(self.rules, "t", row, key, self.defaults, transactions=self.transactions)
        self.memory = self.memory or first_memory(spec, 1)
        written = [self._record(**record) for record in records]
        events = self.decoder.decode(raw_table(written), schema).events
        return apply_events(spec, self.memory, events, self.stored)

    def _record(self, op: str, after: Any, key: Any, at: int, tx: int = 1, **headers: Any) -> Record:
        source = {"connector": "postgresql", "sequence": json.dumps([str(tx), str(at)]), "lsn": at, "txId": tx}
        envelope = {"op": op, "after": after, "source": {**source, "ts_ms": 1000 + at}}
        if op != "r":
            envelope["transaction"] = {"id": f"{tx}:{at}", "total_order": 10 + at, "data_collection_order": 1}
        self.offset += 1
        found = tuple((f"__debezium.{name}", json.dumps(value).encode()) for name, value in headers.items())
        value, raw_key = json.dumps(envelope).encode(), None if key is None else json.dumps(key).encode()
        return Record("t", 0, self.offset - 1, 1000 + self.offset, raw_key, value, found)


def test_1_2_messages_are_passed_over() -> None:
    table = Table({"id": "bigint", "v": "string"})
    message = {"op": "m", "after": None, "key": None, "at": 11}
    applied = table.apply(
        {"op": "c", "after": {"id": 1, "v": "a"}, "key": {"id": 1}, "at": 10},
        message,
        {"op": "u", "after": {"id": 1, "v": "b"}, "key": {"id": 1}, "at": 12},
    )
    assert applied.rows.select(["id", "v", "__offset"]).to_pylist() == [{"id": 1, "v": "b", "__offset": 2}]
    assert table.apply({**message, "at": 13}).rows.num_rows == 0


@pytest.mark.parametrize(("before", "value"), [("", None), (f"000:{'9' * 20}.{'9' * 20}@{'0' * 13}", 5)])
def test_5_1_values_that_are_kept_get_columns_that_are_new(before: str, value: int | None) -> None:
    table = Table({"id": "int", "v": "string"})
    placeholder = "__debezium_unavailable_value"
    # The row of key 2 waits for the value of key 1, whose departure has not come.
    waiting = {"op": "c", "after": {"id": 2, "v": placeholder}, "key": {"id": 2}, "at": 20, "tx": 2}
    [row] = table.apply({**waiting, "oldkey": {"id": 1}}).rows.to_pylist()
    assert (row["id"], row["v"]) == (2, None)
    table.columns = {"id": "bigint", "v": "string", "more": "bigint"}
    table.defaults = {"more": ColumnDefault("5", before)}
    first = {"op": "c", "after": {"id": 1, "v": "here", "more": 7}, "key": {"id": 1}, "at": 10, "tx": 1}
    leaving = {"op": "d", "after": None, "key": {"id": 1}, "at": 20, "tx": 2, "newkey": {"id": 2}}
    assert table.memory is not None
    table.memory.state.marks.clear()  # these two come by another partition
    rows = {row["id"]: row for row in table.apply(first, leaving).rows.to_pylist()}
    assert rows[2]["v"] == "here"
    assert rows[2]["more"] == value


@pytest.mark.parametrize("mode", ["history", "append"])
def test_4_2_and_4_3_rows_have_the_transaction_of_their_change(mode: str) -> None:
    table = Table({"id": "bigint", "v": "string"}, mode=mode)
    applied = table.apply(
        {"op": "r", "after": {"id": 2, "v": "a"}, "key": {"id": 2}, "at": 1},
        {"op": "c", "after": {"id": 1, "v": "a"}, "key": {"id": 1}, "at": 10, "tx": 7},
        {"op": "u", "after": {"id": 1, "v": "b"}, "key": {"id": 1}, "at": 12, "tx": 7},
    )
    found = {row["__offset"]: (row["__transaction_id"], row["__transaction_order"]) for row in applied.rows.to_pylist()}
    assert found == {0: (None, None), 1: ("7", 20), 2: ("7", 22)}


@pytest.mark.parametrize("kind", ["string", "decimal(9,2)", "date"])
def test_keys_of_other_types_are_found_and_removed(kind: str) -> None:
    value: Any = {"string": "a/b", "decimal(9,2)": 1.5, "date": 20_000}[kind]
    table = Table({"id": kind, "v": "string"})
    row = {"id": value, "v": "a"}
    assert table.apply({"op": "c", "after": row, "key": {"id": value}, "at": 10}).rows.num_rows == 1
    removed = table.apply({"op": "d", "after": None, "key": {"id": value}, "at": 11}).removed
    assert removed.type.field("id").type == arrow_of(kind)
    assert len(removed) == 1


class OneRow:
    """A table with one row: of the key 2, written by the record at offset 1 of a topic that is gone."""

    def read(self, keys: pa.StructArray, columns: Sequence[str]) -> pa.Table:
        values = {"id": 2, "v": "old", "__op": "c", "__position": "000:5.5@1", "__partition": 0, "__offset": 1}
        names = list(dict.fromkeys(["id", *columns]))
        is_asked = 2 in keys.field("id").to_pylist()
        kinds = {"id": pa.int64(), "__partition": pa.int32(), "__offset": pa.int64()}
        kinds |= {"__source_ts": pa.timestamp("us", "UTC")}
        arrays = [pa.array([values.get(name)] if is_asked else [], kinds.get(name, pa.string())) for name in names]
        return pa.table(arrays, names=names)

    def snapshot_positions(self, keys: pa.StructArray) -> None:  # noqa: ARG002
        return None


def test_a_row_that_names_another_record_at_the_offset_of_a_new_one_halts_the_table() -> None:
    table = Table({"id": "bigint", "v": "string"})
    table.stored = OneRow()
    create = {"op": "c", "after": {"id": 1, "v": "new"}, "key": {"id": 1}}
    unsent = {"op": "u", "after": {"id": 2, "v": "__debezium_unavailable_value"}, "key": {"id": 2}}
    table.apply({**create, "after": {"id": 3, "v": "x"}, "key": {"id": 3}, "at": 10, "tx": 10})
    with pytest.raises(TableHalt) as caught:
        table.apply({**create, "at": 11, "tx": 11}, {**unsent, "at": 12, "tx": 12})
    assert caught.value.code == "offsets-repeat"
