"""`distributary resume`: makes a halted table continue, rebuilds or reconciles a table."""

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
    help="Skip records that Kafka no longer has. Rows that only they would have changed stay wrong until a snapshot.",
)
@click.option(
    "--accept-reset",
    "accept",
    flag_value="reset",
    help="Read a recreated topic from its start, on top of the existing rows.",
)
@click.option(
    "--rebuild",
    "accept",
    flag_value="rebuild",
    help="Remove all rows and fill the table again from its topic. Readers see an empty table first.",
)
@click.option(
    "--reconcile",
    is_flag=True,
    help="Remove the rows that the table's last complete snapshot does not have (`status` counts them as ghosts).",
)
@output.output_option
def resume(config_file: Path, table: str, accept: str | None, reconcile: bool, output_format: str) -> None:
    """Make a halted TABLE (schema.table) continue, or rebuild or reconcile a table.

    Without an option the table is tried again from its own offsets; fix the cause first. A running service does it
    within seconds, a stopped one when it starts. If a halt needs an option, its message names it.

    --reconcile removes rows that were deleted at the source between an interrupted snapshot and the next complete one;
    with `deletes: soft` it marks them. The command does it at once with its own Spark. The service may run
    meanwhile, except on S3. Do not use it after a snapshot of only some rows (`additional-conditions` of a
    signal, `snapshot.select.statement.overrides`): it would remove the others.
    """
    logs.configure()
    config = load(config_file)
    if reconcile and accept:
        raise UsageError(
            "one-at-a-time", f"--reconcile can't be combined with another option ({table})", "run it twice"
        )
    if reconcile:
        _reconcile(config, table, output_format)
    else:
        _resume(config, table, ResumeAction(accept or ResumeAction.NOTHING), output_format)


def _resume(config: Config, name: str, accept: ResumeAction, output_format: str) -> None:
    # Imported late: Spark takes a second to import, and `--help` and a bad config must not wait for it.
    from distributary.control.resume_requests import resuming

    asked = resuming(config, name, accept)
    if output_format == "json":
        output.show_json({"table": asked.table, "was": asked.halt, "accept": accept.value})
        return
    was = f"halted [{asked.halt['code']}]" if asked.halt else "not halted"
    output.show_text(f"{asked.table} was {was}: the service handles the request within seconds, or when it starts")


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
