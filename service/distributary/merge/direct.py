"""Commits from this process by the `deltalake` library: neither Spark's planning nor its jobs.

A commit carries the same progress record and the same txn action as Spark's, and comes about on exactly the version
that the caller has seen, or not at all. What the log no longer needs Spark removes: see LakeTable.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from datetime import date, datetime, timezone
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import (
    ColumnProperties,
    CommitProperties,
    DeltaTable,
    PostCommitHookProperties,
    Transaction,
    WriterProperties,
    write_deltalake,
)
from deltalake.exceptions import CommitFailedError

from distributary.errors import TransientError
from distributary.merge.choice import why_not_key, why_not_table
from distributary.merge.clause import Clause, Rows
from distributary.merge.flat import FlatKeys
from distributary.merge.progress import APP_ID, Head, Progress
from distributary.merge.retention import has_old_commits, same_tombstones

_CHECKPOINT_INTERVAL = 10  # Delta's own default
# Of other types the library would tell smallest and largest values that are not exact (decimals as floating point), or
# by another order than Spark's (NaN), and readers would pass over files that have what they look for.
_TOLD_EXACTLY = {"byte", "short", "integer", "long", "string", "date", "boolean", "timestamp"}
# Each row has another value, or nearly so (but for positions of a snapshot's rows): to look for a dictionary of them,
# and of the key, takes a sixth of a merge's time.
_UNIQUE = ("__offset", "__position")
_TOLD_BYTES = 64  # of a text
# Parquet's compression by Spark's names (spark.sql.parquet.compression.codec); left to itself, the library does none.
_CODECS: dict[str, Literal["UNCOMPRESSED", "SNAPPY", "GZIP", "ZSTD", "BROTLI", "LZ4_RAW"]] = {
    "none": "UNCOMPRESSED", "uncompressed": "UNCOMPRESSED", "snappy": "SNAPPY", "gzip": "GZIP", "zstd": "ZSTD",
    "brotli": "BROTLI", "lz4_raw": "LZ4_RAW", "lz4raw": "LZ4_RAW",
}  # fmt: skip


class NotByLibrary(Exception):
    """The library could not do it, and nothing was committed. Says no more than the kind of the failure: its texts may
    hold values."""


class DirectTable:
    """The table in the directory `path` of a local file system; its files are compressed by `codec`, one of Spark's
    names for Parquet. `times`: how much may be written from here, see choice.times. After a failure of the library it
    is left alone."""

    def __init__(self, path: str, codec: str, times: int = 1) -> None:
        self._path = path
        self.times = times
        self._codec = codec.lower()
        self._opened: DeltaTable | None = None
        self._failed = False
        self._cleaned: date | None = None  # when Spark was last left to clean the log, in UTC

    def why_not(self, head: Head, key: list[str] | None = None) -> str | None:
        """Why the table as it is can't be written from here; None where it can. With `key`, also why not merged."""
        if self._failed:
            return "deltalake failed before"
        if self._codec not in _CODECS:
            return f"deltalake does not compress by {self._codec}"
        try:
            table = self._at(head)
            schema = json.loads(table.schema().to_json())
        except BaseException as error:
            if not is_fault(error):
                raise
            return f"deltalake can't open the table ({type(error).__name__})"
        protocol, metadata = table.protocol(), table.metadata()
        if metadata.partition_columns:
            return "the table is partitioned"
        features = [*(protocol.writer_features or ()), *(protocol.reader_features or ())]
        versions = protocol.min_reader_version, protocol.min_writer_version
        reason = why_not_table((*versions, features), metadata.configuration, schema)
        return reason or (why_not_key(schema, key) if key is not None else None)

    def touched(self, head: Head, column: str, ends: tuple[Any, Any] | None) -> tuple[int, int]:
        """Bytes and rows of the files that may have rows whose `column` lies between those values; None: it may be any.
        No rows where the log does not tell how many."""
        files = pa.table(self._at(head).get_add_actions(flatten=True))
        names = (f"min.{column}", f"max.{column}")
        if ends is not None and set(names) <= set(files.column_names):
            smallest, largest = (files.column(name) for name in names)
            low, high = map(pa.scalar, ends)
            below = pc.less(largest.cast(low.type), low)
            above = pc.greater(smallest.cast(high.type), high)
            files = files.filter(pc.invert(pc.fill_null(pc.or_(below, above), False)))
        return _sum(files, "size_bytes"), _sum(files, "num_records")

    def nothing(self, head: Head, progress: Progress) -> None:
        """Commits the progress alone."""
        with self._committing(head) as table:
            table.create_write_transaction([], "append", table.schema(), [], **_carrying(progress))

    def append(self, rows: pa.Table, head: Head, progress: Progress) -> None:
        """Commits new rows."""
        if not rows.num_rows:
            self.nothing(head, progress)
            return
        with self._committing(head) as table:
            rows = rows.select([field.name for field in table.schema().fields])
            write_deltalake(table, rows, mode="append", writer_properties=self._writing(table), **_carrying(progress))

    def merge(self, keys: FlatKeys, key: list[str], head: Head, progress: Progress) -> None:
        """Commits what the clauses make of the rows with these keys. `key`: the names of the key's columns in the
        table."""
        on = " AND ".join(f"t.{_quoted(name)} = s.{flat}" for name, flat in zip(key, keys.key, strict=True))
        with self._committing(head) as table:
            merge = table.merge(
                keys.rows,
                on,
                source_alias="s",
                target_alias="t",
                # Only of a source that is there as a whole the ends of its keys are known, and files without them
                # passed over.
                streamed_exec=False,
                writer_properties=self._writing(table, [*_UNIQUE, *(key if len(key) == 1 else ())]),
                **_carrying(progress),
            )
            for clause in keys.clauses:
                merge = _with(merge, clause)
            merge.execute()
            if table.version() == head.version:  # no row changed: the library commits nothing
                table.create_write_transaction([], "append", table.schema(), [], **_carrying(progress))

    def _writing(self, table: DeltaTable, unique: Collection[str] = ()) -> WriterProperties:
        """Compressed as Spark's files; statistics of those columns alone of which they are exact. `unique`: columns
        that have another value in each row."""
        fields = json.loads(table.schema().to_json())["fields"]
        return WriterProperties(
            compression=_CODECS[self._codec],
            statistics_truncate_length=_TOLD_BYTES,
            default_column_properties=ColumnProperties(statistics_enabled="NONE"),
            column_properties={
                field["metadata"].get("delta.columnMapping.physicalName", field["name"]): ColumnProperties(
                    statistics_enabled="CHUNK" if field["type"] in _TOLD_EXACTLY else "NONE",
                    dictionary_enabled=field["name"] not in unique,
                )
                for field in fields
                if isinstance(field["type"], str)
            },
        )

    def checkpoint_due(self, version: int) -> bool:
        """Whether so many commits have come since the log's last checkpoint that there should be a new one."""
        if self._opened is None:
            return False
        properties = self._opened.metadata().configuration
        try:
            last = json.loads(Path(self._path, "_delta_log", "_last_checkpoint").read_text(encoding="utf-8"))
            since = version - int(last["version"])
        except (OSError, ValueError, KeyError):
            since = version
        return since >= int(properties.get("delta.checkpointInterval", _CHECKPOINT_INTERVAL))

    def checkpoint(self, head: Head) -> bool:
        """Writes a checkpoint of the log, which takes the library a hundredth of Spark's time; False where it can't,
        where it would keep other tombstones, or where Spark's would also remove what is old in the log, which it is
        asked for once a day."""
        log, today = Path(self._path, "_delta_log"), datetime.now(timezone.utc).date()
        try:
            if self.why_not(head) is not None:
                return False
            table = self._at(head)
            properties = table.metadata().configuration
            if not same_tombstones(properties):
                return False
            if self._cleaned != today and has_old_commits(log, properties, today):
                self._cleaned = today
                return False
            # Hadoop's checksum of what Spark wrote there before: by it Spark would take the new one for broken.
            (log / "._last_checkpoint.crc").unlink(missing_ok=True)
            table.create_checkpoint()
        except BaseException as error:  # the commit stands, whatever another writer or the storage does
            if not is_fault(error):
                raise
            self._opened = None
            return False
        return True

    def _at(self, head: Head) -> DeltaTable:
        """The table at the version of `head`. Raises TransientError where another writer went on."""
        if self._opened is None or self._opened.version() > head.version:
            self._opened = DeltaTable(self._path)
        elif self._opened.version() < head.version:
            self._opened.update_incremental()
        if self._opened.version() != head.version:
            raise commit_lost(self._path)
        return self._opened

    @contextmanager
    def _committing(self, head: Head) -> Iterator[DeltaTable]:
        """Raises TransientError where another writer was faster, NotByLibrary for all else that fails: Spark tells
        whether it is the storage."""
        try:
            yield self._at(head)
        except TransientError:
            raise
        except BaseException as error:
            if not is_fault(error):
                raise
            self._opened = None
            if isinstance(error, CommitFailedError) and DeltaTable(self._path).version() != head.version:
                raise commit_lost(self._path) from error
            self._failed = True
            raise NotByLibrary(type(error).__name__) from error


def is_fault(error: BaseException) -> bool:
    """Whether it is an error, as also a fault inside the library, which comes as a panic and is no Exception."""
    return isinstance(error, Exception) or type(error).__name__ == "PanicException"


def commit_lost(path: str) -> TransientError:
    """Another writer's commit came first: nothing of this one is in the table."""
    return TransientError(
        "commit-lost",
        f"the commit to {path} did not come about: another driver was faster",
        "run one driver per config",
    )


def _carrying(progress: Progress) -> dict[str, Any]:
    return {
        "commit_properties": CommitProperties(
            custom_metadata={"userMetadata": progress.to_json()},
            app_transactions=[Transaction(APP_ID, progress.sequence)],
            max_commit_retries=0,  # never on top of a commit that this one does not know
        ),
        "post_commithook_properties": PostCommitHookProperties(create_checkpoint=False, cleanup_expired_logs=False),
    }


def _sum(files: pa.Table, column: str) -> int:
    """0 also where some file does not have the number."""
    numbers = files.column(column) if column in files.column_names else pa.chunked_array([pa.nulls(files.num_rows)])
    return 0 if numbers.null_count else int(pc.sum(numbers).as_py() or 0)


def _with(merge: Any, clause: Clause) -> Any:
    values = None if clause.values is None else {_quoted(name): value for name, value in clause.values.items()}
    if clause.of is Rows.KEYS_ONLY:
        return merge.when_not_matched_insert(values, clause.when)
    assert clause.of is Rows.BOTH, "rows that no key is about are Spark's"
    return merge.when_matched_delete(clause.when) if values is None else merge.when_matched_update(values, clause.when)


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
