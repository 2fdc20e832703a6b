"""A mode whose rows are found by location: the rules decide, Arrow carries the values, one commit writes it all."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa

from distributary.apply.batch import apply_events
from distributary.apply.memory import Memory, TableLayout, first_memory
from distributary.apply.memory_file import read_memory, write_memory
from distributary.apply.stored_rows import DELETED
from distributary.config.table import TableSettings
from distributary.decode.record_schema import arrow_of
from distributary.delta.commit import ProgressRecord
from distributary.delta.transaction import DeltaCommitter
from distributary.delta.index_cache import IndexCache
from distributary.delta.storage import TableFiles
from distributary.delta.writer import TableWriter
from distributary.errors import TableHalt
from distributary.ingest.applied_writer import AppliedWriter
from distributary.merge.mode import ORIGIN_COLUMNS, DecodedSlice, Destination, Prepared
from distributary.merge.progress import APP_ID, Head, Progress
from distributary.rules.event import Event
from distributary.rules.state import Rules
from distributary.rules.watermark import grow

_CACHE: list[IndexCache] = []


def _cache() -> IndexCache:
    if not _CACHE:
        import tempfile

        _CACHE.append(IndexCache(Path(tempfile.mkdtemp(prefix="distributary-index-")), 2**28, 2**32))
    return _CACHE[0]


class LocatedMode:
    """All modes."""

    def __init__(self, settings: TableSettings) -> None:
        self._settings = settings
        self._memory: tuple[str, Memory] | None = None
        self._writer: TableWriter | None = None

    @property
    def service_columns(self) -> Mapping[str, str]:
        if self._settings.mode == "history":
            return {
                "__start_at": "string",
                "__end_at": "string",
                "__current": "boolean",
                **ORIGIN_COLUMNS,
                "__moved_from": "string",
            }
        if self._settings.mode == "append":
            return {**ORIGIN_COLUMNS, "__unavailable": "array<string>"}
        return {**ORIGIN_COLUMNS, **({DELETED: "boolean"} if self._settings.marks_deleted else {})}

    @property
    def reads_before(self) -> bool:
        return self._settings.mode == "append"

    def write(self, to: Destination, part: DecodedSlice) -> Prepared:
        rules = Rules(
            to.connector,
            self._settings.mode,
            self._settings.deletes,
            self._settings.truncate,
            keyless=not to.key,
        )
        row, key = (
            pa.struct([(name, arrow_of(kind)) for name, kind in columns.items()]) for columns in (to.columns, to.key)
        )
        layout = TableLayout(rules, to.topic, row, key)
        writer = self._writer_of(to)
        writer.sync()
        before = part.head.progress
        partitions = len({*(before.next if before else ()), *part.found.partitions}) or 1
        memory = self._memory_before(to, layout, before, partitions)
        if partitions > memory.state.partitions:
            grow(to.connector, memory.state, partitions)
        located = AppliedWriter(writer, layout)
        assert part.events is not None
        applied = apply_events(layout, memory, part.events, located)
        if applied.changes.went_back:
            raise _went_back(applied.changes.went_back[0], to.topic)

        def run(_head: Head, progress: Progress) -> None:
            name = f"_distributary/memory/{uuid.uuid4()}.parquet"
            self._files_of(to).write(name, write_memory(memory))
            told = progress.model_copy(update={"memory": name})
            located.write(applied, ProgressRecord(told.to_json(), APP_ID, told.sequence))
            self._memory = (told.commit, memory)

        return Prepared(run, applied.changes.ambiguous)

    def _files_of(self, to: Destination) -> TableFiles:
        here = to.lake._log.local_path()
        assert here is not None
        return TableFiles(here)

    def _writer_of(self, to: Destination) -> TableWriter:
        if self._writer is None:
            files = self._files_of(to)
            committer = DeltaCommitter(to.lake.session, to.lake.path, files)
            self._writer = TableWriter(files, list(to.key), committer, _cache())
        return self._writer

    def _memory_before(self, to: Destination, layout: TableLayout, before: Progress | None, partitions: int) -> Memory:
        """The memory after the commit `before`. What is returned is changed by the next batch: it is kept again when
        that is committed."""
        known, self._memory = self._memory, None
        if known is not None and before is not None and known[0] == before.commit:
            return known[1]
        if before is not None and before.memory is not None:
            with self._files_of(to).open(before.memory) as stream:
                return read_memory(stream.read())
        return first_memory(layout, partitions)


def _went_back(event: Event, topic: str) -> TableHalt:
    """Rule 2.6."""
    at = event.position
    return TableHalt(
        "source-went-back",
        f"offset {event.offset} of {topic} partition {event.partition} was committed at the source at"
        f" {0 if at is None else at.time // 1000} with a position lower than one that was reached before: the source was"
        " restored or failed over to an earlier position",
        f"set `epoch: {1 if at is None else at.epoch + 1}` for this table if what follows is to replace what was before",
    )
