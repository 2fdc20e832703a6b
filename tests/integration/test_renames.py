"""Columns with other names in the lake than at the source: all rules hold under the new names."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.support.changes import INT, LONG, TEXT, Row, Topic, key
from tests.support.spark import Bench

from distributary.decode.options import DEFAULT_PLACEHOLDER
from distributary.errors import TableHalt
from distributary.halt_actions import ResumeAction
from distributary.ingest.tables import list_tables
from distributary.verify.check import VerifyOptions, report

RENAME = {"id": "customer_id", "from": "sender", "a": "b", "b": "a"}
SCHEMA = {"id": LONG, "from": TEXT, "a": TEXT, "b": INT}
TABLE = ("customer_id", "sender", "b", "a")
"""The table's names, in the order of SCHEMA."""


pytestmark = pytest.mark.bench(rule={"rename": RENAME}, partitions=1)


def sender_row(number: int, sender: str, a: str = "a", b: int = 0) -> Row:
    return {"id": number, "from": sender, "a": a, "b": b}


def columns(bench: Bench) -> list[str]:
    return [name for name in bench.columns() if not name.startswith("__")]


@pytest.mark.parametrize(
    ("connector", "mode", "with_schema"),
    [
        ("sqlserver", "upsert", True),
        ("postgresql", "upsert", False),
        ("sqlserver", "history", False),
        ("postgresql", "append", True),
    ],
)
def test_rows_and_keys_have_the_lakes_names(bench: Bench, connector: str, mode: str, with_schema: bool) -> None:
    bench.rule = {**bench.rule, "mode": mode}
    topic = Topic(bench.topic, connector)

    def change(*given: Any, **more: Any) -> None:
        record = topic.change(*given, **more)
        if with_schema:
            topic.with_schema(record, SCHEMA)

    for number in (1, 2, 3):
        change("c", key(number), sender_row(number, "x"), at=number)
    worker = bench.take(topic.records)
    assert columns(bench) == list(TABLE)
    change("u", key(1), sender_row(1, "y", "new", 7), at=4, before=sender_row(1, "x"))
    change("d", key(2), at=5, before=sender_row(2, "x"))
    topic.tombstone(key(2))
    change("d", key(3), at=6, tx=9, headers={"newkey": key(30)}, before=sender_row(3, "x"))
    change("c", key(30), sender_row(30, "z"), at=6, step=2, tx=9, headers={"oldkey": key(3)})
    bench.take(topic.records[3:], worker)
    now = [(1, "y", "new", 7), (30, "z", "a", 0)]
    before = [(1, "x", "a", 0), (2, "x", "a", 0), (3, "x", "a", 0)]
    # The deletes' own rows have what the row had before.
    expected = {"upsert": now, "history": [*before, *now], "append": [*before, *now, *before[1:]]}[mode]
    assert sorted(map(tuple, bench.rows(*TABLE))) == sorted(expected)
    bench.take(topic.records)  # sent again: nothing changes
    assert sorted(map(tuple, bench.rows(*TABLE))) == sorted(expected)
    assert columns(bench) == list(TABLE)


def test_values_that_were_not_sent_keep_what_the_renamed_column_had(bench: Bench) -> None:
    topic = Topic(bench.topic, "postgresql")
    topic.change("c", key(1), sender_row(1, "long"), at=1)
    worker = bench.take(topic.records)
    topic.change("u", key(1), sender_row(1, DEFAULT_PLACEHOLDER, DEFAULT_PLACEHOLDER, 5), at=2)
    topic.change("d", key(1), at=3, tx=9, headers={"newkey": key(2)})
    topic.change("c", key(2), sender_row(2, DEFAULT_PLACEHOLDER, "n", 6), at=3, tx=9, headers={"oldkey": key(1)})
    bench.take(topic.records[1:], worker)
    assert bench.rows(*TABLE) == [(2, "long", "n", 6)]


def test_key_and_rows_without_an_envelope_too(bench: Bench) -> None:
    bench.rule = {**bench.rule, "key": ["id"]}
    bench.options = {"source": {"topic_prefix": bench.prefix, "connector": "sqlserver"}}
    topic = Topic(bench.topic)
    for number, sender in ((1, "x"), (2, "x"), (1, "y")):
        topic.add(None, json.dumps({**sender_row(number, sender), "__op": "u"}).encode())
    bench.take(topic.records)
    assert bench.rows(*TABLE) == [(1, "y", "a", 0), (2, "x", "a", 0)]


def test_columns_types_and_masks_go_by_the_sources_names(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SALT", "a salt that is long enough")
    bench.rule = {
        "rename": {**RENAME, "day": "on"},
        "columns": {"day": "date"},
        "mask": {"from": "redact"},
        "exclude": ["a"],
    }
    bench.options = {"masking": {"salt": "${env:SALT}"}}
    topic = Topic(bench.topic)
    topic.change("c", key(1), {**sender_row(1, "secret"), "day": 1}, at=1)
    worker = bench.take(topic.records)
    topic.change("u", key(1), {**sender_row(1, "secret", b=2), "day": 2}, at=2)
    bench.take(topic.records[1:], worker)
    assert [(one, sender, a, str(on)) for one, sender, a, on in bench.rows("customer_id", "sender", "a", "on")] == [
        (1, "***", 2, "1970-01-03")
    ]
    assert columns(bench) == ["customer_id", "sender", "a", "on"]
    bench.take([])  # a new driver: the table's own record agrees


def test_columns_that_differ_only_in_case_can_both_be_had(bench: Bench) -> None:
    bench.rule = {"rename": {"ID": "old_id", "__op": "source_op"}}
    topic = Topic(bench.topic)
    topic.change("c", key(1), {"id": 1, "ID": 2, "__op": "mine"}, at=1)
    bench.take(topic.records)
    assert bench.rows("id", "old_id", "source_op", "__op") == [(1, 2, "mine", "c")]


def test_another_name_for_a_column_that_the_table_has_halts_it_until_it_is_filled_again(bench: Bench) -> None:
    bench.rule = {}
    topic = Topic(bench.topic)
    topic.change("c", key(1), sender_row(1, "x"), at=1)
    bench.take(topic.records)
    bench.rule = {"rename": {"from": "sender", "not_there": "later"}}
    topic.change("u", key(1), sender_row(1, "y"), at=2)
    with pytest.raises(TableHalt, match="rename-changed") as halt:
        bench.take(topic.records[1:])
    assert "from" in halt.value.message
    assert "later" not in halt.value.message
    worker = bench.worker()
    worker.resume(ResumeAction.REBUILD)
    bench.take([], worker)
    assert bench.rows("id", "sender") == [(1, "y")]
    assert "from" not in columns(bench)
    bench.rule = {}
    topic.change("u", key(1), sender_row(1, "z"), at=3)
    with pytest.raises(TableHalt, match="rename-changed"):
        bench.take(topic.records[2:])


def test_a_name_that_the_source_has_itself_halts_the_table(bench: Bench) -> None:
    bench.rule = {"rename": {"from": "a"}}
    topic = Topic(bench.topic)
    topic.change("c", key(1), sender_row(1, "x"), at=1)
    with pytest.raises(TableHalt, match="rename-taken"):
        bench.take(topic.records)


def test_a_renaming_default_leaves_tables_alone_that_lack_the_column(bench: Bench) -> None:
    bench.rule = {"rename": {"from": "a"}}
    topic = Topic(bench.topic)
    topic.change("c", key(1), {"id": 1, "a": "own"}, at=1)
    worker = bench.take(topic.records)
    topic.change("u", key(1), {"id": 1, "a": "own still"}, at=2)
    bench.take(topic.records[1:], worker)
    bench.rule = {}  # what was never renamed may be called as it is
    topic.change("u", key(1), {"id": 1, "a": "own to the end"}, at=3)
    bench.take(topic.records[2:])
    assert bench.rows("id", "a") == [(1, "own to the end")]


@pytest.mark.parametrize("form", ["with a schema", "without", "rows"])
def test_the_tables_name_stays_where_the_source_renames_its_column(bench: Bench, form: str) -> None:
    """In one batch, too, in which older records have the column by the table's own name."""
    bench.rule = {"rename": {"full_name": "name"}, **({"key": ["id"]} if form == "rows" else {})}
    if form == "rows":
        bench.options = {"source": {"topic_prefix": bench.prefix, "connector": "sqlserver"}}
    topic = Topic(bench.topic)

    def change(op: str, row: Row, at: int) -> None:
        if form == "rows":
            topic.add(None, json.dumps({**row, "__op": op}).encode())
            return
        record = topic.change(op, {"id": row["id"]}, row, at=at)
        if form == "with a schema":
            topic.with_schema(record, {name: LONG if name == "id" else TEXT for name in row})

    change("c", {"id": 1, "name": "Ann"}, 1)
    change("c", {"id": 2, "full_name": "Bob"}, 2)
    change("c", {"id": 3, "name": "late"}, 3)
    worker = bench.take(topic.records)
    assert bench.rows("id", "name") == [(1, "Ann"), (2, "Bob"), (3, "late")]
    assert columns(bench) == ["id", "name"]
    change("u", {"id": 1, "full_name": "Anna", "more": "x"}, 4)
    change("u", {"id": 2, "name": "Rob", "less": "y"}, 5)
    change("u", {"id": 3}, 6)
    bench.take(topic.records[3:], worker)
    assert bench.rows("id", "name", "more", "less") == [(1, "Anna", "x", None), (2, "Rob", None, "y"), (3, *[None] * 3)]
    assert not bench.quarantine.exists()


def test_a_record_that_has_both_names_halts_the_table_all_the_same(bench: Bench) -> None:
    bench.rule = {"rename": {"full_name": "name"}}
    topic = Topic(bench.topic)
    topic.change("c", key(1), {"id": 1, "name": "Ann"}, at=1)
    topic.change("c", key(2), {"id": 2, "full_name": "Bob", "name": "Bob"}, at=2)
    with pytest.raises(TableHalt, match="rename-taken"):
        bench.take(topic.records)


def test_columns_that_came_to_differ_in_case_may_be_one(bench: Bench) -> None:
    """Without a schema, in one batch: no record has both."""
    bench.rule = {"rename": {"Name": "name"}}
    topic = Topic(bench.topic)
    topic.change("c", key(1), {"id": 1, "Name": "Ann"}, at=1)
    topic.change("c", key(2), {"id": 2, "name": "Bob"}, at=2)
    bench.take(topic.records)
    assert bench.rows("id", "name") == [(1, "Ann"), (2, "Bob")]


@pytest.mark.parametrize("with_schema", [True, False])
def test_verify_reads_a_topic_in_which_a_column_was_renamed(kafka_bench: Bench, with_schema: bool) -> None:
    bench = kafka_bench.create()
    bench.rule = {"rename": {"full_name": "name"}}
    topic = Topic(bench.topic)
    worker = None
    for index, name in enumerate(("name", "full_name"), start=1):
        record = topic.change("c", key(index), {"id": index, name: "Ann"}, at=index)
        if with_schema:
            topic.with_schema(record, {"id": LONG, name: TEXT})
        worker = bench.take(topic.records[-1:], worker)
    assert bench.rows("id", "name") == [(1, "Ann"), (2, "Ann")]
    config = bench.config()
    broker = bench.client(config)
    [one] = list_tables(config, broker)
    assert (
        report(config, one, bench.session, broker, VerifyOptions(), lambda _doing: None).as_json()["state"] == "equal"
    )


def test_verify_knows_the_names(kafka_bench: Bench) -> None:
    bench = kafka_bench.create()
    bench.rule = {"rename": RENAME}
    topic = Topic(bench.topic)
    topic.change("c", key(1), sender_row(1, "x"), at=1)
    topic.with_schema(topic.records[-1], SCHEMA)
    topic.change("c", key(2), {**sender_row(2, "y"), "b": "no number"}, at=2)
    topic.with_schema(topic.records[-1], SCHEMA)
    bench.take(topic.records)
    assert bench.rows(*TABLE) == [(1, "x", "a", 0)]
    config = bench.config()
    broker = bench.client(config)
    [one] = list_tables(config, broker)
    found = report(config, one, bench.session, broker, VerifyOptions(), lambda _doing: None).as_json()
    assert (found["state"], found["quarantined"]["records"]) == ("equal", 1), found
