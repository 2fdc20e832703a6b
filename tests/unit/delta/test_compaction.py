"""Which files a compaction takes, and what it comes to: few files, each byte written a few times, no row changed."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.hand_made_lake import RECORD, HandMadeLake

from distributary.delta.compaction import MAX_DEAD_SHARE, WORTH_BYTES, dead_share, needs_compaction, next_file_group
from distributary.delta.live_file import LiveFile
from distributary.delta.plan_write import RemovalLayout

MIB = 1024 * 1024
WANTED = 32 * MIB


def file(name: str, size: int, *, rows: int | None = 100, dead: int = 0, partition: str | None = None) -> LiveFile:
    values = {} if partition is None else {"p": partition}
    action: dict[str, Any] = {"path": name, "size": size, "partitionValues": values}
    if rows is not None:
        action["stats"] = json.dumps({"numRecords": rows})
    if dead:
        action["deletionVector"] = {
            "storageType": "u",
            "pathOrInlineDv": name,
            "sizeInBytes": 1,
            "cardinality": dead,
        }
    return LiveFile(action)


def names(piece: list[LiveFile]) -> list[str]:
    return [one.path for one in piece]


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        pytest.param([], [], id="an empty table"),
        pytest.param([file("a", 1)], [], id="one file"),
        pytest.param([file("a", 2), file("b", 1)], ["b", "a"], id="two small ones"),
        pytest.param([file("a", 16 * MIB), file("b", 17 * MIB)], [], id="large enough"),
        pytest.param([file("a", 1), file("b", 2 * MIB)], [], id="of other sizes"),
        pytest.param([file(n, 2 * MIB) for n in "abc"], [], id="not enough of a size"),
        pytest.param([file(n, 2 * MIB) for n in "abcd"], ["a", "b", "c", "d"], id="enough of a size"),
        pytest.param([file("a", 30 * MIB, dead=29)], [], id="some rows are dead"),
        pytest.param([file("a", 30 * MIB, dead=30)], ["a"], id="many rows are dead"),
        pytest.param([file("b", 1), file("a", 30 * MIB, dead=30)], ["a", "b"], id="and a small file goes along"),
        pytest.param([file("b", 1), file("a", 200 * MIB, dead=90)], ["a"], id="a large file with dead rows goes alone"),
        pytest.param([file("a", 30 * MIB, rows=None, dead=30)], [], id="it is not said how many rows there are"),
        pytest.param(
            [file("a", 1, partition="x"), file("b", 1, partition="y"), file("c", 1, partition="y")],
            ["b", "c"],
            id="of one partition",
        ),
        pytest.param([file("a", 1, partition="x"), file("b", 1, partition="y")], [], id="each of another partition"),
    ],
)
def test_a_piece_is_what_is_worth_to_be_rewritten(files: list[LiveFile], expected: list[str]) -> None:
    assert names(next_file_group(files, WANTED)) == expected


def test_a_piece_is_bounded() -> None:
    files = [file(f"{number:03d}", 30 * MIB, dead=50) for number in range(100)]
    assert len(next_file_group(files, WANTED)) == 4


@given(st.lists(st.tuples(st.integers(1, 10**9), st.integers(0, 99)), max_size=6))
def test_a_table_of_which_much_is_dead_has_something_to_compact(found: list[tuple[int, int]]) -> None:
    files = [file(f"{number}", size, dead=dead) for number, (size, dead) in enumerate(found)]
    size, dead = sum(size for size, _ in found), sum(size * dead for size, dead in found) / 100
    if abs(dead - MAX_DEAD_SHARE * size) > 1:
        assert needs_compaction(files) is (dead >= WORTH_BYTES and dead > MAX_DEAD_SHARE * size)
    assert next_file_group(files, WANTED) or not needs_compaction(files)


@settings(max_examples=30)
@given(st.integers(0, 2**32), st.sampled_from([2_000, 20_000, 300_000, 3_000_000, 20_000_000]))
@pytest.mark.thorough
def test_however_small_commits_are_files_stay_few_and_bytes_are_written_a_few_times(seed: int, usual: int) -> None:
    dice = random.Random(seed)
    live: dict[str, LiveFile] = {}
    came = written = 0
    for number in range(1, 2_001):
        size = dice.randint(usual // 2, 2 * usual)
        live[f"c{number}"] = file(f"c{number}", size)
        came += size
        if number % 100:
            continue
        while piece := next_file_group(live.values(), WANTED):
            size = sum(one.size for one in piece)
            written += size
            for one in piece:
                del live[one.path]
            for part in range(0, size, WANTED):
                live[f"{number} {written} {part}"] = file(f"{number} {written} {part}", min(WANTED, size - part))
        assert len([one for one in live.values() if one.size < WANTED / 2]) <= 8
    assert written <= 5 * came + 100 * MIB / 4  # a small rest is written each time: 1 MiB at most


@pytest.mark.parametrize("layout", list(RemovalLayout))
def test_rows_are_the_same_in_fewer_files(tmp_path: Path, layout: RemovalLayout) -> None:
    lake = HandMadeLake(tmp_path, layout)
    for number in range(5):
        lake.write({10 * number + one: "a" for one in range(10)})
    lake.write({1: "b", 11: "b"}, [2, 12, 22])
    before = lake.rows()
    piece = next_file_group(lake.writer.snapshot.files.values(), WANTED)
    assert lake.writer.compact(piece, RECORD) == 1
    assert lake.rows() == before
    (live,) = lake.writer.snapshot.files.values()
    assert (live.row_count, dead_share(live)) == (len(before), 0)
    assert lake.committer.records[-1] is RECORD
    assert {found["dataChange"] for kind in ("add", "remove") for found in lake.actions(kind)} == {False}
    # The index is that of the new file, in this process and in the next one.
    lake.write({1: "c"}, [3])
    lake.writer = lake.new_writer()
    lake.write({4: "c"}, [5])
    after = {key: value for key, value in before.items() if key not in (3, 5)} | {1: "c", 4: "c"}
    assert lake.rows() == after
