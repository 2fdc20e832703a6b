"""Configs and records that this version would have to guess about."""

from __future__ import annotations

from distributary.config.table import TableSettings
from distributary.errors import TableHalt
from distributary.evolve.masks import key_redacted
from distributary.ingest.keyless import NO_KEY
from distributary.ingest.topic_format import TopicFormat


def check_supported(settings: TableSettings, topic_format: TopicFormat, *, is_avro: bool = False) -> None:
    """Raises TableHalt if the config or the records ask for something that this version would have to guess."""
    if topic_format.documents and is_avro:
        raise TableHalt(
            "documents-in-avro",
            "MongoDB's documents are read only from JSON",
            "use JsonConverter in the connector, and source.format: json",
        )
    if settings.key and topic_format.key and set(settings.key) != set(topic_format.key):
        raise TableHalt(
            "key-not-needed",
            f"`key: [{', '.join(settings.key)}]` ({settings.where}) is for records without a key; these have the key"
            f" ({', '.join(topic_format.key)})",
            "take `key` out for this table, or name the columns in the connector (message.key.columns)",
        )
    if left_out := [name for name in settings.key if name in settings.exclude]:
        raise TableHalt(
            "key-excluded", f"`exclude` names a column of the key: {', '.join(left_out)}", "remove it from `exclude`"
        )
    if redacted := [name for name in settings.key if settings.mask.get(name) == "redact"]:
        raise key_redacted(redacted)
    if not (settings.key or topic_format.key or not topic_format.is_conclusive or settings.mode == "append"):
        raise TableHalt(
            NO_KEY,
            f"the table can't be kept by mode: {settings.mode}: its records have no key",
            "name the columns of the key under `key` in the config, give the source table a primary key, name key"
            " columns in the connector (message.key.columns), or set keyless: append, for this table or under defaults",
        )
