"""Changes of config files while the service runs: which apply and which do not."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from tests.support.config_files import Write

from distributary.config import load
from distributary.config.watch import Change, ConfigWatcher

MAIN = 'tables: [{match: dbo.first}]\ninclude: ["tables/*.yaml"]\n'
A, B = "tables: [{match: dbo.a}]\n", "tables: [{match: dbo.b}]\n"


@pytest.fixture
def watch(write: Write) -> ConfigWatcher:
    """A config with one included file."""
    file = write(MAIN)
    write(A, "tables/a.yaml")
    return ConfigWatcher(file, load(file))


def settled(watch: ConfigWatcher) -> Change | None:
    """What a change comes to: it has to be seen twice."""
    assert watch.poll() is None
    return watch.poll()


def matches(change: Change | None) -> list[str]:
    assert change is not None
    assert change.config is not None
    return [rule.match for rule in change.config.tables]


def test_files_that_stay_as_they_are_are_no_change(watch: ConfigWatcher, write: Write) -> None:
    assert watch.poll() is None
    write(A, "tables/a.yaml")  # written again: its time is another, its content is not
    assert settled(watch) is None


def test_a_new_file_brings_its_tables(watch: ConfigWatcher, write: Write) -> None:
    write(B, "tables/b.yaml")
    change = settled(watch)
    assert matches(change) == ["dbo.first", "dbo.a", "dbo.b"]
    assert change is not None
    assert change.as_json() is None
    assert change.config is not None
    found = change.config.settings_for("dbo", "b")
    assert found is not None
    assert found.where.endswith("tables/b.yaml:1")
    assert settled(watch) is None


def test_a_file_that_is_being_written_is_waited_for(watch: ConfigWatcher, write: Write) -> None:
    write("tables: [{match: dbo.b}]", "tables/b.yaml")
    assert watch.poll() is None
    write("tables: [{match: dbo.b, mode: append}]", "tables/b.yaml")
    change = settled(watch)
    assert matches(change)[-1] == "dbo.b"
    assert change is not None
    assert change.config is not None
    assert change.config.tables[-1].mode == "append"


def test_a_config_map_that_is_swapped_is_a_change(write: Write, tmp_path: Path) -> None:
    mounted = tmp_path / "mounted"
    write(A, "mounted/..1/t.yaml")
    write(B, "mounted/..2/t.yaml")
    (mounted / "..data").symlink_to("..1")
    (mounted / "t.yaml").symlink_to("..data/t.yaml")
    file = write('include: ["mounted/*.yaml"]\n')
    watch = ConfigWatcher(file, load(file))
    (mounted / "..new").symlink_to("..2")
    (mounted / "..new").replace(mounted / "..data")
    assert matches(settled(watch)) == ["dbo.b"]


@pytest.mark.parametrize(
    ("bad", "code"),
    [("tables: [{match: dbo.b, mode: upset}]", "bad-value"), ("tables: [", "yaml-syntax"), (A, "same-match")],
)
def test_a_bad_new_file_is_reported_and_the_others_count(
    watch: ConfigWatcher, write: Write, bad: str, code: str
) -> None:
    write(bad, "tables/b.yaml")
    write("tables: [{match: dbo.c}]", "tables/c.yaml")
    change = settled(watch)
    assert matches(change) == ["dbo.first", "dbo.a", "dbo.c"]
    assert change is not None
    result = change.as_json()
    assert result is not None
    assert [(Path(fault["file"]).name, fault["line"], fault["code"]) for fault in result["faults"]] == [
        ("b.yaml", 1, code)
    ]
    write(B, "tables/b.yaml")
    mended = settled(watch)
    assert matches(mended) == ["dbo.first", "dbo.a", "dbo.b", "dbo.c"]
    assert mended is not None
    assert mended.as_json() is None


def test_a_file_that_turns_bad_continues_as_it_was(watch: ConfigWatcher, write: Write) -> None:
    write("tables: [{match: dbo.a", "tables/a.yaml")
    alone = settled(watch)
    assert alone is not None
    assert (alone.config, len(alone.faults)) == (None, 1)
    write(B, "tables/b.yaml")
    assert matches(settled(watch)) == ["dbo.first", "dbo.a", "dbo.b"]


def test_a_file_that_is_gone_takes_its_tables_along(watch: ConfigWatcher, tmp_path: Path) -> None:
    (tmp_path / "tables" / "a.yaml").unlink()
    assert matches(settled(watch)) == ["dbo.first"]


@pytest.mark.parametrize(
    ("edit", "waiting"),
    [
        (lambda text: text.replace("localhost:9092", "elsewhere:9092"), ("kafka",)),
        (lambda text: text + "trigger: {interval: 1h}\nhttp: {port: 1}\n", ("trigger", "http")),
        (lambda text: text.replace("/data/lake", "/data/other"), ("target",)),
    ],
)
def test_what_is_not_about_tables_waits_for_a_restart(
    watch: ConfigWatcher, tmp_path: Path, edit: Callable[[str], str], waiting: tuple[str, ...]
) -> None:
    file = tmp_path / "config.yaml"
    file.write_text(edit(file.read_text()))
    change = settled(watch)
    assert change is not None
    assert (change.config, change.waiting, change.faults) == (None, waiting, ())
    # Tables that are new later count at once, and what waited waits on.
    file.write_text(file.read_text().replace("dbo.first", "dbo.second"))
    later = settled(watch)
    assert matches(later) == ["dbo.second", "dbo.a"]
    assert later is not None
    assert later.waiting == waiting
    assert later.config is not None
    assert later.config.kafka_properties() == {"bootstrap.servers": "localhost:9092"}
    assert later.config.target.path == "/data/lake"


def test_a_main_file_that_is_bad_changes_nothing(watch: ConfigWatcher, write: Write) -> None:
    write(B, "tables/b.yaml")
    write(MAIN + "triger: {}\n")
    change = settled(watch)
    assert change is not None
    assert change.config is None
    assert [fault.code for fault in change.faults] == ["unknown-key"]


def test_defaults_and_other_patterns_count_at_once(watch: ConfigWatcher, write: Write) -> None:
    write(B, "more/b.yaml")
    write("defaults: {deletes: soft}\n" + MAIN.replace("tables/*", "more/*"))
    change = settled(watch)
    assert matches(change) == ["dbo.first", "dbo.b"]
    assert change is not None
    assert change.config is not None
    assert change.config.defaults.deletes == "soft"
    write("tables: [{match: dbo.c}]", "more/b.yaml")
    assert watch.poll() is None  # the other files are looked at from now on
    assert matches(watch.poll()) == ["dbo.first", "dbo.c"]
