"""A table's source columns: created with the table, and altered when records have new or wider ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeVar

from structlog.typing import FilteringBoundLogger

from distributary.decode.observed_columns import ObservedColumns
from distributary.evolve.policy import ColumnPolicy, tracked_columns
from distributary.lake.table import LakeTable
from distributary.progress.record import AddedColumn
from distributary.rules.position_text import position_order

_Value = TypeVar("_Value")


class TableColumns:
    """The columns of one table. `policy`: how it gets those of its records. `fills`: older rows get the defaults of
    columns that are added."""

    def __init__(
        self, lake: LakeTable, policy: ColumnPolicy, log: FilteringBoundLogger, *, fills: bool = False
    ) -> None:
        self._lake = lake
        self.policy = policy
        self._log = log
        self._fills = fills
        self.added: Mapping[str, AddedColumn] = {}
        """Columns whose defaults older rows have (see Progress)."""
        self._columns: Mapping[str, str] = {}

    @property
    def columns(self) -> Mapping[str, str]:
        """The source's columns, as last seen: name to Spark type; none before the table was made."""
        return self._columns

    def load(self, added: Mapping[str, AddedColumn] | None) -> None:
        """Reads them from the table. `added`: see Progress."""
        self._columns = self._lake.columns() if self._lake.exists() else {}
        self.added = added or {}

    def tracked_columns(self, row: Mapping[str, _Value]) -> dict[str, _Value]:
        """Those of a row's columns that count for the table."""
        return tracked_columns(self.policy.schema_changes, self._columns, row)

    def note_defaults(self, observed: Sequence[ObservedColumns], connector: str) -> None:
        """Keeps the defaults of the columns of a table's first records, because later records may be older than a
        column."""
        if self._fills:
            defaults = defaults_in(observed, connector)
            for name, known in self.added.items():
                if name in defaults:
                    before = min(known.before, defaults[name].before, key=position_order(connector))
                    defaults[name] = known.model_copy(update={"before": before})
            self.added = {**self.added, **defaults}

    def follow(self, observed: Sequence[ObservedColumns], key: tuple[str, ...], connector: str) -> bool:
        """Creates the table, adds columns or widens them, as the records need; gives whether it did. `key`: the table's
        key columns, `connector` orders its positions. Raises TableHalt if the table can't hold the records' columns."""
        fitting = self.policy.fitting(self._columns, observed, key)
        changes = self.policy.changes(self._columns, fitting, key)
        if not changes:
            if len(fitting) < len(observed):
                self.policy.changes(self._columns, observed, key)  # raises
            return False
        if not self._columns:
            self._lake.create(changes.added)
            self._log.info("table created", path=self._lake.path, columns=dict(changes.added))
        elif changes.added:
            self._add(changes.added, observed, connector)
        if changes.widened:
            self._lake.widen_columns(changes.widened)
            self._log.warning(
                "columns widened in place: readers of the table must know Delta's type widening",
                columns=dict(changes.widened),
            )
        self._columns = self._lake.columns()
        return True

    def _add(self, columns: Mapping[str, str], observed: Sequence[ObservedColumns], connector: str) -> None:
        """Adds columns. Defaults that older rows are to get are committed as pending before the columns, so that they
        are filled also after a crash in between (see column_fill.py)."""
        defaults = {name: one for name, one in defaults_in(observed, connector).items() if name in columns}
        if self._fills and defaults:
            head = self._lake.head()
            if head is not None and head.progress is not None and not head.progress.is_new:
                pending = {name: one.model_copy(update={"pending": True}) for name, one in defaults.items()}
                self.added = {**(head.progress.added or {}), **pending}
                record = head.progress.next_commit(added=self.added)
                self._lake.commit(head, record, self._lake.empty_commit())
        elif defaults:
            self._log.warning(
                "columns with a default in the source were added: older rows may have it there, and have NULL here",
                columns=list(defaults),
                fix="set column_defaults: fill for columns that come later; a snapshot of the table brings the values",
            )
        self._lake.add_columns(columns)
        self._log.info("columns added", columns=dict(columns))


def defaults_in(observed: Sequence[ObservedColumns], connector: str) -> dict[str, AddedColumn]:
    """The defaults of columns of such records, each with the lowest position of the records that have its column. Of
    several schemas the oldest one counts: a default that a column gets or changes later is not that of older rows."""
    found: dict[str, AddedColumn | None] = {}
    rows = [one for one in observed if not one.is_key]
    placed = [one for one in rows if one.since is not None]
    order = position_order(connector)
    placed.sort(key=lambda one: order(one.since or ""))
    for one in [*placed, *(one for one in rows if one.since is None)]:
        for name in one.types:
            value = one.defaults.get(name)
            found.setdefault(name, None if value is None else AddedColumn(value=value, before=one.since or ""))
    return {name: column for name, column in found.items() if column is not None}
