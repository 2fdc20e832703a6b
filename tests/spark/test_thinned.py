"""Records of a key that changes all the time are dropped where the next one outdoes them, and no others."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from distributary.merge.alone import thinned

_SCHEMA = (
    "k STRUCT<k0: INT>, partition INT, offset BIGINT, kind STRING, pos STRING, moved_in BOOLEAN, moved_out BOOLEAN,"
    " missing ARRAY<INT>, bad STRUCT<code: STRING>"
)

# Of one key: partition, kind, position, whether it lacks a value, whether it is half of a key change.
Change = tuple[int, str, int, bool, bool]
RUN = [(0, "c", 1), (0, "u", 2), (0, "u", 3), (0, "u", 4)]


def change(partition: int, kind: str, at: int, lacks: bool = False, moved: bool = False) -> Change:
    return partition, kind, at, lacks, moved


CASES: dict[str, tuple[list[Change], dict[bool, list[int]]]] = {
    "a run": ([change(*one) for one in RUN], {False: [3], True: [0, 3]}),
    "sent again": (
        [change(*one) for one in [*RUN, *RUN[1:3]]],
        {False: [3, 5], True: [0, 3, 5]},
    ),
    "deleted in between": (
        [change(0, "c", 1), change(0, "u", 2), change(0, "d", 3), change(0, "c", 4), change(0, "u", 5)],
        {False: [1, 2, 4], True: [0, 1, 2, 3, 4]},
    ),
    "a key change": ([change(0, "c", 1, moved=True), change(0, "u", 2)], {False: [0, 1], True: [0, 1]}),
    "a tombstone": ([change(0, "u", 1), change(0, "x", 0), change(0, "u", 2)], {False: [0, 1, 2], True: [0, 1, 2]}),
    "two partitions": ([change(0, "u", 1), change(1, "u", 2)], {False: [0, 1], True: [0, 1]}),
    "values not sent": (
        [change(0, "u", 1), change(0, "u", 2, lacks=True), change(0, "u", 3), change(0, "u", 4, lacks=True)],
        {False: [3], True: [0, 2, 3]},
    ),
}


@pytest.mark.parametrize("values_needed", [False, True])
def test_2_1_only_what_the_next_record_outdoes_is_dropped(session: SparkSession, values_needed: bool) -> None:
    rows = [
        ((number,), partition, offset, kind, f"{at:03d}", moved, False, [1] if lacks else None, None)
        for number, (changes, _) in enumerate(CASES.values())
        for offset, (partition, kind, at, lacks, moved) in enumerate(changes)
    ]
    left = thinned(session.createDataFrame(rows, _SCHEMA), "sqlserver", values_needed=values_needed).collect()
    found = {name: sorted(r["offset"] for r in left if r["k"]["k0"] == n) for n, name in enumerate(CASES)}
    assert found == {name: kept[values_needed] for name, (_, kept) in CASES.items()}
