"""`distributary snapshot`: requests a snapshot of tables from the connector."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from distributary import logs
from distributary.cli import output
from distributary.config.load import load
from distributary.errors import UsageError

if TYPE_CHECKING:
    from distributary.control.snapshot_request import SnapshotProgress


@click.command(short_help="Ask the connector to read tables again.")
@output.config_option
@click.argument("tables", metavar="TABLE…", nargs=-1, required=True)
@click.option("--where", metavar="SQL", help="Only rows that match this condition, in the source's SQL.")
@click.option(
    "--type",
    "kind",
    type=click.Choice(["incremental", "blocking"]),
    default="incremental",
    show_default=True,
    help="incremental reads in chunks while changes continue; blocking stops changes until it is done.",
)
@click.option(
    "--print", "prints", is_flag=True, help="Print the SQL for the signal table; the default without --signal-topic."
)
@click.option("--signal-topic", metavar="TOPIC", help="Write the signal to this topic (signal.kafka.topic).")
@click.option(
    "--signal-table", metavar="NAME", help="The signal table with its schema, if the config does not have it."
)
@click.option("--database", metavar="NAME", help="The tables' database, if neither topic nor records have it.")
@click.option("--follow", "follows", is_flag=True, help="Wait until the snapshot is in the tables.")
@click.option(
    "--notifications-topic",
    metavar="TOPIC",
    help="The connector's notifications (notification.sink.topic.name), by which --follow knows the end of an"
    " incremental snapshot.",
)
@click.option(
    "--timeout",
    type=click.FloatRange(min=0),
    default=3600,
    show_default=True,
    metavar="SECONDS",
    help="How long --follow waits.",
)
@output.output_option
def snapshot(
    config_file: Path,
    tables: tuple[str, ...],
    where: str | None,
    kind: str,
    signal_topic: str | None,
    signal_table: str | None,
    database: str | None,
    timeout: float,
    notifications_topic: str | None,
    output_format: str,
    *,
    prints: bool,
    follows: bool,
) -> None:
    """Request a snapshot of TABLE… (schema.table) from the connector: it reads the rows again and sends them.

    Prints the SQL of the signal; run it in the source database. With --signal-topic it writes the signal to
    Kafka. The connector must be set up for signals. A snapshot row never replaces a newer change. TABLE must match
    an entry of the config; a new table may have no topic yet.

    --follow needs a running service. It exits with 0 once all tables have a complete new snapshot.
    """
    logs.configure()
    if prints and signal_topic:
        raise UsageError("one-at-a-time", "--print and --signal-topic exclude each other", "give only one of them")
    config = load(config_file)
    # Imported late: `--help` and a bad config must not wait for these modules.
    from distributary.consume.kafka_client import KafkaClient
    from distributary.control import notifications as notified
    from distributary.control import snapshot_request as request

    kafka = KafkaClient(config.kafka_properties())
    wanted = request.snapshot_targets(config, kafka, tables, database)
    topic = notified.notifications_topic(config, notifications_topic)
    if follows:
        request.check_can_follow(wanted, kind, topic)
    signal = request.signal_for(config, wanted, kind, where, database)
    arrival = None
    if follows and kind == "incremental" and topic is not None:
        names = {one.table.topic: name for one, name in zip(wanted, signal.tables, strict=True)}
        arrival = notified.Arrival(notified.Notifications(kafka, topic, signal.id), kafka, names)
    shown: dict[str, Any] = {"id": signal.id, "tables": [one.table.name for one in wanted], "data": signal.data()}
    if without_topic := {one.table.name: one.topic_missing for one in wanted if one.topic_missing}:
        shown["without_topic"] = list(without_topic)
    for note in without_topic.values():
        output.show_text(note, style=output.NOTED, to_stderr=True)
    as_text = output_format == "text"
    if signal_topic:
        request.send(config, kafka, signal, signal_topic)
        shown["topic"] = signal_topic
        if as_text:
            output.show_text(f"the signal {signal.id} is in {signal_topic}", style="green")
    else:
        shown["sql"] = signal.sql(request.signal_table_of(config, kafka, signal_table))
        if as_text:
            output.show_command(shown["sql"], style="")
    if follows:
        arrived = request.follow(config, wanted, timeout, _show if as_text else lambda _arrival: None, arrival)
        shown["complete"] = [one.table for one in arrived]
        if as_text:
            _show_arrived(config_file, arrived, reads_all=where is None and arrival is None)
    elif as_text and (signal_topic or output.terminal_width() is not None):  # SQL in a pipe stays alone
        why = "see the rows arrive" if signal_topic else "after you ran this SQL in the source database"
        output.show_next(output.command_line("status", config_file, "--watch"), why)
    if not as_text:
        output.show_json(shown)


def _show(arrival: SnapshotProgress) -> None:
    state = "the snapshot is complete" if arrival.complete else "waiting for the snapshot"
    output.show_text(f"{arrival.table}: {state}, {arrival.applied} records since the request")


def _show_arrived(config_file: Path, arrived: list[SnapshotProgress], *, reads_all: bool) -> None:
    if reads_all:
        output.show_text("to remove rows that the snapshot does not have:")
        for table in arrived:
            output.show_command(f"    {output.command_line('resume', config_file, table.table, '--reconcile')}")
    else:
        output.show_text("do not reconcile: only a blocking snapshot of all rows finds those that the source lacks")
    output.show_next(output.command_line("verify", config_file), "compare the tables with their topics")
