"""A table of several source tables has the rows that a table of each of them would have."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random
from typing import Any

import pytest
from tests.model.table_of_records import TableOfRecords
from tests.support.changes import Row
from tests.support.kafka import Record
from tests.support.random_share import thorough_but
from tests.support.source_blocks import change, mysql, postgresql

from distributary.decode.options import DecodeOptions
from distributary.decode.source_block import SOURCE_TABLE_COLUMN
from distributary.rules.state import RuleSettings

COLUMNS = {"id": "bigint", "v": "string"}
MERGED = {**COLUMNS, SOURCE_TABLE_COLUMN: "string"}
PARTITIONS = 3
SOURCES: dict[str, Callable[..., Row]] = {"mysql": mysql, "postgresql": postgresql}
SETTINGS: dict[str, tuple[dict[str, Any], tuple[str, ...]]] = {
    "hard": ({}, ()),
    "soft": ({"deletes": "soft", "truncate": "soft"}, ("__deleted",)),
    "history": ({"mode": "history"}, ("__start_at", "__end_at", "__current")),
}
NAMES = ("one", "2:two")
LAST = 25


def history(random: Random, source: Callable[..., Row]) -> list[tuple[str, Record]]:
    """Changes of two source tables, each with its table's name, in the order of the source's log, in several
    partitions."""
    alive: dict[str, set[int]] = {name: set() for name in NAMES}
    found = []
    for index in range(1, LAST + 1):
        name, number = random.choice(NAMES), random.randrange(3)
        partition = number % PARTITIONS
        if random.random() < 0.2:
            op, partition = "t", random.randrange(PARTITIONS)
            alive[name].clear()
        elif number not in alive[name]:
            op = "c"
            alive[name].add(number)
        else:
            op = random.choice("ud")
            alive[name] -= {number} if op == "d" else set()
        if index > LAST - len(NAMES):  # each has a row in the end
            op, name, number = "c", NAMES[LAST - index], 9
        row = {"id": number, "v": f"{index}"}
        value = change(op, source(index, table=name), row if op in "cu" else None, row if op == "d" else None)
        key = None if op == "t" else json.dumps({"id": number}).encode()
        found.append((name, Record("t", partition, key, json.dumps(value).encode(), [])))
    return found


def delivered(random: Random, sent: Sequence[tuple[str, Record]]) -> list[tuple[str, Record]]:
    """The changes in an order in which a reader may get them, the last ones of each partition twice."""
    waiting = [[one for one in sent if one[1].partition == partition] for partition in range(PARTITIONS)]
    waiting = [[*records, *records[-3:]] for records in waiting]
    found = []
    while any(waiting):
        found.append(random.choice([records for records in waiting if records]).pop(0))
    return found


def batches(random: Random, records: Sequence[Record]) -> list[list[Record]]:
    cuts = sorted(random.sample(range(1, len(records)), k=min(4, len(records) - 1)))
    return [[*records[start:end]] for start, end in zip([0, *cuts], [*cuts, len(records)], strict=True)]


@pytest.mark.parametrize("settings", SETTINGS)
@pytest.mark.parametrize("connector", thorough_but(1, SOURCES))
@pytest.mark.parametrize("seed", thorough_but(1, range(4)))
def test_3_6_a_truncate_of_one_source_table_takes_its_rows_alone(
    tmp_path: Path, connector: str, settings: str, seed: int
) -> None:
    random = Random(seed)
    rule, columns = SETTINGS[settings]
    rules, options = RuleSettings(connector, **rule), DecodeOptions(connector, source_in_key=True)
    sent = delivered(random, history(random, SOURCES[connector]))

    def table_of(records: Sequence[Record], *, merged: bool) -> TableOfRecords:
        path = tmp_path / str(len([*tmp_path.iterdir()]))
        path.mkdir()
        table = TableOfRecords(
            path,
            rules,
            options if merged else DecodeOptions(connector),
            MERGED if merged else COLUMNS,
            ["id", SOURCE_TABLE_COLUMN] if merged else ["id"],
            partitions=PARTITIONS,
        )
        for batch in batches(random, records):
            table.take(batch)
        assert table.rejected == []
        return table

    merged = table_of([record for _, record in sent], merged=True).rows(SOURCE_TABLE_COLUMN, *COLUMNS, *columns)
    for name in NAMES:
        alone = table_of([record for of, record in sent if of == name], merged=False)
        assert [row[1:] for row in merged if row[0] == f"d.dbo.{name}"] == alone.rows(*COLUMNS, *columns)
    assert len({row[0] for row in merged}) == len(NAMES)


@pytest.mark.parametrize("connector", SOURCES)
def test_3_6_one_statement_truncates_several_source_tables_at_one_position(tmp_path: Path, connector: str) -> None:
    at = SOURCES[connector]

    def record(op: str, place: int, name: str) -> Record:
        row = {"id": 1, "v": name} if op == "c" else None
        key = b'{"id": 1}' if op == "c" else None
        return Record("t", 0, key, json.dumps(change(op, at(place, table=name), row)).encode(), [])

    table = TableOfRecords(
        tmp_path,
        RuleSettings(connector),
        DecodeOptions(connector, source_in_key=True),
        MERGED,
        ["id", SOURCE_TABLE_COLUMN],
    )
    table.take([record("c", place, name) for place, name in enumerate((*NAMES, "three"), 1)])
    table.take([record("t", 9, name) for name in NAMES])
    assert table.rows("v") == [("three",)]


@pytest.mark.parametrize(
    ("columns", "key"),
    [
        ({"id": "bigint", "v": "string", "__id": "bigint"}, ["id", "__id"]),
        ({"__id": "string", "v": "string"}, ["__id"]),
    ],
    ids=["a number", "the whole key"],
)
def test_3_6_a_column_of_the_source_with_two_underscores_names_no_source_table(
    tmp_path: Path, columns: dict[str, str], key: list[str]
) -> None:
    values = {name: "1" if kind == "string" else 1 for name, kind in columns.items()}

    def record(op: str, place: int) -> Record:
        change_key = json.dumps({name: values[name] for name in key}).encode() if op == "c" else None
        value = change(op, postgresql(place, table="t"), values if op == "c" else None)
        return Record("t", 0, change_key, json.dumps(value).encode(), [])

    table = TableOfRecords(tmp_path, RuleSettings("postgresql"), DecodeOptions("postgresql"), columns, key)
    table.take([record("c", 1)])
    assert table.rows("v") == [("1",)]
    table.take([record("t", 2), record("c", 3), record("t", 4)])
    assert table.rows("v") == []
    table.take([record("c", 5)])
    assert table.rows("v") == [("1",)]
    assert table.rejected == []
