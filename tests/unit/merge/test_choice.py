"""When a slice is committed without Spark, and when it is not."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from distributary.merge.choice import (
    AT_MOST,
    PAYLOAD_BYTES,
    RECORDS,
    SMALL_ROW,
    TOUCHED_BYTES,
    VALUES,
    times,
    why_not_key,
    why_not_size,
    why_not_table,
    why_not_touched,
)
from distributary.merge.facts import Facts

Protocol = tuple[int, int, Sequence[str] | None]
USUAL: Protocol = (3, 7, ["timestampNtz", "appendOnly", "invariants"])


def schema(**columns: Any) -> dict[str, Any]:
    fields = [{"name": n, "type": t, "nullable": True, "metadata": {}} for n, t in columns.items()]
    return {"type": "struct", "fields": fields}


def facts(records: int = 200, payload: int = 100_000) -> Facts:
    return Facts(
        *("sqlserver", records, records, 0, 0, records, 0, 0, False, None, False, 0, False, False, None, None, {}),
        payload=payload,
    )


NESTED = {
    "type": "struct",
    "fields": [
        {"name": "list", "type": {"type": "array", "elementType": "string", "containsNull": True}},
        {"name": "map", "type": {"type": "map", "keyType": "string", "valueType": "decimal(38,0)"}},
    ],
}
EVERY_TYPE = schema(
    **{f"c{i}": kind for i, kind in enumerate((
        "string", "byte", "short", "integer", "long", "float", "double", "boolean", "binary", "date", "timestamp",
        "timestamp_ntz", "decimal(38,10)", NESTED,
    ))}
)  # fmt: skip


@pytest.mark.parametrize("protocol", [USUAL, (1, 2, None), (2, 5, []), (2, 7, ["columnMapping"])])
def test_usual_tables_are_committed_here(protocol: Protocol) -> None:
    assert why_not_table(protocol, {"delta.checkpointInterval": "50"}, EVERY_TYPE) is None


@pytest.mark.parametrize(
    ("protocol", "properties", "reason"),
    [
        ((3, 7, ["typeWidening", "clustering"]), {}, "clustering, typeWidening"),
        ((1, 6, None), {}, "versions 1 and 6"),
        ((3, 7, ["deletionVectors"]), {}, "deletionVectors"),
        (USUAL, {"delta.enableChangeDataFeed": "TRUE"}, "enableChangeDataFeed"),
        (USUAL, {"delta.appendOnly": "true"}, "appendOnly"),
        (USUAL, {"delta.constraints.positive": "id > 0"}, "constraints"),
        ((2, 5, None), {"delta.columnMapping.mode": "id"}, "ids"),
    ],
)
def test_what_the_library_is_not_trusted_with_is_sparks(
    protocol: Protocol, properties: dict[str, str], reason: str
) -> None:
    assert reason in (why_not_table(protocol, properties, EVERY_TYPE) or "")


def test_columns_that_the_library_may_write_otherwise_are_sparks() -> None:
    in_a_list = {"type": "array", "elementType": {"type": "struct", "fields": [{"name": "v", "type": "variant"}]}}
    assert "variant" in (why_not_table(USUAL, {}, schema(id="long", v=in_a_list)) or "")
    generated = schema(id="long")
    generated["fields"][0]["metadata"] = {"delta.generationExpression": "1", "comment": "x"}
    assert "generationExpression" in (why_not_table(USUAL, {}, generated) or "")
    mapped = schema(id="long")
    mapped["fields"][0]["metadata"] = {"delta.columnMapping.id": 1, "delta.columnMapping.physicalName": "col-1"}
    assert why_not_table(USUAL, {}, mapped) is None
    needed = schema(id="long")
    needed["fields"][0]["nullable"] = False
    assert "NULL" in (why_not_table(USUAL, {}, needed) or "")


def test_only_keys_whose_smallest_and_largest_value_are_told_exactly_are_merged_here() -> None:
    table = schema(a="long", b="string", c="date", d="decimal(38,0)", e="timestamp_ntz", f="double", g="binary")
    assert why_not_key(table, ["a", "b", "c"]) is None
    for name in "defg":
        assert name in (why_not_key(table, ["a", name]) or "")
    assert why_not_key(table, []) is not None


def test_large_slices_are_sparks() -> None:
    columns = VALUES // RECORDS
    assert why_not_size(facts(), columns) is None
    assert why_not_size(facts(RECORDS, PAYLOAD_BYTES), columns) is None
    assert "records" in (why_not_size(facts(RECORDS + 1), columns) or "")
    assert "bytes" in (why_not_size(facts(payload=PAYLOAD_BYTES + 1), columns) or "")
    assert "values" in (why_not_size(facts(RECORDS), columns + 1) or "")


def test_the_more_memory_there_is_the_more_is_committed_here() -> None:
    gib = 1 << 30
    heap = 32 * gib // 9  # 4 GiB
    assert [times(heap, spare * gib) for spare in (0, 1, 2, 7, 8, 64)] == [1, 1, 2, 7, AT_MOST, AT_MOST]
    assert [times(heap // 4, 64 * gib), times(heap // 2, 64 * gib)] == [2, 4]


def test_where_the_config_asks_for_it_larger_ones_are_committed_here_too_but_not_any() -> None:
    assert why_not_size(facts(AT_MOST * RECORDS, AT_MOST * PAYLOAD_BYTES), VALUES // RECORDS, AT_MOST) is None
    assert why_not_size(facts(payload=AT_MOST * PAYLOAD_BYTES + 1), 1, AT_MOST) is not None


def test_many_files_that_may_have_a_key_are_sparks() -> None:
    rows = TOUCHED_BYTES
    assert why_not_touched(TOUCHED_BYTES, rows) is None
    assert why_not_touched(TOUCHED_BYTES + 1, rows) is not None
    assert why_not_touched(2 * TOUCHED_BYTES, rows, 2) is None
    assert why_not_touched(2 * TOUCHED_BYTES + 1, rows, 2) is not None


def test_files_of_large_rows_are_not_taken_because_there_is_memory() -> None:
    assert why_not_touched(TOUCHED_BYTES, 1, AT_MOST) is None
    assert why_not_touched(2 * TOUCHED_BYTES, 2 * TOUCHED_BYTES // SMALL_ROW, AT_MOST) is None
    for rows in (2 * TOUCHED_BYTES // SMALL_ROW - 1, 0):
        assert why_not_touched(2 * TOUCHED_BYTES, rows, AT_MOST) is not None
