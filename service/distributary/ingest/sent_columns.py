"""The columns that a table's records have, checked against the config and the table."""

from __future__ import annotations

from structlog.typing import FilteringBoundLogger

from distributary.config.table import TableSettings
from distributary.decode.decoder import Decoded
from distributary.decode.masks import NO_MASKS, Masks
from distributary.decode.renames import Renames, check_renames
from distributary.evolve.masks import Marks, check_masks, configured_marks, masks_of
from distributary.evolve.timestamps import check_timestamps
from distributary.evolve.unknown_columns import CODE, FIX, UnknownColumn, check_protected_columns, unknown_columns
from distributary.ingest.table_columns import TableColumns
from distributary.progress.record import Progress
from distributary.types.bounds import Bounds


class SentColumns:
    """Gathers the columns of all records so far; where they have more names than `most`, not those of later records."""

    def __init__(
        self, settings: TableSettings, table: TableColumns, log: FilteringBoundLogger, most: int = 2 * Bounds.columns
    ) -> None:
        self._settings = settings
        self._table = table
        self._log = log
        self._most = most
        self.masks: Masks = NO_MASKS
        self.renames = Renames(settings.rename)
        """The config's renames."""
        self._marks = Marks(None, ())
        self.renamed: dict[str, str] = {}
        """The lake's names of renamed columns of all records so far, by the source's names."""
        self._names: set[str] = set()
        self.unknown: list[UnknownColumn] = []
        """Names in the config that are no columns of the table or of the records so far."""

    @property
    def marks(self) -> dict[str, str]:
        """How columns are masked, by the lake's names: columns of the records so far, and configured ones."""
        return self._marks.with_configured(configured_marks(self.masks, self.renames))

    def load_masks(self) -> None:
        """Reads the config's masks. Raises TableHalt if it lacks the salt of one."""
        self.masks = masks_of(self._settings)

    def check_table(self, progress: Progress) -> None:
        """Raises TableHalt if the table was filled with other renames or masks, or with other types of times."""
        check_timestamps(progress.timestamps, self._settings, self._table.columns)
        check_renames(progress.renames, self.renames, self._table.columns)
        check_masks(self.masks, progress.masks, self.renames, self._table.columns)
        self._marks = Marks(progress.masks, self._table.columns)

    def check_protected(self) -> None:
        """Raises TableHalt if a column would be published that the config most likely means to protect."""
        check_protected_columns(self._settings, self._names)

    def add(self, decoded: Decoded) -> None:
        """Adds the columns of a batch. Raises TableHalt if the table's rows are masked otherwise."""
        for observed in decoded.observed:
            self._marks.check(observed.marks if observed.is_key else self._table.tracked_columns(observed.marks))
            self.renamed.update(observed.renames)
            if len(self._names) < self._most:
                self._names |= observed.names
        guessed = {name: kind for observed in decoded.observed for name, kind in observed.guessed.items()}
        if new := {name: kind for name, kind in guessed.items() if name not in self._table.columns}:
            self._log.warning(
                "columns typed by their values: records carry no schema",
                columns=new,
                fix="name their types under `columns` in the config",
            )

    def warn_of_unknown(self) -> None:
        """Warns of each unknown column once."""
        columns = {*self._names, *self.renames.as_source(self._table.columns)}
        unknown_names = unknown_columns(self._settings, columns) if self._names else []
        for unknown in unknown_names:
            if unknown not in self.unknown:
                self._log.warning("a column in the config is unknown", code=CODE, detail=str(unknown), fix=FIX)
        self.unknown = unknown_names
