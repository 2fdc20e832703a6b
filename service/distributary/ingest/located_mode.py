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
        def run(head: Head, progress: Progress) -> None:
            self._commit(to, part, head, progress)

        return Prepared(run)

    def _commit(self, to: Destination, part: DecodedSlice, head: Head, progress: Progress) -> None:
        settings = self._settings
        rules = Rules(to.connector, settings.mode, settings.deletes, settings.truncate)
        row, key = (
            pa.struct([(name, arrow_of(kind)) for name, kind in columns.items()]) for columns in (to.columns, to.key)
        )
        layout = TableLayout(rules, to.topic, row, key)
        here = to.lake._log.local_path()
        assert here is not None
        files = TableFiles(here)
        if self._writer is None:
            committer = DeltaCommitter(to.lake.session, to.lake.path, files)
            self._writer = TableWriter(files, list(to.key), committer, _cache())
        writer = self._writer
        writer.sync()
        before = head.progress
        memory = None
        if self._memory is not None and before is not None and self._memory[0] == before.commit:
            memory = self._memory[1]
        elif before is not None and before.memory is not None:
            memory = read_memory(Path(here, before.memory).read_bytes())
        self._memory = None
        partitions = max(1, len(progress.next))
        if memory is None:
            memory = first_memory(layout, partitions)
        if partitions > memory.state.partitions:
            grow(to.connector, memory.state, partitions)
        applied_writer = AppliedWriter(writer, layout)
        assert part.events is not None
        applied = apply_events(layout, memory, part.events, applied_writer)
        if applied.changes.went_back:
            raise TableHalt("source-went-back", str(applied.changes.went_back[0]), "")
        name = f"_distributary/memory/{uuid.uuid4()}.parquet"
        files.write(name, write_memory(memory))
        progress = progress.model_copy(update={"memory": name})
        applied_writer.write(applied, ProgressRecord(progress.to_json(), APP_ID, progress.sequence))
        self._memory = (progress.commit, memory)
