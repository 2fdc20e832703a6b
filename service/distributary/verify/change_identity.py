"""The identity of a change in an append table: equal for a record and the same record sent again."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import Column
from pyspark.sql import functions as F

from distributary.rules.log_traits import log_traits
from distributary.verify.position_sql import lsn_of

_ALL_DIGITS = (
    "map('timestampFormat', 'yyyy-MM-dd HH:mm:ss.SSSSSSXXX', 'timestampNTZFormat', 'yyyy-MM-dd HH:mm:ss.SSSSSS')"
)


@dataclass(frozen=True)
class ChangeIdentity:
    """How changes of one table are identified. `keyed`: its records have a key."""

    connector: str
    keyed: bool

    def columns(self) -> list[Column]:
        """at STRING (position), read_at BIGINT (time of a snapshot read), who (the row): together with kind equal for a
        record and its replay.

        With a key, `who` is a STRUCT of k STRUCT and row BIGINT, a hash of the row. The hash is NULL if no other record
        of the key can have the same position.
        """
        traits = log_traits(self.connector)
        # A replay may have no level where the record had one; the rest of the position is the same.
        at = f"concat(left(pos, 4), {lsn_of('pos')})" if traits.level_may_be_unknown else "pos"
        share = "kind IN ('r', 'c')" if traits.inserts_share_positions else "kind = 'r'"
        # The table may have got new columns before the record was sent again, so the row is used only without a key.
        of_key = f"named_struct('k', k, 'row', CASE WHEN {share} THEN xxhash64(to_json(row, {_ALL_DIGITS})) END)"
        return [
            F.expr(at).alias("at"),
            F.expr("CASE WHEN kind = 'r' THEN ts_ms END").alias("read_at"),
            F.expr(of_key if self.keyed else "to_json(row)").alias("who"),
        ]
