"""The command: what it prints where, and how it ends."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import click
import pytest
from click.testing import CliRunner
from tests.support import broken_configs

from distributary import __version__
from distributary.cli import main
from distributary.errors import AlreadyRunning, DistributaryError, SetupError, TableHalt

CONFIG = Path(__file__).parents[3] / "config"
RIGHT = str(CONFIG / "example.yaml")
WRONG = str(broken_configs.DIRECTORY / "unknown-key.yaml")


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("DISTRIBUTARY_CONFIG", "DISTRIBUTARY_LOG", "DISTRIBUTARY_LOG_FORMAT", "DISTRIBUTARY_TEST_NOT_SET"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize("path", broken_configs.FILES, ids=lambda path: path.stem)
def test_validate_names_each_fault_with_its_file_and_line(path: Path) -> None:
    result = CliRunner().invoke(main, ["validate", "-c", str(path)])
    assert result.exit_code == 2
    faults = [line for line in result.stdout.splitlines() if "] " in line and not line.startswith(" ")]
    expected = broken_configs.expected(path)
    assert len(faults) == len(expected)
    for code, line, file in expected:
        assert any(fault.startswith(f"{file}:{line}: [{code}] ") for fault in faults), (code, line, file)


def test_validate_as_a_process_of_its_own() -> None:
    command = [sys.executable, "-m", "distributary", "validate", "-c", WRONG]
    result = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert result.returncode == 2
    assert (
        f"{WRONG}:12: [unknown-key] triger is not a key that is known here\n    did you mean trigger?" in result.stdout
    )
    assert "Traceback" not in result.stdout + result.stderr


def test_validate_says_that_a_config_is_right() -> None:
    result = CliRunner().invoke(main, ["validate", "--config", RIGHT])
    assert result.exit_code == 0
    assert "is valid" in result.stdout
    assert result.stderr == ""


def test_validate_gives_json_on_stdout_alone() -> None:
    right = CliRunner().invoke(main, ["validate", "-c", RIGHT, "--output", "json"])
    assert right.exit_code == 0
    assert json.loads(right.stdout) == {"valid": True, "faults": [], "warnings": []}
    wrong = CliRunner().invoke(main, ["validate", "-c", WRONG, "--output", "json"])
    assert wrong.exit_code == 2
    assert json.loads(wrong.stdout) == {
        "valid": False,
        "faults": [
            {
                "file": WRONG,
                "line": 12,
                "code": "unknown-key",
                "message": "triger is not a key that is known here",
                "fix": "did you mean trigger?",
            }
        ],
        "warnings": [],
    }
    assert right.stderr + wrong.stderr == ""


def test_validate_warns_of_rules_that_never_count(tmp_path: Path) -> None:
    config = tmp_path / "config.yaml"
    config.write_text(Path(RIGHT).read_text() + "  - match: dbo.orders\n")
    result = CliRunner().invoke(main, ["validate", "-c", str(config)])
    assert result.exit_code == 0
    assert "warning:" in result.stdout
    assert "'dbo.orders' never counts" in result.stdout


def test_long_lines_are_not_wrapped(tmp_path: Path) -> None:
    path = tmp_path / ("long" * 40) / "config.yaml"
    result = CliRunner().invoke(main, ["validate", "-c", str(path)])
    assert f"{path}:1: [config-unreadable]" in result.stdout


def test_the_config_may_come_from_the_environment() -> None:
    result = CliRunner().invoke(main, ["validate"], env={"DISTRIBUTARY_CONFIG": RIGHT})
    assert result.exit_code == 0
    over = CliRunner().invoke(main, ["validate", "-c", RIGHT], env={"DISTRIBUTARY_CONFIG": WRONG})
    assert over.exit_code == 0


def test_a_config_is_needed() -> None:
    result = CliRunner().invoke(main, ["validate"])
    assert result.exit_code == 2
    assert "DISTRIBUTARY_CONFIG" in result.stderr


def test_run_refuses_a_bad_config_on_stderr() -> None:
    result = CliRunner().invoke(main, ["run", "-c", WRONG])
    assert result.exit_code == 2
    assert f"{WRONG}:12: [unknown-key]" in result.stderr
    assert result.stdout == ""


def test_run_refuses_a_log_level_that_there_is_not() -> None:
    result = CliRunner().invoke(main, ["run", "-c", RIGHT], env={"DISTRIBUTARY_LOG": "loud"})
    assert result.exit_code == 2
    assert "[bad-environment] DISTRIBUTARY_LOG is 'loud'" in result.stderr


def test_schema_prints_what_the_project_ships() -> None:
    result = CliRunner().invoke(main, ["schema"])
    assert result.exit_code == 0
    assert result.stdout == (CONFIG / "schema.json").read_text(encoding="utf-8")


def test_version() -> None:
    assert CliRunner().invoke(main, ["--version"]).stdout == f"distributary, version {__version__}\n"


def test_help_names_the_commands_and_each_command_explains_itself() -> None:
    result = CliRunner().invoke(main, ["--help"])
    assert result.exit_code == 0
    for name, command in main.commands.items():
        assert f"  {name} " in result.stdout
        assert command.help
        assert all(param.help for param in command.params if isinstance(param, click.Option))
        assert CliRunner().invoke(main, [name, "--help"]).exit_code == 0


def test_a_command_that_there_is_not_is_wrong_usage() -> None:
    assert CliRunner().invoke(main, ["rum"]).exit_code == 2


class TestErrors:
    """A command that fails with an error of each kind."""

    @pytest.fixture
    def fail(self, monkeypatch: pytest.MonkeyPatch) -> list[Exception]:
        errors: list[Exception] = []

        @click.command("fail")
        def command() -> None:
            raise errors[0]

        monkeypatch.setitem(main.commands, "fail", command)
        return errors

    @pytest.mark.parametrize(
        ("error", "code"),
        [
            (SetupError("no-java", "Java 17 is not there", "install it"), 2),
            (TableHalt("type-change", "dbo.customers: int became text", "resume it"), 1),
            (AlreadyRunning("already-running", "another driver runs this config", "end it"), 3),
        ],
    )
    def test_errors_with_a_way_out_are_reported_and_end_with_their_code(
        self, fail: list[Exception], error: DistributaryError, code: int
    ) -> None:
        fail.append(error)
        result = CliRunner().invoke(main, ["fail"])
        assert result.exit_code == code
        assert result.stdout == ""
        assert result.stderr == f"[{error.code}] {error.message}\n    {error.fix}\n"

    def test_unexpected_errors_say_what_they_are_and_nothing_of_the_data(self, fail: list[Exception]) -> None:
        fail.append(ValueError("row of Alice"))
        result = CliRunner().invoke(main, ["fail"])
        assert result.exit_code == 2
        assert result.stderr == "unexpected error: ValueError\n    set DISTRIBUTARY_LOG=debug for the traceback\n"

    def test_debug_shows_the_traceback(self, fail: list[Exception]) -> None:
        fail.append(ValueError("why"))
        result = CliRunner().invoke(main, ["fail"], env={"DISTRIBUTARY_LOG": "debug"})
        assert result.exit_code == 2
        assert "Traceback" in result.stderr
        assert "ValueError: why" in result.stderr


@pytest.mark.parametrize(
    ("options", "code"),
    [
        (["--reconcile", "--rebuild"], "one-at-a-time"),
        (["--adopt", "--accept-loss"], "one-at-a-time"),
        (["--adopt", "--reconcile"], "one-at-a-time"),
        (["--from-offsets", "0:1"], "only-with-adopt"),
        (["--rebuild", "--check"], "only-with-adopt"),
        (["--adopt", "--from-time", "yesterday"], "bad-time"),
        (["--adopt", "--from-time", "2026-01-31T06:00:00Z", "--from-offsets", "0:1"], "one-start"),
    ],
)
def test_resume_does_one_thing_at_a_time(options: list[str], code: str) -> None:
    result = CliRunner().invoke(main, ["resume", "-c", RIGHT, "dbo.t", *options])
    assert result.exit_code == 2
    assert f"[{code}]" in result.stderr
