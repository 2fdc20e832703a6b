"""What a record, a topic or a config holds steers no terminal, whichever way it is printed."""

from __future__ import annotations

import io
import json
from pathlib import Path

import click
import pytest
from click.testing import CliRunner
from rich.console import Console
from rich.table import Table
from rich.text import Text

from distributary.cli import output
from distributary.cli.tables_view import grid, remarks
from distributary.cli.watching import View
from distributary.control.overview import TableOverview
from distributary.errors import ConfigError, Fault, TableHalt
from distributary.table_state import TableState
from distributary.wrapping import filled

TITLE = "\x1b]0;owned\x07"
HOSTILE = f"a{TITLE}\x1b[2J\x9b2J\rb\nc\u202ed\u2028e\u2066"
SAFE = ("\x1b", "\x9b", "\x07", "\r", "\u202e", "\u2028", "\u2066")


def is_harmless(printed: str, lines: int) -> bool:
    return not [one for one in SAFE if one in printed] and len(printed.splitlines()) == lines


def table(name: str) -> TableOverview:
    error = {"code": "c", "message": name, "fix": name}
    return TableOverview(
        name, name, name, TableState.HALTED, 0, None, position=name, error=error, orphaned_rows=1, ambiguous_deletes=1
    )


def test_lines(capsys: pytest.CaptureFixture[str]) -> None:
    output.show_text(HOSTILE, style="red")
    output.show_text(Text.assemble((HOSTILE, "red"), HOSTILE))
    printed = capsys.readouterr().out
    assert is_harmless(printed, 2)
    assert printed.startswith(r"a\x1b]0;owned\x07\x1b[2J\x9b2J\x0db\x0ac\u202ed\u2028e\u2066")


def test_values_that_may_have_lines_of_their_own(capsys: pytest.CaptureFixture[str]) -> None:
    output.show_text(HOSTILE, but="\n\t")
    assert is_harmless(capsys.readouterr().out, 2)


def test_tables_of_a_result(capsys: pytest.CaptureFixture[str]) -> None:
    shown = Table(box=None)
    shown.add_column("a")
    output.add_row(shown, HOSTILE)
    output.show_grid(shown)
    assert is_harmless(capsys.readouterr().out, 2)
    output.show_grid(grid([table(HOSTILE)]))
    for remark in remarks([table(HOSTILE)]):
        for line in remark.lines():
            output.show_text(line)
    assert is_harmless(capsys.readouterr().out, 2 + 7)


def test_the_live_view() -> None:
    file = io.StringIO()
    console = Console(file=file, highlight=False, width=4000, force_terminal=True, color_system=None)
    console.print(output.Harmless(View([table(HOSTILE)], {}, Text(HOSTILE))))
    assert not [one for one in SAFE if one in file.getvalue()]


def test_errors(capsys: pytest.CaptureFixture[str]) -> None:
    output.show_error(TableHalt("c", HOSTILE, HOSTILE))
    assert is_harmless(capsys.readouterr().err, 2)
    output.show_error(ConfigError([Fault(Path(HOSTILE), 1, "c", HOSTILE, HOSTILE)]))
    assert is_harmless(capsys.readouterr().err, 3)


def test_json_is_the_same_document(capsys: pytest.CaptureFixture[str]) -> None:
    found = {"a": f"{HOSTILE}\x7f\ud800 é 漢", HOSTILE: 1}
    output.show_json(found)
    printed = capsys.readouterr().out
    assert is_harmless(printed, 4)
    assert "é 漢" in printed
    assert json.loads(printed) == found


def on_a_terminal(monkeypatch: pytest.MonkeyPatch, width: int) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", str(width))


def plain_lines(printed: str) -> list[str]:
    return Text.from_ansi(printed).plain.splitlines()


def test_errors_are_wrapped_between_words(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    on_a_terminal(monkeypatch, 40)
    output.show_error(TableHalt("code", "word " * 20, "fix " * 20))
    output.show_error(ConfigError([Fault(Path("config.yaml"), 1, "code", "word " * 20)]))
    lines = plain_lines(capsys.readouterr().err)
    assert len(lines) > 8
    assert max(map(len, lines)) <= 40
    assert [line for line in lines if not line.startswith("    ")] == [
        "[code] word word word word word word",
        "config.yaml:1: [code] word word word",
        "1 fault in the config",
    ]


def test_items_of_a_list_stay_whole(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    items = [f"column_{number} decimal(10,2)" for number in range(5)]
    output.show_items("columns", items)
    assert capsys.readouterr().out == f"  columns: {', '.join(items)}\n"
    on_a_terminal(monkeypatch, 57)
    output.show_items("columns", items)
    assert plain_lines(capsys.readouterr().out) == [
        f"  columns: {items[0]},",
        f"      {items[1]}, {items[2]},",
        f"      {items[3]}, {items[4]}",
    ]
    output.show_items("key", [HOSTILE])
    assert is_harmless(capsys.readouterr().out, 2)


def test_an_item_that_is_wider_than_the_terminal_has_a_line() -> None:
    assert filled("  key: ", ["x" * 50, "y"], 20) == ["  key:", "      " + "x" * 50 + ",", "      y"]
    assert filled("  key: ", ["\u6f22" * 4, "y"], 17) == ["  key: \u6f22\u6f22\u6f22\u6f22,", "      y"]


def test_the_fix_of_an_error_names_the_config_that_the_command_was_given(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    @click.command()
    @output.config_option
    def command(config_file: Path) -> None:
        assert config_file == tmp_path
        output.show_error(TableHalt("c", "m", "`distributary resume -c FILE TABLE --rebuild` fills it again"))
        output.show_fix("distributary resume -c FILE TABLE", "  ", "dbo.t")

    result = CliRunner().invoke(command, ["-c", str(tmp_path)])
    assert f"`distributary resume -c {tmp_path} TABLE --rebuild` fills it again" in result.stderr
    assert result.stdout == f"  distributary resume -c {tmp_path} dbo.t\n"
    output.show_fix("distributary resume -c FILE TABLE", "  ")
    assert capsys.readouterr().out == "  distributary resume -c FILE TABLE\n"
