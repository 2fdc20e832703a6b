"""All that is known of a table when its warnings are looked for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from distributary.config.source import Source
from distributary.config.table import TableSettings
from distributary.decode.observed_columns import table_columns
from distributary.decode.renames import Renames
from distributary.decode.unwrapped import setting
from distributary.ingest.topic_format import TopicFormat
from distributary.preflight.inferred_columns import Cut, Shown
from distributary.preflight.sample import Sample
from distributary.progress.record import Progress


@dataclass(frozen=True)
class Scene:
    """A table by the config, by a sample of its topic, and by its own record.

    `look` is None where no record tells the format; `connector` where none tells who wrote them. `now` is in
    milliseconds since 1970. `table_columns` are the source's columns that the table has, by its own names.
    """

    source: Source
    settings: TableSettings
    sample: Sample
    now: int
    progress: Progress | None = None
    look: TopicFormat | None = None
    cuts: tuple[Cut, ...] = ()
    shown: Shown = field(default_factory=Shown)
    table_columns: Mapping[str, str] = field(default_factory=dict)

    @property
    def connector(self) -> str | None:
        """The connector that wrote the records."""
        if self.look is None:
            return self.source.connector
        return self.look.unwrapped.connector if self.look.unwrapped else self.look.order

    @property
    def is_unwrapped(self) -> bool:
        """Whether the records are rows without an envelope."""
        return self.look is not None and self.look.unwrapped is not None

    @property
    def key(self) -> tuple[str, ...]:
        """The table's key."""
        known = self.progress.key if self.progress else ()
        sent = (self.look.key if self.look else ()) or self.settings.key
        return known or Renames(self.settings.rename).all_of(sent)

    @property
    def sent_key(self) -> tuple[str, ...]:
        """The same by the source's names."""
        return tuple(map(Renames(self.settings.rename).source, self.key))

    @property
    def key_is_from_row(self) -> bool:
        """Whether columns of the row stand for the key that the records lack."""
        return bool(self.settings.key) and self.look is not None and not self.look.key

    @property
    def columns(self) -> Mapping[str, str]:
        """The columns that the records show: name to Spark type."""
        return {name: kind for columns in table_columns(self.shown.observed) for name, kind in columns.items()}

    @property
    def known_columns(self) -> set[str]:
        """All columns that the records and the table show, excluded ones too, by the source's names; none where no
        record tells any."""
        shown = {name for one in self.shown.observed for name in one.names}
        return shown and {*shown, *Renames(self.settings.rename).as_source(self.table_columns)}

    def said(self, named: str) -> str | None:
        """What `source.connector_properties` say of one of the connector's settings, in lower case."""
        found = setting(self.source.connector_properties, named)
        return None if found is None else found.strip().lower()

    def with_op(self, op: str) -> Iterator[Cut]:
        """The envelopes with that operation."""
        return (cut for cut in self.cuts if cut.op == op and not self.is_unwrapped)
