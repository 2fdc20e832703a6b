"""Logs warnings after a batch's commit, if records could not be applied, or the rules could not keep a change, an order
or a value."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa
from structlog.typing import FilteringBoundLogger

from distributary.ingest.decoded_batch import PreparedBatch


def warn_of_quarantined(rejected: pa.Table, reasons: Mapping[str, int], log: FilteringBoundLogger) -> None:
    """One warning for a batch with records that went to quarantine: how many by reason, and where the first one is."""
    if not reasons:
        return
    log.warning(
        "records went to quarantine: until they are applied, the rows of their keys may be wrong",
        reasons=dict(reasons),
        first={name: rejected[name][0].as_py() for name in ("partition", "offset")},
        fix="see `distributary quarantine list`, then docs/quarantine.md",
    )


def warn_of_losses(batch: PreparedBatch, log: FilteringBoundLogger) -> None:
    """One warning for each kind of loss, with its number and the way out."""
    if batch.unknown:
        log.warning(
            "no earlier record and no row has some values that the source did not send: they are NULL",
            values=batch.unknown,
            fix="take an incremental snapshot of the table, which sends them",
        )
    if batch.forgotten_keys:
        log.warning(
            "the topic got more partitions, and one of them gets no records: too many changes were remembered for"
            " it. Changes that were sent again to another partition may be applied twice",
            keys=batch.forgotten_keys,
            fix="run `distributary verify` for the table",
        )
    if batch.without_order:
        log.warning(
            "too many changes were remembered behind records in quarantine. A replay applies these records only where"
            " no newer change of their key was applied",
            records=batch.without_order,
            fix="replay the quarantine, and take an incremental snapshot of the table",
        )
    if batch.forgotten:
        log.warning(
            "more records went to quarantine without a readable position than are noted, and the oldest are forgotten:"
            " if these wait still, a replay brings rows back that were deleted after them",
            records=batch.forgotten,
            fix="after a replay, take an incremental snapshot of the table",
        )
    if batch.stale_snapshot_rows:
        log.warning(
            "snapshot rows were skipped, because newer changes of their keys are applied already",
            rows=batch.stale_snapshot_rows,
            fix="nothing, if a snapshot came late. If the source was restored or failed over, raise `epoch` for the"
            " table and take a new snapshot",
        )
