"""The entry point of this package: replaces rows of one table by their keys."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain

import numpy as np
import pyarrow as pa

from distributary.delta.change_feed import changed_rows, write_changes
from distributary.delta.commit import CommitPayload, Committed, Committer, ConcurrentChange, concurrent_change
from distributary.delta.data_file import FileOptions, NewFile, fitted, write_files
from distributary.delta.data_reader import DataReader
from distributary.delta.index_cache import IndexCache
from distributary.delta.key_index import FoundInFile
from distributary.delta.live_file import LiveFile
from distributary.delta.partitions import without_empty_texts
from distributary.delta.plan_write import (
    RemovalLayout,
    RemovalPlan,
    TouchedFile,
    plan_removal,
    write_actions,
)
from distributary.delta.storage import TableFiles
from distributary.delta.stored_rows import NO_KEY, joined
from distributary.delta.table_reader import TableReader, row_numbers
from distributary.delta.unchanged_rows import without_same, without_unchanged
from distributary.delta.vectors import VectorFile
from distributary.errors import DistributaryError, TableHalt

_NO_ROWS = np.empty(0, np.int64)


class TableWriter(TableReader):
    """Reads and writes rows of the table in `files`, one version after the other.

    `key`: the names of its key columns; in a table without a key, rows are only added or removed (see `commit_rows`).
    Not for several threads at once. Raises TableHalt if the table can't be written, ConcurrentChange if another writer
    committed (`sync` reads the new version), and errors of the storage unchanged. After an error, nothing of the
    write is in the table, or (only after an error of the storage) the next write raises ConcurrentChange.
    """

    def __init__(
        self,
        files: TableFiles,
        key: Sequence[str],
        committer: Committer,
        cache: IndexCache,
        *,
        layout: RemovalLayout = RemovalLayout.AUTO,
        options: FileOptions | None = None,
    ) -> None:
        super().__init__(files, key, cache)
        self._committer = committer
        self._layout, self._options = layout, options or FileOptions()

    def write(
        self,
        upserts: pa.Table | None,
        deletes: pa.Table | None,
        record: CommitPayload,
        removed: Iterable[FoundInFile] = (),
        written: Sequence[NewFile] = (),
    ) -> Committed:
        """Replaces or inserts rows with all of the table's columns, and deletes rows by their keys and the rows that
        were read at the locations `removed`, in one commit with the record. The rows of `written`, of which only the
        key's columns are needed here, are in data files already. Raises ValueError if a key comes more than once, or if
        `written` rows replace others in a table with a change data feed, whose readers would not see them."""
        table = self.snapshot
        upserts = table.schema.arrow.empty_table() if upserts is None else upserts
        upserts = without_empty_texts(fitted(upserts, table.schema), table.schema.partition_columns)
        keys = [rows.select(self._key) for rows in (upserts, *(new.rows for new in written))]
        new_count = sum(len(rows) for rows in keys)
        if deletes is not None:
            keys.append(without_empty_texts(deletes.select(self._key), table.schema.partition_columns))
        key_rows = pa.concat_tables([self._codec().fitted(part) for part in keys])
        encoded = self._codec().encode(key_rows)
        if repeated := encoded.repeated():
            raise ValueError(f"a write has {repeated} keys more than once")
        locations = joined([*self._locate(key_rows, encoded), *removed])
        if locations and table.has_change_feed:
            if written:
                raise ValueError("rows that the change data feed needs are in data files already")
            upserts, locations = without_unchanged(upserts, self.read_found(locations, table.schema.arrow.names))
            new_count = len(upserts)
        start = len(upserts)
        for new in written:
            self._index().add(new.file, encoded.part(start, start := start + len(new.rows)))
        change_bytes = upserts.nbytes + key_rows.nbytes + sum(new.file.size for new in written)
        version = self._commit_replacing(upserts, locations, change_bytes, record, [new.file for new in written])
        # A mask, because others may have written several rows of one key.
        is_replaced = np.zeros(new_count, np.bool_)
        for location in locations:
            is_replaced[location.keys[(location.keys >= 0) & (location.keys < new_count)]] = True
        return _committed(version, new_count, int(is_replaced.sum()), locations)

    def commit_rows(self, rows: pa.Table | None, removed: Iterable[FoundInFile], record: CommitPayload) -> Committed:
        """Adds rows with all of the table's columns, also with repeated keys, and removes the rows that were read at
        `removed`, in one commit with the record."""
        table = self.snapshot
        rows = table.schema.arrow.empty_table() if rows is None else rows
        rows = without_empty_texts(fitted(rows, table.schema), table.schema.partition_columns)
        locations = joined(
            FoundInFile(location.file, np.full(len(location.rows), NO_KEY), location.rows) for location in removed
        )
        if locations and table.has_change_feed:
            rows, locations = without_same(rows, self.read_found(locations, table.schema.arrow.names))
        version = self._commit_replacing(rows, locations, rows.nbytes, record)
        return _committed(
            version, len(rows), min(len(rows), sum(len(location.rows) for location in locations)), locations
        )

    def compact(self, group: Sequence[LiveFile], record: CommitPayload) -> int:
        """Writes the live rows of these files into new files, in one commit with the record; no row changes. Returns
        the number of new files."""
        touched = [TouchedFile(file, self._dead_rows(file), _NO_ROWS, file.row_count or 0) for file in group]
        before = len(self.snapshot.files)
        plan = RemovalPlan((), (), tuple((one, one.dead) for one in touched))
        self._commit(self.snapshot.schema.arrow.empty_table(), (), plan, record, changes_rows=False)
        return len(self.snapshot.files) - before + len(group)

    def _commit_replacing(
        self,
        upserts: pa.Table,
        locations: Sequence[FoundInFile],
        change_bytes: int,
        record: CommitPayload,
        written: Sequence[LiveFile] = (),
    ) -> int:
        table = self.snapshot
        if upserts.num_rows and table.constraints:
            self._committer.check(upserts, table.constraints)
        touched = list(self._touched(locations))
        if touched and table.is_append_only:
            raise TableHalt(
                "table-append-only",
                "the table accepts only new rows (delta.appendOnly), and a batch changes or deletes some",
                "remove the property from the table, or use `mode: append`",
            )
        layout = RemovalLayout.REWRITE if self._layout is RemovalLayout.AUTO and table.refuses_vectors else self._layout
        plan = plan_removal(touched, layout, change_bytes, allows_vectors=table.allows_vectors)
        if plan.marked and not table.allows_vectors:
            self._enable_vectors()
        return self._commit(upserts, locations, plan, record, written)

    def _commit(
        self,
        upserts: pa.Table,
        locations: Sequence[FoundInFile],
        plan: RemovalPlan,
        record: CommitPayload,
        written: Sequence[LiveFile] = (),
        *,
        changes_rows: bool = True,
    ) -> int:
        table = self.snapshot
        begun = [file.path for file in written]
        try:
            # Compacted rows stay in few files: they are not divided among threads, each of which writes its own.
            options = self._options if changes_rows else replace(self._options, thread_bytes=sys.maxsize)
            new_files = [*written, *self._write_data(upserts, plan, begun, options)]
            vectors = VectorFile()
            descriptors = [vectors.add(dead) for _, dead in plan.marked]
            if descriptors:
                begun.append(vectors.path)
                vectors.write(self._files)
            now = int(time.time() * 1000)
            actions = write_actions(table, plan, descriptors, new_files, now, changes_rows=changes_rows)
            if locations and table.has_change_feed:
                old = self.read_found(locations, table.schema.arrow.names)
                feed = write_changes(self._files, table, changed_rows(upserts, old.keys, old.rows), self._options)
                begun += [action["cdc"]["path"] for action in feed]
                actions += feed
        except BaseException:
            self._files.delete(begun)
            raise
        try:
            version = self._committer.commit(table.version, actions, record, changes_rows=changes_rows)
        except ConcurrentChange:
            self._files.delete(begun)  # after other errors the commit may have been made: VACUUM decides
            raise
        for (file, dead), descriptor in zip(plan.marked, descriptors, strict=True):
            self._vectors[file.file.path] = (descriptor.unique_id, dead)
        try:
            assert self._state is not None
            self._use(self._log.after(self._state, version))
        except (OSError, DistributaryError):  # the commit is made; the next step will meet the same error
            self._state = None
        return version

    def _write_data(
        self, upserts: pa.Table, plan: RemovalPlan, begun: list[str], options: FileOptions
    ) -> list[LiveFile]:
        """Writes the new rows, and the remaining rows of rewritten files, of which at most one new file's worth is in
        memory. Adds the paths of all new files to `begun`."""
        table = self.snapshot
        index = self._index() if self._key else None
        reader = DataReader(self._files, table.schema)
        stay = (part for file, dead in plan.rewritten for part in reader.survivors(file.file, row_numbers(dead)))
        written: list[LiveFile] = []
        pending: list[pa.Table] = []
        for part in chain([upserts], stay, [None]):
            if part is not None:
                pending.append(part)
            if pending and (part is None or sum(rows.nbytes for rows in pending) >= options.target_bytes):
                for new in write_files(self._files, table, pa.concat_tables(pending), self._key, options):
                    begun.append(new.file.path)
                    written.append(new.file)
                    if index is not None:  # so that the file need not be read for it
                        index.add(new.file, self._codec().encode(new.rows))
                pending = []
        return written

    def _touched(self, locations: Sequence[FoundInFile]) -> Iterator[TouchedFile]:
        for location in locations:
            dead, rows, count = self._dead_rows(location.file), np.unique(location.rows), location.file.row_count
            if count is None or len(dead) + len(rows) >= count:
                # A whole file is removed only by its own row count: a wrong count in the log would remove live rows.
                with self._files.parquet(location.file.path) as parquet:
                    count = parquet.metadata.num_rows
            yield TouchedFile(location.file, dead, rows, count)

    def _enable_vectors(self) -> None:
        """Enables deletion vectors by a commit of its own. No other commit may come in between, because rows are
        already located."""
        before = self.snapshot
        self._committer.enable_vectors()
        self.sync()
        if replace(self.snapshot, protocol={}, metadata={}) != replace(
            before, protocol={}, metadata={}, version=before.version + 1
        ):
            raise concurrent_change(self._files.root, before.version)


def _committed(version: int, written: int, updated: int, locations: Sequence[FoundInFile]) -> Committed:
    removed = sum(len(location.rows) for location in locations)
    return Committed(version, written - updated, updated, removed - updated)
