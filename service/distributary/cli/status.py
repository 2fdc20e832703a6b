"""`distributary status`: shows the state of the tables."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from distributary import logs
from distributary.cli import output
from distributary.cli.progress import progress
from distributary.cli.tables_view import grid, remarks
from distributary.cli.watching import watch
from distributary.config.load import load
from distributary.errors import UsageError
from distributary.halt_actions import NEEDED_ACTIONS, resume_option
from distributary.table_state import TableState

if TYPE_CHECKING:
    from distributary.control.overview import TableOverview


@click.command(short_help="Show the state and lag of each table.")
@output.config_option
@output.output_option
@click.option("--watch", "watches", is_flag=True, help="A live view in the terminal, until Ctrl-C.")
@click.option(
    "--every",
    type=click.FloatRange(min=0.1),
    default=2.0,
    show_default=True,
    metavar="SECONDS",
    help="Seconds between two updates of --watch.",
)
def status(config_file: Path, output_format: str, every: float, *, watches: bool) -> None:
    """Show per table its state, lag, last commit, records in quarantine, orphaned rows, the layout in force and how
    much it remembers beside its rows. A narrow terminal shows the first columns.

    Reads the lake and Kafka, not the service, which may be stopped. Exits with 1 if a table is halted.
    """
    logs.configure()
    if watches:
        _check_terminal(output_format)
    config = load(config_file)

    # Imported late: `--help` and a bad config must not wait for these modules.
    from distributary.consume.kafka_client import KafkaClient
    from distributary.control.overview import overview

    kafka = KafkaClient(config.kafka_properties())
    if watches:
        tables = watch(lambda: overview(config, kafka), every, str(config_file))
    else:
        with progress("reading Kafka and the lake"):
            tables = overview(config, kafka)
    if output_format == "json":
        output.show_json({"tables": [table.as_json() for table in tables]})
    else:
        _show(tables, config_file)
    sys.exit(1 if any(table.state is TableState.HALTED for table in tables) else 0)


def _check_terminal(output_format: str) -> None:
    if output_format == "json" or not sys.stdout.isatty():
        raise UsageError(
            "watch-needs-terminal",
            "--watch is a view for a terminal; it prints no JSON and into no file",
            "leave --watch out and run it as often as you like, or scrape /metrics",
        )


def _show(tables: list[TableOverview], config_file: Path) -> None:
    if not tables:
        output.show_text("no topic of the config's tables exists", style=output.WARNING)
        output.show_next(output.command_line("plan", config_file), "which topics there are, and why none fits")
        return
    output.show_grid(grid(tables, width=output.terminal_width()))
    for remark in remarks(tables, str(config_file)):
        output.show_text(remark.text, style=remark.style)
        if remark.fix:
            output.show_text(f"    {remark.fix}", style="dim")
        if remark.command:
            output.show_command(f"    {remark.command}")
    output.show_next(*_next(tables, config_file))


def _next(tables: list[TableOverview], config_file: Path) -> tuple[str, str]:
    """The command that helps most now, and why."""
    if halted := [table for table in tables if table.state is TableState.HALTED]:
        first, more = halted[0], f"; {len(halted) - 1} more are halted" if len(halted) > 1 else ""
        option = resume_option(NEEDED_ACTIONS.get((first.error or {}).get("code", "")))
        return f"{output.command_line('resume', config_file, first.table)}{option}", f"after the fix{more}"
    if any(table.in_quarantine for table in tables):
        return output.command_line("quarantine list", config_file), "which records were not applied, and why"
    if all(table.state is TableState.UP_TO_DATE for table in tables):
        return output.command_line("verify", config_file), "compare the tables with their topics"
    return output.command_line("status", config_file, "--watch"), "see them catch up"
