"""`distributary quarantine`: records that could not be applied."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click
from rich.table import Table

from distributary import logs
from distributary.cli import output
from distributary.cli.replay_outcome import show_outcome
from distributary.cli.words import count
from distributary.config.load import load
from distributary.errors import UsageError
from distributary.halt_actions import ResumeAction

if TYPE_CHECKING:
    from distributary.quarantine.listing import BadRecord

_COORDINATES = "TOPIC:PARTITION:OFFSET"


@click.group(short_help="Show records that could not be applied, and apply them again.")
def quarantine() -> None:
    """Show the records that could not be applied, and apply them again once the cause is fixed."""
    logs.configure()


@quarantine.command("list", short_help="List records in quarantine.")
@output.config_option
@click.argument("table", metavar="[TABLE]", required=False)
@click.option("--all", "replayed", is_flag=True, help="Also records that were applied since.")
@click.option(
    "--limit",
    type=click.IntRange(1),
    default=50,
    show_default=True,
    metavar="NUMBER",
    help="How many of the newest records to show.",
)
@output.output_option
def list_(config_file: Path, table: str | None, replayed: bool, limit: int, output_format: str) -> None:
    """List the records in quarantine, of TABLE (schema.table) or of all: counts per reason, and the newest records.

    Until a record is applied, the row of its key may be wrong.
    """
    # Imported late: `--help` and a bad config must not wait for these modules.
    from distributary.quarantine.listing import newest_records, summary

    config = load(config_file)
    found = summary(config)
    counts = [reason_count for reason_count in found if table in (None, reason_count.table)]
    records = newest_records(config, table, limit, replayed=replayed)
    if output_format == "json":
        output.show_json(
            {"counts": [asdict(reason_count) for reason_count in counts], "records": [r.as_json() for r in records]}
        )
        return
    if found and not counts:
        others = ", ".join(sorted({reason_count.table for reason_count in found}))
        output.show_text(f"no record of {table} is in quarantine; there are some of {others}")
        return
    if not counts:
        output.show_text("no record is in quarantine: none went there, or they were purged", style="green")
        output.show_next(output.command_line("status", config_file), "the state of each table")
        return
    grid = _grid("table", "reason", "records", "waiting")
    for reason_count in counts:
        output.add_row(
            grid, reason_count.table, reason_count.reason, str(reason_count.records), str(reason_count.waiting)
        )
    output.show_grid(grid)
    if not records:
        command = output.command_line("quarantine list", config_file, *filter(None, [table]), "--all")
        output.show_next(command, "no record is waiting; these were applied since")
    else:
        output.show_text("")
        _show_records(records)
        first = records[0]
        command = output.command_line("quarantine show", config_file, first.coordinates)
        output.show_next(command, "the whole record")


def _show_records(records: Sequence[BadRecord]) -> None:
    """Off a terminal one line each, for scripts; on one, coordinates and reason on a line, message and key below it."""
    from distributary.quarantine.listing import without_schema

    if output.terminal_width() is None:
        grid = _grid("record", "reason", "key", "message")
        for record in records:
            output.add_row(grid, str(record.coordinates), record.reason, without_schema(record.key), record.message)
        output.show_grid(grid)
        return
    for record in records:
        applied = "" if record.replayed_at is None else ", applied since"
        output.show_text(f"{record.coordinates}  [{record.reason}]{applied}", style="bold")
        output.show_text(f"    {record.message}")
        if record.key is not None:
            output.show_text(f"    key: {without_schema(record.key)}", style="dim")


@quarantine.command("show", short_help="Show one record.")
@output.config_option
@click.argument("words", metavar=_COORDINATES, nargs=-1, required=True)
@output.output_option
def show(config_file: Path, words: tuple[str, ...], output_format: str) -> None:
    """Show the record at TOPIC:PARTITION:OFFSET with its key, value and headers.

    As text without the schemas in key and value; with --output json as it is in Kafka.
    """
    from distributary.quarantine.coordinates import RecordCoordinates
    from distributary.quarantine.listing import find_record, without_schema
    from distributary.quarantine.set_aside import NEVER_REPLAYED
    from distributary.reasons import NO_CHANGE_EVENT

    coordinates = RecordCoordinates.parse(*words)
    found = find_record(load(config_file), coordinates)
    record = found.as_json()
    if output_format == "json":
        output.show_json(record)
        return
    for name, data in (("key", found.key), ("value", found.value)):
        record[name] = None if data is None else without_schema(data)
    for name, value in record.items():
        for header in value if name == "headers" else ():
            held = " without a value" if header["value"] is None else f": {header['value']}"
            _show(f"header {header['key']}{held}")
        if name != "headers" and value is not None:
            _show(f"{name}: {value}")
    if found.reason in NEVER_REPLAYED:
        output.show_next(output.command_line("snapshot", config_file, found.table), "have the row sent again")
    elif found.replayed_at is None:
        if found.reason in NO_CHANGE_EVENT:
            output.show_text("If somebody wrote this record by hand, it belongs to no row: leave it here.")
        command = output.command_line("quarantine replay", config_file, found.table)
        output.show_next(command, "apply it, after the cause is fixed")


@quarantine.command("add", short_help="Set a record aside, so that its table skips it.")
@output.config_option
@click.argument("table")
@click.argument("coordinates", metavar=_COORDINATES)
@click.option("--reason", default="", metavar="TEXT", help="Why; it is stored with the record.")
@output.output_option
def add(config_file: Path, table: str, coordinates: str, reason: str, output_format: str) -> None:
    """Make TABLE (schema.table) skip the record at TOPIC:PARTITION:OFFSET, which goes to quarantine undecoded.

    Use it if a record halts its table repeatedly, and `resume` the table afterwards. The row of the record's key may be
    wrong until a snapshot. `resume --rebuild` and `quarantine replay` skip the record, too.
    """
    from distributary.quarantine.coordinates import RecordCoordinates
    from distributary.quarantine.set_aside import set_aside

    record = RecordCoordinates.parse(coordinates)
    tombstone = set_aside(load(config_file), table, record, reason)
    if output_format == "json":
        following = None if tombstone is None else str(tombstone)
        output.show_json({"table": table, "set_aside": str(record), "following_tombstone": following})
    else:
        output.show_text(f"{table} will skip {record}")
        if tombstone is not None:
            command = output.command_line("quarantine add", config_file, table, str(tombstone))
            output.show_text(
                f"{tombstone} is a tombstone of the same key: if the record is a delete, it deletes the row"
            )
            output.show_next(command, "only if the source still has the row")
        output.show_next(output.command_line("resume", config_file, table), "if the table is halted")


@quarantine.command("replay", short_help="Apply a table's records again.")
@output.config_option
@click.argument("table")
@click.option("--wait", "waits", is_flag=True, help="Wait until the service has done it, and show what it applied.")
@click.option(
    "--timeout",
    default="5m",
    show_default=True,
    metavar="DURATION",
    help="How long --wait waits at most: 90s, 5m. The request stays.",
)
@output.output_option
def replay(config_file: Path, table: str, timeout: str, output_format: str, *, waits: bool) -> None:
    """Apply the records of TABLE (schema.table) again, each at its position in the source's log: newer changes stay.

    A running service does it within seconds, a stopped one when it starts. Records that still can't be applied
    stay in quarantine, and so do those without a position: PostgreSQL's snapshot rows and lone tombstones. A snapshot
    by the connector corrects their rows.

    With --wait it exits with 1 if the service does not handle the request in time, or halts the table.
    """
    from distributary.control.resume_requests import write_resume_request
    from distributary.quarantine.listing import replay_state

    config, longest = load(config_file), _seconds(timeout)
    before = replay_state(config, table).last_applied if waits else None
    request = write_resume_request(config, table, ResumeAction.REPLAY)
    if waits:
        sys.exit(show_outcome(config, config_file, request, before, longest, output_format))
    if output_format == "json":
        action = ResumeAction.REPLAY.value
        output.show_json({"table": request.table, "action": action, "asked": action})  # `asked`: docs/versions.md
    else:
        output.show_text(f"{request.table}: the service handles the request within seconds, or when it starts")
        output.show_next(output.command_line("quarantine list", config_file, request.table), "which records are left")


@quarantine.command("purge", short_help="Delete old records.")
@output.config_option
@click.argument("table", metavar="[TABLE]", required=False)
@click.option("--older-than", required=True, metavar="DURATION", help="Minimum age of the records: 90d, 12h.")
@output.output_option
def purge(config_file: Path, table: str | None, older_than: str, output_format: str) -> None:
    """Delete the records of TABLE (schema.table) or of all that have been in quarantine for longer than DURATION,
    applied or not.

    It is done at once, also while the service runs. Readers no longer see the records;
    the service's VACUUM removes their files (`maintenance.keep`, 7 days). With `quarantine.keep` in the
    config the service does the same regularly.
    """
    from distributary.quarantine.purge import purge as delete

    deleted = delete(load(config_file), _seconds(older_than), table)
    if output_format == "json":
        output.show_json({"table": table, "deleted": deleted})
    else:
        output.show_text(f"{count(deleted, 'record')} deleted")
        output.show_next(output.command_line("quarantine list", config_file), "which records are left")


def _seconds(duration: str) -> float:
    from distributary.config.scalars import seconds

    try:
        return seconds(duration)
    except ValueError:
        raise UsageError("bad-duration", f"{duration!r} is no duration", "write 90d, 12h or 30m") from None


def _grid(*names: str) -> Table:
    grid = Table(box=None, pad_edge=False, header_style="bold")
    for name in names:
        numeric = name in ("partition", "offset", "records", "waiting")
        # On a narrow terminal long names are folded; into a file each record is a line.
        whole = numeric or output.terminal_width() is None
        grid.add_column(name, no_wrap=whole, overflow="fold", justify="right" if numeric else "left")
    return grid


def _show(line: str) -> None:
    output.show_text(line, but="\n\t")
