"""docs/cli.md: every command with its options, from the command line itself."""

from __future__ import annotations

import re
from collections.abc import Iterator
from inspect import cleandoc

import click

from distributary.cli import main

_HEAD = """\
# Commands

Every command and option. `make docs` writes this page from the code; `--help` shows the same text in the terminal.

`DISTRIBUTARY_CONFIG` is the config of commands without `-c`. All commands but `run` may be used
while the service runs. `validate`, `plan`, `status`, `verify`, `quarantine list` and `quarantine show` change nothing;
`doctor` writes and removes one small file.

| exit code | meaning |
| --- | --- |
| 0 | done |
| 1 | a check failed, a table differs, or a table is halted |
| 2 | wrong usage, a bad config, something that the command needs is missing, or an unexpected error |
| 3 | another driver already runs this config |
"""


def as_markdown() -> str:
    """The page: one section per command, in alphabetical order; a group is followed by its commands."""
    root = click.Context(main, info_name="distributary")
    sections = [section for name in main.list_commands(root) for section in _sections(main.commands[name], root)]
    return "\n".join([_HEAD, *sections]).rstrip() + "\n"


def _sections(command: click.Command, parent: click.Context) -> Iterator[str]:
    context = click.Context(command, info_name=command.name, parent=parent)
    yield _section(command, context)
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            yield from _sections(command.commands[name], context)


def _section(command: click.Command, context: click.Context) -> str:
    usage = " ".join([context.command_path, *command.collect_usage_pieces(context)])
    lines = [f"## {context.command_path}", "", "```text", usage, "```", "", _prose(command.help or ""), ""]
    options = [
        record
        for option in command.params
        if isinstance(option, click.Option) and (record := option.get_help_record(context))
    ]
    if options:
        lines += ["| option | what it does |", "| --- | --- |", *(_row(*record) for record in options), ""]
    return "\n".join(lines)


def _prose(text: str) -> str:
    """A help text as Markdown: options in it as code, no marks of click."""
    text = cleandoc(text).replace("\b\n", "")
    parts = text.split("`")  # every second one is in backticks already
    parts[::2] = [re.sub(r"(?<![\w-])(--[a-z-]+)", r"`\1`", part) for part in parts[::2]]
    return "`".join(parts)


def _row(option: str, text: str) -> str:
    cells = (f"`{option}`", _prose(text))
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"
