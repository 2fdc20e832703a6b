"""`distributary resume`: makes a halted table continue, rebuilds or reconciles a table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from distributary import logs
from distributary.cli import output
from distributary.cli.words import count
from distributary.config import Config
from distributary.config.load import load
from distributary.consume.starting_point import StartingPoint, starting_point
from distributary.errors import UsageError
from distributary.halt_actions import ResumeAction

if TYPE_CHECKING:
    from distributary.workers.adopt import Adopted

_COMPARE = "compare the table with its topic"


@click.command(short_help="Start a halted table again.")
@output.config_option
@click.argument("table", metavar="TABLE")
@click.option(
    "--accept-loss",
    "action",
    flag_value="loss",
    help="Skip records that Kafka no longer has. Rows that only they would have changed stay wrong until a snapshot.",
)
@click.option(
    "--accept-reset",
    "action",
    flag_value="reset",
    help="Read a recreated topic from its start, on top of the existing rows.",
)
@click.option(
    "--rebuild",
    "action",
    flag_value="rebuild",
    help="Remove all rows and fill the table again from its topic. Readers see an empty table first.",
)
@click.option(
    "--reconcile",
    is_flag=True,
    help="Remove the rows that the table's last complete snapshot does not have (`status` counts them as orphaned).",
)
@click.option(
    "--adopt",
    is_flag=True,
    help="Take over a table that another job filled, after checking its columns, key and rows.",
)
@click.option(
    "--from-offsets",
    metavar="P:OFFSET,…",
    help="With --adopt: the first record to apply in each partition (0:1234,1:88). Default: the first that Kafka has.",
)
@click.option(
    "--from-time",
    metavar="TIME",
    help="With --adopt: the same by Kafka's time of the records (2026-01-31T06:00:00Z).",
)
@click.option("--check", is_flag=True, help="With --adopt: only show what would be done, and what prevents it.")
@output.output_option
def resume(
    config_file: Path,
    table: str,
    action: str | None,
    reconcile: bool,
    adopt: bool,
    from_offsets: str | None,
    from_time: str | None,
    check: bool,
    output_format: str,
) -> None:
    """Make a halted TABLE (schema.table) continue, or rebuild, reconcile or adopt a table.

    Without an option the table is tried again from its own offsets; fix the cause first. A running service does it
    within seconds, a stopped one when it starts. If a halt needs an option, its message names it.

    --reconcile removes rows that were deleted at the source between an interrupted snapshot and the next complete one;
    with `deletes: soft` it marks them. The command does it at once with its own Spark, also while the
    service runs. Do not use it after a snapshot of only some rows (`additional-conditions` of a
    signal, `snapshot.select.statement.overrides`): it would remove the others.

    --adopt takes over a table of another job, which must have stopped: its rows stay, and the topic's changes are
    applied over them from the given offsets on. All changes before it must be in the table already. It is done at once,
    by a Spark of its own. Exits with 1, and names the reasons, if the table can't be adopted.
    """
    logs.configure()
    if (from_offsets or from_time or check) and not adopt:
        raise UsageError("only-with-adopt", "--from-offsets, --from-time and --check go with --adopt", "add --adopt")
    if sum((reconcile, adopt, action is not None)) > 1:
        raise UsageError(
            "one-at-a-time", f"--reconcile or --adopt and another option for {table} in one command", "run it twice"
        )
    config = load(config_file)
    if adopt:
        point = starting_point(from_offsets, from_time)
        start = {"--from-offsets": from_offsets, "--from-time": from_time}
        again = output.command_line("resume", config_file, table, "--adopt", *_given(start))
        _adopt(config, table, point, output_format, check_only=check, again=again, config_file=config_file)
    elif reconcile:
        _reconcile(config, table, output_format, config_file)
    else:
        _resume(config, table, ResumeAction(action or ResumeAction.RETRY), output_format, config_file)


def _given(options: Mapping[str, str | None]) -> list[str]:
    return [word for name, value in options.items() if value for word in (name, value)]


def _resume(config: Config, name: str, action: ResumeAction, output_format: str, config_file: Path) -> None:
    # Imported late: Spark takes a second to import, and `--help` and a bad config must not wait for it.
    from distributary.control.resume_requests import write_resume_request

    request = write_resume_request(config, name, action)
    if output_format == "json":
        former = "nothing" if action is ResumeAction.RETRY else action.value  # for one release: docs/versions.md
        output.show_json({"table": request.table, "was": request.halt, "action": action.value, "accept": former})
        return
    was = f"halted [{request.halt['code']}]" if request.halt else "not halted"
    output.show_text(f"{request.table} was {was}: the service handles the request within seconds, or when it starts")
    output.show_next(output.command_line("status", config_file, "--watch"), "see it continue")


def _adopt(
    config: Config,
    name: str,
    point: StartingPoint,
    output_format: str,
    *,
    check_only: bool,
    again: str,
    config_file: Path,
) -> None:
    """`again`: this command without --check."""
    from distributary.workers.adopt import adopt

    done = adopt(config, name, point, check_only=check_only)
    if output_format == "json":
        output.show_json({**asdict(done), "adopted": not (done.differences or check_only)})
    elif done.differences:
        output.show_text(f"{done.table} can't be adopted as it is", style="bold red")
        for difference in done.differences:
            output.show_text(f"  {difference.what}", style="red")
            output.show_fix(difference.fix, "      ", done.table)
        output.show_next(f"{again} --check", "again, after the differences are fixed")
    else:
        output.show_text(f"{done.table} {'can be' if check_only else 'is'} adopted", style="green")
        _show_adopted(done)
        if check_only:
            output.show_next(again, "after the other job has stopped for good")
        else:
            output.show_next(output.command_line("verify", config_file, name), _COMPARE)
    if done.differences:
        click.get_current_context().exit(1)


def _show_adopted(done: Adopted) -> None:
    starts = ", ".join(f"{p}: {offset}" for p, offset in sorted(done.start.items()))
    output.show_text(f"  key: {', '.join(done.key)}")
    output.show_text(f"  first record to apply, by partition: {starts}; the table must have all changes before it")
    output.show_text(f"  added columns: {', '.join(done.added) or 'none'}")
    if done.not_sent:
        output.show_text(f"  columns that no record has, NULL in rows that change: {', '.join(done.not_sent)}")
    if done.warning:
        output.show_text(f"  warning: {done.warning}", style=output.WARNING)
    output.show_text(f"  last written: {done.last_written}; that job must not write any more")


def _reconcile(config: Config, table: str, output_format: str, config_file: Path) -> None:
    from distributary.workers.reconcile import reconcile as remove

    removed = remove(config, table)
    if output_format == "json":
        output.show_json({"table": table, "removed": removed})
        return
    result = "nothing to be done, the last complete snapshot has all rows"
    if removed:
        result = f"removed {count(removed, 'row')} that the last complete snapshot does not have"
    output.show_text(f"{table}: {result}", style="green")
    output.show_next(output.command_line("verify", config_file, table), _COMPARE)
