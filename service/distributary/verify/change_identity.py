"""What tells a change of a table from its others, in the rows of a table that keeps each."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import Column
from pyspark.sql import functions as F

from distributary.lake.position_sql import lsn_of

_ALL_DIGITS = (
    "map('timestampFormat', 'yyyy-MM-dd HH:mm:ss.SSSSSSXXX', 'timestampNTZFormat', 'yyyy-MM-dd HH:mm:ss.SSSSSS')"
)
_IDENTITY = ("kind", "at", "read_at", "who")


@dataclass(frozen=True)
class Identity:
    """What tells two changes of a table apart."""

    connector: str
    keyed: bool

    def columns(self) -> list[Column]:
        """at STRING, read_at BIGINT, who: with kind the same for a record and the same record sent again. Of a record
        with a key who is a STRUCT: k STRUCT and row BIGINT, NULL where no other record of the key has its position."""
        # The first transaction after a start is sent without its commit level: the rest of the position tells it.
        at = f"concat(left(pos, 4), {lsn_of('pos')})" if self.connector == "postgresql" else "pos"
        share = "kind IN ('r', 'c')" if self.connector == "postgresql" else "kind = 'r'"
        # A record that is sent again may be read into other columns than before: where its key tells it, that does.
        of_key = f"named_struct('k', k, 'row', CASE WHEN {share} THEN xxhash64(to_json(row, {_ALL_DIGITS})) END)"
        return [
            F.expr(at).alias("at"),
            F.expr("CASE WHEN kind = 'r' THEN ts_ms END").alias("read_at"),
            F.expr(of_key if self.keyed else "to_json(row)").alias("who"),
        ]
