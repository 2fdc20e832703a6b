"""`distributary run`: the service."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from distributary import logs
from distributary.cli import output
from distributary.config.load import load
from distributary.halt_actions import with_names


@click.command()
@output.config_option
@click.option("--once", is_flag=True, help="Process everything that is in Kafka now, then exit.")
def run(config_file: Path, once: bool) -> None:
    """Run the service: change events in Kafka become Delta tables.

    Runs until SIGTERM or SIGINT, then finishes the batch in flight and exits with 0. New and changed tables in the
    config's files apply at once; other changes apply after a restart.
    """
    logs.configure(complete_fix=lambda fix, table: with_names(fix, table=table, config_file=str(config_file)))
    config = load(config_file)

    # Imported late: Spark takes a second to import, and `--help` and a bad config must not wait for it.
    from distributary.job import run as run_service

    sys.exit(run_service(config, once=once, file=config_file))
