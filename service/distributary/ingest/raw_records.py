"""Kafka's records of one table on their way to the decoder: in this process, or in Spark's tasks.

A batch that is small is fetched and decoded here, where that takes less than a Spark job's start. A larger one is
decoded where Spark's tasks read it. Both run the same functions.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Protocol

import pyarrow as pa
from pyspark.accumulators import Accumulator, AccumulatorParam
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.udf import UserDefinedFunction
from pyspark.util import PythonEvalType

from distributary.consume.offsets import Slice
from distributary.consume.source import RecordSource, ranges
from distributary.decode.decoder import Decoded, Decoder
from distributary.decode.observed_columns import ObservedColumns
from distributary.decode.options import DecodeOptions
from distributary.decode.record_schema import RecordSchema
from distributary.errors import TableHalt
from distributary.ingest.merge_records import RecordColumns, finished, local_frame, merge_table
from distributary.merge.kept import kept
from distributary.merge.queries import Queries

LOCAL_RECORDS = 20_000
"""The most records of a batch that is decoded in this process."""
LOCAL_BYTES = 64 * 2**20
"""The same in bytes of their values, schemas included."""
_TASK_BYTES = 32 * 2**20
"""Bytes of values that a task hands to the decoder at once."""
_FEWEST_AT_ONCE, _MOST_AT_ONCE = 16, 20_000
_ROWS_AT_ONCE = "spark.sql.execution.arrow.maxRecordsPerBatch"

Finish = Callable[[DataFrame], DataFrame]
"""Makes what is kept of decoded records."""


@dataclass(frozen=True)
class DecodedRecords:
    """`records` as the merge takes them (see merge_records); in memory, or `held` by Spark until it is let go.
    `observed` are the columns that they have, and `conflict` why the config can't have those of some.
    `unknown_schemas`: see Decoded."""

    records: DataFrame
    held: DataFrame | None
    observed: tuple[ObservedColumns, ...]
    conflict: TableHalt | None
    unknown_schemas: frozenset[str] = frozenset()


class RawRecords(Protocol):
    """The raw records of one batch."""

    def decode(self, decoder: Decoder, schema: RecordSchema, columns: RecordColumns, finish: Finish) -> DecodedRecords:
        """All records, decoded, and then `finish`."""
        ...

    def frame(self, places: pa.Table) -> DataFrame:
        """The raw records at these places (partition, offset), with all of Kafka's columns."""
        ...


class LocalRecords:
    """Records in this process (see consume.fetch.RAW)."""

    def __init__(self, session: SparkSession, table: pa.Table, queries: Queries) -> None:
        self._session = session
        self._queries = queries
        self.table = table

    def decode(self, decoder: Decoder, schema: RecordSchema, columns: RecordColumns, finish: Finish) -> DecodedRecords:
        """As RawRecords.decode, here."""
        decoded = decoder.decode(self.table, schema)
        table = merge_table(decoded, columns, columns.arrow_schema())
        records = local_frame(self._session, table, columns, self._queries)
        return DecodedRecords(finish(records), None, decoded.observed, decoded.conflict, decoded.unknown_schemas)

    def frame(self, places: pa.Table) -> DataFrame:
        """As RawRecords.frame."""
        wanted = {(partition, offset) for partition, offset in _places(places)}
        found = [number for number, place in enumerate(_places(self.table)) if place in wanted]
        return self._session.createDataFrame(self.table.take(found))


class TaskRecords:
    """Records of an offset range that Spark's tasks fetch by themselves, of about so many bytes each (0: unknown)."""

    def __init__(self, session: SparkSession, source: RecordSource, part: Slice, record_bytes: float = 0) -> None:
        self._session = session
        self._source = source
        self.part = part
        self._record_bytes = record_bytes

    def decode(self, decoder: Decoder, schema: RecordSchema, columns: RecordColumns, finish: Finish) -> DecodedRecords:
        """As RawRecords.decode, in Spark's tasks."""
        tasks = self._session.sparkContext.defaultParallelism
        found = ranges(self.part, tasks)
        pieces = _Pieces(self._source.fetch_pieces, self.part.topic, found, _most_at_once(self._record_bytes))
        told = _new_told(self._session)
        task = _DecodeTask(decoder.options, schema, columns, columns.arrow_schema(), told, pieces)
        return _decoded(self._session.range(0, len(found), 1, len(found)), task, finish)

    def frame(self, places: pa.Table) -> DataFrame:
        """As RawRecords.frame."""
        return _at_places(self._source.frame(self._session, self.part), places)


class FrameRecords:
    """Records of a DataFrame with Kafka's columns."""

    def __init__(self, frame: DataFrame) -> None:
        self._frame = frame

    def decode(self, decoder: Decoder, schema: RecordSchema, columns: RecordColumns, finish: Finish) -> DecodedRecords:
        """As RawRecords.decode, in Spark's tasks."""
        session = self._frame.sparkSession
        session.conf.set(_ROWS_AT_ONCE, str(_most_at_once(0)))
        told = _new_told(session)
        raw = self._frame.select("key", "value", "partition", "offset", "timestamp", "headers")
        return _decoded(raw, _DecodeTask(decoder.options, schema, columns, columns.arrow_schema(), told), finish)

    def frame(self, places: pa.Table) -> DataFrame:
        """As RawRecords.frame."""
        return _at_places(self._frame, places)


def _most_at_once(record_bytes: float) -> int:
    """How many records of about so many bytes (0: unknown) a task decodes at once."""
    return min(_MOST_AT_ONCE, max(_FEWEST_AT_ONCE, int(_TASK_BYTES / record_bytes))) if record_bytes else 1_000


def _at_places(frame: DataFrame, places: pa.Table) -> DataFrame:
    keys = ["partition", "offset"]
    named = F.broadcast(frame.sparkSession.createDataFrame(places.select(keys)))
    return frame.join(named, keys, "left_semi")


def _decoded(frame: DataFrame, task: _DecodeTask, finish: Finish) -> DecodedRecords:
    made = finished(_map_in_arrow(frame, task, task.columns.ddl()), task.columns)
    records = kept(finish(made), eager=True)
    return _combined(records, task.told.value)


class _Texts(AccumulatorParam[frozenset[str]]):
    """Gathers texts from Spark's tasks. A task that ran twice tells the same ones."""

    def zero(self, value: frozenset[str]) -> frozenset[str]:  # noqa: ARG002
        return frozenset()

    def addInPlace(self, value1: frozenset[str], value2: frozenset[str]) -> frozenset[str]:  # noqa: N802
        return value1 | value2


def _new_told(session: SparkSession) -> Accumulator[frozenset[str]]:
    return session.sparkContext.accumulator(frozenset(), _Texts())


class RawSource:
    """Decides, for the batches of one table, where they are decoded; `tell` is told why.

    What does not fit is seen once: then the table's records are known to be larger.
    """

    def __init__(
        self, source: RecordSource, session: SparkSession, queries: Queries, tell: Callable[[str], object]
    ) -> None:
        self._source = source
        self._session = session
        self._queries = queries
        self._tell = tell
        self._record_bytes = 0.0

    def records(self, part: Slice, payload_bytes: float = 0) -> RawRecords:
        """The records of an offset range, with payloads of about so many bytes (0: unknown). Raises TransientError."""
        record_bytes = max(self._record_bytes, payload_bytes)
        if part.records > LOCAL_RECORDS:
            self._tell(f"{part.records} offsets are more than {LOCAL_RECORDS}: Spark's tasks decode them")
        elif part.records * record_bytes > LOCAL_BYTES:
            self._tell(f"{part.records} records of {record_bytes:.0f} bytes: Spark's tasks decode them")
        else:
            found = self._source.fetch(part, LOCAL_BYTES)
            if found is not None:
                self._record_bytes = found.nbytes / max(1, found.num_rows)
                self._tell(f"{found.num_rows} records, {found.nbytes} bytes: decoded in the driver")
                return LocalRecords(self._session, found, self._queries)
            self._record_bytes = 1 + LOCAL_BYTES / part.records
            self._tell(f"more than {LOCAL_BYTES} bytes: Spark's tasks decode them")
        return TaskRecords(self._session, self._source, part, record_bytes)


def _map_in_arrow(frame: DataFrame, task: _DecodeTask, ddl: str) -> DataFrame:
    """DataFrame.mapInArrow, which asks for pandas although it makes no use of it."""
    function = UserDefinedFunction(task, ddl, evalType=PythonEvalType.SQL_MAP_ARROW_ITER_UDF, name="decode")
    column = function(*(frame[name] for name in frame.columns))
    return DataFrame(frame._jdf.mapInArrow(column._jc, False, None), frame.sparkSession)


@dataclass(frozen=True)
class _Pieces:
    """Fetches offset ranges (partition, start, end) of a topic by their numbers, in pieces."""

    fetch: Callable[[Slice, int, int], Iterator[pa.Table]]
    topic: str
    ranges: Sequence[tuple[int, int, int]]
    most_at_once: int

    def __call__(self, numbers: pa.RecordBatch) -> Iterator[pa.Table]:
        for number in numbers.column(0).to_pylist():
            partition, start, end = self.ranges[number]
            part = Slice(self.topic, {partition: start}, {partition: end})
            yield from self.fetch(part, self.most_at_once, _TASK_BYTES)


def _as_they_are(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    yield batch


@dataclass(frozen=True)
class _DecodeTask:
    """What Spark's tasks run: makes the merge's records of raw ones, or of what `pieces` makes raw records of.

    `told` gathers, as JSON, which columns were observed.
    """

    options: DecodeOptions
    schema: RecordSchema
    columns: RecordColumns
    arrow: pa.Schema
    told: Accumulator[frozenset[str]]
    pieces: Callable[[pa.RecordBatch], Iterator[pa.RecordBatch | pa.Table]] = _as_they_are

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        decoder = Decoder(self.options)
        for batch in batches:
            for raw in self.pieces(batch):
                decoded = decoder.decode(raw, self.schema)
                self.told.add(frozenset((_told(decoded),)))
                yield from merge_table(decoded, self.columns, self.arrow).combine_chunks().to_batches()


def _told(decoded: Decoded) -> str:
    halt = decoded.conflict
    return json.dumps(
        {
            "observed": [{**asdict(one), "names": sorted(one.names)} for one in decoded.observed],
            "conflict": None if halt is None else [halt.code, halt.message, halt.fix],
            "unknown_schemas": sorted(decoded.unknown_schemas),
        }
    )


def _combined(records: DataFrame, told: Iterable[str]) -> DecodedRecords:
    observed: dict[str, ObservedColumns] = {}
    conflict = None
    unknown: set[str] = set()
    for text in sorted(told):
        found = json.loads(text)
        for one in found["observed"]:
            observed[json.dumps(one)] = ObservedColumns(**{**one, "names": frozenset(one["names"])})
        conflict = conflict or (found["conflict"] and TableHalt(*found["conflict"]))
        unknown.update(found["unknown_schemas"])
    return DecodedRecords(records, records, tuple(observed.values()), conflict, frozenset(unknown))


def _places(table: pa.Table) -> Iterator[tuple[int, int]]:
    return zip(table["partition"].to_pylist(), table["offset"].to_pylist(), strict=True)
