"""The public command with tables, quarantine, lease and checkpoint in a bucket of a real S3 API."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.changes import INT, TEXT, Row, Topic
from tests.support.kafka import create_topic, produce
from tests.support.playback import Run
from tests.support.s3 import CREDENTIALS, S3Playback, Store, running_s3

SECONDS = 600
"""What a run may take at most."""


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with running_s3(tmp_path) as store:
        yield store


def test_a_table_in_a_bucket_equals_the_source_run_after_run(kafka: str, tmp_path: Path, store: Store) -> None:
    playback = S3Playback(kafka, tmp_path, store)
    topic = Topic(f"{playback.prefix}.shop.items")
    create_topic(kafka, topic.name)
    playback.configure([{"match": "shop.items"}])
    for id_ in (1, 2, 3):
        change(topic, "c", {"id": id_, "v": "new"}, at=id_)
    topic.add({"id": 4}, b"no json")
    produce(kafka, topic.records)
    taken(playback)
    assert items(playback) == [(1, "new"), (2, "new"), (3, "new")]

    sent = len(topic.records)
    change(topic, "u", {"id": 1, "v": "changed", "count": 7}, at=11)
    change(topic, "d", {"id": 2, "v": None, "count": None}, at=12)
    change(topic, "c", {"id": 5, "v": "late", "count": None}, at=13)
    produce(kafka, topic.records[sent:])
    taken(playback)
    assert items(playback) == [(1, "changed", 7), (3, "new", None), (5, "late", None)]
    assert [(row["offset"], row["value"]) for row in playback.quarantined()] == [(3, b"no json")]
    history = playback.delta_table("shop", "items").history()
    assert {commit["engineInfo"].partition("/")[0] for commit in history} == {"Apache-Spark"}
    assert "not protect" not in playback.log(1), "the store refuses to replace a commit"

    [found] = answer(playback.command("status", "--output", "json"))["tables"]
    assert (found["table"], found["state"], found["lag_records"]) == ("shop.items", "up_to_date", 0)
    [counted] = answer(playback.command("quarantine", "list", "--output", "json"))["counts"]
    assert (counted["table"], counted["records"], counted["waiting"]) == ("shop.items", 1, 1)
    assert not [secret for secret in CREDENTIALS.values() if secret in playback.log(1) + playback.log(2)]


def change(topic: Topic, op: str, row: Row, at: int) -> None:
    """A change of a row, with the row's schema beside it."""
    record = topic.change(op, {"id": row["id"]}, None if op == "d" else row, at)
    topic.with_schema(record, {name: TEXT if name == "v" else INT for name in row})


def taken(playback: S3Playback) -> None:
    """`run --once`."""
    with playback.start("--once") as running:
        done = running.ended(SECONDS)
    assert done.exit_code == 0, str(done)


def items(playback: S3Playback) -> list[tuple[object, ...]]:
    """The rows with the source's columns, sorted."""
    table = playback.table("shop", "items")
    assert table is not None
    names = [name for name in table.column_names if not name.startswith("__")]
    return sorted(tuple(row[name] for name in names) for row in table.to_pylist())


def answer(done: Run) -> dict[str, Any]:
    assert done.exit_code == 0, str(done)
    found: dict[str, Any] = json.loads(done.output)
    return found
