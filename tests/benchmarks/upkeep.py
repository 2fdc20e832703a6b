"""A table after a thousand small commits: files, read time and merge time beside those of a freshly compacted table.

One table is looked after as the service does it, one is left alone, and one is the
same rows, compacted just now. All commits add rows and change none: of all that a batch can be, they
leave the most files. Only ratios are told, measured in turns of one run: the machine's own pace is in none of them.
"""

from __future__ import annotations

import shutil
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import click
import pyarrow as pa
from delta.tables import DeltaTable as SparkTable
from deltalake import DeltaTable
from pyspark.sql import SparkSession
from tests.benchmarks.rounds import Rounds
from tests.support.lake import read_table

from distributary.config.maintenance import Maintenance
from distributary.delta.commit import ProgressRecord
from distributary.delta.table_storage import table_files
from distributary.delta.transaction import DeltaCommitter
from distributary.delta.writer import TableWriter
from distributary.ingest.index_folder import index_cache
from distributary.lake.optimize import compact
from distributary.lake.table import LakeTable
from distributary.launch.session import open_session
from distributary.maintain.schedule import REWRITTEN_FILE, MaintenanceSchedule, Task
from distributary.progress.record import APP_ID, Progress, first_progress
from distributary.storage.json_file import JsonFile

_TURNS = 7
_AFTER = Maintenance().compact_after


@dataclass
class Trickle:
    """One table, and the seconds that went into its commits and its upkeep."""

    session: SparkSession
    path: Path
    upkeep: MaintenanceSchedule | None
    commits: float = 0.0
    maintenance: float = 0.0
    compactions: int = 0
    most_files: int = 0
    progress: Progress = field(default_factory=lambda: first_progress("t", "id", "sqlserver", "append", ("id",)))

    def __post_init__(self) -> None:
        self.lake = LakeTable(self.session, str(self.path), {"__op": "string"})
        self.lake.create({"id": "bigint", "v": "string"})
        self.head = self.lake.head()
        files = table_files(self.lake.session, str(self.path))
        committer = DeltaCommitter(self.lake.session, str(self.path), files)
        self.writer = TableWriter(files, ["id"], committer, index_cache())

    def commit(self, rows: pa.Table) -> None:
        """One batch, and what is due after it."""
        began = time.monotonic()
        assert self.head is not None
        self.progress = self.progress.next_commit()
        record = ProgressRecord(self.progress.to_json(), APP_ID, self.progress.sequence)
        self.writer.sync()
        self.head = self.lake.commit(
            self.head, self.progress, lambda _head, _progress: self.writer.replace(rows, (), record)
        )
        self.commits += time.monotonic() - began
        if self.upkeep is None or self.upkeep.due(self.head.version, None) is None:
            return
        self.most_files = max(self.most_files, files(self.path))
        began = time.monotonic()
        compact(self.lake.session, str(self.path), REWRITTEN_FILE)
        self.head = self.lake.head(self.head)
        assert self.head is not None
        self.upkeep.done(Task.COMPACT, self.head.version)
        self.maintenance += time.monotonic() - began
        self.compactions += 1


def files(path: Path) -> int:
    """How many files the table has."""
    return len(DeltaTable(str(path)).file_uris())


def size(path: Path) -> int:
    """Their bytes."""
    return sum(Path(name).stat().st_size for name in DeltaTable(str(path)).file_uris())


def batch_of(number: int, rows: int) -> pa.Table:
    """New rows."""
    ids = range(number * rows, (number + 1) * rows)
    return pa.table({"id": pa.array(ids, pa.int64()), "v": [f"value {i}" * 5 for i in ids], "__op": ["c"] * rows})


def read(session: SparkSession, path: Path) -> None:
    """All rows, by Spark."""
    session.read.format("delta").load(str(path)).selectExpr("sum(id)", "sum(length(v))").collect()


def merge(session: SparkSession, path: Path, rows: int) -> None:
    """Ten keys, all over the table."""
    changes = session.range(10).selectExpr(f"id * {rows // 10} AS id", "'changed' AS v", "'u' AS __op")
    table = SparkTable.forPath(session, str(path)).alias("t")
    table.merge(changes.alias("s"), "t.id = s.id").whenMatchedUpdateAll().whenNotMatchedInsertAll().execute()


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


def upkeep(_kafka: str, folder: Path, *, commits: int = 1000, rows: int = 20, compact_after: int = _AFTER) -> Rounds:
    """A table after small commits that is looked after, one that is left alone, and one that was compacted just now."""
    folder.mkdir(parents=True, exist_ok=True)
    session = open_session({"spark.master": "local[2]", "spark.driver.memory": "2g"})
    due = MaintenanceSchedule(Maintenance(compact_after=compact_after), JsonFile(session, str(folder / "note.json")))
    due.start()
    kept, left = Trickle(session, folder / "kept", due), Trickle(session, folder / "left", None)
    for number in range(commits):
        for one in (kept, left):
            one.commit(batch_of(number, rows))
        if number % 100 == 99:
            click.echo(f"{number + 1}: {files(kept.path)} files, {files(left.path)} where nothing is done")
    paths = {"kept": kept.path, "left": left.path, "fresh": folder / "fresh"}
    shutil.copytree(left.path, paths["fresh"])
    compact(session.newSession(), str(paths["fresh"]), REWRITTEN_FILE)
    found: dict[str, dict[str, float]] = {
        "files": {name: files(path) for name, path in paths.items()},
        "bytes": {name: size(path) for name, path in paths.items()},
        "read": medians(lambda path: read(session, path), paths),
        "merge": medians(lambda path: merge(session, path, commits * rows), paths),
    }
    contents = [sorted(table.to_pylist(), key=str) for p in paths.values() if (table := read_table(p)) is not None]
    assert contents[0] == contents[1] == contents[2], "the tables differ"
    session.stop()
    told = Rounds("upkeep")
    told.more = {
        "commits": commits,
        "compact_after": compact_after,
        "rows": commits * rows,
        "compactions": kept.compactions,
        "most_files": kept.most_files,
        "times_of_fresh": {
            what: {name: round(of[name] / of["fresh"], 2) for name in ("kept", "left")} for what, of in found.items()
        },
        "maintenance_of_commits": round(kept.maintenance / kept.commits, 3),
    }
    return told
