"""The columns that a table has of its source's: the table is made with them, and brought along as records show more."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeVar

from structlog.typing import FilteringBoundLogger

from distributary.config.table import SchemaChanges
from distributary.decode.observed_columns import ObservedColumns, renames_of, table_columns
from distributary.evolve.diff import check_key
from distributary.evolve.policy import allowed_changes, heeded
from distributary.lake.table import LakeTable

_Value = TypeVar("_Value")


class TableColumns:
    """The columns of one table. `policy` is the config's `schema_changes`; `service_columns` are those that the service
    adds of its own."""

    def __init__(
        self,
        lake: LakeTable,
        policy: SchemaChanges,
        service_columns: Mapping[str, str],
        log: FilteringBoundLogger,
    ) -> None:
        self._lake = lake
        self._policy = policy
        self._service_columns = service_columns
        self._log = log
        self._now: Mapping[str, str] = {}

    @property
    def now(self) -> Mapping[str, str]:
        """The source's columns, as last seen: name to Spark type; none before the table was made."""
        return self._now

    def look(self) -> None:
        """Reads them from the table."""
        self._now = self._lake.columns() if self._lake.exists() else {}

    def heeded(self, row: Mapping[str, _Value]) -> dict[str, _Value]:
        """Those of a row's columns that count for the table."""
        return heeded(self._policy, self._now, row)

    def follow(self, observed: Sequence[ObservedColumns], key: tuple[str, ...]) -> bool:
        """Makes the table, adds columns or widens them, where records have more than it holds; whether it did. `key`
        are the table's key columns. Raises TableHalt where the table can't take what the records have."""
        for columns in observed:
            if columns.is_key:
                check_key(key, columns.types)
        renames = renames_of(observed)
        changes = allowed_changes(self._policy, self._now, table_columns(observed), self._service_columns, key, renames)
        if not changes:
            return False
        if not self._now:
            self._lake.create(changes.added)
            self._log.info("table created", path=self._lake.path, columns=dict(changes.added))
        elif changes.added:
            self._lake.add_columns(changes.added)
            self._log.info("columns added", columns=dict(changes.added))
        if changes.widened:
            self._lake.widen_columns(changes.widened)
            self._log.warning(
                "columns widened in place: readers of the table must know Delta's type widening",
                columns=dict(changes.widened),
            )
        self._now = self._lake.columns()
        return True
