"""Hostile records through the public decode and the rules behind it: nothing is raised, every record is an event or is
rejected with a reason, and nothing is kept of them."""

from __future__ import annotations

import gc
import resource
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pytest
from tests.support.decoding import rejections
from tests.support.hostile import TYPES, HostileRecords
from tests.support.no_rows import NoRows
from tests.support.random_share import Scale, thorough_but

from distributary.apply.apply_events import apply_events
from distributary.apply.memory import TableSpec, first_memory
from distributary.consume.record_tables import raw_table
from distributary.consume.sample import SampledRecord
from distributary.decode.decoder import Decoder
from distributary.decode.options import DecodeOptions, TypeSources
from distributary.ingest.batch_counts import count_batch
from distributary.progress.record import first_progress
from distributary.reasons import REASONS
from distributary.rules.state import RuleSettings
from distributary.types.record_schema import RecordSchema, arrow_of

CODES = {reason.code for reason in REASONS}
SCHEMA = RecordSchema(TYPES, {"id": "bigint"})
BATCH = 500


class Table:
    """What becomes of batches of a table's records, without Spark and without a lake."""

    def __init__(self, records: HostileRecords, *, avro: bool) -> None:
        schemas = records.schemas if avro else None
        types = TypeSources(configured={} if avro else TYPES)
        self._records, self._avro = records, avro
        self._decoder = Decoder(DecodeOptions("postgresql", types=types, before=True, transactions=True, avro=schemas))
        row, key = (
            pa.struct([(name, arrow_of(kind)) for name, kind in part.items()]) for part in (SCHEMA.row, SCHEMA.key)
        )
        self._spec = TableSpec(RuleSettings("postgresql", "upsert"), "t", row, key, {}, transactions=False)
        self._memory = first_memory(self._spec, 1)
        self._progress = first_progress("t", "0", "postgresql", "upsert", ("id",))
        self.taken = 0
        self.reasons = Counter[str]()

    def take(self, first: int) -> None:
        """Decodes and applies the records of a batch."""
        records = [
            SampledRecord(one.partition, one.offset, one.key, one.value, one.headers, one.timestamp)
            for one in self._records.records(BATCH, first, avro=self._avro)
        ]
        decoded = self._decoder.decode(raw_table("t", records), SCHEMA)
        rejected = rejections(decoded)
        # A schema that is one, and contradicts the config: the table would halt until somebody decides.
        assert decoded.conflict is None or decoded.conflict.code in ("no-conversion", "columns-differ-in-case")
        assert {*decoded.events["offset"].to_pylist(), *rejected} == set(range(first, first + BATCH))
        assert set(rejected.values()) <= CODES
        assert decoded.rejected["message"].null_count == 0
        assert max(map(len, decoded.rejected["message"].to_pylist()), default=0) < 2_000
        facts = count_batch(decoded, self._progress.connector)
        assert facts.records == BATCH
        apply_events(self._spec, self._memory, decoded.events, NoRows())
        self.taken += decoded.events.num_rows
        self.reasons.update(rejected.values())


def resident() -> int:
    """Kilobytes of this process, now."""
    gc.collect()
    pa.default_memory_pool().release_unused()
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize() // 1024


def run(count: int, seed: int, *, avro: bool) -> None:
    table = Table(HostileRecords(seed), avro=avro)
    warm = min(count // 5, 20_000)
    for first in range(0, warm, BATCH):
        table.take(first)
    before = resident()
    for first in range(warm, count, BATCH):
        table.take(first)
    assert resident() - before < 40_000
    assert count * 0.1 < table.taken < count * 0.9
    assert len(table.reasons) >= (4 if avro else 10), table.reasons


@pytest.mark.parametrize("avro", thorough_but(1, [False, True]), ids=["json", "avro"])
def test_6_3_ten_thousand_hostile_records_raise_nothing_and_leave_nothing(avro: bool, scale: Scale) -> None:
    run(scale(10_000, at_least=2_500), 7, avro=avro)


@pytest.mark.slow
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("avro", [False, True], ids=["json", "avro"])
def test_6_3_a_million_hostile_records_raise_nothing_and_leave_nothing(avro: bool) -> None:
    run(1_000_000 if not avro else 200_000, 11, avro=avro)
