"""What a command shows while it works, and that this never gets into its result."""

from __future__ import annotations

import io
import re
import sys

import pytest

from distributary.cli import output
from distributary.cli.progress import progress


class Terminal(io.StringIO):
    """What people look at."""

    def isatty(self) -> bool:
        return True


def test_a_result_that_goes_into_a_file_gets_there_while_the_terminal_shows_progress(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    screen, file = Terminal(), io.StringIO()
    monkeypatch.setattr(sys, "stderr", screen)
    monkeypatch.setattr(sys, "stdout", file)
    monkeypatch.setenv("TERM", "xterm")
    with progress("reading") as doing:
        doing("reading topics: 1 of 2")
        with doing.aside():
            output.show_text("a result")
        doing("reading topics: 2 of 2")
    assert file.getvalue() == "a result\n"
    assert "a result" not in screen.getvalue()
    assert "reading topics: 2 of 2" in screen.getvalue()


def test_where_there_is_no_terminal_nothing_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    with progress("reading") as doing:
        doing("more")
        with doing.aside():
            output.show_text("a result")
    assert capsys.readouterr() == ("a result\n", "")


def test_long_lines_continue_below_on_a_terminal_and_words_stay_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = Terminal()
    monkeypatch.setattr(sys, "stdout", screen)
    for name, value in {"TERM": "xterm", "COLUMNS": "30", "NO_COLOR": "1"}.items():
        monkeypatch.setenv(name, value)
    path = "/a/path/that/is/much/longer/than/the/line/of/thirty"
    output.show_text(f"  the table lies at {path} and is well")
    output.show_text("ok   java  it is there and it is new enough", indent=11)
    output.show_next("distributary plan -c a-config-with-a-long-name.yaml", "to see")
    lines = [re.sub(r"\x1b\[\d*m", "", line).rstrip() for line in screen.getvalue().splitlines()]
    assert lines == [
        "  the table lies at",
        f"      {path}",
        "      and is well",
        "ok   java  it is there and it",
        "           is new enough",
        "next: distributary plan -c a-config-with-a-long-name.yaml   # to see",
    ]
