"""`distributary pause` and `unpause`: a table, or the whole service, applies nothing for a while."""

from __future__ import annotations

from pathlib import Path

import click

from distributary import logs
from distributary.cli import output
from distributary.config.load import load


@click.command(short_help="Pause a table or the whole service.")
@output.config_option
@click.argument("table", metavar="[TABLE]", required=False)
@click.option("--reason", default="", metavar="TEXT", help="Why; shown with the state.")
@output.output_option
def pause(config_file: Path, table: str | None, reason: str, output_format: str) -> None:
    """Pause TABLE (schema.table), or all tables, until `unpause`: they apply nothing.

    A running service finishes the batch in flight and keeps its lease, so that no other process takes over. Paused
    tables are not compacted or vacuumed either. A pause lasts over restarts. `paused: true` in the config works the
    same way.
    """
    logs.configure()
    # Imported late: `--help` and a bad config must not wait for these modules.
    from distributary.control.pauses import pause as leave

    leave(load(config_file), table, reason)
    _show(table, config_file, output_format, paused=True)


@click.command(short_help="Continue a paused table or service.")
@output.config_option
@click.argument("table", metavar="[TABLE]", required=False)
@output.output_option
def unpause(config_file: Path, table: str | None, output_format: str) -> None:
    """Continue TABLE (schema.table) from its own offsets, or without TABLE the service. Tables that were paused
    separately stay paused."""
    logs.configure()
    from distributary.control.pauses import unpause as end

    was = end(load(config_file), table)
    if output_format == "text" and not was:
        output.show_text(f"{table or 'the service'} was not paused")
        output.show_next(output.command_line("status", config_file), "the state of each table")
        return
    _show(table, config_file, output_format, paused=False)


def _show(table: str | None, config_file: Path, output_format: str, *, paused: bool) -> None:
    if output_format == "json":
        output.show_json({"table": table, "paused": paused})
        return
    does = "will be paused after its batch in flight" if paused else "continues"
    output.show_text(f"{table or 'the service'} {does}; a running service notices within seconds")
    if paused:
        output.show_next(output.command_line("unpause", config_file, *filter(None, [table])), "to continue")
    else:
        output.show_next(output.command_line("status", config_file, "--watch"), "see it catch up")
