"""The checks of `doctor` that need no Kafka, and how checks depend on each other."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from tests.support.table_contexts import config

from distributary.config import Config
from distributary.control.lease import lease_paths
from distributary.control.lease_holder import this_process
from distributary.errors import SetupError
from distributary.launch.jars import DIRECTORY_VARIABLE
from distributary.preflight.check_result import (
    FAILED,
    OK,
    SKIPPED,
    WARNING,
    Check,
    CheckPassed,
    CheckWarning,
    run_checks,
)
from distributary.preflight.kafka_checks import registry_answers
from distributary.preflight.machine_checks import (
    jars_are_there,
    java_is_there,
    memory_suffices,
    time_zone_is_utc,
)
from distributary.preflight.storage_checks import checkpoint_is_ours, disk_has_room, driver_is_known, target_is_writable


def broken() -> CheckPassed:
    raise SetupError("broken", "it is broken", "mend it")


def test_a_check_that_fails_stops_those_that_need_it_and_no_others() -> None:
    found = run_checks(
        [
            Check("one", lambda: CheckPassed("fine")),
            Check("two", broken),
            Check("three", lambda: CheckPassed("fine"), needs=("two",)),
            Check("four", lambda: CheckPassed("fine"), needs=("three", "one")),
            Check("five", lambda: CheckWarning("odd", "it is odd", "look"), needs=("one",)),
        ]
    )
    states = [(finding.check, finding.state, finding.code) for finding in found]
    assert states == [
        ("one", OK, ""),
        ("two", FAILED, "broken"),
        ("three", SKIPPED, ""),
        ("four", SKIPPED, ""),
        ("five", WARNING, "odd"),
    ]


def test_findings_come_as_soon_as_they_are_known() -> None:
    done: list[str] = []

    def look() -> CheckPassed:
        done.append("looked")
        return CheckPassed("fine")

    found = run_checks([Check("one", look), Check("two", look)])
    assert next(found).message == "fine"
    assert done == ["looked"]


def test_java_is_found_or_said_to_be_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", "/nowhere")
    with pytest.raises(SetupError, match="java-missing"):
        java_is_there()


def test_jars_that_are_not_fetched_yet_are_no_failure(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv(DIRECTORY_VARIABLE, str(tmp_path))
    found = jars_are_there()
    assert isinstance(found, CheckWarning)
    assert found.code == "jars-not-fetched"
    assert not list(tmp_path.iterdir())


def test_a_driver_that_is_larger_than_the_machine_is_a_failure() -> None:
    assert isinstance(memory_suffices({"spark.driver.memory": "64m"}), CheckPassed)
    with pytest.raises(SetupError, match="memory-short"):
        memory_suffices({"spark.driver.memory": "900t"})


def test_a_time_zone_of_the_jvm_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_TOOL_OPTIONS", "-Xmx1g -Duser.timezone=UTC")
    assert isinstance(time_zone_is_utc(), CheckPassed)
    monkeypatch.setenv("JDK_JAVA_OPTIONS", "-Duser.timezone=Europe/Berlin")
    found = time_zone_is_utc()
    assert isinstance(found, CheckWarning)
    assert "Europe/Berlin" in found.message


def at(folder: Path, target: str = "lake", checkpoint: str = "checkpoint") -> Config:
    return config(target={"path": str(folder / target)}, checkpoint=str(folder / checkpoint))


def test_the_probe_leaves_nothing_behind(tmp_path: Path) -> None:
    target_is_writable(at(tmp_path))
    checkpoint_is_ours(at(tmp_path))
    assert list(tmp_path.iterdir()) == []
    kept = tmp_path / "lake" / "_distributary" / "halted" / "server1.json"
    kept.parent.mkdir(parents=True)
    kept.write_text("{}")
    target_is_writable(at(tmp_path))
    assert [path for path in (tmp_path / "lake").rglob("*") if path.is_file()] == [kept]
    assert len(list((tmp_path / "lake" / "_distributary").iterdir())) == 1


def test_a_place_that_cant_be_written_is_a_failure(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for check in (target_is_writable, checkpoint_is_ours):
        with pytest.raises(SetupError) as raised:
            check(at(tmp_path, "file/lake", "file/checkpoint"))
        assert raised.value.code == "storage"
        assert raised.value.fix


def test_a_store_that_only_spark_may_reach_is_no_failure() -> None:
    elsewhere = config(target={"path": "other://box/lake"}, checkpoint="other://box/checkpoints")
    for check in (target_is_writable, checkpoint_is_ours):
        found = check(elsewhere)
        assert isinstance(found, CheckWarning)
        assert found.code == "storage-not-tried"


def test_a_disk_is_reported_also_where_the_place_is_not_there_yet(tmp_path: Path) -> None:
    assert "GiB free" in disk_has_room(at(tmp_path, "a/b/c")).message
    assert "target.path is not on this machine" in disk_has_room(config(target={"path": "s3a://bucket/lake"})).message


def entry(folder: Path, batch: int, topic: str) -> None:
    offsets = folder / "checkpoint" / "offsets"
    offsets.mkdir(parents=True, exist_ok=True)
    (offsets / str(batch)).write_text("v1\n{}\n" + json.dumps({topic: {"0": 5}}))


def test_a_checkpoint_says_how_far_it_is_and_whose_it_is(tmp_path: Path) -> None:
    new = checkpoint_is_ours(at(tmp_path))
    assert isinstance(new, CheckPassed)
    assert "is new" in new.message
    entry(tmp_path, 9, "another.dbo.t")
    entry(tmp_path, 10, "server1.dbo.t")
    ours = checkpoint_is_ours(at(tmp_path))
    assert isinstance(ours, CheckPassed)
    assert "11 batches" in ours.message
    entry(tmp_path, 11, "another.dbo.t")
    other = checkpoint_is_ours(at(tmp_path))
    assert isinstance(other, CheckWarning)
    assert (other.code, "another.dbo.t" in other.message) == ("checkpoint-of-another", True)
    (tmp_path / "checkpoint" / "offsets" / "12").write_text("v1\n{}\n{no json")
    assert isinstance(checkpoint_is_ours(at(tmp_path)), CheckWarning)


def test_the_driver_that_runs_the_config_is_reported(tmp_path: Path) -> None:
    assert "no driver runs this config" in driver_is_known(at(tmp_path)).message
    place = Path(lease_paths(at(tmp_path))[0])
    place.parent.mkdir(parents=True)
    me = this_process(str(place))
    for holder, result in (
        (me, f"a driver runs this config: process {me.pid} on {me.host}"),
        (replace(me, machine="elsewhere"), "or was killed elsewhere"),
        (replace(me, born="1"), "the last one was killed"),
    ):
        place.write_text(json.dumps(holder.to_json()))
        assert result in driver_is_known(at(tmp_path)).message
    assert isinstance(driver_is_known(config(target={"path": "other://box/lake"})), CheckWarning)


def test_a_registry_that_does_not_answer_is_a_failure() -> None:
    source = {"topic_prefix": "server1", "schema_registry": {"url": "http://127.0.0.1:1"}}
    registry = config(source=source).source.schema_registry
    assert registry is not None
    with pytest.raises(SetupError) as raised:
        registry_answers(registry)
    assert raised.value.code == "registry-unreachable"
    assert "127.0.0.1:1" in raised.value.message
