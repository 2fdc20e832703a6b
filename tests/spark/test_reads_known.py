"""What a row keeps of PostgreSQL's snapshot rows, so that they are known again."""

from __future__ import annotations

from pyspark.sql import SparkSession

from distributary.merge.upsert import with_reads_known

KEYS = "held struct<snapshot:string>, reads array<struct<e:struct<read_id:string>>>"


def test_2_3_the_newest_snapshot_rows_are_known_each_once(session: SparkSession) -> None:
    eight = "#".join("12345678")
    expected = {
        (None, "A"): "A",
        (None, "AB"): "A#B",
        ("0@5#A", ""): "A",
        ("0@5#A#B", "C"): "A#B#C",
        ("0@5#A#B", "BAC"): "B#A#C",  # sent again
        ("0@5#C#B#A#B#C", "D"): "A#B#C#D",  # as they were once written
        (f"0@5#{eight}", "AB"): "3#4#5#6#7#8#A#B",
        (None, ""): None,
    }
    rows = [(None if held is None else (held,), [((one,),) for one in reads]) for held, reads in expected]
    known = with_reads_known(session.createDataFrame(rows, KEYS)).select("reads_known").collect()
    assert [row[0] for row in known] == list(expected.values())
