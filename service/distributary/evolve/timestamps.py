"""Checks whether a table's timestamps have the type that the config sets: an instant and a timestamp without a zone are
different values of different types."""

from __future__ import annotations

from collections.abc import Mapping

from distributary.config.table import TableSettings
from distributary.decode.renames import Renames
from distributary.errors import TableHalt
from distributary.types.zones import has_no_zone, has_zone


def check_timestamps(known: str | None, settings: TableSettings, columns: Mapping[str, str]) -> None:
    """Raises TableHalt if a table with these columns (of the source; name to Spark type) was filled with another
    `timestamps` than in the config, and has columns that this setting may concern. `known` is None if it was filled
    before there was a choice."""
    was, now = known or "ntz", settings.timestamps
    if was == now:
        return
    is_concerned = has_no_zone if was == "ntz" else has_zone
    renames = Renames(settings.rename)
    named = {name for name, kind in settings.columns.items() if is_concerned(kind)}
    concerned = [name for name, kind in columns.items() if is_concerned(kind) and renames.source(name) not in named]
    if concerned:
        raise TableHalt(
            "timestamps-changed",
            f"the table was filled with timestamps: {was}, and the config ({settings.where}) has timestamps: {now}."
            f" Columns: {', '.join(concerned)}",
            f"set timestamps: {was} for this table; or `distributary resume -c FILE TABLE --rebuild` fills the table"
            " again with the other type",
        )
