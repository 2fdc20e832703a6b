"""The first look at a topic whose first records are hostile: it finds the form or halts the table, nothing else."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from contextlib import suppress

import pytest
from tests.support.hostile import HostileRecords

from distributary.consume.sample import SampledRecord
from distributary.decode.position import CONNECTORS
from distributary.decode.unwrapped import added_by
from distributary.errors import TableHalt
from distributary.ingest.framing import check_framing
from distributary.ingest.record_form import envelope_of_event, payload_of
from distributary.ingest.topic_format import connector_of, detect_format
from distributary.preflight.inferred_columns import parse_records

ADDED = added_by({})
DEEP = (
    *(b"[" * 100_000, b'{"a":' * 100_000, b'{"schema":' * 5_000, b'"\\ud800"', b"1" * 100_000),
    b'{"payload":{"payload":1}}',
)


def looks(records: Sequence[SampledRecord], connector: str | None) -> Iterator[object]:
    """Each look at the records in turn."""
    with suppress(TableHalt):
        yield check_framing(records, "t", "json")  # type: ignore[func-returns-value]
    with suppress(TableHalt):
        yield connector_of(records, ADDED)
    with suppress(TableHalt):
        yield detect_format(records, "t", connector, ADDED, None, False)
    for unwrapped in (None, ADDED):
        yield list(parse_records(records, unwrapped, before=True))
    for look in (payload_of, envelope_of_event):
        yield list(map(look, records))


@pytest.mark.parametrize("seed", range(20))
def test_6_3_whatever_comes_first_is_checked_without_an_error(seed: int) -> None:
    chance = random.Random(seed)
    for first in range(0, 200, 20):
        records = [
            SampledRecord(0, one.offset, one.key, one.value, one.headers, one.timestamp)
            for one in HostileRecords(1_000 * seed + first).records(chance.randrange(1, 20), first)
        ]
        if chance.random() < 0.2:
            records.append(SampledRecord(0, 99, chance.choice(DEEP), chance.choice(DEEP), (), 0))
        assert len(list(looks(records, chance.choice((None, *CONNECTORS))))) >= 4
