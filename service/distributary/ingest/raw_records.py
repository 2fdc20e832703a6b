"""Kafka's records of one table on their way to the decoder: in this process, or in Spark's tasks.

A batch that is small is fetched and decoded here, where that takes less than a Spark job's start. A larger one is
decoded where Spark's tasks read it. Both run the same functions.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Protocol

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.udf import UserDefinedFunction
from pyspark.util import PythonEvalType

from distributary.consume.offsets import Slice
from distributary.consume.source import RecordSource
from distributary.decoding.decoder import Decoder
from distributary.decoding.met_columns import MetColumns
from distributary.decoding.options import DecodeOptions
from distributary.decoding.record_schema import RecordSchema
from distributary.errors import TableHalt
from distributary.ingest.merge_records import RecordColumns, finished, local_frame, merge_table
from distributary.merge.kept import kept
from distributary.merge.queries import Queries

LOCAL_RECORDS = 20_000
"""The most records of a batch that is decoded in this process."""
LOCAL_BYTES = 32 * 2**20
"""The same in bytes of their values."""
_TASK_BYTES = 32 * 2**20
"""Bytes of values that a task hands to the decoder at once."""
_FEWEST_AT_ONCE, _MOST_AT_ONCE = 16, 20_000
_ROWS_AT_ONCE = "spark.sql.execution.arrow.maxRecordsPerBatch"
_MET = "met"


@dataclass(frozen=True)
class DecodedRecords:
    """`records` as the merge takes them (see merge_records), kept by Spark. `met` are the columns that they have, and
    `conflict` why the config can't have those of some."""

    records: DataFrame
    met: tuple[MetColumns, ...]
    conflict: TableHalt | None


class RawRecords(Protocol):
    """The raw records of one batch."""

    def decode(self, decoder: Decoder, schema: RecordSchema, columns: RecordColumns) -> DecodedRecords:
        """All records, decoded."""
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

    def decode(self, decoder: Decoder, schema: RecordSchema, columns: RecordColumns) -> DecodedRecords:
        decoded = decoder.decode(self.table, schema)
        table = merge_table(decoded, columns, columns.arrow_schema())
        return DecodedRecords(local_frame(self._session, table, columns, self._queries), decoded.met, decoded.conflict)

    def frame(self, places: pa.Table) -> DataFrame:
        wanted = {(partition, offset) for partition, offset in _places(places)}
        found = [number for number, place in enumerate(_places(self.table)) if place in wanted]
        return self._session.createDataFrame(self.table.take(found))


class SparkRecords:
    """Records that Spark reads, of about so many bytes each (0: unknown)."""

    def __init__(self, frame: DataFrame, record_bytes: float = 0) -> None:
        self._frame = frame
        self._record_bytes = record_bytes

    def decode(self, decoder: Decoder, schema: RecordSchema, columns: RecordColumns) -> DecodedRecords:
        session = self._frame.sparkSession
        at_once = int(_TASK_BYTES / self._record_bytes) if self._record_bytes else 1_000
        session.conf.set(_ROWS_AT_ONCE, str(min(_MOST_AT_ONCE, max(_FEWEST_AT_ONCE, at_once))))
        raw = self._frame.select("key", "value", "partition", "offset", "timestamp", "headers")
        task = _DecodeTask(decoder.options, schema, columns, columns.arrow_schema())
        ddl = f"{columns.ddl()}, {_MET} STRING"
        decoded = kept(finished(_map_in_arrow(raw, task, ddl), columns), eager=False)
        told = [row[_MET] for row in decoded.where(F.col(_MET).isNotNull()).select(_MET).distinct().collect()]
        met, conflict = _combined(told)
        return DecodedRecords(decoded.drop(_MET), met, conflict)

    def frame(self, places: pa.Table) -> DataFrame:
        keys = ["partition", "offset"]
        named = F.broadcast(self._frame.sparkSession.createDataFrame(places.select(keys)))
        return self._frame.join(named, keys, "left_semi")


def raw_records(
    source: RecordSource, session: SparkSession, part: Slice, record_bytes: float, queries: Queries
) -> RawRecords:
    """The records of an offset range, each of about so many bytes (0: unknown). Raises TransientError."""
    if part.records <= LOCAL_RECORDS and part.records * record_bytes <= LOCAL_BYTES:
        return LocalRecords(session, source.fetch(part), queries)
    return SparkRecords(source.frame(session, part), record_bytes)


def _map_in_arrow(frame: DataFrame, task: _DecodeTask, ddl: str) -> DataFrame:
    """DataFrame.mapInArrow, which asks for pandas although it makes no use of it."""
    function = UserDefinedFunction(task, ddl, evalType=PythonEvalType.SQL_MAP_ARROW_ITER_UDF, name="decode")
    column = function(*(frame[name] for name in frame.columns))
    return DataFrame(frame._jdf.mapInArrow(column._jc, False, None), frame.sparkSession)


@dataclass(frozen=True)
class _DecodeTask:
    """What Spark's tasks run: batches of raw records to those of the merge's. The first record of each has, as JSON,
    the columns that were met in it."""

    options: DecodeOptions
    schema: RecordSchema
    columns: RecordColumns
    arrow: pa.Schema

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        decoder = Decoder(self.options)
        for batch in batches:
            decoded = decoder.decode(batch, self.schema)
            table = merge_table(decoded, self.columns, self.arrow)
            met: list[str | None] = [None] * table.num_rows
            if met:
                met[0] = _told(decoded.met, decoded.conflict)
            yield from table.append_column(_MET, pa.array(met, pa.string())).combine_chunks().to_batches()


def _told(met: tuple[MetColumns, ...], conflict: TableHalt | None) -> str:
    halt = None if conflict is None else [conflict.code, conflict.message, conflict.fix]
    told = [{**asdict(one), "names": sorted(one.names)} for one in met]
    return json.dumps({"met": told, "conflict": halt})


def _combined(told: list[str]) -> tuple[tuple[MetColumns, ...], TableHalt | None]:
    met: dict[str, MetColumns] = {}
    conflict = None
    for text in sorted(told):
        found = json.loads(text)
        for one in found["met"]:
            met[json.dumps(one)] = MetColumns(**{**one, "names": frozenset(one["names"])})
        conflict = conflict or (found["conflict"] and TableHalt(*found["conflict"]))
    return tuple(met.values()), conflict


def _places(table: pa.Table) -> Iterator[tuple[int, int]]:
    return zip(table["partition"].to_pylist(), table["offset"].to_pylist(), strict=True)
