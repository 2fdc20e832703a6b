"""The modes by their names in the config."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from distributary.config.table import TableSettings
from distributary.merge.append import AppendMode
from distributary.merge.history import HistoryMode
from distributary.merge.mode import Mode
from distributary.merge.upsert import UpsertMode

_MODES: Mapping[str, Callable[[TableSettings], Mode]] = {
    "upsert": UpsertMode,
    "history": HistoryMode,
    "append": AppendMode,
}


def mode_of(settings: TableSettings) -> Mode:
    """The mode that a table's settings ask for; what check_supported() refuses counts as upsert."""
    return _MODES.get(settings.mode, UpsertMode)(settings)
