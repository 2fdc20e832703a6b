"""`distributary validate`: checks only the config file."""

from __future__ import annotations

from pathlib import Path

import click

from distributary.cli import output
from distributary.cli.words import count
from distributary.config.load import load
from distributary.config.notices import keys_without_effect, notices
from distributary.errors import ConfigError


@click.command()
@output.config_option
@output.output_option
@click.pass_context
def validate(ctx: click.Context, config_file: Path, output_format: str) -> None:
    """Check only the config file, without the network.

    Prints all faults at once, each with its file and line, and exits with 2 if there is one.
    """
    try:
        config = load(config_file)
    except ConfigError as error:
        if output_format == "json":
            faults = [
                {"file": str(f.file), "line": f.line, "code": f.code, "message": f.message, "fix": f.fix}
                for f in error.faults
            ]
            output.show_json({"valid": False, "faults": faults, "warnings": []})
        else:
            for fault in error.faults:
                output.show_fault(fault)
            output.show_text(output.faults_in_config(error.faults), style="bold red")
            output.show_next(output.command_line("validate", config_file), "again, after the faults are fixed")
        ctx.exit(error.exit_code)
    warnings = [*notices(config), *keys_without_effect(config)]
    if output_format == "json":
        output.show_json({"valid": True, "faults": [], "warnings": warnings})
        return
    for warning in warnings:
        output.show_text(f"warning: {warning}", style=output.WARNING)
    entries = count(len(config.tables), "entry", "entries")
    output.show_text(f"{config_file} is valid: {entries} in tables", style="green")
    output.show_next(output.command_line("plan", config_file), output.PLAN)
