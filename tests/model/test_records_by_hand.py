"""Records in the forms that sources really send, decoded, applied and written to Delta."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.model.table_of_records import TableOfRecords
from tests.support.changes import Row, Topic, changes_without_key_at_first, row, snapshot_and_changes
from tests.support.kafka import Record
from tests.support.random_share import thorough_but

from distributary.decode.options import DEFAULT_PLACEHOLDER, BareKey, DecodeOptions
from distributary.decode.source_block import BY_OFFSET
from distributary.decode.source_order import BUILT_IN
from distributary.decode.unwrapped import Unwrapped
from distributary.delta.plan_write import RemovalLayout
from distributary.rules.state import RuleSettings

COLUMNS = {"id": "bigint", "v": "string"}
END = {"history": "__current", "append": "__op", "soft": "__deleted"}


def rules_of(connector: str, mode: str, **more: Any) -> RuleSettings:
    return RuleSettings(connector, "upsert" if mode == "soft" else mode, "soft" if mode == "soft" else "hard", **more)


def current(table: TableOfRecords, mode: str, *columns: str) -> list[tuple[Any, ...]]:
    rows = table.rows(*columns, *(["__current"] if mode == "history" else []))
    return [one[: len(columns)] for one in rows if mode != "history" or one[-1]]


@pytest.mark.parametrize(
    "connector",
    [
        "postgresql",
        *(pytest.param(name, marks=pytest.mark.thorough) for name in ("sqlserver", "mysql", "oracle", "db2")),
    ],
)
@pytest.mark.parametrize("mode", ["upsert", "soft", "history", "append"])
@pytest.mark.parametrize("layout", [RemovalLayout.VECTORS, RemovalLayout.REWRITE])
def test_2_4_records_sent_again_are_no_change_of_the_feed(
    tmp_path: Path, connector: str, mode: str, layout: RemovalLayout
) -> None:
    topic = snapshot_and_changes("t", connector)
    options = DecodeOptions(connector, before=mode == "append")
    table = TableOfRecords(tmp_path, rules_of(connector, mode), options, COLUMNS, ["id"], layout=layout, has_feed=True)
    for start in range(0, len(topic.records), 4):
        table.take(topic.records[start : start + 4])
    found = table.changes()
    table.take(topic.records)
    for record in topic.records:
        table.take([record])
    assert table.changes() == found
    assert table.rejected == []


@pytest.mark.parametrize("mode", ["upsert", "history", "append"])
@pytest.mark.parametrize("cut", [pytest.param(cut, marks=pytest.mark.thorough if cut % 3 else ()) for cut in range(10)])
def test_5_4_a_source_table_that_gets_its_primary_key_later_loses_no_row(tmp_path: Path, mode: str, cut: int) -> None:
    topic = changes_without_key_at_first("t")
    is_append = mode == "append"
    options = DecodeOptions("postgresql", key_from_rows_without_key=("id",))
    if is_append:
        options = DecodeOptions("postgresql", before=True, keyless=True)
    table = TableOfRecords(
        tmp_path,
        rules_of("postgresql", mode, keyless=is_append),
        options,
        COLUMNS,
        [] if is_append else ["id"],
    )
    for _ in range(2):
        for part in filter(None, (topic.records[:cut], topic.records[cut:])):
            table.take(part)
        if is_append:
            assert table.rows("id", "v", "__op") == [
                (1, "a", "c"), (1, "b", "u"), (1, None, "d"), (10, "b", "c"), (2, "a", "c"), (2, "c", "u"),
                (3, "a", "c"), (3, None, "d"), (4, "d", "c"),
            ]  # fmt: skip
        else:
            assert current(table, mode, "id", "v") == [(10, "b"), (2, "c"), (4, "d")]
    assert table.rejected == []


@pytest.mark.parametrize("mode", ["upsert", "history"])
@pytest.mark.parametrize("text", ["{}", "Struct{{id={}}}", '{{"schema":{{"type":"int64"}},"payload":{}}}'])
def test_3_3_rows_with_bare_keys_are_deleted_by_their_tombstones(tmp_path: Path, text: str, mode: str) -> None:
    def record(number: int, value: Row | None) -> Record:
        return Record("t", 0, text.format(number).encode(), None if value is None else json.dumps(value).encode(), [])

    options = DecodeOptions(BY_OFFSET, key_from_row=("id",), bare_key=BareKey("id"), unwrapped=Unwrapped({}))
    table = TableOfRecords(tmp_path, rules_of(BY_OFFSET, mode), options, COLUMNS, ["id"])
    table.take([record(number, row(number, "a")) for number in (1, 2, 3)])
    table.take([record(2, None)])
    table.take([record(1, row(1, "b")), record(3, None), record(3, row(3, "back"))])
    assert current(table, mode, "id", "v") == [(1, "b"), (3, "back")]
    assert table.rejected == []


@pytest.mark.parametrize("mode", ["soft", "history", "append"])
@pytest.mark.parametrize("size", thorough_but(1, [3, 1, 7]))
def test_3_4_fields_of_the_key_alone_are_in_every_mode(tmp_path: Path, mode: str, size: int) -> None:
    topic = Topic("t", "oracle")

    def change(op: str, of: Row, doc: str | None, at: int, **more: Any) -> None:
        topic.change(op, of, None if op == "d" else {"id": of["id"], "doc": doc}, at=at, **more)

    one, other, moved = ({"id": number, "__shard": shard} for number, shard in ((1, "a"), (1, "b"), (9, "a")))
    change("r", one, "one", 1)
    change("r", other, "other", 1)
    change("u", one, "one b", 4)
    change("d", other, None, 5)
    topic.tombstone(other)
    change("d", one, None, 6, tx=6, headers={"newkey": {"id": 9}})
    change("c", moved, DEFAULT_PLACEHOLDER, 6, tx=6, headers={"oldkey": {"id": 1}})
    columns = {"id": "bigint", "doc": "string", "__shard": "string"}
    options = DecodeOptions("oracle", before=mode == "append")
    table = TableOfRecords(tmp_path, rules_of("oracle", mode), options, columns, ["id", "__shard"])
    expected: dict[str, list[tuple[Any, ...]]] = {
        "soft": [(1, "a", "one b", True), (1, "b", "other", True), (9, "a", "one b", False)],
        "history": [
            *[(1, "a", "one b", False), (1, "a", "one", False), (1, "b", "other", False)],
            (9, "a", "one b", True),
        ],
        "append": [
            *[(1, "a", "one b", "u"), (1, "a", "one", "r"), (1, "a", None, "d"), (1, "b", "other", "r")],
            *[(1, "b", None, "d"), (9, "a", None, "c")],
        ],
    }
    for _ in range(2):
        for start in range(0, len(topic.records), size):
            table.take(topic.records[start : start + size])
        assert table.rows("id", "__shard", "doc", END[mode]) == sorted(expected[mode], key=repr)
    assert table.rejected == []


@pytest.mark.parametrize("mode", ["upsert", "history"])
def test_1_1_a_collection_is_a_table_of_documents(tmp_path: Path, mode: str) -> None:
    def record(op: str, number: int, document: Row | None, at: int) -> Record:
        source = {"connector": "mongodb", "ts_ms": 1_700_000_000_000, "ord": at, "snapshot": "false"}
        after = None if document is None else json.dumps({"_id": number, **document})
        value = {"before": None, "after": after, "source": source, "op": op}
        return Record("t", 0, json.dumps({"id": str(number)}).encode(), json.dumps(value).encode(), [])

    records = [record("c", 1, {"v": "a"}, 1), record("c", 2, {}, 2), record("u", 1, {"v": "c"}, 3)]
    records += [record("d", 2, None, 4), Record("t", 0, b'{"id": "2"}', None, [])]
    options = DecodeOptions("mongodb", documents=True, order=BUILT_IN["mongodb"])
    columns = {"_id": "string", "document": "string"}
    table = TableOfRecords(tmp_path, rules_of("mongodb", mode), options, columns, ["_id"])
    for _ in range(2):
        table.take(records)
        for one in records:
            table.take([one])
        assert current(table, mode, "_id", "document") == [("1", '{"_id": 1, "v": "c"}')]
    assert table.rejected == []
