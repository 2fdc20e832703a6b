"""A backlog taken at once, with little memory: many small records, large and wide ones, and many of one key.

What counts is not how fast it is but that it comes through: the most memory that Java and Python had together, and the
most that lay in Spark's local files.
"""

from __future__ import annotations

import json
import os
import shutil
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from tests.benchmarks.command import PREFIX, once, write_config
from tests.benchmarks.rounds import Rounds
from tests.support.kafka import LARGEST_MESSAGE, Record, create_topic, delete_topic, produce
from tests.support.lake import read_table

MEMORY = os.environ.get("BACKLOG_MEMORY", "2g")
_MB = 2**20
_LOOK_EVERY = 0.5  # seconds


@dataclass(frozen=True)
class Kind:
    """So many records; of each, by its number, the key and the text. `columns`: so many others have whole numbers."""

    records: int
    key: Callable[[int], int]
    text: Callable[[int], str]
    columns: int = 0


KINDS = {
    "small": Kind(3_000_000, lambda number: number, lambda number: f"{number} {'small ' * 10}"),
    "large": Kind(2_000, lambda number: number, lambda number: f"{number} {'large ' * 170_000}"),
    "large-changes": Kind(2_000, lambda number: number % 20, lambda number: f"{number} {'large ' * 170_000}"),
    "of-one-key": Kind(500_000, lambda _: 1, lambda number: f"{number} {'small ' * 150}"),
    "of-20-mb": Kind(40, lambda number: number, lambda number: f"{number} {'large ' * 3_400_000}"),
    "million": Kind(1_000_000, lambda number: number, lambda number: f"{number} {'small ' * 10}"),
    "wide": Kind(100_000, lambda number: number, lambda number: f"{number} wide", columns=500),
}


def backlog(kafka: str, folder: Path, *, kinds: Mapping[str, Kind] = KINDS) -> Rounds:
    """Each kind by itself: `run --once` from no table, with `spark.driver.memory` of BACKLOG_MEMORY."""
    found = Rounds("backlog")
    for name, kind in kinds.items():
        topic, numbers = f"{PREFIX}.backlog.{name}", range(kind.records)
        create_topic(kafka, topic, config={"max.message.bytes": str(LARGEST_MESSAGE)})
        produce(kafka, (_record(topic, number, kind) for number in numbers))
        place = folder / name
        spark = {"spark.master": "local[2]", "spark.driver.memory": MEMORY, "spark.local.dir": str(place / "spark")}
        config = write_config(kafka, place, tables=[{"match": f"backlog.{name}"}], spark=spark)
        with _most_in(place / "spark") as most:
            cost = once(config)
        found.add(name, cost)
        _check(place / "lake" / "backlog" / name, {kind.key(number): number for number in numbers}, kind.text)
        found.more[name] = {"records": kind.records, "slices": _slices(config), "local_files_mb": most[0] // _MB}
        shutil.rmtree(place)
        delete_topic(kafka, topic)
    found.more["driver_memory"] = MEMORY
    return found


def _record(topic: str, at: int, kind: Kind) -> Record:
    key = kind.key(at)
    others = "".join(f',"c{number}":{at + number}' for number in range(kind.columns))
    value = (
        f'{{"before":null,"after":{{"id":{key},"number":{at},"text":"{kind.text(at)}"{others}}},'
        '"source":{"connector":"sqlserver",'
        f'"ts_ms":{1_700_000_000_000 + at},"snapshot":"false","change_lsn":"00000027:{at:08x}:0002",'
        f'"commit_lsn":"00000027:{at:08x}:0003","event_serial_no":1}},"op":"u"}}'
    )
    return Record(topic, None, f'{{"id":{key}}}'.encode(), value.encode())


def _check(table: Path, truth: Mapping[int, int], text: Callable[[int], str]) -> None:
    """Each key must have its last number, with the text that is that number's."""
    found = read_table(table)
    assert found is not None, f"{table}: no table"
    assert dict(zip(found.column("id").to_pylist(), found.column("number").to_pylist(), strict=True)) == truth
    assert found.num_rows == len(truth)
    some = found.slice(0, 1_000)
    for number, is_ in zip(some.column("number").to_pylist(), some.column("text").to_pylist(), strict=True):
        assert is_ == text(number), f"{table}: another text at {number}"


def _slices(config: Path) -> list[int]:
    """How many records each slice had."""
    lines = config.with_suffix(".log").read_text(encoding="utf-8").splitlines()
    entries = [json.loads(line) for line in lines if line.startswith("{")]
    return [entry["records"] for entry in entries if entry["event"] == "committed"]


@contextmanager
def _most_in(folder: Path) -> Iterator[list[int]]:
    """The most bytes that lay in a folder at one time, as the only item."""
    most, ended = [0], threading.Event()

    def look() -> None:
        while not ended.wait(_LOOK_EVERY):
            most[0] = max(most[0], _size(folder))

    thread = threading.Thread(target=look)
    thread.start()
    try:
        yield most
    finally:
        ended.set()
        thread.join()


def _size(folder: Path) -> int:
    size = 0
    for place, _, names in os.walk(folder):
        for name in names:
            with suppress(OSError):  # gone meanwhile
                size += Path(place, name).stat().st_size
    return size
