"""Checks whether a table's rows are masked as in the config: equal values must have equal hashes in all rows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from distributary.config.table import TableSettings
from distributary.decode.masks import MADE_OF, Masks
from distributary.decode.renames import Renames
from distributary.errors import TableHalt


class Marks:
    """How a table's columns are masked (see types.base.ColumnType.mark), by the lake's names: those of its rows, and
    those of all later records. A mark without the spelling of the hashed text fits any spelling."""

    def __init__(self, known_marks: Mapping[str, str] | None, columns: Iterable[str]) -> None:
        self._now: dict[str, str | None] = {name: (known_marks or {}).get(name) for name in columns}

    def check(self, marks: Mapping[str, str | None]) -> None:
        """Takes the marks of records that come next. Raises TableHalt if they are masked otherwise than rows that
        are there, or where hashes would be made of other texts: equal values would have other hashes."""
        for name, mark in marks.items():
            before = self._now.get(name, mark) or ""
            (was, _, of), (now, _, of_now) = (text.partition(MADE_OF) for text in (before, mark or ""))
            if was != now:
                raise _changed([name])
            if of and of != of_now:
                raise TableHalt(
                    "mask-changed",
                    f"the hashes of {name} in the table were computed from {of}, new ones would be computed from"
                    f" {of_now}: equal values would get different hashes",
                    f"set the earlier type of {name} under `columns`; or set the type that all records have, and run"
                    " `distributary resume -c FILE TABLE --rebuild` to fill the table again",
                )
            self._now[name] = mark

    def with_configured(self, configured: Mapping[str, str]) -> dict[str, str]:
        """All marks, including those of the config for columns that may still come (see configured_marks)."""
        return {name: mark for name, mark in {**configured, **self._now}.items() if mark is not None}


def masks_of(settings: TableSettings) -> Masks:
    """The masks of a table. Raises TableHalt if there is no salt: it came to the config after the start."""
    salt = settings.salt.get_secret_value() if settings.salt is not None else ""
    if "hash" in settings.mask.values() and not salt:
        raise TableHalt(
            "no-salt",
            f"`mask` ({settings.where}) requires hashes, and the service was started without masking.salt",
            "restart the service: a new salt is used from the next start on",
        )
    return Masks(settings.mask, salt)


def configured_marks(masks: Masks, renames: Renames) -> dict[str, str]:
    """The masks as far as the config has them, by the lake's names of the columns: the beginnings of marks."""
    return {renames.of(column): masks.mark(column) or "" for column in masks.how}


def check_masks(masks: Masks, known_marks: Mapping[str, str] | None, renames: Renames, columns: Iterable[str]) -> None:
    """Raises TableHalt if a table with these columns has rows that were masked in another way than in the config;
    `known_marks`: their marks. Only the records show the source's current name of a renamed column: see Marks."""
    marks = known_marks or {}
    if other := [
        name
        for name in columns
        if (marks[name].partition(MADE_OF)[0] if name in marks else None)
        not in (masks.mark(name), masks.mark(renames.source(name)))
    ]:
        raise _changed(other)


def key_redacted(columns: Iterable[str]) -> TableHalt:
    """The halt of a table whose key would be redacted, so that its rows could not be distinguished."""
    return TableHalt(
        "key-redacted",
        f"`mask` redacts a column of the key: {', '.join(columns)}; all rows would have the same key",
        "use hash instead",
    )


def _changed(columns: Iterable[str]) -> TableHalt:
    return TableHalt(
        "mask-changed",
        f"the table's rows and the config mask {', '.join(columns)} differently: `mask` or the salt was changed",
        "undo the change (under the source's name of the column if it has a `rename`); or run `distributary"
        " resume -c FILE TABLE --rebuild` to fill the table again, and VACUUM to remove files with the older values",
    )
