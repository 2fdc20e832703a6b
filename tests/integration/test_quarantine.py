"""Records in quarantine: listed by the command, and replayed at their position. Names give the rule's number."""

from __future__ import annotations

import json
from typing import Any

import pytest
from click.testing import CliRunner
from tests.support.changes import Topic
from tests.support.spark import Bench

from distributary.cli import main
from distributary.control.resume_requests import Requests
from distributary.errors import TableHalt, TransientError
from distributary.halt_actions import ResumeAction
from distributary.quarantine.table import Quarantine

# On a real Kafka: `replay` connects to it.
pytestmark = pytest.mark.bench(on_kafka=True, partitions=1)


def command(bench: Bench, *words: str) -> Any:
    """What a subcommand of `quarantine` prints, as JSON."""
    name, *more = words
    arguments = ["quarantine", name, "-c", str(bench.folder / "config.yaml"), *more, "--output", "json"]
    result = CliRunner().invoke(main, arguments)
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def waiting(bench: Bench) -> int:
    """How many records wait for being applied."""
    return sum(count["waiting"] for count in command(bench, "list")["counts"])


def replay(bench: Bench) -> None:
    """The command, and a new driver that takes its request up."""
    assert command(bench, "replay", "dbo.t") == {"table": "dbo.t", "action": "replay", "asked": "replay"}
    requests = Requests(bench.session, bench.config())
    [request] = requests.waiting()
    requests.done(request)
    worker = bench.worker()
    worker.resume(request.action)
    bench.take([], worker)


@pytest.mark.parametrize("mode", ["upsert", "history", "append"])
def test_6_3_records_in_quarantine_are_applied_in_their_place_once_the_cause_is_mended(bench: Bench, mode: str) -> None:
    bench.rule = {"mode": mode, "columns": {"x": "int"}}
    topic = Topic(bench.topic)
    for index, (op, key, value, x) in enumerate(
        [
            ("c", 1, "a", 1),
            ("c", 2, "b", 1),
            ("c", 3, "c", "no number"),
            ("u", 1, "a2", "no number"),
            ("u", 2, "b2", "no number"),
            ("u", 1, "a3", 1),
            ("d", 3, None, 1),
            ("c", 4, "d", "no number"),
        ],
        start=1,
    ):
        after = None if op == "d" else {"id": key, "v": value, "x": x}
        topic.change(op, {"id": key}, after, at=index)
    bench.take(topic.records)
    before = bench.rows("id", "v")
    listed = command(bench, "list", "dbo.t")
    assert [(one["reason"], one["records"], one["waiting"]) for one in listed["counts"]] == [("bad-value", 4, 4)]
    assert sorted(json.loads(one["key"])["id"] for one in listed["records"]) == [1, 2, 3, 4]
    shown = command(bench, "show", f"{bench.topic}:0:2")
    assert json.loads(shown["value"])["after"] == {"id": 3, "v": "c", "x": "no number"}

    replay(bench)  # nothing is mended yet
    assert (bench.rows("id", "v"), waiting(bench)) == (before, 4)
    bench.rule = {"mode": mode, "exclude": ["x"]}
    replay(bench)
    assert waiting(bench) == 0
    expected: dict[str, list[tuple[int, str | None]]] = {
        "upsert": [(1, "a3"), (2, "b2"), (4, "d")],
        "history": [(1, "a"), (1, "a2"), (1, "a3"), (2, "b"), (2, "b2"), (3, "c"), (4, "d")],
        "append": [(1, "a"), (1, "a2"), (1, "a3"), (2, "b"), (2, "b2"), (3, "c"), (3, None), (4, "d")],
    }
    assert bench.rows("id", "v") == sorted(expected[mode], key=repr)
    replay(bench)
    bench.take(topic.records)
    assert bench.rows("id", "v") == sorted(expected[mode], key=repr)


def test_6_3_a_replay_that_a_passing_fault_cut_short_is_tried_again(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.rule = {"columns": {"x": "int"}}
    topic = Topic(bench.topic)
    topic.change("c", {"id": 1}, {"id": 1, "v": "a", "x": 1}, at=1)
    topic.change("c", {"id": 2}, {"id": 2, "v": "b", "x": "no number"}, at=2)
    bench.take(topic.records)
    bench.rule = {"exclude": ["x"]}
    worker = bench.worker()
    worker.resume(ResumeAction.REPLAY)
    with monkeypatch.context() as broken:
        broken.setattr(Quarantine, "waiting", _fails)
        with pytest.raises(TransientError):
            bench.take([], worker)
    bench.take([], worker)
    assert bench.rows("id", "v") == [(1, "a"), (2, "b")]


def test_6_3_and_4_3_a_replay_that_is_tried_again_after_its_commit_adds_nothing_twice(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a table without key, where equal rows of one position are kept: in the middle of a COPY."""
    bench.rule = {"mode": "append", "columns": {"x": "int"}}
    topic = Topic(bench.topic, connector="postgresql")
    for value, x in (("a", 1), ("b", "no number"), ("b", "no number")):
        topic.change("c", None, {"v": value, "x": x}, at=10)
    bench.take(topic.records)
    assert bench.rows("v") == [("a",)]
    bench.rule = {"mode": "append", "exclude": ["x"]}
    worker = bench.worker()
    worker.resume(ResumeAction.REPLAY)
    with monkeypatch.context() as broken:
        broken.setattr(Quarantine, "mark_applied", _fails)
        with pytest.raises(TransientError):
            bench.take([], worker)
    assert bench.rows("v") == [("a",), ("b",), ("b",)]
    bench.take([], worker)
    assert (bench.rows("v"), waiting(bench)) == ([("a",), ("b",), ("b",)], 0)


def _fails(*_: Any, **__: Any) -> None:
    raise TransientError("storage-or-network", "the storage did not answer")


def test_6_3_what_has_no_place_in_the_log_stays_in_quarantine(bench: Bench) -> None:
    bench.rule = {"columns": {"x": "int"}}
    topic = Topic(bench.topic, connector="postgresql")
    topic.change("r", {"id": 1}, {"id": 1, "v": "snapshot", "x": 1}, at=1)
    topic.change("r", {"id": 2}, {"id": 2, "v": "snapshot", "x": "no number"}, at=1)
    topic.change("u", {"id": 2}, {"id": 2, "v": "newer", "x": 1}, at=5)
    bench.take(topic.records)
    bench.rule = {"exclude": ["x"]}
    replay(bench)
    assert bench.rows("id", "v") == [(1, "snapshot"), (2, "newer")]
    assert waiting(bench) == 1
    assert command(bench, "list", "other.table") == {"counts": [], "records": []}


def test_6_3_a_record_whose_position_could_not_be_read_brings_no_deleted_row_back(bench: Bench) -> None:
    """Two records are too large to be read, until the limit is raised; the row of one is deleted meanwhile."""
    bench.options = {"source": {"topic_prefix": bench.prefix, "limits": {"record_bytes": 2_000}}}
    topic = Topic(bench.topic)
    for key in (1, 2):
        topic.change("c", {"id": key}, {"id": key, "v": "first"}, at=key)
    topic.change("u", {"id": 1}, {"id": 1, "v": "x" * 3_000}, at=3)
    topic.change("d", {"id": 1}, at=4)
    topic.change("u", {"id": 2}, {"id": 2, "v": "y" * 3_000}, at=5)
    topic.change("c", {"id": 3}, {"id": 3, "v": "first"}, at=6)
    bench.take(topic.records)
    bench.take([topic.change("u", {"id": 3}, {"id": 3, "v": "second"}, at=7)])
    assert waiting(bench) == 2
    bench.options = {}
    replay(bench)
    assert bench.rows("id", "v") == [(2, "y" * 3_000), (3, "second")]
    assert waiting(bench) == 0


def test_6_3_an_update_of_the_columns_that_stand_for_the_key_is_one_record(bench: Bench) -> None:
    """It is read as a delete and a create: neither counts where the other can't be applied."""
    bench.rule = {"key": ["id"], "columns": {"x": "int"}}
    topic = Topic(bench.topic)
    topic.change("c", None, {"id": 1, "v": "a", "x": 1}, at=1)
    topic.change("u", None, {"id": 2, "v": "b", "x": "no number"}, at=2, before={"id": 1, "v": "a", "x": 1})
    topic.change("c", None, {"id": 9, "v": "beside", "x": 1}, at=3)
    bench.take(topic.records)
    assert bench.rows("id", "v") == [(1, "a"), (9, "beside")]
    assert waiting(bench) == 1
    replay(bench)  # nothing is mended yet
    assert (bench.rows("id", "v"), waiting(bench)) == ([(1, "a"), (9, "beside")], 1)
    bench.rule = {"key": ["id"], "exclude": ["x"]}
    replay(bench)
    assert (bench.rows("id", "v"), waiting(bench)) == ([(2, "b"), (9, "beside")], 0)


def test_6_3_a_record_of_a_topic_that_was_created_again_is_another_one(bench: Bench) -> None:
    bench.rule = {"columns": {"x": "int"}}
    topic = Topic(bench.topic)
    topic.change("c", {"id": 1}, {"id": 1, "x": "no number"}, at=1)
    worker = bench.take(topic.records)
    bench.create_again()
    again = Topic(bench.topic)
    again.change("c", {"id": 2}, {"id": 2, "x": "no number"}, at=2)
    again.change("c", {"id": 3}, {"id": 3, "x": 3}, at=3)
    with pytest.raises(TableHalt, match="topic-recreated"):
        bench.take(again.records, worker)
    worker.resume(ResumeAction.RESET)
    bench.take([], worker)
    keys = [json.loads(one["key"])["id"] for one in command(bench, "list", "dbo.t")["records"]]
    assert (sorted(keys), waiting(bench)) == ([1, 2], 2)
    assert json.loads(command(bench, "show", f"{bench.topic}:0:0")["key"]) == {"id": 2}


def test_6_3_a_record_that_was_applied_and_is_bad_again_waits_again(bench: Bench) -> None:
    bench.rule = {"columns": {"x": "int"}}
    topic = Topic(bench.topic)
    topic.change("c", {"id": 1}, {"id": 1, "x": 1}, at=1)
    topic.change("c", {"id": 2}, {"id": 2, "x": "no number"}, at=2)
    bench.take(topic.records)
    bench.rule = {"exclude": ["x"]}
    replay(bench)
    assert (bench.rows("id"), waiting(bench)) == ([(1,), (2,)], 0)
    bench.rule = {"columns": {"x": "int"}}
    worker = bench.worker()
    worker.resume(ResumeAction.REBUILD)
    bench.take([], worker)
    assert (bench.rows("id"), waiting(bench)) == ([(1,)], 1)
    assert len(command(bench, "list", "dbo.t", "--all")["records"]) == 1


def test_6_3_a_rebuild_ends_the_records_that_it_applies_and_no_replay_brings_a_deleted_row_back(bench: Bench) -> None:
    bench.rule = {"columns": {"x": "int"}}
    topic = Topic(bench.topic)
    topic.change("c", {"id": 1}, {"id": 1, "x": "one"}, at=1)
    topic.change("u", {"id": 1}, {"id": 1, "x": "two"}, at=2)
    topic.change("c", {"id": 2}, {"id": 2, "x": "gone"}, at=3)
    topic.change("d", {"id": 2}, at=4)
    topic.change("c", {"id": 3}, {"id": 3, "x": 3}, at=5)
    topic.records.append(topic.records[-1]._replace(value=b"no JSON"))
    bench.take(topic.records)
    assert waiting(bench) == 4
    bench.rule = {"columns": {"x": "string"}}
    worker = bench.worker()
    worker.resume(ResumeAction.REBUILD)
    bench.take([], worker)
    rebuilt = [(1, "two"), (3, "3")]
    [left] = command(bench, "list", "dbo.t")["records"]
    assert (bench.rows("id", "x"), left["reason"]) == (rebuilt, "not-json")
    assert len(command(bench, "list", "dbo.t", "--all")["records"]) == 4
    replay(bench)
    assert (bench.rows("id", "x"), waiting(bench)) == (rebuilt, 1)
