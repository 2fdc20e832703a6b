"""Pauses by `distributary pause`, as files beside the tables."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from click.testing import CliRunner
from tests.support.config_files import config_in

from distributary.cli import main
from distributary.config import Config
from distributary.consume.topics import TableId
from distributary.control import overview as overviews
from distributary.control import pauses
from distributary.control.overview import table_overview
from distributary.control.pauses import ALL, Pause, pause, read_pauses, unpause
from distributary.errors import UsageError
from distributary.ingest.tables import ConfiguredTable
from distributary.table_state import TableState


@pytest.fixture(autouse=True)
def no_kafka(monkeypatch: pytest.MonkeyPatch) -> None:
    def tables(config: Config, _broker: object) -> list[ConfiguredTable]:
        found = []
        for name in ("a", "b"):
            settings = config.settings_for("dbo", name)
            assert settings is not None
            found.append(ConfiguredTable(TableId("dbo", name), f"p.dbo.{name}", settings, f"/lake/dbo/{name}"))
        return found

    monkeypatch.setattr(pauses, "list_tables", tables)
    monkeypatch.setattr(overviews, "list_tables", tables)
    monkeypatch.setattr(pauses, "KafkaClient", lambda _properties: None)


def test_a_table_and_the_service_are_paused_and_continue_each_by_itself(tmp_path: Path) -> None:
    config = config_in(tmp_path)
    assert read_pauses(config) == {}
    pause(config, "dbo.a", "restore of the lake")
    pause(config, None, "")
    found = read_pauses(config)
    assert set(found) == {"p.dbo.a", ALL}
    assert found["p.dbo.a"].reason == "restore of the lake"
    assert unpause(config, None)
    assert set(read_pauses(config)) == {"p.dbo.a"}
    assert not unpause(config, "dbo.b")
    assert unpause(config, "dbo.a")
    assert not unpause(config, "dbo.a")
    assert read_pauses(config) == {}


def test_a_table_that_is_not_there_is_not_paused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="unknown-table"):
        pause(config_in(tmp_path), "dbo.c", "")


@pytest.mark.parametrize(
    "more",
    [
        {"paused": True},
        {"defaults": {"paused": True}},
        {"tables": [{"match": "dbo.a", "paused": True}, {"match": "dbo.*"}]},
    ],
)
def test_what_the_config_pauses_no_command_unpauses(tmp_path: Path, more: dict[str, Any]) -> None:
    config = config_in(tmp_path, **more)
    settings = config.settings_for("dbo", "a")
    assert settings is not None
    assert settings.paused
    with pytest.raises(UsageError, match="paused-by-config"):
        unpause(config, "dbo.a")


def test_a_rule_says_otherwise_than_the_defaults(tmp_path: Path) -> None:
    config = config_in(
        tmp_path, defaults={"paused": True}, tables=[{"match": "dbo.a", "paused": False}, {"match": "dbo.*"}]
    )
    paused = {name: config.settings_for("dbo", name) for name in ("a", "b")}
    assert {name: settings.paused for name, settings in paused.items() if settings} == {"a": False, "b": True}


def test_a_file_that_can_not_be_understood_pauses_all_the_same(tmp_path: Path) -> None:
    config = config_in(tmp_path)
    pause(config, "dbo.a", "")
    [file] = Path(pauses.pauses_path(config)).iterdir()
    file.write_bytes(b"\xff{")
    assert read_pauses(config) == {"p.dbo.a": Pause()}


def test_status_shows_it_and_a_halt_comes_first(tmp_path: Path) -> None:
    settings = config_in(tmp_path).settings_for("dbo", "a")
    assert settings is not None
    one = ConfiguredTable(TableId("dbo", "a"), "p.dbo.a", settings, "/lake/dbo/a")
    why = str(Pause(0.0, "restore"))
    assert why == "distributary pause since 1970-01-01 00:00:00 UTC: restore"
    shown = table_overview(one, None, {}, {0: 5}, None, 0.0, why)
    assert (shown.state, shown.paused, shown.lag_records) == (TableState.PAUSED, why, 5)
    halt = {"code": "c", "message": "m", "fix": "f"}
    assert table_overview(one, None, {}, {}, halt, 0.0, why).state == TableState.HALTED


def test_the_commands(tmp_path: Path) -> None:
    config_in(tmp_path)
    run = CliRunner()
    file = ["-c", str(tmp_path / "config.yaml")]
    done = run.invoke(main, ["pause", *file, "dbo.a", "--reason", "restore"])
    result = "dbo.a will be paused after its batch in flight; a running service notices within seconds\n"
    assert done.exit_code == 0
    assert done.output.startswith(result)
    assert run.invoke(main, ["pause", *file, "--output", "json"]).output == '{\n  "table": null,\n  "paused": true\n}\n'
    assert run.invoke(main, ["unpause", *file]).output.startswith("the service continues")
    assert run.invoke(main, ["unpause", *file]).output.startswith("the service was not paused\n")


def test_the_service_keeps_what_it_saw_while_the_storage_does_not_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    files = {"p.dbo.a.json": {"since": 0, "reason": "restore"}}
    monkeypatch.setattr(pauses, "names_in", lambda *_, **__: list(files))
    monkeypatch.setattr(
        pauses, "JsonFile", lambda _session, path: SimpleNamespace(read=lambda: files[path.rpartition("/")[2]])
    )
    found = pauses.Pauses(None, config=SimpleNamespace(root=lambda: "/lake", source=SimpleNamespace(topic_prefix="p")))  # type: ignore[arg-type]
    found.read()
    assert found.of("p.dbo.a") is not None
    assert found.of("p.dbo.b") is None

    def fails(*_: object, **__: object) -> list[str]:
        raise OSError("no answer")

    monkeypatch.setattr(pauses, "names_in", fails)
    found.poll()
    assert found.of("p.dbo.a") is not None
    monkeypatch.setattr(pauses, "names_in", lambda *_, **__: [])
    found.read()
    assert found.of("p.dbo.a") is None
