"""`distributary init`: writes a first config from the topics of a Kafka."""

from __future__ import annotations

from pathlib import Path

import click

from distributary import logs
from distributary.cli import output
from distributary.cli.progress import progress
from distributary.cli.words import count


def _property(_ctx: click.Context, _param: click.Parameter, given: tuple[str, ...]) -> dict[str, str]:
    pairs = [text.partition("=") for text in given]
    if wrong := [name for name, sign, _ in pairs if not sign or not name.strip()]:
        raise click.BadParameter(f"{wrong[0]!r}: write NAME=VALUE")
    return {name.strip(): value.strip() for name, _, value in pairs}


@click.command(short_help="Write a first config from the topics in Kafka.")
@click.option("--bootstrap-servers", required=True, metavar="HOST:PORT", help="Where Kafka answers.")
@click.option(
    "--property",
    "properties",
    multiple=True,
    metavar="NAME=VALUE",
    callback=_property,
    help="A Kafka client property by Kafka's own name; may be repeated. A secret is not written to the file: "
    "give it as '${env:NAME}' or '${file:PATH}', or init writes the name of a variable instead.",
)
@click.option(
    "--topic-prefix",
    metavar="NAME",
    help="Debezium's topic.prefix. Default: the one in the records, if they have only one.",
)
@click.option(
    "--target", default="lake", show_default=True, metavar="DIR", help="Directory of the tables; relative to FILE."
)
@click.option(
    "--checkpoint",
    default="checkpoints",
    show_default=True,
    metavar="DIR",
    help="Directory of Spark's own progress; relative to FILE.",
)
@click.option(
    "-c",
    "--config",
    "config_file",
    type=click.Path(path_type=Path, dir_okay=False),
    default="config.yaml",
    show_default=True,
    metavar="FILE",
    help="The file to write.",
)
@click.option("--force", is_flag=True, help="Replace FILE if it exists.")
@output.output_option
def init(
    bootstrap_servers: str,
    properties: dict[str, str],
    topic_prefix: str | None,
    target: str,
    checkpoint: str,
    config_file: Path,
    force: bool,
    output_format: str,
) -> None:
    """Write a first config for the tables that have change events in a Kafka.

    Tables whose records have no key keep each change as a row (`keyless: append` under `defaults`). If records carry
    no schema, `columns` has the types that are inferred from their values, with comments on what else they may be.
    Review the file, then run `distributary plan`.
    """
    logs.configure()

    # Imported late: `--help` must not wait for these modules.
    from distributary.preflight.config_text import ConfigChoices
    from distributary.preflight.first_config import write_first_config

    choices = ConfigChoices({"bootstrap.servers": bootstrap_servers, **properties}, target, checkpoint)
    with progress(f"reading the topics of {bootstrap_servers}"):
        written = write_first_config(choices, topic_prefix, config_file, force=force)
    if output_format == "json":
        output.show_json(
            {
                "file": str(written.file),
                "topic_prefix": written.topic_prefix,
                "connector": written.connector,
                "tables": list(written.tables),
                "secrets": list(written.secrets),
                "halting": list(written.halting),
                "by_value": list(written.by_value),
            }
        )
        return
    text = f"{config_file} has {count(len(written.tables), 'table')} with the prefix {written.topic_prefix}"
    output.show_text(text, style="green")
    for name in written.secrets:
        output.show_text(
            f"set {name} before you use the file: it stands there instead of the secret", style=output.WARNING
        )
    for name in written.halting:
        output.show_text(f"{name} would halt and needs a decision; see the comments in the file", style=output.WARNING)
    if written.by_value:
        text = "some records carry no schema: review `columns` before the first run, its types are inferred from values"
        output.show_text(text, style=output.WARNING)
    output.show_next(output.command_line("plan", config_file), output.PLAN)
