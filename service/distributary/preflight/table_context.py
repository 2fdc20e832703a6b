"""Everything that is known about a table when its warnings are derived."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from distributary.config.source import Source
from distributary.config.table import TableSettings
from distributary.decode.observed_columns import table_columns
from distributary.decode.renames import Renames
from distributary.decode.unwrapped import setting
from distributary.ingest.topic_format import TopicFormat
from distributary.preflight.inferred_columns import InferredColumns, ParsedRecord
from distributary.preflight.sample import Sample
from distributary.progress.record import Progress


@dataclass(frozen=True)
class TableContext:
    """A table as the config, a sample of its topic and its progress record describe it.

    `topic_format` is None if no record shows the format. `now`: milliseconds since 1970. `records`: the sampled
    records, parsed. `table_columns`: the source's columns that the table has, by the table's names.
    """

    source: Source
    settings: TableSettings
    sample: Sample
    now: int
    progress: Progress | None = None
    topic_format: TopicFormat | None = None
    records: tuple[ParsedRecord, ...] = ()
    inferred: InferredColumns = field(default_factory=InferredColumns)
    table_columns: Mapping[str, str] = field(default_factory=dict)

    @property
    def connector(self) -> str | None:
        """The connector that wrote the records; None if neither the records nor the config name it."""
        if self.topic_format is None:
            return self.source.connector
        return self.topic_format.unwrapped.connector if self.topic_format.unwrapped else self.topic_format.order

    @property
    def is_unwrapped(self) -> bool:
        """Whether the records are rows without an envelope."""
        return self.topic_format is not None and self.topic_format.unwrapped is not None

    @property
    def key(self) -> tuple[str, ...]:
        """The table's key."""
        known = self.progress.key if self.progress else ()
        sent = (self.topic_format.key if self.topic_format else ()) or self.settings.key
        return known or Renames(self.settings.rename).all_of(sent)

    @property
    def sent_key(self) -> tuple[str, ...]:
        """The table's key by the source's names."""
        return tuple(map(Renames(self.settings.rename).source, self.key))

    @property
    def key_is_from_row(self) -> bool:
        """Whether the records have no key, and columns of the row are the table's key (`key` in the config)."""
        return bool(self.settings.key) and self.topic_format is not None and not self.topic_format.key

    @property
    def columns(self) -> Mapping[str, str]:
        """The columns that the records show: name to Spark type."""
        return {name: kind for columns in table_columns(self.inferred.observed) for name, kind in columns.items()}

    @property
    def known_columns(self) -> set[str]:
        """All columns of the records and the table, excluded ones too, by the source's names; empty if no record shows
        a column."""
        shown = {name for columns in self.inferred.observed for name in columns.names}
        return shown and {*shown, *Renames(self.settings.rename).as_source(self.table_columns)}

    def connector_setting(self, named: str) -> str | None:
        """The value of a connector setting in `source.connector_properties`, in lower case; None if it is not there."""
        value = setting(self.source.connector_properties, named)
        return None if value is None else value.strip().lower()

    def with_op(self, op: str) -> Iterator[ParsedRecord]:
        """The sampled envelopes with that operation."""
        return (parsed for parsed in self.records if parsed.op == op and not self.is_unwrapped)
