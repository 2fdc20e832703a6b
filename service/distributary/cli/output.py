"""What commands print: results to stdout, as text or as JSON alone; everything else to stderr."""

from __future__ import annotations

import json
import re
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

from distributary import logs
from distributary.errors import ConfigError, DistributaryError, Fault

Command = TypeVar("Command", bound=Callable[..., Any])
_CONTROLS = re.compile(r"[\x00-\x1f\x7f-\x9f]")


def config_option(command: Command) -> Command:
    """`-c FILE`: gives the command `config_file: Path`. Whether there is such a file is for `load` to say."""
    return click.option(
        "-c",
        "--config",
        "config_file",
        type=click.Path(path_type=Path),
        envvar="DISTRIBUTARY_CONFIG",
        show_envvar=True,
        required=True,
        metavar="FILE",
        help="The config file.",
    )(command)


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
    click.echo(json.dumps(result, indent=2, ensure_ascii=False))


def show_text(line: str | Text, style: str = "") -> None:
    """Prints a line of a result on stdout."""
    _print(Console(highlight=False), Text(line, style=style) if isinstance(line, str) else line)


def show_grid(grid: Table) -> None:
    """Prints a table of a result on stdout, as wide as it is: a line that is cut or wrapped is of no use to a script.
    Its cells are text as it stands, though records may hold what Rich would take for markup."""
    width = None if sys.stdout.isatty() else 1000
    Console(highlight=False, markup=False, emoji=False, width=width).print(grid)


def without_controls(text: str, *, but: str = "") -> str:
    """The text with control characters written out (`\\x1b`), `but` for some: a record must not steer a terminal."""
    return _CONTROLS.sub(lambda found: found[0] if found[0] in but else f"\\x{ord(found[0]):02x}", text)


def show_fault(fault: Fault, *, to_stderr: bool = False) -> None:
    """Prints one fault of a config: `file:line`, the code, what is wrong, and what to do."""
    console = Console(stderr=to_stderr, highlight=False)
    _print(
        console, Text.assemble((f"{fault.file}:{fault.line}", "bold"), ": ", (f"[{fault.code}] ", "red"), fault.message)
    )
    if fault.fix:
        _print(console, Text(f"    {fault.fix}", style="dim"))


def show_error(error: DistributaryError) -> None:
    """Prints an error on stderr, without a traceback: its code, what is wrong, what to do."""
    console = Console(stderr=True, highlight=False)
    if isinstance(error, ConfigError):
        for fault in error.faults:
            show_fault(fault, to_stderr=True)
        _print(console, Text(counted(error.faults), style="bold red"))
    else:
        _print(console, Text.assemble((f"[{error.code}] ", "bold red"), error.message))
        if error.fix:
            _print(console, Text(f"    {error.fix}", style="dim"))
    if logs.wants_debug():
        traceback.print_exception(error)


def show_unexpected(error: Exception) -> None:
    """Prints on stderr that something went wrong that nobody thought of.

    The error's own text is left out: it may hold users' data, which a traceback that was asked for may show.
    """
    console = Console(stderr=True, highlight=False)
    kind = f"{type(error).__module__}.{type(error).__qualname__}".removeprefix("builtins.")
    _print(console, Text.assemble(("unexpected error: ", "bold red"), kind))
    if logs.wants_debug():
        traceback.print_exception(error)
    else:
        _print(console, Text("    set DISTRIBUTARY_LOG=debug for the traceback", style="dim"))


def counted(faults: list[Fault]) -> str:
    """`3 faults in the config`."""
    return f"{len(faults)} fault{'' if len(faults) == 1 else 's'} in the config"


def _print(console: Console, text: Text) -> None:
    # Lines are never wrapped: paths and places must stay whole for scripts and for terminals that link them.
    console.print(text, soft_wrap=True)
