"""The output of commands: results to stdout, as text or as JSON alone; everything else to stderr."""

from __future__ import annotations

import json
import shlex
import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click
from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from distributary import logs
from distributary.cli.words import count
from distributary.controls import json_without_controls, without_controls
from distributary.errors import ConfigError, DistributaryError, Fault
from distributary.halt_actions import with_names
from distributary.wrapping import filled, hanging

PLAN = "what the service would do with each table"
"""Why `plan` comes next."""

WARNING, NOTED = "color(130)", "color(31)"
"""A warning, and something to notice: a terminal's own yellow and cyan can't be read on a light background."""

_CONFIG = "distributary.config_file"
"""The key of click's context for the config of the command that runs."""

Command = TypeVar("Command", bound=Callable[..., Any])


def config_option(command: Command) -> Command:
    """`-c FILE`: passes `config_file: Path` to the command. `load` checks that the file exists."""
    return click.option(
        "-c",
        "--config",
        "config_file",
        type=click.Path(path_type=Path),
        envvar="DISTRIBUTARY_CONFIG",
        callback=_remember_config,
        show_envvar=True,
        required=True,
        metavar="FILE",
        help="The config file.",
    )(command)


def _remember_config(ctx: click.Context, _param: click.Parameter, config_file: Path) -> Path:
    ctx.meta[_CONFIG] = config_file
    return config_file


def completed(fix: str, table: str | None = None) -> str:
    """The fix of an error or a warning with this command's config, and the table, in its commands."""
    context = click.get_current_context(silent=True)
    config_file = context.meta.get(_CONFIG) if context is not None else None
    return with_names(fix, table=table, config_file=None if config_file is None else str(config_file))


def show_fix(fix: str, indent: str, table: str | None = None, *, to_stderr: bool = False) -> None:
    """Prints the fix below the message of an error or a warning, with the names that completed() knows."""
    if fix:
        show_text(f"{indent}{completed(fix, table)}", style="dim", to_stderr=to_stderr)


def output_option(command: Command) -> Command:
    """`--output text|json`: gives the command `output_format: str`."""
    return click.option(
        "--output",
        "output_format",
        type=click.Choice(["text", "json"]),
        default="text",
        show_default=True,
        help="How to print the result; JSON goes to stdout alone.",
    )(command)


def show_json(result: Any) -> None:
    """Prints a result as one JSON document on stdout."""
    click.echo(json_without_controls(json.dumps(result, indent=2, ensure_ascii=False)))


def show_text(
    line: str | Text, style: str = "", *, but: str = "", indent: int | None = None, to_stderr: bool = False
) -> None:
    """Prints a line of a result on stdout, with control characters written out, `but` for some.

    On a terminal a long line is wrapped between words, and indented from its second line on (by `indent`).
    """
    # Written out beforehand: some controls Rich takes away without a trace.
    text = Text(without_controls(line, but=but), style=style) if isinstance(line, str) else line
    console = Console(stderr=to_stderr, highlight=False)
    if console.is_terminal and "\n" not in text:
        for part in hanging(text, console.width, indent):
            _print(console, part, but)
        return
    _print(console, text, but)


def show_items(name: str, items: Iterable[str]) -> None:
    """Prints `  name: a, b, c` on stdout; on a terminal long lists are wrapped between items."""
    for line in filled(f"  {name}: ", map(without_controls, items), terminal_width()):
        show_command(line, style="")


def command_line(name: str, config_file: Path, *arguments: object) -> str:
    """A command of ours as a shell takes it: `distributary resume -c FILE dbo.t`."""
    return f"distributary {name} {shlex.join(['-c', str(config_file), *map(str, arguments)])}"


def show_command(line: str, style: str = "dim") -> None:
    """Prints a line that somebody may copy into a shell: one line, however long it is."""
    _print(Console(highlight=False), Text(without_controls(line), style=style))


def show_next(command: str, why: str = "") -> None:
    """Prints the next step after a command, as its last line."""
    show_command(f"next: {command}{f'   # {why}' if why else ''}")


def add_row(grid: Table, *cells: str) -> None:
    """Adds a line to a table; text from a record can't control the terminal, or look like another line."""
    grid.add_row(*map(without_controls, cells))


def terminal_width() -> int | None:
    """The width in characters of the terminal that shows the result; None if it is no terminal."""
    console = Console()
    return console.width if console.is_terminal else None


def show_grid(grid: Table) -> None:
    """Prints a table of a result on stdout; in full width if stdout is no terminal, because scripts can't use cut or
    wrapped lines. Cells are plain text, even if records contain Rich's markup."""
    width = None if terminal_width() is not None else 1000
    Console(highlight=False, markup=False, emoji=False, width=width).print(grid)


def show_fault(fault: Fault, *, to_stderr: bool = False) -> None:
    """Prints one fault of a config: `file:line`, the code, the message, and the fix."""
    place, code = (f"{fault.file}:{fault.line}", "bold"), (f"[{fault.code}] ", "red")
    show_text(Text.assemble(place, ": ", code, fault.message), to_stderr=to_stderr)
    if fault.fix:
        show_text(f"    {fault.fix}", style="dim", to_stderr=to_stderr)


def show_error(error: DistributaryError) -> None:
    """Prints an error on stderr, without a traceback: its code, the message, and the fix."""
    if isinstance(error, ConfigError):
        for fault in error.faults:
            show_fault(fault, to_stderr=True)
        show_text(faults_in_config(error.faults), style="bold red", to_stderr=True)
    else:
        show_text(Text.assemble((f"[{error.code}] ", "bold red"), error.message), to_stderr=True)
        show_fix(error.fix, "    ", to_stderr=True)
    if logs.wants_debug():
        traceback.print_exception(error)


def show_unexpected(error: Exception) -> None:
    """Prints on stderr that an unexpected error happened. The error's own text is left out: it may hold users' data,
    which only a requested traceback may show.
    """
    kind = f"{type(error).__module__}.{type(error).__qualname__}".removeprefix("builtins.")
    show_text(Text.assemble(("unexpected error: ", "bold red"), kind), to_stderr=True)
    if logs.wants_debug():
        traceback.print_exception(error)
    else:
        show_text("    set DISTRIBUTARY_LOG=debug for the traceback", style="dim", to_stderr=True)


def faults_in_config(faults: Sequence[Fault]) -> str:
    """`3 faults in the config`."""
    return f"{count(len(faults), 'fault')} in the config"


def _print(console: Console, text: Text, but: str = "") -> None:
    if "\n" not in but:
        text = Text("\\n").join(text.split("\n", allow_blank=True))
    # Lines are never wrapped: paths and places must stay whole for scripts and for terminals that link them.
    console.print(Harmless(text, but), soft_wrap=True)


class Harmless:
    """Something that Rich prints, with control characters written out, `but` for some. Rich's own control characters
    stay."""

    def __init__(self, shown: RenderableType, but: str = "\n") -> None:
        self._shown = shown
        self._but = f"{but}\n"  # Rich's own line ends

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Segment]:
        for segment in console.render(self._shown, options):
            if segment.control:
                yield segment
            else:
                yield Segment(without_controls(segment.text, but=self._but), segment.style)
