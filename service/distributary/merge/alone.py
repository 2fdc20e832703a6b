"""What a table's rows must be by its topic alone: all records in one slice, folded into a table that has nothing.

The same rules as the merge's, but for what a merge does to rows that are there already: no slice is cut, nothing is
remembered beside the table, nothing is written. Pure: frames in, frames out; jobs only where values were not sent.
"""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from distributary import sql
from distributary.merge.clauses import Clauses
from distributary.merge.facts import Facts
from distributary.merge.fill import Fill
from distributary.merge.fold import Folding, folded
from distributary.merge.held import without_held
from distributary.merge.kept import kept
from distributary.merge.mode import Destination
from distributary.merge.position_sql import is_later
from distributary.merge.upsert import may_lack_values, with_reads_known
from distributary.merge.values import WAITS, Fillable


def rows_alone(records: DataFrame, found: Facts, to: Destination, truncated: str | None) -> DataFrame:
    """The rows that decoded records (see ingest.merge_records) make, one for each key they name.

    `truncated`: the position of the newest truncate. Out: k STRUCT; lives BOOLEAN, there is a row; made STRUCT, that
    row with all columns of a table of mode upsert; event STRUCT<partition, offset, position, op>, the change that
    decided, NULL where it was a tombstone; open ARRAY<STRING>, columns whose value no record tells; vague BOOLEAN: what
    was there before the records would have a say in whether there is a row, or in its values.
    """
    values = Fillable.of(to.columns, to.key, to.settings) if may_lack_values(found) else None
    if values is not None and not values.types:
        values = None
    keeps_deleted = to.settings.deletes == "soft"
    truncate = to.settings.truncate
    folding = Folding(
        to.connector,
        truncated if truncate == "apply" else None,
        truncated if truncate == "soft" and found.moved else None,
        values,
        keeps_deleted,
    )
    keys = without_held(folded(thinned(records, to.connector, values_needed=values is not None), folding))
    keys = with_reads_known(keys).drop("reads")
    if values is not None:
        keys = _filled(kept(keys, eager=True), to.connector, to.key, values, keeps_deleted)
    clauses = Clauses(
        to,
        reads=to.connector == "postgresql" and found.reads > 0,
        values=values,
        keeps_deleted=keeps_deleted,
        soft=keeps_deleted or to.settings.truncate == "soft",
        truncated=truncated,
        truncated_ever=truncated,
        moved=found.moved > 0,
    )
    open_ = f"map_keys(map_filter(from_json(filled, '{WAITS}'), (n_, o_) -> o_ RLIKE '^(@.*)?$'))"
    nothing = "CAST(array() AS ARRAY<STRING>)"
    decided = "CASE WHEN r IS NOT NULL AND (w IS NULL OR r_last) THEN r ELSE w END"
    event = sql.let(
        "e_",
        decided,
        "CASE WHEN e_ IS NOT NULL THEN"
        " named_struct('partition', e_.partition, 'offset', e_.offset, 'position', e_.pos, 'op', e_.kind) END",
    )
    vague = "if_there OR (w IS NULL AND r IS NULL)"
    if keeps_deleted:
        vague = f"{vague} OR (w.kind = 'd' AND alive IS NULL)"
    return clauses.told(keys).select(
        "k",
        "lives",
        "made",
        F.expr(event).alias("event"),
        F.expr(f"coalesce({open_}, {nothing})" if values is not None else nothing).alias("open"),
        F.expr(f"coalesce({vague}, true)").alias("vague"),
    )


def thinned(records: DataFrame, connector: str, *, values_needed: bool) -> DataFrame:
    """The records without those that the one after them outdoes, whatever came before both.

    The fold takes a key's records into memory together. Of a key that changes all the time this leaves a few: an update
    or insert goes where the key's next record in its partition is another one, at a later position. Spark sorts for it,
    which spills to disk. With `values_needed` the next one must have all values, and inserts stay: they begin a row.
    """
    plain = "bad IS NULL AND kind IN ('c', 'u') AND NOT moved_in AND NOT moved_out AND pos NOT LIKE '%?%'"
    outdoes, goes = plain, plain
    if values_needed:
        outdoes, goes = f"{plain} AND coalesce(size(missing), 0) <= 0", f"{plain} AND kind = 'u'"
    by_key = "PARTITION BY k"
    by_offset = f"{by_key} ORDER BY partition, offset"
    usable = records.where("bad IS NULL AND kind NOT IN ('t', 'm')").select(
        "*",
        F.expr(f"min(partition) OVER ({by_key}) = max(partition) OVER ({by_key})").alias("in_one"),
        F.expr(f"lead(struct(pos, {outdoes} AS outdoes)) OVER ({by_offset})").alias("next"),
    )
    gone = f"in_one AND {goes} AND next.outdoes AND {is_later(connector, 'next.pos', 'pos')}"
    return usable.where(f"NOT coalesce({gone}, false)").drop("in_one", "next")


def _filled(
    keys: DataFrame, connector: str, key: Mapping[str, str], values: Fillable, keeps_deleted: bool
) -> DataFrame:
    """The folded keys with the values that were not sent, as far as the records tell them."""
    fill = Fill(connector, key, values, keeps_deleted=keeps_deleted)
    departures = kept(fill.departures(keys), eager=True)
    known = fill.settled(departures, None)
    return kept(fill.filled(keys, known, None), eager=True)
