"""`distributary pause` and `unpause`: a table, or the whole service, takes nothing in for a while."""

from __future__ import annotations

from pathlib import Path

import click

from distributary import logs
from distributary.cli import output
from distributary.config.load import load


@click.command(short_help="Have a table, or the service, apply nothing for a while.")
@output.config_option
@click.argument("table", metavar="[TABLE]", required=False)
@click.option("--reason", default="", metavar="TEXT", help="Why; it is shown with the state.")
@output.output_option
def pause(config_file: Path, table: str | None, reason: str, output_format: str) -> None:
    """Have TABLE (schema.table) apply nothing until `unpause`, or all tables where none is named.

    A service that runs finishes the batch in flight, and keeps its lease: no other one takes its place. Tables that are
    paused are not compacted or vacuumed either. It holds over restarts. `paused: true` in the config does the same.
    """
    logs.configure()
    # Here and not above: what help and a bad config need not wait for.
    from distributary.control.pauses import pause as leave

    leave(load(config_file), table, reason)
    _tell(table, output_format, paused=True)


@click.command(short_help="Have what was paused continue.")
@output.config_option
@click.argument("table", metavar="[TABLE]", required=False)
@output.output_option
def unpause(config_file: Path, table: str | None, output_format: str) -> None:
    """Have TABLE (schema.table) continue where it is, or without one the service: tables that were paused by themselves
    stay so."""
    logs.configure()
    from distributary.control.pauses import unpause as end

    was = end(load(config_file), table)
    if output_format == "text" and not was:
        output.show_text(f"{table or 'the service'} was not paused")
        return
    _tell(table, output_format, paused=False)


def _tell(table: str | None, output_format: str, *, paused: bool) -> None:
    if output_format == "json":
        output.show_json({"table": table, "paused": paused})
        return
    does = "is paused once its batch in flight is through" if paused else "goes on"
    output.show_text(f"{table or 'the service'} {does}: a service that runs sees it within seconds")
