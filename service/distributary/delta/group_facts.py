"""What is derived from row groups of data files, each read once: a data file never changes."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from distributary.delta.data_reader import DataReader
from distributary.delta.key_index import FoundInFile
from distributary.delta.live_file import LiveFile

_T = TypeVar("_T")
_File = tuple[str, int, int | None]
"""See LiveFile.content."""


@dataclass(frozen=True)
class GroupFact(Generic[_T]):
    """Something small that `derive` makes of these columns of a row group."""

    columns: tuple[str, ...]
    derive: Callable[[pa.Table], _T]


class GroupFacts:
    """The facts about the row groups that were asked for."""

    def __init__(self) -> None:
        self._ends: dict[_File, npt.NDArray[np.int64]] = {}
        self._facts: dict[_File, dict[tuple[GroupFact[Any], int], Any]] = {}

    def of(self, fact: GroupFact[_T], reader: DataReader, rows: FoundInFile) -> Iterator[_T]:
        """The fact about each row group that has one of the rows. Raises as DataReader.pieces."""
        file = rows.file
        content = file.content
        if content not in self._ends:
            self._ends[content], self._facts[content] = reader.group_ends(file), {}
        known = self._facts[content]
        groups = np.unique(np.searchsorted(self._ends[content], rows.rows, "right")).tolist()
        unknown = [group for group in groups if (fact, group) not in known]
        for group, piece in zip(unknown, reader.groups(file, unknown, fact.columns), strict=True):
            known[fact, group] = fact.derive(piece)
        return (known[fact, group] for group in groups)

    def forget(self, live: Collection[LiveFile]) -> None:
        """Forgets all files but the live ones."""
        if len(self._facts) > len(live):
            kept = {file.content for file in live}
            self._ends = {file: ends for file, ends in self._ends.items() if file in kept}
            self._facts = {file: facts for file, facts in self._facts.items() if file in kept}
