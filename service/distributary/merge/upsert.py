"""`mode: upsert`: one row per key, the newest state.

Spark jobs of an ordinary slice: where this process commits it, one (see here.py); else the fold (kept in memory and on
disk), the remembered deletes where there are any, and the MERGE; of a first slice without deletes the append alone. A
large slice without deletes is asked before whether each key is in it once, as a snapshot's rows are: then there is
nothing to fold. What only some slices need costs only those: the table's rows of the slice's keys (values that were
not sent, snapshot rows among changes, lone tombstones), the remembered deletes (records that are not newer than all
that the table has taken in).
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date, datetime, timezone

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from distributary import sql
from distributary.config.table import TableSettings
from distributary.decode.options import CONNECTORS_WITH_PLACEHOLDER
from distributary.merge.clause import spark_merge
from distributary.merge.clauses import SERVICE_COLUMNS, SOFT_COLUMNS, Clauses
from distributary.merge.deletes import deleted_after, newest_delete_after
from distributary.merge.doubts import Doubts
from distributary.merge.facts import Facts
from distributary.merge.fill import Fill
from distributary.merge.fold import Folding, folded
from distributary.merge.held import with_held, without_held
from distributary.merge.here import merged_here
from distributary.merge.kept import kept
from distributary.merge.mode import DecodedSlice, Destination, Prepared
from distributary.merge.queries import Query
from distributary.merge.table import SMALL_SLICE, Write
from distributary.merge.values import Fillable

# So many of a row's newest snapshot rows are known again: each snapshot adds one.
_READS_KNOWN = 8


class UpsertMode:
    """One table that is kept by upserts."""

    def __init__(self, settings: TableSettings) -> None:
        self._keeps_deleted = settings.deletes == "soft"
        self._soft = settings.marks_deleted

    @property
    def service_columns(self) -> Mapping[str, str]:
        """Where a row comes from, and what later records must know of it."""
        return {**SERVICE_COLUMNS, **(SOFT_COLUMNS if self._soft else {})}

    @property
    def reads_before(self) -> bool:
        """Rows are told by what comes after the changes."""
        return False

    def write(self, to: Destination, part: DecodedSlice) -> Prepared:
        """Folds the slice to one row per key and merges it; deletes are remembered before."""
        found = part.found
        if not (found.reads or found.changes or found.deletes or part.truncated):
            return Prepared(to.lake.nothing())
        values = Fillable.of(to.columns, to.key, to.settings) if may_lack_values(found) else None
        if values is not None and not values.types:
            values = None
        truncated = part.truncated_ever if to.settings.truncate == "apply" else None
        # The tombstone behind a delete has its key.
        apart = found.records > SMALL_SLICE and not found.deletes and part.keys.differ
        marked = part.truncated_ever if to.settings.truncate == "soft" and found.moved else None
        folding = Folding(to.connector, truncated, marked, values, self._keeps_deleted, apart, found.moved > 0)
        keys = Query(to.queries, part.records).then(folding, lambda records: folded(records, folding))
        if part.first:
            to.deletes.forget_all()
        reads = found.reads > 0 and to.connector == "postgresql"
        # Whether the remembered deletes may have a say.
        late = not part.first and (found.late or reads)
        keys = self._with_known(keys, to, part, values, reads=reads, late=late)
        doubts = Doubts()
        clauses = Clauses(
            to,
            reads=reads,
            values=values,
            keeps_deleted=self._keeps_deleted,
            soft=self._soft,
            truncated=part.truncated,
            truncated_ever=part.truncated_ever,
            moved=found.moved > 0,
            late=late,
        )

        def by_spark() -> Write:
            return self._by_spark(to, part, keys, clauses, values, doubts)

        write = merged_here(to, part, keys, clauses, doubts, _today(), by_spark) or by_spark()
        undecided = doubts.count(keys, to, part)
        if undecided:
            to.tell("deletes of keys that were created before in their transaction may be of older rows", undecided)
        return Prepared(write, undecided)

    def _by_spark(
        self,
        to: Destination,
        part: DecodedSlice,
        keys: Query,
        clauses: Clauses,
        values: Fillable | None,
        doubts: Doubts,
    ) -> Write:
        if part.first and values is None and not part.found.deletes:
            doubts.told(0)  # doubts are about deletes
            return to.lake.append(clauses.rows_to_insert(keys).frame())
        today = _today()
        known = kept(doubts.watched(keys.frame()), eager=True)  # several jobs read them; with it doubts are looked for
        if values is not None:
            fill = Fill(
                to.connector,
                to.key,
                values,
                keeps_deleted=self._keeps_deleted,
                soft=self._soft,
                truncated=part.truncated,
            )
            known = _filled(known, to, fill, part.found, today)
        if part.found.deletes:
            to.deletes.remember(known, today)
        if part.first:
            return to.lake.append(clauses.rows_to_insert(Query(to.queries, known)).frame())
        on = " AND ".join(f"t.{sql.name(name)} <=> s.k.k{i}" for i, name in enumerate(to.key))
        return to.lake.merge(spark_merge(to.lake.delta(), known, on or "false", clauses.clauses()))

    def _with_known(
        self, keys: Query, to: Destination, part: DecodedSlice, values: Fillable | None, *, reads: bool, late: bool
    ) -> Query:
        """The keys with what the table and the remembered deletes know of them, as far as the slice's rules ask."""
        found = part.found
        if part.first and (values is not None or found.lone or to.connector == "postgresql"):
            return keys.then("the table is empty", lambda folded: _told(_knowing(without_held(folded))))
        # The snapshot rows that were taken in for a deleted key are remembered with the delete: PostgreSQL's are
        # known again by nothing else when they are sent again.
        reads_of_deleted = found.deletes > 0 and to.connector == "postgresql" and part.reads_lately
        asks_table = values is not None or reads or found.lone or reads_of_deleted
        if part.first or not (asks_table or late):
            return keys.then("nothing else is known", _told)
        known = keys.frame()
        if asks_table:
            known = _knowing(with_held(known, to.lake.rows(), to.key, values, soft=self._soft))
        if late:
            known = self._without_older(to.deletes.joined(known, to.key), to.connector)
        if reads:
            known = _at_the_delete(_last_unseen_read(known), to.connector)
        return Query(to.queries, _told(known))

    def _without_older(self, keys: DataFrame, connector: str) -> DataFrame:
        """Changes that are older than a remembered delete of their key bring nothing back; where deleted rows stay,
        they are written as deleted at that position (`dead_at`)."""
        older = f"w IS NOT NULL AND w.kind <> 'd' AND {deleted_after(connector, 'pos')}"
        if self._keeps_deleted:
            newest = newest_delete_after(connector, "pos")
            return keys.withColumn("dead_at", F.expr(f"CASE WHEN {older} THEN {newest} END"))
        older = f"w IS NOT NULL AND {deleted_after(connector, 'pos')}"
        return keys.withColumn("w", F.expr(f"CASE WHEN NOT ({older}) THEN w END"))


def _today() -> date:
    return datetime.now(timezone.utc).date()


def _knowing(keys: DataFrame) -> DataFrame:
    """The keys with what is to be seen by the rows that are held."""
    # A tombstone by itself has no position: the key's stays what it was.
    keys = keys.withColumn("pos", F.expr("CASE WHEN wiped AND w IS NULL THEN held.position ELSE pos END"))
    return with_reads_known(keys)


def _told(keys: DataFrame) -> DataFrame:
    """The keys without what was asked only on the way."""
    return keys.drop("reads", "gone", "reads_gone")


def with_reads_known(keys: DataFrame) -> DataFrame:
    """Folded keys, of which is known what is held, with reads_known STRING: the identities of the newest snapshot rows
    that they have seen, with `#` between them; NULL where there are none."""
    seen = (
        "nullif(concat_ws('#', substring(held.snapshot, instr(held.snapshot, '#') + 1),"
        " nullif(array_join(transform(reads, r_ -> r_.e.read_id), '#'), '')), '')"
    )
    newest = f"slice(array_distinct(reverse(split({seen}, '#'))), 1, {_READS_KNOWN})"
    known = f"array_join(reverse({newest}), '#')"
    return keys.withColumn("reads_known", F.expr(known if "reads" in keys.columns else "CAST(NULL AS STRING)"))


def may_lack_values(found: Facts) -> bool:
    """Whether the slice has values that were not sent, or may tell those that rows of the table lack."""
    moved = found.moved > 0 and found.connector in CONNECTORS_WITH_PLACEHOLDER
    return found.placeholders > 0 or moved or (found.late and found.filled)


def _last_unseen_read(keys: DataFrame) -> DataFrame:
    """`r` and `r_last` of the newest snapshot row that was not taken in before."""
    known = "concat('#', concat_ws('#', held.snapshot, reads_gone), '#')"
    unseen = f"filter(reads, r_ -> NOT contains({known}, concat('#', r_.e.read_id, '#')))"
    last = keys.withColumn("unseen", F.expr(f"try_element_at({unseen}, -1)"))
    return (
        last.withColumn("r", F.expr("unseen.e"))
        .withColumn("r_last", F.expr("coalesce(unseen.after, false)"))
        .drop("unseen")
        .where("w IS NOT NULL OR r IS NOT NULL OR wiped")
    )


def _at_the_delete(keys: DataFrame, connector: str) -> DataFrame:
    """A snapshot row brings a deleted key back, and takes nothing away from the position that is known of it (2.3):
    that of its newest delete, so that the delete is known again when it is sent again."""
    newest = newest_delete_after(connector, "pos")
    back = "held IS NULL AND w IS NULL AND r IS NOT NULL AND NOT wiped"
    return keys.withColumn("pos", F.expr(f"CASE WHEN {back} THEN coalesce({newest}, pos) ELSE pos END"))


def _filled(keys: DataFrame, to: Destination, fill: Fill, found: Facts, today: date) -> DataFrame:
    """The keys with the values that were not sent. What rows held when they left their key is remembered."""
    known = pushed = None
    if found.moved:
        departures = kept(fill.departures(keys), eager=True)
        asked = keys.select(F.expr("life.link").alias("id")).unionByName(fill.waited_for(departures))
        known = fill.settled(departures, fill.recalled(asked, to.deletes.departures(to.key)))
        to.deletes.remember_departures(departures, today)
        pushed = fill.pushed(to.lake.rows(), known)
    keys = kept(fill.filled(keys, known, pushed), eager=True)
    unknown = keys.agg(F.sum("unknown")).head()
    if unknown is not None and unknown[0]:
        to.tell("values that the source did not send and nothing tells are NULL", int(unknown[0]))
    return keys
