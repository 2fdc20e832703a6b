"""`distributary resume`: what a table needs an operator's word for."""

from __future__ import annotations

from pathlib import Path

import click

from distributary.cli import output
from distributary.config.load import load
from distributary.errors import UsageError
from distributary.operate import logs


@click.command(short_help="Do for a table what needs an operator's word.")
@output.config_option
@click.argument("table", metavar="TABLE")
@click.option(
    "--reconcile",
    is_flag=True,
    help="Remove the rows that the table's last complete snapshot does not have (`status` counts them as ghosts).",
)
@output.output_option
def resume(config_file: Path, table: str, reconcile: bool, output_format: str) -> None:
    """Do for TABLE (schema.table) what needs an operator's word.

    --reconcile removes the rows that were deleted at the source between an interrupted snapshot and the complete one
    after it; with `deletes: soft` they are marked. The service may run meanwhile.

    Not after a snapshot that was told to read only some rows (`additional-conditions` of a signal,
    `snapshot.select.statement.overrides`): the other rows would be removed.
    """
    logs.configure()
    config = load(config_file)
    if not reconcile:
        raise UsageError(
            "nothing-to-resume",
            "say what is to be done: this version has --reconcile alone",
            "a halted table goes on by itself when its cause is mended and the service is started again",
        )

    # Here and not above: Spark takes a second to import, which help and a bad config need not wait for.
    from distributary.operate.reconcile import reconcile as remove

    removed = remove(config, table)
    if output_format == "json":
        output.show_json({"table": table, "removed": removed})
    elif removed:
        rows = f"{removed} row{'' if removed == 1 else 's'}"
        output.show_text(f"{table}: removed {rows} that the last complete snapshot does not have", style="green")
    else:
        output.show_text(f"{table}: nothing to be done, the last complete snapshot has all rows", style="green")
