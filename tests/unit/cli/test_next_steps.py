"""The end of each command's output: the result, and the next step."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from click.testing import CliRunner
from tests.support.config_files import write_config

from distributary.cli import main
from distributary.config.load import load
from distributary.control import overview as overviews
from distributary.control.lease import lease_paths
from distributary.control.lease_holder import this_process
from distributary.control.overview import TableOverview
from distributary.errors import SetupError
from distributary.evolve.adoption import Difference
from distributary.preflight import doctor as doctors
from distributary.preflight import plan as plans
from distributary.preflight.check_result import Check, CheckPassed, run_checks
from distributary.preflight.plan import Plan
from distributary.preflight.table_plan import CREATE, HALT, TablePlan
from distributary.table_state import TableState
from distributary.verify import check as checks
from distributary.verify.report import Counts, Quarantined, State, TableReport
from distributary.workers.adopt import Adopted

TABLE = TableOverview("dbo.t", "p.dbo.t", "/lake/dbo/t", TableState.UP_TO_DATE, 0, 0.0)
CREATED = TablePlan("dbo.t", "p.dbo.t", "/lake/dbo/t", "*.*", "config.yaml:6", "upsert", CREATE, columns={"id": "int"})
FAULT = {"code": "no-key", "message": "the records have no key", "fix": "name it"}


@pytest.fixture
def config(tmp_path: Path) -> str:
    """A config in a folder whose name a shell would take apart."""
    folder = tmp_path / "a folder"
    folder.mkdir()
    return str(write_config(folder, tables=[{"match": "*.*"}]))


def found(*arguments: str) -> tuple[int, list[str]]:
    result = CliRunner().invoke(main, list(arguments))
    assert result.exception is None or isinstance(result.exception, SystemExit), result.output
    return result.exit_code, result.stdout.splitlines()


@pytest.mark.parametrize(
    ("tables", "code", "expected"),
    [
        ([TABLE], 0, "verify -c {}   # compare the tables with their topics"),
        ([replace(TABLE, state=TableState.BEHIND)], 0, "status -c {} --watch   # see them catch up"),
        ([replace(TABLE, quarantined=1)], 0, "verify -c {}   # compare the tables with their topics"),
        ([replace(TABLE, in_quarantine=1)], 0, "quarantine list -c {}   # which records were not applied, and why"),
        ([replace(TABLE, state=TableState.HALTED, error=FAULT)], 1, "resume -c {} dbo.t   # after the fix"),
        (
            [replace(TABLE, state=TableState.HALTED, error={**FAULT, "code": "records-lost"})] * 3,
            1,
            "resume -c {} dbo.t --accept-loss   # after the fix; 2 more are halted",
        ),
        ([], 0, "plan -c {}   # which topics there are, and why none fits"),
    ],
)
def test_status(
    monkeypatch: pytest.MonkeyPatch, config: str, tables: list[TableOverview], code: int, expected: str
) -> None:
    monkeypatch.setattr(overviews, "overview", lambda _config, _broker: tables)
    ended, lines = found("status", "-c", config)
    assert ended == code
    assert lines[-1] == f"next: distributary {expected}".format(f"'{config}'")


def test_the_commands_in_a_fix_name_table_and_config(monkeypatch: pytest.MonkeyPatch, config: str) -> None:
    fix = "`distributary resume -c FILE TABLE --rebuild` fills it again; or RESTORE TABLE"
    halted = replace(TABLE, state=TableState.HALTED, error={**FAULT, "fix": fix})
    monkeypatch.setattr(overviews, "overview", lambda _config, _broker: [halted])
    _, lines = found("status", "-c", config)
    assert f"    `distributary resume -c '{config}' dbo.t --rebuild` fills it again; or RESTORE TABLE" in lines


def test_status_has_the_command_that_ends_a_halt(monkeypatch: pytest.MonkeyPatch, config: str) -> None:
    halted = replace(TABLE, state=TableState.HALTED, error={**FAULT, "code": "records-lost"})
    monkeypatch.setattr(overviews, "overview", lambda _config, _broker: [halted])
    _, lines = found("status", "-c", config)
    assert f"    distributary resume -c '{config}' dbo.t --accept-loss" in lines


@pytest.mark.parametrize(
    ("tables", "code", "expected"),
    [
        ((CREATED,), 0, "run -c {}"),
        (
            (replace(CREATED, action=HALT, error=FAULT),),
            1,
            "plan -c {}   # again, after the halts are fixed",
        ),
        ((), 0, "init --bootstrap-servers HOST:PORT   # write a config from the topics that exist"),
    ],
)
def test_plan(
    monkeypatch: pytest.MonkeyPatch, config: str, tables: tuple[TablePlan, ...], code: int, expected: str
) -> None:
    monkeypatch.setattr(plans, "plan", lambda _config, _tell: Plan(tables, (), ()))
    ended, lines = found("plan", "-c", config)
    assert ended == code
    assert lines[-1] == f"next: distributary {expected}".format(f"'{config}'")


def test_plan_beside_a_running_driver_does_not_say_run(monkeypatch: pytest.MonkeyPatch, config: str) -> None:
    monkeypatch.setattr(plans, "plan", lambda _config, _tell: Plan((CREATED,), (), ()))
    file = Path(lease_paths(load(Path(config)))[0])
    file.parent.mkdir(parents=True)
    file.write_text(json.dumps(this_process(str(file)).to_json()))
    assert (
        found("plan", "-c", config)[1][-1]
        == f"next: distributary status -c '{config}' --watch   # `run` is at it already"
    )


def test_plan_has_the_layout_in_force(monkeypatch: pytest.MonkeyPatch, config: str) -> None:
    monkeypatch.setattr(plans, "plan", lambda _config, _tell: Plan((replace(CREATED, layout="rewrite"),), (), ()))
    assert "  layout: rewrite" in found("plan", "-c", config)[1]


def examined(*checks: Check) -> Callable[..., Iterator[Any]]:
    return lambda _config, tell: run_checks(checks, tell)


def test_doctor(monkeypatch: pytest.MonkeyPatch, config: str) -> None:
    well = Check("java", lambda: CheckPassed("it is there"))
    monkeypatch.setattr(doctors, "examine", examined(well))
    assert found("doctor", "-c", config) == (
        0,
        [
            "ok       java        it is there",
            "1 check: 1 ok, 0 warnings, 0 failed",
            f"next: distributary plan -c '{config}'   # what the service would do with each table",
        ],
    )

    def ill() -> CheckPassed:
        raise SetupError("kafka-away", "it does not answer", "look whether it runs")

    needing = Check("topics", lambda: CheckPassed(""), needs=("kafka",))
    monkeypatch.setattr(doctors, "examine", examined(well, Check("kafka", ill), needing))
    code, lines = found("doctor", "-c", config)
    assert code == 1
    assert lines[1:] == [
        "failed   kafka       [kafka-away] it does not answer",
        "                     look whether it runs",
        "-        topics      skipped, because it needs: kafka",
        "3 checks: 1 ok, 0 warnings, 1 failed, 1 skipped",
        f"next: distributary doctor -c '{config}'   # again, after the failed checks are fixed",
    ]


def test_validate(config: str) -> None:
    code, lines = found("validate", "-c", config)
    assert code == 0
    assert lines[-1] == f"next: distributary plan -c '{config}'   # what the service would do with each table"
    Path(config).write_text(Path(config).read_text().replace("topic_prefix", "prefix"))
    code, lines = found("validate", "-c", config)
    assert code == 2
    assert lines[-1] == f"next: distributary validate -c '{config}'   # again, after the faults are fixed"


EQUAL = TableReport("dbo.t", "p.dbo.t", "/lake/dbo/t", "upsert", State.EQUAL)
DIFFERENT = replace(EQUAL, table="dbo.d", state=State.DIFFERENT)


@pytest.mark.parametrize(
    ("reports", "summary", "expected"),
    [
        ([EQUAL], "1 table: 1 equal", "status -c {} --watch   # watch the tables follow their sources"),
        (
            [replace(EQUAL, counts=Counts(not_checked={"quarantined": 2, "before_topic": 1}))],
            "1 table: 1 equal (3 keys not checked)",
            "status -c {} --watch   # watch the tables follow their sources",
        ),
        (
            [EQUAL, DIFFERENT],
            "2 tables: 1 equal, 1 different",
            "verify -c {} dbo.d --limit 100   # more of its keys; docs/verify.md explains possible causes",
        ),
        (
            [replace(DIFFERENT, quarantined=Quarantined(records=2, keys=1))],
            "1 table: 0 equal, 1 different",
            "quarantine list -c {} dbo.d   # which records were not applied, and why",
        ),
        (
            [EQUAL, replace(EQUAL, table="dbo.n", state=State.NOT_VERIFIED, error=FAULT)],
            "2 tables: 1 equal, 1 can't be verified",
            "verify -c {} dbo.n   # again, after the fix",
        ),
    ],
)
def test_verify(
    monkeypatch: pytest.MonkeyPatch, config: str, reports: list[TableReport], summary: str, expected: str
) -> None:
    monkeypatch.setattr(checks, "verify", lambda *_: iter(reports))
    ended, lines = found("verify", "-c", config)
    assert ended == (0 if {report.state for report in reports} == {State.EQUAL} else 1)
    assert lines[-2:] == [summary, f"next: distributary {expected}".format(f"'{config}'")]


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["pause", "dbo.t"], "unpause -c {} dbo.t   # to continue"),
        (["pause"], "unpause -c {}   # to continue"),
        (["unpause"], "status -c {} --watch   # see it catch up"),
        (["quarantine list"], "status -c {}   # the state of each table"),
        (["quarantine add", "dbo.t", "p.dbo.t:0:5"], "resume -c {} dbo.t   # if the table is halted"),
        (["quarantine replay", "dbo.t"], "quarantine list -c {} dbo.t   # which records are left"),
        (["quarantine purge", "--older-than", "90d"], "quarantine list -c {}   # which records are left"),
        (["resume", "dbo.t"], "status -c {} --watch   # see it continue"),
        (["resume", "dbo.t", "--reconcile"], "verify -c {} dbo.t   # compare the table with its topic"),
        (["resume", "dbo.t", "--adopt"], "verify -c {} dbo.t   # compare the table with its topic"),
        (
            ["resume", "dbo.t", "--adopt", "--check", "--from-offsets", "0:1"],
            "resume -c {} dbo.t --adopt --from-offsets 0:1   # after the other job has stopped for good",
        ),
    ],
)
def test_commands_that_change_something(
    monkeypatch: pytest.MonkeyPatch, config: str, words: list[str], expected: str
) -> None:
    request = SimpleNamespace(table="dbo.t", halt=None)
    adopted = Adopted("dbo.t", key=("id",), start={0: 0})
    results: dict[str, Any] = {
        "control.pauses.pause": None,
        "control.pauses.unpause": True,
        "control.resume_requests.write_resume_request": request,
        "quarantine.listing.summary": [],
        "quarantine.listing.newest_records": [],
        "quarantine.set_aside.set_aside": None,
        "quarantine.purge.purge": 2,
        "workers.adopt.adopt": adopted,
        "workers.reconcile.reconcile": 0,
    }
    for place, result in results.items():
        monkeypatch.setattr(f"distributary.{place}", lambda *_, _result=result, **__: _result)
    command, *arguments = words
    code, lines = found(*command.split(), "-c", config, *arguments)
    assert code == 0
    assert lines[-1] == f"next: distributary {expected}".format(f"'{config}'")


def test_adopt_with_differences_names_the_check_again(monkeypatch: pytest.MonkeyPatch, config: str) -> None:
    adopted = Adopted("dbo.t", (Difference("the key", "name it"),))
    monkeypatch.setattr("distributary.workers.adopt.adopt", lambda *_, **__: adopted)
    code, lines = found("resume", "-c", config, "dbo.t", "--adopt", "--from-time", "2026-01-31T06:00:00Z")
    assert code == 1
    again = f"distributary resume -c '{config}' dbo.t --adopt --from-time 2026-01-31T06:00:00Z --check"
    assert lines[-1] == f"next: {again}   # again, after the differences are fixed"
