"""What halts a table on purpose: what this version does not do yet, and too many records that can't be applied."""

from __future__ import annotations

from collections.abc import Sequence

from distributary.config.table import TableSettings
from distributary.decode.envelope import CONNECTORS
from distributary.errors import TableHalt
from distributary.operate.look import Look

WINDOW = 1_000  # records whose share of bad ones is limited
LEAST_BAD = 100


def refuse_unbuilt(settings: TableSettings, look: Look) -> None:
    """Raises TableHalt where the config or the records ask for something that this version would have to guess."""
    if look.connector not in CONNECTORS:
        raise TableHalt(
            "connector-not-built",
            f"events of the connector {look.connector!r} are not applied in this version",
            f"this version knows {', '.join(CONNECTORS)}",
        )
    without_key = not (look.key or look.only_truncates) and settings.mode != "append"
    if settings.key or without_key:
        asked_for = f"`key:` ({settings.where}) is not built yet" if settings.key else "its records have no key"
        raise TableHalt(
            "no-key",
            f"the table can't be kept by mode: {settings.mode}: {asked_for}",
            "give the source table a primary key, name key columns in the connector (message.key.columns), or set"
            " mode: append",
        )


def too_many_bad(recent: Sequence[tuple[int, int]], max_ratio: float) -> tuple[tuple[tuple[int, int], ...], int | None]:
    """The batches that hold the last 1,000 records, newest last, and the number of bad ones where it is too large.

    `recent` counts (records, bad ones) per batch.
    """
    kept: list[tuple[int, int]] = []
    records = bad = 0
    for batch in reversed(recent):
        if records >= WINDOW:
            break
        kept.append(batch)
        records += batch[0]
        bad += batch[1]
    too_many = bad >= LEAST_BAD and bad > max_ratio * records
    return tuple(reversed(kept)), bad if too_many else None
