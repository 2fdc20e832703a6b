"""Tables whose records have no key, where `keyless: append` keeps their changes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from distributary.config.table import TableSettings
from distributary.consume.sample import SampledRecord
from distributary.decode.envelope import is_envelope
from distributary.errors import TableHalt
from distributary.ingest.record_form import parse_payload
from distributary.ingest.topic_format import TopicFormat
from distributary.progress.record import Progress

NO_KEY = "no-key"
"""The code of the halt of a table without key for which the config has no setting."""


def settings_of_filled(settings: TableSettings, progress: Progress | None) -> TableSettings:
    """The settings of a filled table: mode: append, if it was filled without a key."""
    if progress is None or progress.is_new or progress.key or progress.mode != "append":
        return settings
    return _appending(settings)


def settings_by_records(settings: TableSettings, topic_format: TopicFormat, progress: Progress | None) -> TableSettings:
    """The settings by a table's first records: mode: append, if these have no key."""
    has_key = bool(topic_format.key) or not topic_format.is_conclusive
    return settings if has_key or not _may_change(progress) else _appending(settings)


def without_late_key(
    topic_format: TopicFormat,
    records: Sequence[SampledRecord],
    settings: TableSettings,
    progress: Progress | None,
    *,
    has_columns: bool,
) -> TopicFormat:
    """A table has no key if it has changes without one, even if newer records have a key: the source table got its
    primary key later. `has_columns`: changes with rows were applied before."""
    if settings.mode != "append" or settings.key or not topic_format.key:
        return topic_format
    is_filled = progress is not None and not progress.is_new and has_columns
    if is_filled and progress is not None and progress.key:
        return topic_format
    if is_filled or any(record.key is None and _has_row(record) for record in records):
        return replace(topic_format, key=())
    return topic_format


def _has_row(record: SampledRecord) -> bool:
    value, _ = parse_payload(record.value)
    if not isinstance(value, dict):
        return False
    return not is_envelope(value) or isinstance(value.get("after") or value.get("before"), dict)


def settings_after_halt(settings: TableSettings, halt: TableHalt, progress: Progress | None) -> TableSettings:
    """The settings after a halt: mode: append, if the table halts because its records have no key."""
    return settings if halt.code != NO_KEY or not _may_change(progress) else _appending(settings)


def _may_change(progress: Progress | None) -> bool:
    """Whether the table has applied no row with a key yet: truncates have none."""
    return progress is None or not progress.key


def _appending(settings: TableSettings) -> TableSettings:
    return replace(settings, mode="append") if settings.keyless == "append" and not settings.key else settings
