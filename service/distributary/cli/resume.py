"""`distributary resume`: a halted table goes on; what needs an operator's word."""

from __future__ import annotations

from pathlib import Path

import click

from distributary import logs
from distributary.cli import output
from distributary.config import Config
from distributary.config.load import load
from distributary.errors import UsageError
from distributary.halt_actions import ResumeAction


@click.command(short_help="Start a halted table again.")
@output.config_option
@click.argument("table", metavar="TABLE")
@click.option(
    "--accept-loss",
    "accept",
    flag_value="loss",
    help="Records that Kafka no longer has are passed over; rows that only they told of stay wrong until a snapshot.",
)
@click.option(
    "--accept-reset",
    "accept",
    flag_value="reset",
    help="The topic was created again: it is read from its start, on top of the rows that the table has.",
)
@click.option(
    "--rebuild",
    "accept",
    flag_value="rebuild",
    help="All rows go, and the table is filled again from what its topic has. Readers see it fill.",
)
@click.option(
    "--reconcile",
    is_flag=True,
    help="Remove the rows that the table's last complete snapshot does not have (`status` counts them as orphaned).",
)
@output.output_option
def resume(config_file: Path, table: str, accept: str | None, reconcile: bool, output_format: str) -> None:
    """Start a halted TABLE (schema.table) again, or do for it what else needs an operator's word.

    Without an option the table is tried again from its own offsets, once what halted it is mended. A service that runs
    takes it up within seconds, one that does not when it starts. Where a halt asks for more it names the option.

    --reconcile removes the rows that were deleted at the source between an interrupted snapshot and the complete one
    after it; with `deletes: soft` they are marked. It is done at once, by a Spark of its own; the service may run
    meanwhile, but not on S3. Not after a snapshot that was told to read only some rows (`additional-conditions` of a
    signal, `snapshot.select.statement.overrides`): the other rows would be removed.
    """
    logs.configure()
    config = load(config_file)
    if reconcile and accept:
        raise UsageError("one-at-a-time", f"--reconcile and another option for {table} in one command", "run it twice")
    if reconcile:
        _reconcile(config, table, output_format)
    else:
        _resume(config, table, ResumeAction(accept or ResumeAction.NOTHING), output_format)


def _resume(config: Config, name: str, accept: ResumeAction, output_format: str) -> None:
    # Here and not above: Spark takes a second to import, which help and a bad config need not wait for.
    from distributary.control.resume_requests import resuming

    asked = resuming(config, name, accept)
    if output_format == "json":
        output.show_json({"table": asked.table, "was": asked.halt, "accept": accept.value})
        return
    was = f"halted [{asked.halt['code']}]" if asked.halt else "not halted"
    output.show_text(f"{asked.table} was {was}: the service takes the request up within seconds, or when it starts")


def _reconcile(config: Config, table: str, output_format: str) -> None:
    from distributary.workers.reconcile import reconcile as remove

    removed = remove(config, table)
    if output_format == "json":
        output.show_json({"table": table, "removed": removed})
    elif removed:
        rows = f"{removed} row{'' if removed == 1 else 's'}"
        output.show_text(f"{table}: removed {rows} that the last complete snapshot does not have", style="green")
    else:
        output.show_text(f"{table}: nothing to be done, the last complete snapshot has all rows", style="green")
