"""The events that the versions of a slice's keys are made from: the slice's own, and what was known before it."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from distributary.decode.options import CONNECTORS_WITH_PLACEHOLDER
from distributary.merge.events import Events
from distributary.merge.fold import KEYS_AT_COMMIT
from distributary.merge.kept import kept
from distributary.merge.mode import DecodedSlice, Destination
from distributary.merge.table import SMALL_SLICE

_LONGEST_CHAIN = 100


class Past:
    """`truncated`: the slice has truncates that count; `late`: what is older than the current versions counts, too."""

    def __init__(self, to: Destination, part: DecodedSlice, *, truncated: bool, late: bool) -> None:
        self.late = late
        self._to = to
        self._part = part
        self._truncated = truncated
        self._make = Events(to)
        self._ends: list[str] | None = None

    def events(self) -> DataFrame:
        """All events of the keys that the slice is about."""
        events = self._make.of_slice(self._part.records, len(self._part.found.partitions))
        if not self._part.first:
            events = self._with_known(events)
        if truncates := self.truncates():
            events = events.unionByName(self._make.of_truncates(events.select("k").distinct(), truncates))
        return events

    def truncates(self) -> list[str]:
        """The positions of the truncates that some event may be older than."""
        if self._ends is None:
            self._ends = self._found_truncates()
        return self._ends

    def _found_truncates(self) -> list[str]:
        found = []
        if self._truncated:
            found.append(self._own_truncates().select("position"))
        if self.late and self._part.truncated_ever and (remembered := self._remembered()) is not None:
            found.append(remembered.where("kind = 't'").select("position"))
        return sorted({row["position"] for frame in found for row in frame.distinct().collect()})

    def to_remember(self) -> DataFrame:
        """The slice's deletes and truncates: key columns k0, k1 …, position, kind, tx (of a delete that may mean a row
        which another one lies over, see versions.with_key_changes)."""
        of_below = "true" if self._to.connector in KEYS_AT_COMMIT else "moved_out"
        deletes = self._part.records.where("kind = 'd' AND bad IS NULL").select(
            "k.*", F.col("pos").alias("position"), "kind", F.expr(f"CASE WHEN {of_below} THEN tx END").alias("tx")
        )
        return deletes.unionByName(self._own_truncates()) if self._truncated else deletes

    def _own_truncates(self) -> DataFrame:
        return self._part.records.where("kind = 't' AND bad IS NULL").select(
            "k.*", F.col("pos").alias("position"), "kind", F.lit(None).cast("string").alias("tx")
        )

    def _remembered(self) -> DataFrame | None:
        return self._to.deletes.changes(self._to.key)

    def _with_known(self, events: DataFrame) -> DataFrame:
        versions = self._make.versions(self._to.lake.rows())
        keys = events.select("k").distinct()
        if not self.late:
            current = versions.where("__current")
            if not self._truncated:
                current = self._only(current, keys)
            return events.unionByName(self._make.of_current(current))
        keys = self._all_keys(keys, versions)
        found = events.unionByName(self._make.of_all(self._only(versions, keys), self.truncates()))
        if (remembered := self._remembered()) is not None:
            names = [f"k{i}" for i in range(len(self._to.key))]
            deletes = remembered.where("kind = 'd'").select(F.struct(*names).alias("k"), "position", "tx")
            found = found.unionByName(self._make.of_memory(self._only(deletes, keys)))
        return found

    def _only(self, frame: DataFrame, keys: DataFrame) -> DataFrame:
        wanted = keys.select(F.col("k").alias("wanted"))
        if self._part.found.records <= SMALL_SLICE and not self._truncated:
            wanted = F.broadcast(wanted)
        return frame.join(wanted, F.col("k").eqNullSafe(F.col("wanted")), "left_semi")

    def _all_keys(self, keys: DataFrame, versions: DataFrame) -> DataFrame:
        """The slice's keys, those that a truncate ends, and those that have values of each other's rows."""
        if self._truncated:
            low, high = min(self.truncates()), max(self.truncates())
            cut = versions.where(
                (F.col("__end_at").isNull() | (F.col("__end_at") > low)) & (F.col("__start_at") < high)
            )
            keys = keys.unionByName(cut.select("k")).distinct()
        if self._to.connector not in CONNECTORS_WITH_PLACEHOLDER:
            return keys
        if self._part.found.moved:
            old = self._part.records.where("old_k IS NOT NULL AND bad IS NULL").select(F.col("old_k").alias("k"))
            keys = keys.unionByName(old).distinct()
        # A row that took values over a key change follows the row that it took them from.
        fed = versions.where("__moved_from IS NOT NULL AND size(__trace.unsent) > 0").select("k", "__moved_from")
        for _ in range(_LONGEST_CHAIN):
            keys = kept(keys, eager=True)
            texts = keys.select(F.expr(self._make.key_text("k")).alias("text"))
            more = fed.join(texts, F.col("__moved_from") == F.col("text"), "left_semi").select("k").distinct()
            more = more.join(keys.select(F.col("k").alias("had")), F.col("k").eqNullSafe(F.col("had")), "left_anti")
            more = kept(more, eager=True)
            if more.isEmpty():
                break
            keys = keys.unionByName(more)
        return keys
