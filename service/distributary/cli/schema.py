"""`distributary schema`: the config's JSON Schema."""

from __future__ import annotations

import click

from distributary.config import schema as config_schema


@click.command()
def schema() -> None:
    """Print the JSON Schema of the config.

    Editors use it for completion and checks: save it beside your config and add
    `# yaml-language-server: $schema=schema.json` as the first line.
    """
    click.echo(config_schema.text(), nl=False)
