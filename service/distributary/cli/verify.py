"""`distributary verify`: compares tables with their topics or with the live source."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import click

from distributary import logs
from distributary.cli import output
from distributary.cli.progress import progress
from distributary.cli.words import count
from distributary.config.interpolate import InterpolationError, interpolate
from distributary.config.load import load
from distributary.errors import UsageError

if TYPE_CHECKING:
    from distributary.verify.report import Difference, Event, TableReport

_STYLES = {"equal": "green", "different": "bold red", "not_verified": f"bold {output.WARNING}"}
_NOT_CHECKED = {
    "before_topic": "not checked: the topic no longer has the records that decide them",
    "quarantined": "not checked: they differ and have records in quarantine",
    "removed_orphaned_rows": "missing in the lake and in the last complete snapshot (orphaned rows)",
    "changed_meanwhile": "not checked: they changed at the source meanwhile",
}


@click.command(short_help="Compare tables with their topics.")
@output.config_option
@click.argument("table", metavar="[TABLE]", required=False)
@click.option(
    "--limit",
    type=click.IntRange(0),
    default=20,
    show_default=True,
    metavar="NUMBER",
    help="How many differing keys to show.",
)
@click.option("--keys", metavar="FROM..TO", help="Only keys in this range of the first key column, ends included.")
@click.option(
    "--source-dsn",
    metavar="DSN",
    help="Compare with the live table of this PostgreSQL, MySQL, MariaDB, SQL Server, Oracle or Db2 instead. May"
    " contain ${env:NAME} and ${file:PATH}.",
)
@output.output_option
def verify(
    config_file: Path, table: str | None, limit: int, keys: str | None, source_dsn: str | None, output_format: str
) -> None:
    """Compare TABLE (schema.table), or every table, with its topic.

    Replays the topic from its first record to the offsets in the table's newest commit and compares the result with
    that version of the table. Shows counts, then the keys that differ, with both values and the change that each comes
    from. Changes no table, and the service may run meanwhile. Needs its own Spark, and reads the whole topic. Exits
    with 1 if a table differs or can't be verified.
    """
    logs.configure()
    config = load(config_file)

    # Imported late: `--help` and a bad config must not wait for these modules.
    from distributary.verify.check import VerifyOptions
    from distributary.verify.check import verify as compare
    from distributary.verify.key_range import KeyRange

    dsn = None if source_dsn is None else _followed(source_dsn)
    options = VerifyOptions(limit, None if keys is None else KeyRange.parse(keys), dsn)
    reports = []
    with progress() as doing:
        for report in compare(config, table, options, doing):
            reports.append(report)
            if output_format == "text":
                with doing.aside():
                    _show(report)
    if output_format == "json":
        output.show_json({"tables": [report.as_json() for report in reports]})
    elif not reports:
        output.show_text("no topic of the config's tables exists", style=output.WARNING)
    else:
        _show_end(reports, config_file)
    sys.exit(0 if all(report.state.value == "equal" for report in reports) else 1)


def _show_end(reports: list[TableReport], config_file: Path) -> None:
    """Shows how many tables are equal, and the next step for one that is not."""
    states = Counter(report.state.value for report in reports)
    others = [f"{states[state]} {words}" for state, words in _OTHERS.items() if states[state]]
    all_equal = states["equal"] == len(reports)
    unchecked = sum(sum(report.counts.not_checked.values()) for report in reports)
    rest = f" ({count(unchecked, 'key')} not checked)" if unchecked else ""
    summary = ", ".join([f"{count(len(reports), 'table')}: {states['equal']} equal{rest}", *others])
    output.show_text(summary, style="bold green" if all_equal else "bold red")
    if all_equal:
        output.show_next(output.command_line("status", config_file, "--watch"), "watch the tables follow their sources")
        return
    report = next((report_of_table for report_of_table in reports if report_of_table.state.value == "different"), None)
    if report is None:
        name = next(report_of_table.table for report_of_table in reports if report_of_table.state.value != "equal")
        command, why = output.command_line("verify", config_file, name), "again, after the fix"
    elif report.quarantined.records:
        command = output.command_line("quarantine list", config_file, report.table)
        why = "which records were not applied, and why"
    else:
        command = output.command_line("verify", config_file, report.table, "--limit", 100)
        why = "more of its keys; docs/verify.md explains possible causes"
    output.show_next(command, why)


_OTHERS = {"different": "different", "not_verified": "can't be verified"}


def _followed(dsn: str) -> str:
    try:
        return interpolate(dsn, Path.cwd())
    except InterpolationError as error:
        raise UsageError(error.code, f"--source-dsn: {error.message}", error.fix) from error


def _show(report: TableReport) -> None:
    state = report.state.value
    if report.error is not None:
        output.show_text(f"{report.table}: can't be verified", style=_STYLES[state])
        output.show_text(f"  [{report.error['code']}] {report.error['message']}", style="red")
        output.show_fix(report.error["fix"], "      ", report.table)
        return
    counts = report.counts
    only = f" (keys {report.keys})" if report.keys else ""
    unchecked = sum(counts.not_checked.values())
    rest = f", {count(unchecked, 'key')} not checked" if unchecked else ""
    style = f"bold {output.WARNING}" if rest and state == "equal" else _STYLES[state]
    output.show_text(f"{report.table}: {state}{rest}{only}", style=style)
    if report.version is not None:
        offsets = ", ".join(f"{p}: {a}-{b - 1}" for p, (a, b) in sorted(report.offsets.items()))
        output.show_text(f"  version {report.version} of {report.path}", style="dim")
        if offsets:
            output.show_text(f"  {report.topic}, offsets by partition: {offsets}", style="dim")
    output.show_text(f"  rows: {counts.lake} in the lake, {counts.expected} expected; {counts.equal} keys equal")
    for name, number in counts.faults.items():
        if number:
            output.show_text(f"  {number} {_FAULTS[name]}", style="red")
    for name, number in counts.not_checked.items():
        if number:
            output.show_text(f"  {number} {_NOT_CHECKED[name]}", style=output.WARNING)
    if report.quarantined.records:
        output.show_text(f"  {_quarantined(report)}", style=output.WARNING)
    for note in report.notes:
        output.show_text(f"  {note}", style=output.WARNING)
    for difference in report.differences:
        _show_difference(difference, report.topic)
    not_shown = counts.different - len(report.differences)
    if not_shown:
        output.show_text(f"  and {not_shown} more (--limit)", style="dim")


_FAULTS = {
    "missing": "missing in the lake",
    "unexpected": "unexpected in the lake",
    "different": "with other values",
    "repeated": "in the lake more often than expected",
}


def _quarantined(report: TableReport) -> str:
    bad = report.quarantined
    examples = ", ".join(_coordinates(event, report.topic) for event in bad.examples)
    unknown = f", {bad.without_key} of them without a key that can be read" if bad.without_key else ""
    return (
        f"records that can't be applied: {bad.records} ({examples}), of {bad.keys} keys{unknown};"
        f" `distributary quarantine list` shows those that are in quarantine"
    )


def _show_difference(difference: Difference, topic: str) -> None:
    output.show_text(f"  {difference.fault} {difference.key}", style="bold")
    for value in difference.values:
        lake, expected = _value(value.lake), _value(value.expected)
        output.show_text(f"      {value.column}: {lake} in the lake, {expected} expected")
    for label, event in (
        ("decided by", difference.decided_by),
        ("last record", difference.last_record),
        ("row in the lake from", difference.lake_row),
    ):
        if event is not None:
            shown = f"{event.op or '?'} at {_coordinates(event, topic)}, position {event.position}"
            output.show_text(f"      {label} {shown}", style="dim")


def _coordinates(event: Event, topic: str) -> str:
    """The event's record as `topic:partition:offset`."""
    return ":".join("?" if part is None else str(part) for part in (topic, event.partition, event.offset))


def _value(text: str | None) -> str:
    return "NULL" if text is None else repr(text)
