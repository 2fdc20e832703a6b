"""What each command says at its end: how it went, and what to do next."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from tests.support.config_files import write_config

from distributary.cli import main
from distributary.control import overview as overviews
from distributary.control.overview import TableOverview
from distributary.errors import SetupError
from distributary.preflight import doctor as doctors
from distributary.preflight import plan as plans
from distributary.preflight.check_result import Check, CheckPassed, run_checks
from distributary.preflight.plan import Plan
from distributary.preflight.table_plan import CREATE, HALT, TablePlan
from distributary.table_state import TableState
from distributary.verify import check as checks
from distributary.verify.report import Quarantined, State, TableReport

TABLE = TableOverview("dbo.t", "p.dbo.t", "/lake/dbo/t", TableState.UP_TO_DATE, 0, 0.0)
CREATED = TablePlan("dbo.t", "p.dbo.t", "/lake/dbo/t", "*.*", "config.yaml:6", "upsert", CREATE, columns={"id": "int"})
FAULT = {"code": "no-key", "message": "the records have no key", "fix": "name it"}


@pytest.fixture
def config(tmp_path: Path) -> str:
    """A config in a folder whose name a shell would take apart."""
    folder = tmp_path / "a folder"
    folder.mkdir()
    return str(write_config(folder, tables=[{"match": "*.*"}]))


def said(*arguments: str) -> tuple[int, list[str]]:
    result = CliRunner().invoke(main, list(arguments))
    assert result.exception is None or isinstance(result.exception, SystemExit), result.output
    return result.exit_code, result.stdout.splitlines()


@pytest.mark.parametrize(
    ("tables", "code", "expected"),
    [
        ([TABLE], 0, "verify -c {}   # compare the tables with their topics"),
        ([replace(TABLE, state=TableState.BEHIND)], 0, "status -c {} --watch   # see them catch up"),
        ([replace(TABLE, quarantined=1)], 0, "quarantine list -c {}   # which records were not applied, and why"),
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
    ended, lines = said("status", "-c", config)
    assert ended == code
    assert lines[-1] == f"next: distributary {expected}".format(f"'{config}'")


def test_status_has_the_command_that_ends_a_halt(monkeypatch: pytest.MonkeyPatch, config: str) -> None:
    halted = replace(TABLE, state=TableState.HALTED, error={**FAULT, "code": "records-lost"})
    monkeypatch.setattr(overviews, "overview", lambda _config, _broker: [halted])
    _, lines = said("status", "-c", config)
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
    ended, lines = said("plan", "-c", config)
    assert ended == code
    assert lines[-1] == f"next: distributary {expected}".format(f"'{config}'")


def test_plan_has_the_layout_in_force(monkeypatch: pytest.MonkeyPatch, config: str) -> None:
    monkeypatch.setattr(plans, "plan", lambda _config, _tell: Plan((replace(CREATED, layout="rewrite"),), (), ()))
    assert "  layout: rewrite" in said("plan", "-c", config)[1]


def examined(*checks: Check) -> Callable[..., Iterator[Any]]:
    return lambda _config, tell: run_checks(checks, tell)


def test_doctor(monkeypatch: pytest.MonkeyPatch, config: str) -> None:
    well = Check("java", lambda: CheckPassed("it is there"))
    monkeypatch.setattr(doctors, "examine", examined(well))
    assert said("doctor", "-c", config) == (
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
    code, lines = said("doctor", "-c", config)
    assert code == 1
    assert lines[1:] == [
        "failed   kafka       [kafka-away] it does not answer",
        "                     look whether it runs",
        "-        topics      skipped, because it needs: kafka",
        "3 checks: 1 ok, 0 warnings, 1 failed, 1 skipped",
        f"next: distributary doctor -c '{config}'   # again, after the failed checks are fixed",
    ]


def test_validate(config: str) -> None:
    code, lines = said("validate", "-c", config)
    assert code == 0
    assert lines[-1] == f"next: distributary plan -c '{config}'   # what the service would do with each table"


EQUAL = TableReport("dbo.t", "p.dbo.t", "/lake/dbo/t", "upsert", State.EQUAL)
DIFFERENT = replace(EQUAL, table="dbo.d", state=State.DIFFERENT)


@pytest.mark.parametrize(
    ("reports", "summary", "expected"),
    [
        ([EQUAL], "1 table: 1 equal", "status -c {} --watch   # watch the tables follow their sources"),
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
    ended, lines = said("verify", "-c", config)
    assert ended == (0 if reports == [EQUAL] else 1)
    assert lines[-2:] == [summary, f"next: distributary {expected}".format(f"'{config}'")]
