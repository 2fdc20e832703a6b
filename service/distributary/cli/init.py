"""`distributary init`: a first config from what a Kafka has."""

from __future__ import annotations

from pathlib import Path

import click

from distributary import logs
from distributary.cli import output


def _property(_ctx: click.Context, _param: click.Parameter, given: tuple[str, ...]) -> dict[str, str]:
    pairs = [text.partition("=") for text in given]
    if wrong := [name for name, sign, _ in pairs if not sign or not name.strip()]:
        raise click.BadParameter(f"{wrong[0]!r}: write NAME=VALUE")
    return {name.strip(): value.strip() for name, _, value in pairs}


@click.command(short_help="Write a first config by looking at the topics of a Kafka.")
@click.option("--bootstrap-servers", required=True, metavar="HOST:PORT", help="Where Kafka answers.")
@click.option(
    "--property",
    "properties",
    multiple=True,
    metavar="NAME=VALUE",
    callback=_property,
    help="A Kafka client property under Kafka's own name, as often as needed. A secret is not written into the file: "
    "give it as '${env:NAME}' or '${file:PATH}', or init names a variable in its place.",
)
@click.option("--topic-prefix", help="Debezium's topic.prefix. Default: what the records say, where they say one.")
@click.option("--target", default="lake", show_default=True, help="Where the tables are to lie; relative to FILE.")
@click.option("--checkpoint", default="checkpoints", show_default=True, help="Spark's own progress; relative to FILE.")
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
@click.option("--force", is_flag=True, help="Replace FILE where it is there already.")
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
    """Write a first config for the tables whose change events are in a Kafka.

    Tables whose records have no key keep each change as a row (`keyless: append` under `defaults`). Where records carry
    no schema, `columns` has the types that their values show, with comments that say what such values may be beside.
    Look through it, then see what `distributary plan` says of it.
    """
    logs.configure()

    # Here and not above: what help need not wait for.
    from distributary.preflight.config_text import Wishes
    from distributary.preflight.first_config import write_first_config

    wishes = Wishes({"bootstrap.servers": bootstrap_servers, **properties}, target, checkpoint)
    written = write_first_config(wishes, topic_prefix, config_file, force=force)
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
    count = len(written.tables)
    said = f"{config_file} is written, with {count} table{'' if count == 1 else 's'} of {written.topic_prefix}"
    output.show_text(said, style="green")
    for name in written.secrets:
        output.show_text(f"set {name} before you use it: the file names it in place of the secret", style="yellow")
    for name in written.halting:
        output.show_text(f"{name} would halt and needs a decision; the file says which", style="yellow")
    if written.by_value:
        said = (
            "where records carry no schema, look through `columns` before the first run: values alone show these types"
        )
        output.show_text(said, style="yellow")
    output.show_text(f"next: distributary plan -c {config_file}", style="dim")
