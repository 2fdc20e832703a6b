"""Reasons why the service can't continue with a table of another writer, and their fixes."""

from __future__ import annotations

from typing import Any

import pytest

from distributary.config.table import TableSettings
from distributary.evolve.adoption import OtherTable, differences, mode_refused, not_sent

SERVICE = {"__op": "string", "__offset": "bigint"}
TABLE = {"id": "int", "v": "string"}


def found(columns: dict[str, str], *sent: dict[str, str], required: tuple[str, ...] = (), **rule: Any) -> list[str]:
    settings = TableSettings("dbo.t", "c.yaml:7", **rule)
    key = rule.get("key", ("id",))
    return [str(one) for one in differences(settings, OtherTable(columns, required), SERVICE, sent or (TABLE,), key)]


def test_a_table_as_the_service_makes_it_has_none() -> None:
    assert found(TABLE) == []
    assert found({**TABLE, **SERVICE, "loaded": "timestamp"}, required=("id",)) == []


def test_columns_that_are_new_or_wider_come_as_they_always_do() -> None:
    assert found(TABLE, {"id": "bigint", "v": "string", "n": "int"}) == []
    [difference] = found(TABLE, {"id": "bigint", "v": "string", "n": "int"}, schema_changes="halt")
    assert "(n int, id bigint), and schema_changes is halt (c.yaml:7)" in difference
    [difference] = found(TABLE, {"id": "int", "v": "int", "n": "int"}, schema_changes="ignore")
    assert difference == (
        "the column v is string in the table, and the topic sends int: set `columns: {v: string}` if all values fit it"
        " (others go to the quarantine table); or write the column anew as int"
    )


def test_each_type_has_its_own_way_out() -> None:
    sent = {"id": "int", "a": "timestamp_ntz", "b": "timestamp", "c": "decimal(9,2)", "d": "int", "E": "int"}
    has = {"id": "int", "a": "timestamp", "b": "timestamp_ntz", "c": "double", "d": "timestamp", "e": "int"}
    by_column = {text.split()[2]: text.partition(": ")[2] for text in found(has, sent, rename={"C": "c"})}
    assert by_column["a"].startswith("set timestamps: utc for this table if its values are in UTC; or write")
    assert "timestamps: ntz if the source's column has no zone" in by_column["b"]
    assert "set `columns: {C: double}`" in by_column["c"]
    assert by_column["d"] == "write the column anew as int"
    assert any("differs only in case" in text for text in found(has, sent))


def test_the_key_must_be_there() -> None:
    [difference] = found({"v": "string", "ident": "int"})
    assert difference.startswith("the table has no column id, which is of the key")
    assert "`rename` (c.yaml:7)" in difference
    assert "have no key" in found(TABLE, key=())[0]


def test_columns_of_the_services_names_must_be_of_their_types() -> None:
    [difference] = found({**TABLE, "__OP": "string"})
    assert "the column __OP string, and the service needs its own __op string" in difference


def test_values_that_the_config_keeps_from_the_lake_must_not_be_there() -> None:
    result = found(
        {**TABLE, "ssn": "string", "mail": "string"}, exclude=("ssn",), mask={"EMail": "hash"}, rename={"EMail": "mail"}
    )
    assert [text.partition(" (")[0] for text in result] == ["`exclude` names ssn", "`mask` names EMail"]


def test_a_column_that_no_record_has_must_take_null() -> None:
    assert found({**TABLE, "loaded": "timestamp"}, required=("id", "loaded")) == [
        "the column loaded must not be NULL, and no record has it: ALTER TABLE … ALTER COLUMN loaded DROP NOT NULL"
    ]
    assert not_sent(OtherTable({**TABLE, "loaded": "timestamp", **SERVICE}), SERVICE, [TABLE]) == ("loaded",)


@pytest.mark.parametrize(("mode", "refused"), [("upsert", False), ("append", True), ("history", True)])
def test_only_rows_that_are_the_newest_ones_can_be_gone_on_with(mode: Any, refused: bool) -> None:
    assert (mode_refused(TableSettings("dbo.t", "c.yaml:7", mode=mode)) is not None) is refused
