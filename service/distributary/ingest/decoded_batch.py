"""A decoded batch on its way to its table."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from distributary.apply.key_text import key_texts
from distributary.decode.decoder import Decoded
from distributary.decode.options import DecodeOptions
from distributary.ingest.task_files import WrittenFiles
from distributary.lake.table import Write
from distributary.progress.batch_stats import BatchStats
from distributary.progress.record import Progress
from distributary.reasons import CONTRADICTED_POSITION
from distributary.rules.columns import one_array
from distributary.rules.event import Event, Pointer
from distributary.rules.passed_positions import RESEND_WINDOW
from distributary.rules.state import RulesState
from distributary.types.column_default import ColumnDefault
from distributary.types.record_schema import RecordSchema, arrow_of

_CHANGES = pa.array(["c", "u", "d", "r", "t"])


@dataclass(frozen=True)
class ReadBatch:
    """A decoded batch, and its statistics. `altered`: the table was created or its columns were changed for it.
    `options` and `schema`: it was decoded with them."""

    decoded: Decoded
    stats: BatchStats
    altered: bool
    options: DecodeOptions
    schema: RecordSchema


@dataclass(frozen=True)
class DecodedBatch:
    """A decoded batch, `events` and `rejected` (see decode.events.make_events), on its way to its table.

    `columns` and `key`: the source's columns that the table has and those of its key, name to Spark type. `before`: the
    table's record. `partitions`: how many the topic has. `compacted`: records were taken out of its offsets, and the
    topic keeps the last one of each key.
    `unwrapped`: records have no envelope. `partition_change_read`: all that was sent before the topic got more
    partitions is in this batch or before it. `caught_up`: so is all that the topic had when the batch was planned.
    `replayed`: events that come back from quarantine. `written`: the files with rows that the events lack.
    """

    topic: str
    connector: str
    columns: Mapping[str, str]
    key: Mapping[str, str]
    events: pa.Table
    rejected: pa.Table
    before: Progress | None
    partitions: int
    compacted: bool = False
    unwrapped: bool = False
    partition_change_read: bool = False
    caught_up: bool = False
    replayed: pa.Table | None = None
    written: WrittenFiles | None = None

    @classmethod
    def of(
        cls,
        decoded: Decoded,
        progress: Progress,
        columns: Mapping[str, str],
        partitions: int,
        *,
        replayed: pa.Table | None = None,
        first: bool = False,
        compacted: bool = False,
        partition_change_read: bool = False,
        caught_up: bool = False,
        written: WrittenFiles | None = None,
    ) -> DecodedBatch:
        """The batch of these decoded records. `first`: the table has applied nothing so far."""
        return cls(
            topic=progress.topic,
            connector=progress.connector,
            columns=columns,
            key={name: columns[name] for name in progress.key},
            events=decoded.events,
            rejected=decoded.rejected,
            before=None if first else progress,
            partitions=partitions or 1,
            compacted=compacted,
            unwrapped=bool(progress.unwrapped),
            partition_change_read=partition_change_read,
            caught_up=caught_up,
            replayed=replayed,
            written=written,
        )


@dataclass(frozen=True)
class PreparedBatch:
    """A batch that is ready to be committed, by `write`, once; then `rows` has how many rows it inserted, updated and
    deleted. `ambiguous` counts deletes that could apply to either of two rows of the same key (rule 2.7), `unknown`
    values that became NULL because no record has them (rule 3.7), `forgotten_keys` keys of a topic that got more
    partitions (rule 2.5, see end_partition_change), `without_order` records in quarantine that lost their order and
    `forgotten` those without a position whose keys are no longer noted (rule 6.3, quarantine_order.py),
    `stale_snapshot_rows` snapshot rows that are older than their key's newest change (rule 2.3). `went_back`: the first
    event of each partition that shows that the source was set back (rule 2.6); `contradicted`: the
    places of events with a wrong position, which must go to quarantine (see rejecting). If there are any of the two,
    nothing may be committed."""

    write: Write
    ambiguous: int = 0
    unknown: int = 0
    forgotten_keys: int = 0
    without_order: int = 0
    forgotten: int = 0
    stale_snapshot_rows: int = 0
    went_back: tuple[Event, ...] = ()
    contradicted: frozenset[Pointer] = frozenset()
    rows: dict[str, int] = field(default_factory=dict)


def rejecting(decoded: Decoded, contradicted: Collection[Pointer]) -> Decoded:
    """The decoded records, of which those at these places are rejected: their positions are wrong (rule 2.6)."""
    events = decoded.events
    places = list(zip(events["partition"].to_pylist(), events["offset"].to_pylist(), strict=True))
    is_wrong = pa.array([place in contradicted for place in places], pa.bool_())
    # A change of a key that the config names is two events of one record.
    first = {place: index for index, place in reversed([*enumerate(places)]) if place in contradicted}
    wrong = events.take(pa.array(sorted(first.values()), pa.int64()))
    for name, text in (("reason", CONTRADICTED_POSITION.code), ("message", CONTRADICTED_POSITION.message)):
        wrong = wrong.append_column(name, pa.array([text] * wrong.num_rows, pa.string()))
    rejected = pa.concat_tables([decoded.rejected, wrong], promote_options="default")
    return replace(decoded, events=events.filter(pc.invert(is_wrong)), rejected=rejected)


def lacks_first_copies(batch: DecodedBatch, state: RulesState) -> bool:
    """Whether a record of the batch may be sent again after compaction removed its first copy. This is so below gaps of
    the offsets, and for as long behind them as a restarted connector may send older records again."""
    times = batch.events["source_time"]
    first, last = (None if time.as_py() is None else 1000 * time.as_py() for time in (pc.min(times), pc.max(times)))
    if batch.compacted:
        state.compacted_until = max(state.compacted_until, (last or 0) + RESEND_WINDOW)
    return batch.compacted or (state.compacted_until > 0 and (first is None or first <= state.compacted_until))


def with_rejected(batch: DecodedBatch) -> tuple[pa.Table, pa.Array | None]:
    """All events, each partition's by offset, and a mask of those that were rejected but have a readable key and
    position: their changes are unknown, and they may be replayed (rule 6.3)."""
    events, rejected = batch.events, batch.rejected
    if not rejected.num_rows or not batch.key:
        return events, None
    is_whole = pc.or_(pc.equal(rejected["operation"], "t"), pc.equal(rejected["reason"], CONTRADICTED_POSITION.code))
    has_key = pc.or_(is_whole, _has_key(rejected))  # a key may have parts that are NULL
    waiting = rejected.filter(pc.and_(_has_position(rejected), has_key)).select(events.column_names)
    mask = pa.array([False] * events.num_rows + [True] * waiting.num_rows, pa.bool_())
    both = pa.concat_tables([events, waiting]).append_column("rejected", mask).combine_chunks()
    both = both.take(np.lexsort((both["offset"].to_numpy(), both["partition"].to_numpy())))
    return both.drop_columns("rejected"), one_array(both["rejected"])


def without_position(batch: DecodedBatch) -> list[tuple[str, Pointer]]:
    """The key and the coordinates of each rejected record whose key could be read, but not its position: a value that
    is too large, or is no JSON. Later it may be replayed (rule 6.3)."""
    rejected = batch.rejected
    if not rejected.num_rows or not batch.key:
        return []
    waiting = rejected.filter(pc.and_(pc.invert(_has_position(rejected)), _has_key(rejected)))
    coordinates = zip(waiting["partition"].to_pylist(), waiting["offset"].to_pylist(), strict=True)
    return list(zip(key_texts(one_array(waiting["key"])).to_pylist(), coordinates, strict=True))


def _has_position(records: pa.Table) -> pa.Array:
    return pc.and_(pc.is_in(records["operation"], _CHANGES), pc.is_valid(records["position"]))


def _has_key(records: pa.Table) -> pa.Array:
    keys = one_array(records["key"])
    has_key = keys.is_valid()
    for part in keys.flatten():
        has_key = pc.and_(has_key, part.is_valid())
    return has_key


def known_defaults(progress: Progress | None) -> dict[str, ColumnDefault]:
    """The defaults of older rows in columns that were added later, from the progress record."""
    added = {} if progress is None else progress.added or {}
    return {name: ColumnDefault(column.value, column.before) for name, column in added.items()}


def arrow_struct(columns: Mapping[str, str]) -> pa.StructType:
    """The columns, name to Spark type, as a struct."""
    return pa.struct([(name, arrow_of(kind)) for name, kind in columns.items()])
