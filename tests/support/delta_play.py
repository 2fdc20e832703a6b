"""Random writes to a table, played through the writer and through a dict, with other writers and damage in between.

`python -m tests.support.delta_play --batches 100000` plays so many batches; it exits with 1 at the first difference.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import date, datetime, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable
from tests.support.delta_log import HandCommitter, HandMadeTable
from tests.support.delta_log import field as column
from tests.support.delta_readers import read_by_deltalake, read_by_duckdb

from distributary.delta import plan_write
from distributary.delta.commit import CommitPayload, ConcurrentChange
from distributary.delta.compaction import next_file_group
from distributary.delta.data_file import FileOptions
from distributary.delta.index_cache import IndexCache
from distributary.delta.plan_write import RemovalLayout
from distributary.delta.storage import TableFiles
from distributary.delta.writer import TableWriter

Row = dict[str, Any]
Key = tuple[Any, ...]


@dataclass(frozen=True)
class Kind:
    """A kind of table: its columns, its key, and how a key is made from a number."""

    columns: tuple[dict[str, Any], ...]
    key: Mapping[str, Callable[[int], Any]]
    partition_by: tuple[str, ...] = ()


_VALUES = (column("v", "string"), column("n", "decimal(20,4)"), column("t", "timestamp"))
KINDS = {
    "numbers": Kind((column("id", "long"), *_VALUES), {"id": lambda i: None if i == 7 else i - 20}),
    "texts": Kind(
        (column("v", "string", number=1), column("n", "decimal(20,4)", number=2), column("t", "timestamp", number=3),
         column("id", "string", number=4)),
        {"id": lambda i: None if i == 7 else "" if i == 8 else f"ключ {i} " + "x" * (i % 40)},
    ),
    "partitions": Kind(
        (*_VALUES, column("a", "integer"), column("b", "string"), column("d", "date")),
        {"a": lambda i: i // 3, "b": lambda i: [None, "x/y=%z", "b"][i % 3], "d": lambda i: date(2020, 1, 1 + i % 2)},
        ("b", "d"),
    ),
    "mixed": Kind(
        (column("a", "decimal(12,2)"), column("b", "date"), column("c", "binary"), *_VALUES),
        {"a": lambda i: Decimal(i % 5) / 4, "b": lambda i: None if i % 7 == 3 else date(1970, 1, 1 + i % 20),
         "c": lambda i: bytes([i])},
    ),
}  # fmt: skip


@dataclass
class Play:
    """One table, its writer, and the rows that it must have."""

    folder: Path
    seed: int
    kind: Kind
    key_count: int = 60
    rows: dict[Key, Row] = field(default_factory=dict)
    past: dict[int, dict[Key, Row]] = field(default_factory=dict)
    batches: int = 0

    def __post_init__(self) -> None:
        self.random = random.Random(self.seed)
        self.table = HandMadeTable(self.folder / "table").create(
            *self.kind.columns, partition_by=self.kind.partition_by
        )
        self.layout = RemovalLayout.VECTORS
        self.cheap = 0
        self.writer = self.new_writer()
        self.schema = self.writer.snapshot.schema.arrow
        self.past[0] = {}

    def new_writer(self) -> TableWriter:
        """The writer of a process that starts again."""
        options = FileOptions(
            group_rows=self.random.choice([1, 3, 1000]), target_bytes=self.random.choice([300, 10**6])
        )
        cache = IndexCache(self.folder / "cache", self.random.choice([0, 500, 10**6]), 10**5)
        files = TableFiles(str(self.table.path))
        return TableWriter(
            files, list(self.kind.key), HandCommitter(self.table), cache, layout=self.layout, options=options
        )

    def key(self, number: int) -> Key:
        """The values of a key."""
        return tuple(make(number) for make in self.kind.key.values())

    def keys(self, count: int) -> list[Key]:
        """Some keys, each once."""
        numbers = self.random.sample(range(self.key_count), min(count, self.key_count))
        return list(dict.fromkeys(self.key(number) for number in numbers))

    def step(self) -> None:
        """Does one random action."""
        own = [self.write, self.compact, self.restart]
        others = [self.compact_by_another, self.delete, self.restore, self.spoil_cache, self.checkpoint]
        act = self.random.choices([*own, *others], [20, 2, 1, 1, 1, 1, 2, 0.5])[0]
        act()
        self.past[self.table.version] = dict(self.rows)

    def write(self) -> None:
        """Writes a batch; sometimes another writer is faster."""
        chosen = self.keys(self.random.randrange(18))
        cut = self.random.randrange(len(chosen) + 1)
        changed = {key: self.row(key) for key in chosen[:cut]}
        upserts = pa.Table.from_pylist(list(changed.values()), self.schema)
        deletes = self.key_table(chosen[cut:])
        record = CommitPayload(f"{self.batches}", "distributary", self.batches)
        if self.random.random() < 0.05:
            self.table.commit({"txn": {"appId": "other", "version": self.batches}})
            self.past[self.table.version] = dict(self.rows)
            try:
                self.writer.write(upserts, deletes, record)
            except ConcurrentChange:
                self.writer.sync()
            else:
                raise AssertionError("a commit on a version that was not seen")
        # The files are far smaller than real ones: of some batches all are rewritten, of some a part, of some none.
        with patch.multiple(plan_write, REWRITE_FACTOR=0, CHEAP_BYTES=self.cheap):
            self.writer.write(upserts, deletes, record)
        self.batches += 1
        for key in chosen[cut:]:
            self.rows.pop(key, None)
        self.rows.update(changed)

    def row(self, key: Key) -> Row:
        """A new row of a key."""
        values = {
            "v": self.random.choice([None, "", "a", "é" * 50, "\U0010ffff" * 40]),
            "n": self.random.choice([None, Decimal("1.2345"), Decimal("-1234567890123456.7890")]),
            "t": datetime(2020, 1, 1, 0, 0, 0, self.random.randrange(10**6), timezone.utc),
        }
        return values | dict(zip(self.kind.key, key, strict=True))

    def key_table(self, keys: list[Key]) -> pa.Table:
        """Keys in the form that the writer accepts."""
        names = list(self.kind.key)
        return pa.table(
            {name: pa.array([key[i] for key in keys], self.schema.field(name).type) for i, name in enumerate(names)}
        )

    def compact(self) -> None:
        """The writer's own compaction, piece by piece."""
        wanted = self.random.choice([4_000, 10**6])
        while piece := next_file_group(self.writer.snapshot.files.values(), wanted):
            count = self.writer.compact(piece, CommitPayload("compaction", "distributary", self.batches))
            self.past[self.table.version] = dict(self.rows)
            if count > len(piece) / 2:
                break

    def compact_by_another(self) -> None:
        """Another writer's OPTIMIZE."""
        if self.is_mapped:
            self.rewrite_by_hand()
        else:
            self.other().optimize.compact()
        self.writer.sync()

    def delete(self) -> None:
        """Another writer's DELETE."""
        self.rows = {key: row for key, row in self.rows.items() if row["v"] != "a"}
        if self.is_mapped:
            self.rewrite_by_hand()
        else:
            self.other().delete("v = 'a'")
        self.writer.sync()

    @property
    def is_mapped(self) -> bool:
        """Whether the columns have physical names: then `deltalake` does not write."""
        return any("delta.columnMapping.id" in one["metadata"] for one in self.kind.columns)

    def rewrite_by_hand(self) -> None:
        """Another writer puts all rows into one file, in any order and without statistics."""
        rows = list(self.rows.values())
        self.random.shuffle(rows)
        names = {one["name"]: one["metadata"]["delta.columnMapping.physicalName"] for one in self.kind.columns}
        path = self.table.path / f"{self.table.version}-by-hand.parquet"
        pq.write_table(pa.Table.from_pylist(rows, self.schema).rename_columns(names), path)
        add = {"path": path.name, "size": path.stat().st_size, "partitionValues": {}, "modificationTime": 0}
        self.table.commit(
            *({"remove": removal(entry)} for entry in self.entries(self.table.version).values()),
            {"add": {**add, "dataChange": True, "stats": json.dumps({"numRecords": len(rows)})}},
        )

    def restore(self) -> None:
        """Another writer's RESTORE, by hand."""
        version = self.random.choice(list(self.past)[-8:])
        now, then = self.entries(self.table.version), self.entries(version)
        removed = [removal(add) for path, add in now.items() if then.get(path) != add]
        added = [add for path, add in then.items() if now.get(path) != add]
        self.table.commit(
            *({"remove": one} for one in removed),
            *({"add": one} for one in added),
        )
        self.rows = dict(self.past[version])
        self.writer.sync()

    def entries(self, version: int) -> dict[str, Any]:
        """The live entries of a version by path: a plain replay of the log."""
        live: dict[str, Any] = {}
        for number in range(version + 1):
            text = (self.table.path / f"_delta_log/{number:020d}.json").read_text(encoding="utf-8")
            actions = [json.loads(line) for line in text.splitlines()]
            for action in actions:
                if "remove" in action:
                    live.pop(action["remove"]["path"], None)
            live |= {action["add"]["path"]: action["add"] for action in actions if "add" in action}
        return live

    def restart(self) -> None:
        """The process ends and starts again, perhaps with another layout."""
        self.layout = self.random.choice(list(RemovalLayout))
        self.cheap = self.random.choice([0, 3_000, 6_000, 12_000])
        self.writer = self.new_writer()

    def spoil_cache(self) -> None:
        """Damages or removes a file of the cache."""
        files = sorted((self.folder / "cache").iterdir())
        if files:
            path = self.random.choice(files)
            content = bytearray(path.read_bytes())
            content[self.random.randrange(len(content))] ^= 1 << self.random.randrange(8)
            path.unlink()
            if self.random.random() < 0.7:
                path.write_bytes(content[: self.random.choice([len(content), len(content) // 2])])

    def checkpoint(self) -> None:
        """Another writer makes a checkpoint of the log."""
        self.other().create_checkpoint()

    def other(self) -> DeltaTable:
        """The table as the `deltalake` package opens it."""
        return DeltaTable(str(self.table.path))

    def check_by_location(self) -> None:
        """Checks that the writer itself finds each row, and no other."""
        keys = list(dict.fromkeys(self.key(number) for number in range(self.key_count)))
        names = self.random.sample(self.schema.names, len(self.schema.names))
        found = self.writer.read_rows(self.key_table(keys), names)
        rows = found.rows.to_pylist()
        assert len(rows) == len(self.rows), f"{len(rows)} rows are found of {len(self.rows)}"
        for number, row in zip(found.keys.tolist(), rows, strict=True):
            assert row == self.rows[keys[number]], keys[number]

    def check_by_readers(self) -> None:
        """Checks that two independent readers see each row, and no other."""
        expected = sorted(self.rows.values(), key=repr)
        for read in (read_by_deltalake, read_by_duckdb):
            found = [{name: row[name] for name in expected[0]} if expected else row for row in read(self.table.path)]
            assert sorted(map(_plain, found), key=repr) == sorted(map(_plain, expected), key=repr), read.__name__


def removal(add: Mapping[str, Any]) -> dict[str, Any]:
    """The `remove` of an entry."""
    copied = ("path", "deletionVector", "partitionValues", "size")
    return {name: add[name] for name in copied if name in add} | {"dataChange": True, "deletionTimestamp": 0}


def _plain(row: Row) -> Row:
    """A row whose times are in UTC, always spelled UTC."""
    return {name: value.astimezone(timezone.utc) if isinstance(value, datetime) else value
            for name, value in sorted(row.items())}  # fmt: skip


def play(folder: Path, name: str, seed: int, steps: int, readers_every: int = 10) -> Play:
    """Plays a number of steps on a new table. Raises AssertionError at a difference."""
    found = Play(folder, seed, KINDS[name])
    for number in range(1, steps + 1):
        found.step()
        found.check_by_location()
        if number % readers_every == 0 or number == steps:
            found.check_by_readers()
    return found


def main() -> int:
    """Plays table after table until the number of batches is reached."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--batches", type=int, default=1_000)
    parser.add_argument("--seed", type=int, default=1_000_000)
    asked = parser.parse_args()
    done, seed = 0, asked.seed
    while done < asked.batches:
        name = list(KINDS)[seed % len(KINDS)]
        sys.stdout.write(f"\r{done} batches, {seed - asked.seed} tables; now {name}, seed {seed} ")
        sys.stdout.flush()
        with tempfile.TemporaryDirectory() as folder:
            done += play(Path(folder), name, seed, 100).batches
        seed += 1
    sys.stdout.write(f"\n{done} batches\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
