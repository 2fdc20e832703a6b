"""`distributary plan`: what `run` would do."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import click

from distributary import logs
from distributary.cli import output
from distributary.cli.progress import progress
from distributary.cli.words import count
from distributary.config.load import load

if TYPE_CHECKING:
    from distributary.preflight.plan import Plan
    from distributary.preflight.plan_warning import PlanWarning
    from distributary.preflight.table_plan import TablePlan

_STYLES = {
    "create": "green",
    "alter": output.NOTED,
    "continue": "green",
    "up_to_date": "green",
    "wait": "dim",
    "halt": "red",
}


@click.command(short_help="Show what run would do with each table, and what would be lost.")
@output.config_option
@output.output_option
def plan(config_file: Path, output_format: str) -> None:
    """Show what `run` would do, and change nothing.

    Reads Kafka and the lake. Shows which tables would be created and with which columns, where existing ones would
    continue, which would get columns, which would halt and why; which topics are ignored; and which settings of the
    source lose data (docs/plan-warnings.md explains each warning). It reads only the first records to process and the
    newest ones, and misses a change in between. Exits with 1 if a table would halt.
    """
    logs.configure()
    config = load(config_file)

    # Imported late: `--help` and a bad config must not wait for these modules.
    from distributary.control.lease import running_driver
    from distributary.preflight.plan import plan as make_plan

    with progress("reading the topics of the config") as doing:
        made_plan = make_plan(config, lambda done, total: doing(f"reading topics: {done} of {total}"))
    if output_format == "json":
        output.show_json(made_plan.as_json())
    else:
        _show(made_plan)
        _show_next(made_plan, config_file, has_driver=running_driver(config) is not None)
    sys.exit(1 if made_plan.halts else 0)


def _show(shown_plan: Plan) -> None:
    if not shown_plan.tables:
        output.show_text("no topic of the config's tables exists", style=output.WARNING)
    for table in shown_plan.tables:
        _show_table(table)
    if shown_plan.skipped_topics:
        output.show_text("topics that become no table", style="bold")
        for topic in shown_plan.skipped_topics:
            output.show_text(f"  {topic.topic}: {topic.reason} [{topic.code}]", style="dim")
    _show_warnings([*shown_plan.warnings, *_explained(shown_plan.tables)])
    halting = sum(table.action == "halt" for table in shown_plan.tables)
    warnings = len(shown_plan.warnings) + sum(len(table.warnings) for table in shown_plan.tables)
    output.show_text(
        f"{count(len(shown_plan.tables), 'table')}, {count(halting, 'would halt', 'would halt')},"
        f" {count(warnings, 'warning')}",
        style="bold red" if halting else "bold",
    )


def _show_next(shown_plan: Plan, config_file: Path, *, has_driver: bool) -> None:
    """`has_driver`: whether a driver runs this config already."""
    if shown_plan.halts:
        output.show_next(output.command_line("plan", config_file), "again, after the halts are fixed")
    elif not shown_plan.tables:
        output.show_next("distributary init --bootstrap-servers HOST:PORT", "write a config from the topics that exist")
    elif has_driver:
        output.show_next(output.command_line("status", config_file, "--watch"), "`run` is at it already")
    else:
        output.show_next(output.command_line("run", config_file))


def _show_table(table: TablePlan) -> None:
    output.show_text(f"{table.table}: {_does(table)}", style=f"bold {_STYLES[table.action]}")
    output.show_text(f"  from {table.topic} {_offsets(table)}", style="dim")
    output.show_text(f"  into {table.path}, by {table.entry!r} ({table.where}), mode {table.mode}", style="dim")
    if table.error is not None:
        output.show_text(f"  [{table.error['code']}] {table.error['message']}", style="red")
        output.show_fix(table.error["fix"], "      ", table.table)
    elif table.action == "create":
        output.show_items("key", table.key or ("none",))
        output.show_items("columns", _columns(table.columns))
    elif table.action == "alter":
        if table.added:
            output.show_items("added", _columns(table.added))
        if table.widened:
            output.show_items("widened", _columns(table.widened))
    if table.widened_before:
        before = (
            f"{name} {' to '.join([*types, table.columns.get(name, '?')])}"
            for name, types in table.widened_before.items()
        )
        output.show_items("widened before", before)
    if table.error is None:
        output.show_text(f"  layout: {table.layout}", style="dim")
        _show_layout(table)
    for warning in table.warnings:
        output.show_text(f"  warning [{warning.code.value}] {warning.detail}".rstrip(), style=output.WARNING)


def _show_layout(table: TablePlan) -> None:
    if table.properties:
        output.show_items("properties", (f"{name} = {value}" for name, value in table.properties.items()))
    for how, columns in (("partitioned", table.partitioned_by), ("clustered", table.clustered_by)):
        if columns:
            output.show_items(f"{how} by", columns)


def _does(table: TablePlan) -> str:
    records = count(table.records, "record")
    return {
        "create": f"would be created, {records} to apply",
        "alter": f"would {_altered(table)}, then continue: {records} to apply",
        "continue": f"would continue, {records} to apply",
        "up_to_date": "is up to date",
        "wait": "waits for a record that shows its columns",
        "halt": "would halt",
    }[table.action]


def _altered(table: TablePlan) -> str:
    gets = [count(len(table.added), "column")] if table.added else []
    gets += [f"wider types in {count(len(table.widened), 'column')}"] if table.widened else []
    columns = f"get {' and '.join(gets)}" if gets else ""
    shape = "be altered" if table.properties or table.clustered_by else ""
    return " and ".join(filter(None, (columns, shape)))


def _offsets(table: TablePlan) -> str:
    ranges = (f"{p}: {table.start.get(p, 0)} to {end}" for p, end in sorted(table.end.items()))
    return f"(offsets by partition: {'; '.join(ranges)})" if table.end else ""


def _columns(columns: Mapping[str, str]) -> list[str]:
    return [f"{name} {kind}" for name, kind in columns.items()]


def _explained(tables: Iterable[TablePlan]) -> list[PlanWarning]:
    """One warning of each code: its explanation is the same for all tables."""
    by_code = {warning.code: warning for table in tables for warning in table.warnings}
    return [by_code[code] for code in sorted(by_code)]


def _show_warnings(warnings: list[PlanWarning]) -> None:
    if warnings:
        output.show_text("warnings", style="bold")
    for warning in warnings:
        output.show_text(f"  [{warning.code.value}] {warning.message}", style=output.WARNING)
        output.show_fix(warning.fix, "      ")
