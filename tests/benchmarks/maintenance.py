"""A table after a thousand small commits: files, read time, and the bytes that were written for it.

One table is looked after as the service does it, one is left alone, and one is the same rows, compacted just now by
Delta's OPTIMIZE. Half of each commit's rows are new, half are changes of rows all over the table. Only ratios are told,
measured in turns of one run: the machine's own pace is in none of them.
"""

from __future__ import annotations

import shutil
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

import click
import pyarrow as pa
from deltalake import DeltaTable
from pyspark.sql import SparkSession
from tests.benchmarks.rounds import Rounds
from tests.support.lake import read_table

from distributary.config.maintenance import Maintenance
from distributary.delta.commit import CommitPayload
from distributary.delta.compaction import next_file_group
from distributary.delta.table_storage import table_files
from distributary.delta.transaction import DeltaCommitter
from distributary.delta.writer import TableWriter
from distributary.ingest.index_folder import index_cache
from distributary.lake.optimize import compact
from distributary.lake.table import LakeTable
from distributary.launch.session import open_session
from distributary.maintain.schedule import REWRITTEN_FILE
from distributary.progress.record import APP_ID, Head, Progress, first_progress

_TURNS = 7
_AFTER = Maintenance().compact_after


@dataclass
class Trickle:
    """One table, and the seconds that went into its commits and its maintenance."""

    session: SparkSession
    path: Path
    compact_after: int
    commits: list[float] = field(default_factory=list)
    compactions: list[float] = field(default_factory=list)
    most_files: int = 0
    progress: Progress = field(default_factory=lambda: first_progress("t", "id", "sqlserver", "upsert", ("id",)))

    def __post_init__(self) -> None:
        self.lake = LakeTable(self.session, str(self.path), {"__op": "string"})
        self.lake.create({"id": "bigint", "v": "string"})
        self.head = self.lake.head()
        files = table_files(self.lake.session, str(self.path))
        committer = DeltaCommitter(self.lake.session, str(self.path), files)
        self.writer = TableWriter(files, ["id"], committer, index_cache())
        self._since = 0

    def commit(self, rows: pa.Table) -> None:
        """One batch, and what is due after it."""
        self.writer.sync()
        began = time.monotonic()
        self._commit(lambda record: self.writer.write(rows, None, record))
        self.commits.append(time.monotonic() - began)
        self._since += 1
        if self._since == self.compact_after:
            self._since = 0
            self._compact()

    def _compact(self) -> None:
        self.most_files = max(self.most_files, files(self.path))
        began = time.monotonic()
        while piece := next_file_group(self.writer.snapshot.files.values(), REWRITTEN_FILE):
            found = piece
            self._commit(lambda record: self.writer.compact(found, record))  # noqa: B023 - it is called at once
        self.compactions.append(time.monotonic() - began)

    def _commit(self, write: Callable[[CommitPayload], object]) -> None:
        assert self.head is not None
        self.progress = self.progress.next_commit()
        record = CommitPayload(self.progress.to_json(), APP_ID, self.progress.sequence)

        def run(_head: Head, _progress: Progress) -> None:
            write(record)

        self.head = self.lake.commit(self.head, self.progress, run)


def files(path: Path) -> int:
    """How many files the table has."""
    return len(DeltaTable(str(path)).file_uris())


def size(path: Path) -> int:
    """Their bytes."""
    return sum(Path(name).stat().st_size for name in DeltaTable(str(path)).file_uris())


def written(path: Path) -> int:
    """The bytes of all files that were ever written for the table's rows."""
    return sum(file.stat().st_size for file in path.iterdir() if file.suffix in (".parquet", ".bin"))


def batch_of(dice: Random, number: int, rows: int) -> pa.Table:
    """New rows, and as many changes of earlier ones."""
    new = list(range(number * rows, (number + 1) * rows))
    changed = dice.sample(range(number * rows), rows) if number else []
    ids = [*new, *changed]
    values = [f"value {one} of batch {number} " * 5 for one in ids]
    return pa.table({"id": pa.array(ids, pa.int64()), "v": values, "__op": ["c"] * len(new) + ["u"] * len(changed)})


def read(session: SparkSession, path: Path) -> None:
    """All rows, by Spark."""
    session.read.format("delta").load(str(path)).selectExpr("sum(id)", "sum(length(v))").collect()


def medians(work: Callable[[Path], None], paths: dict[str, Path]) -> dict[str, float]:
    """Seconds, each time on a copy of the table, in turns; the first one is not counted."""
    seconds: dict[str, list[float]] = {name: [] for name in paths}
    for turn in range(_TURNS + 1):
        for name, path in paths.items():
            copy = path.with_name(f"{name}-{turn}")
            shutil.copytree(path, copy)
            began = time.monotonic()
            work(copy)
            if turn:
                seconds[name].append(time.monotonic() - began)
            shutil.rmtree(copy)
    return {name: statistics.median(found) for name, found in seconds.items()}


def maintenance(
    _kafka: str, folder: Path, *, commits: int = 1000, rows: int = 100, compact_after: int = _AFTER
) -> Rounds:
    """A table after small commits that is looked after, one that is left alone, and one that was compacted just now."""
    folder.mkdir(parents=True, exist_ok=True)
    session = open_session({"spark.master": "local[2]", "spark.driver.memory": "2g"})
    kept, left = Trickle(session, folder / "kept", compact_after), Trickle(session, folder / "left", 0)
    dice, changed = Random(1), 0
    for number in range(commits):
        batch = batch_of(dice, number, rows // 2)
        changed += batch.num_rows
        for one in (kept, left):
            one.commit(batch)
        if number % 100 == 99:
            click.echo(f"{number + 1}: {files(kept.path)} files, {files(left.path)} where nothing is done")
    paths = {"kept": kept.path, "left": left.path, "fresh": folder / "fresh"}
    shutil.copytree(left.path, paths["fresh"])
    compact(session.newSession(), str(paths["fresh"]), REWRITTEN_FILE)
    found: dict[str, dict[str, float]] = {
        "files": {name: files(path) for name, path in paths.items()},
        "bytes": {name: size(path) for name, path in paths.items()},
        "read": medians(lambda path: read(session, path), paths),
    }
    contents = [sorted(table.to_pylist(), key=str) for p in paths.values() if (table := read_table(p)) is not None]
    assert contents[0] == contents[1] == contents[2], "the tables differ"
    session.stop()
    # What the batches' rows have when they are written once, in files of a good size.
    bytes_of_changes = found["bytes"]["fresh"] * changed / (commits * (rows // 2))
    result = Rounds("maintenance")
    result.more = {
        "commits": commits,
        "compact_after": compact_after,
        "rows": commits * (rows // 2),
        "compactions": len(kept.compactions),
        "most_files": kept.most_files,
        "times_of_fresh": {
            what: {name: round(of[name] / of["fresh"], 2) for name in ("kept", "left")} for what, of in found.items()
        },
        "written_of_changed": {name: round(written(paths[name]) / bytes_of_changes, 2) for name in ("kept", "left")},
        "seconds_of_compactions": [round(one, 2) for one in kept.compactions],
        "compactions_of_commits": round(sum(kept.compactions) / sum(kept.commits), 3),
        "last_commits": {
            name: round(statistics.median(one.commits[-100:]), 3) for name, one in (("kept", kept), ("left", left))
        },
    }
    return result
