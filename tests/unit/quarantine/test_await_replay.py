"""What `quarantine replay --wait` reports."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pyarrow as pa
import pytest
from click.testing import CliRunner
from deltalake import write_deltalake
from tests.support.config_files import write_config

from distributary.cli import main
from distributary.config.load import load
from distributary.control.resume_requests import Request, WrittenRequest, is_open, write_request
from distributary.halt_actions import ResumeAction
from distributary.quarantine.await_replay import ReplayOutcome, await_replay
from distributary.quarantine.listing import ReplayState, replay_state
from distributary.storage.request_files import remove_file

_AT = datetime(2024, 5, 1, tzinfo=timezone.utc)
_LATER = _AT + timedelta(hours=1)
_REQUEST = Request("p.dbo.t", ResumeAction.REPLAY, "1")


@pytest.fixture
def config(tmp_path: Path) -> Path:
    return write_config(tmp_path, tables=[{"match": "*.*"}])


def write(folder: Path, *records: tuple[str, str, datetime | None]) -> None:
    """A quarantine table with records: table, reason, when they were applied."""
    tables, reasons, replayed = zip(*records, strict=True)
    columns = {
        "table": pa.array(tables),
        "reason": pa.array(reasons),
        "replayed_at": pa.array(replayed, pa.timestamp("us", "UTC")),
    }
    write_deltalake(folder / "lake" / "_quarantine", pa.table(columns), mode="overwrite")


def test_the_state_of_a_replay_counts_the_records_of_the_table_and_none_that_were_set_aside(
    config: Path, tmp_path: Path
) -> None:
    assert replay_state(load(config), "dbo.t") == ReplayState(None, 0, 0)
    write(
        tmp_path,
        ("dbo.t", "not-json", _AT),
        ("dbo.t", "bad-value", _LATER),
        ("dbo.t", "bad-value", None),
        ("dbo.t", "set-aside", None),
        ("dbo.u", "bad-value", None),
    )
    assert replay_state(load(config), "dbo.t", since=_AT) == ReplayState(_LATER, 1, 1)
    assert replay_state(load(config), "dbo.t") == ReplayState(_LATER, 2, 1)
    assert replay_state(load(config), "dbo.v") == ReplayState(None, 0, 0)


def test_the_outcome_is_what_was_applied_once_the_service_has_taken_the_request(config: Path, tmp_path: Path) -> None:
    loaded = load(config)
    write(tmp_path, ("dbo.t", "not-json", _AT), ("dbo.t", "bad-value", None), ("dbo.t", "bad-value", None))
    request = write_request(loaded, _REQUEST)

    def serve(_seconds: float) -> None:
        write(tmp_path, ("dbo.t", "not-json", _AT), ("dbo.t", "bad-value", _LATER), ("dbo.t", "bad-value", None))
        remove_file(str(tmp_path / "lake/_distributary/requests" / loaded.source.topic_prefix), request.file)

    outcome = await_replay(loaded, "dbo.t", _AT, lambda: is_open(loaded, request), 60, serve)
    assert outcome == ReplayOutcome(True, applied=1, waiting=1)


def test_a_request_that_a_newer_one_replaced_is_no_longer_open(config: Path) -> None:
    loaded = load(config)
    first = write_request(loaded, _REQUEST)
    assert is_open(loaded, first)
    second = write_request(loaded, _REQUEST)
    assert not is_open(loaded, first)
    assert is_open(loaded, second)


@pytest.fixture
def replay(config: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., tuple[int, str]]:
    """The command with these options: its exit code and what it prints."""
    monkeypatch.setattr(
        "distributary.control.resume_requests.write_resume_request",
        lambda _config, table, _action: WrittenRequest(table, None, _REQUEST),
    )

    def run(*options: str) -> tuple[int, str]:
        result = CliRunner().invoke(main, ["quarantine", "replay", "-c", str(config), "dbo.t", *options])
        return result.exit_code, result.stdout

    return run


def test_a_service_that_does_not_take_the_request_in_time_is_said_to(
    replay: Callable[..., tuple[int, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("distributary.control.resume_requests.is_open", lambda *_: True)
    code, shown = replay("--wait", "--timeout", "0s")
    assert code == 1
    assert "dbo.t: no service handled the request within 0 s" in shown
    code, shown = replay("--wait", "--timeout", "0s", "--output", "json")
    assert (code, json.loads(shown)["handled"]) == (1, False)


def test_a_table_that_halts_by_the_replay_is_said_to(
    replay: Callable[..., tuple[int, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    halt = {"table": "dbo.t", "code": "schema-changed", "message": "it has wider types", "fix": "widen it"}
    monkeypatch.setattr("distributary.control.halts.read_halts", lambda _config: {"p.dbo.t": halt})
    code, shown = replay("--wait")
    assert code == 1
    assert "dbo.t is halted: [schema-changed] it has wider types" in shown


def test_the_records_that_were_applied_and_those_that_wait_are_counted(
    replay: Callable[..., tuple[int, str]], tmp_path: Path
) -> None:
    assert replay("--wait") == (0, "dbo.t: no record waited in quarantine\n")
    write(tmp_path, ("dbo.t", "bad-value", None))
    code, shown = replay("--wait")
    assert code == 0
    assert shown.startswith("dbo.t: 0 records applied, 1 record still can't be applied\n")
