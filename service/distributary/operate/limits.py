"""What halts a table on purpose: what this version does not do yet, and too many records that can't be applied."""

from __future__ import annotations

from collections.abc import Sequence

from distributary.config.table import TableSettings
from distributary.errors import TableHalt
from distributary.evolve.masks import key_redacted
from distributary.operate.look import Look

WINDOW = 1_000  # records whose share of bad ones is limited
LEAST_BAD = 100


def refuse_unbuilt(settings: TableSettings, look: Look) -> None:
    """Raises TableHalt where the config or the records ask for something that this version would have to guess."""
    if settings.key and look.key and set(settings.key) != set(look.key):
        raise TableHalt(
            "key-not-needed",
            f"`key: [{', '.join(settings.key)}]` ({settings.where}) is for records without a key; these have the key"
            f" ({', '.join(look.key)})",
            "take `key` out for this table, or name the columns in the connector (message.key.columns)",
        )
    if left_out := [name for name in settings.key if name in settings.exclude]:
        raise TableHalt("key-excluded", f"`exclude` names a column of the key: {', '.join(left_out)}", "keep it")
    if redacted := [name for name in settings.key if settings.mask.get(name) == "redact"]:
        raise key_redacted(redacted)
    if not (settings.key or look.key or not look.tells_all or settings.mode == "append"):
        raise TableHalt(
            "no-key",
            f"the table can't be kept by mode: {settings.mode}: its records have no key",
            "name the columns of the key under `key` in the config, give the source table a primary key, name key"
            " columns in the connector (message.key.columns), or set mode: append",
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
