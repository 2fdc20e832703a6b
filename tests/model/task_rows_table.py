"""A table as AppliedTable, some of whose rows were written before the rules decided about them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from random import Random

import numpy as np
import pyarrow as pa
from tests.model.applied_table import AppliedTable

from distributary.apply.apply_events import Applied, apply_events
from distributary.apply.decoded_events import is_special
from distributary.apply.new_rows import inserted_rows
from distributary.apply.task_rows import RecordPlaces, UsedFile, WrittenRows
from distributary.rules.columns import as_bools, one_array


class TaskRowsTable(AppliedTable):
    """Any events that have a row, and need no value of another one, may be in one of a few files in any order."""

    used = read_back = 0
    """How many files were used, and how many were read, in all tables."""

    _random = Random(1)

    def _applied(self, events: pa.Table, quarantined: pa.Array, replayed: pa.Table | None) -> Applied:
        chosen = self._chosen(events)
        parts = np.array_split(chosen, self._random.randint(1, 3))
        files = [self._file(events.take(pa.array(part))) for part in parts if len(part)]
        read: set[int] = set()

        def read_file(number: int) -> pa.Table:
            read.add(number)
            return files[number]

        places = [RecordPlaces(file["__partition"].to_numpy(), file["__offset"].to_numpy()) for file in files]
        applied = apply_events(
            self._spec,
            self._memory,
            _without_rows(events, chosen),
            self._stored,
            quarantined=quarantined,
            replayed=replayed,
            written=WrittenRows(places, read_file),
        )
        TaskRowsTable.used += len(applied.files)
        TaskRowsTable.read_back += len(read)
        return self._with_files(applied, files)

    def _chosen(self, events: pa.Table) -> np.ndarray:
        """The events whose rows are written, in any order."""
        if self._spec.rules.mode != "upsert" or not self._random.randrange(4):
            return np.zeros(0, np.int64)
        arrays = {name: one_array(events[name]) for name in events.column_names}
        chosen = as_bools(arrays["row"].is_valid()) & as_bools(arrays["key"].is_valid()) & ~as_bools(is_special(arrays))
        chosen &= ~as_bools(pa.compute.equal(arrays["operation"], "d"))
        share = self._random.choice([0.3, 1.0])
        numbers = [number for number in np.flatnonzero(chosen).tolist() if self._random.random() < share]
        self._random.shuffle(numbers)
        return np.array(numbers, np.int64)

    def _file(self, events: pa.Table) -> pa.Table:
        rules = self._spec.rules
        return inserted_rows(events, self._spec.row, self._spec.topic, marks_deleted=rules.marks_deleted)

    def _with_files(self, applied: Applied, files: Sequence[pa.Table]) -> Applied:
        if not applied.files:
            return applied
        assert not applied.truncates
        for file in applied.files:
            self._check_keys(file, files[file.number])
        rows = pa.concat_tables([applied.rows, *(files[file.number] for file in applied.files)])
        return replace(applied, rows=rows.take(pa.array(self._random.sample(range(len(rows)), len(rows)))))

    def _check_keys(self, file: UsedFile, rows: pa.Table) -> None:
        keys = rows.select([field.name for field in self._spec.key])
        assert file.keys.to_pylist() == keys.to_pylist()


def _without_rows(events: pa.Table, chosen: np.ndarray) -> pa.Table:
    is_written = np.zeros(events.num_rows, np.bool_)
    is_written[chosen] = True
    rows = one_array(events["row"])
    remaining = np.where(is_written, -1, np.arange(events.num_rows))
    values = rows.take(pa.array(remaining, mask=is_written))
    return events.set_column(events.schema.get_field_index("row"), "row", values)
