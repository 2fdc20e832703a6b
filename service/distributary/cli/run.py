"""`distributary run`: the service."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from distributary import logs
from distributary.cli import output
from distributary.config.load import load


@click.command()
@output.config_option
@click.option("--once", is_flag=True, help="Process everything that is in Kafka now, then exit.")
def run(config_file: Path, once: bool) -> None:
    """Run the service: change events in Kafka become Delta tables.

    Runs until SIGTERM or SIGINT, then finishes the batch in flight and exits with 0. Tables that are new or changed in
    the config's files meanwhile are followed; everything else in them waits for a restart.
    """
    logs.configure()
    config = load(config_file)

    # Here and not above: Spark takes a second to import, which help and a bad config need not wait for.
    from distributary.job import run as run_service

    sys.exit(run_service(config, once=once, file=config_file))
