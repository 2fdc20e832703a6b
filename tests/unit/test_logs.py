"""Logs, seen from outside: each test is a separate process, because logging is set up once per process."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from datetime import datetime, timezone
from typing import Any

import pytest
from tests.support.random_share import thorough_but

START = """
import logging, warnings
from distributary.logs import configure, get_logger
configure()
log = get_logger("distributary.lake")
"""


def stderr(program: str, **environment: str) -> str:
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("DISTRIBUTARY_LOG")}
    result = subprocess.run(
        [sys.executable, "-c", START + program],
        env={**inherited, "TZ": "Asia/Tokyo", **environment},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert result.stdout == ""
    return result.stderr


def lines(program: str, **environment: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in stderr(program, **environment).splitlines()]


def test_without_a_terminal_each_line_is_json_with_its_time_in_utc() -> None:
    before = datetime.now(timezone.utc)
    (line,) = lines('log.info("batch applied", table="dbo.customers", records=5)')
    assert line.pop("timestamp").endswith("Z")
    assert line == {
        "event": "batch applied",
        "level": "info",
        "logger": "distributary.lake",
        "table": "dbo.customers",
        "records": 5,
    }
    (again,) = lines('log.info("x")')
    assert abs(datetime.fromisoformat(again["timestamp"].replace("Z", "+00:00")) - before).total_seconds() < 60


def test_text_is_one_line_an_event() -> None:
    text = stderr('log.warning("table halted", table="dbo.customers")', DISTRIBUTARY_LOG_FORMAT="text")
    assert len(text.splitlines()) == 1
    assert "table halted" in text
    assert "table=dbo.customers" in text
    assert "\x1b" not in text


@pytest.mark.parametrize(
    ("level", "expected"),
    thorough_but(
        1,
        [("warning", ["w"]), ("debug", ["d", "i", "w"]), ("info", ["i", "w"]), ("", ["i", "w"])],
        unpack=True,
    ),
)
def test_the_level_is_taken_from_the_environment(level: str, expected: list[str]) -> None:
    found = lines('log.debug("d"); log.info("i"); log.warning("w")', DISTRIBUTARY_LOG=level)
    assert [line["event"] for line in found] == expected


def test_libraries_come_out_alike_from_warnings_up() -> None:
    program = """
for name in ("py4j", "py4j.clientserver", "deltalake", "some.library"):
    logging.getLogger(name).info("command %s", 1)
    logging.getLogger(name).warning("trouble %s", 1)
"""
    found = lines(program, DISTRIBUTARY_LOG="debug")
    assert [(line["logger"], line["level"], line["event"]) for line in found] == [
        ("py4j", "warning", "trouble 1"),
        ("py4j.clientserver", "warning", "trouble 1"),
        ("deltalake", "warning", "trouble 1"),
        ("some.library", "warning", "trouble 1"),
    ]


def test_warnings_of_python_are_log_lines() -> None:
    (line,) = lines('warnings.warn("old")')
    assert line["logger"] == "py.warnings"


@pytest.mark.parametrize("form", thorough_but(1, ["json", "text"]))
def test_tracebacks_show_no_values_of_variables(form: str) -> None:
    program = """
row = "Al" + "ice"
try:
    1 / len(row[:0])
except ZeroDivisionError:
    log.exception("merge failed")
"""
    text = stderr(program, DISTRIBUTARY_LOG_FORMAT=form)
    assert "ZeroDivisionError" in text
    assert "Alice" not in text


def test_it_may_be_set_up_again() -> None:
    assert len(lines('configure(json=True); log.info("once")', DISTRIBUTARY_LOG_FORMAT="text")) == 1


@pytest.mark.parametrize("form", thorough_but(1, ["text", "json"]))
def test_what_a_record_holds_steers_no_terminal(form: str) -> None:
    program = r'log.warning("halted", table="a\x1b]0;owned\x07\x9b2J\u202e", topic="a\nb", other={"a": "\x1b"})'
    printed = stderr(program, DISTRIBUTARY_LOG_FORMAT=form)
    assert not [one for one in ("\x1b", "\x07", "\x9b", "\u202e") if one in printed]
    assert len(printed.splitlines()) == 1
    assert "owned" in printed


def test_what_records_bring_makes_no_line_that_nobody_can_read() -> None:
    """A record may have thousands of columns with long names."""
    program = """
names = {f"{'c' * 900}{number}": "int" for number in range(5_000)}
log.info("columns added", columns=names, all=list(names), detail=str(names), few=["a", "b"])
"""
    text = stderr(program)
    assert len(text) < 150_000
    (line,) = map(json.loads, text.splitlines())
    assert len(line["columns"]) == 51
    assert line["columns"]["…"] == "4950 more"
    assert line["all"][-1] == "… 4950 more"
    assert line["detail"].endswith(" more characters)")
    assert line["few"] == ["a", "b"]


def test_the_fix_of_an_event_gets_the_names_of_the_config_and_the_table() -> None:
    complete = 'configure(complete_fix=lambda fix, table: fix.replace("TABLE", table or "?"))\n'
    found = lines(
        complete + 'log.warning("halted", table="dbo.t", fix="resume TABLE"); log.info("fine", fix=["TABLE"])'
    )
    assert [line["fix"] for line in found] == ["resume dbo.t", ["TABLE"]]
