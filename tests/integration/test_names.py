"""Columns with any name: each value is in the column of that name, and no name has a side effect."""

from __future__ import annotations

import pytest
from tests.support.changes import LONG, TEXT, Row, Topic
from tests.support.spark import Bench

KEY = ("key.part", "\U0001f511 `id`")
OTHERS = (
    *(
        "a b",
        " blanks ",
        "a.b.c",
        "a,b",
        "a;b",
        "a:b",
        "(a)",
        "{a}",
        "a=b",
        "a\tb",
        "a\nb",
        "a/b",
        "..",
        "%s %",
        "$1",
        "\\",
    ),
    *(
        "it's",
        '"quoted"',
        "`ticks`",
        "``",
        "${env:HOME}",
        "${spark.master}",
        "{schema}",
        "'; DROP TABLE t; --",
        "-- a",
        "/* a",
    ),
    *("SELECT", "select", "from", "null", "true", "1", "0x1", "ключ", "漢字", "e\u0301", "\u00e9", "_", "_metadata"),
    # Names that the service's own steps have for something.
    *("c0", "k0", "k", "kh", "row", "pos", "bad", "kind", "offset", "partition", "headers", "half", "after", "before"),
    *("value_", "element_", "element", "x_", "key", "value", "op", "source", "deleted", "missing", "col", "elements"),
)
SCHEMA = {**dict.fromkeys(KEY, LONG), **dict.fromkeys(OTHERS, TEXT)}
EXCLUDED = ("a;b", "'; DROP TABLE t; --", "c0")
RENAMED = {"SELECT": "`new`; name", "key.part": "part.of 'key'"}


def odd_key(number: int) -> Row:
    return {KEY[0]: number, KEY[1]: -number}


def row_with_odd_names(number: int, version: str) -> Row:
    return {**odd_key(number), **{name: f"{version} of {name}" for name in OTHERS}}


@pytest.mark.parametrize(
    ("mode", "with_schema"),
    [("upsert", True), ("upsert", False), ("history", True)],
)
def test_5_3_columns_of_any_name(bench: Bench, mode: str, with_schema: bool) -> None:
    bench.rule = {"mode": mode, "exclude": list(EXCLUDED), "rename": RENAMED}
    topic = Topic(bench.create().topic, "postgresql", key=KEY)

    def change(op: str, number: int, version: str, at: int) -> None:
        record = topic.change(op, odd_key(number), row_with_odd_names(number, version) if op != "d" else None, at=at)
        if with_schema:
            topic.with_schema(record, SCHEMA)

    for number in (1, 2, 3):
        change("c", number, "first", number)
    worker = bench.take(topic.records)
    change("u", 1, "second", 11)
    change("d", 2, "", 12)
    topic.tombstone(odd_key(2))
    bench.take(topic.records[3:], worker)
    kept = [name for name in SCHEMA if name not in EXCLUDED]
    names = [RENAMED.get(name, name) for name in kept]
    versions = {"upsert": [(1, "second"), (3, "first")]}.get(
        mode, [(1, "first"), (1, "second"), (2, "first"), (3, "first")]
    )
    expected = [tuple(row_with_odd_names(number, version)[name] for name in kept) for number, version in versions]
    assert sorted(bench.rows(*names)) == expected
    assert [name for name in bench.columns() if not name.startswith("__")] == names
    assert sorted(path.name for path in (bench.folder / "lake").iterdir()) == ["_distributary", "dbo"]
    bench.take(topic.records)  # by a new driver, which knows the columns from the table alone
    assert sorted(bench.rows(*names)) == expected
