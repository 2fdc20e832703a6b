"""Workloads of one table: it is filled, many of its rows change at once, a few of them change again and again.

One topic has it all: rows of a snapshot, then the churn, then the trickle. All contenders read the same records, and
whatever they make of them is compared with the source's rows.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import click
import pyarrow as pa
from tests.benchmarks.contenders import ANY_NUMBER, table_of
from tests.benchmarks.rounds import Rounds, in_turns
from tests.benchmarks.separate_process import Cost, SeparateProcess
from tests.benchmarks.source import ARROW, Source
from tests.support.kafka import create_topic, end_offsets, produce
from tests.support.lake import read_table

TOPIC = "server1.dbo.t"
MAIN = ("service", "recipe", "append")
SMALL = ("service", "loop", "recipe")


@dataclass(frozen=True)
class Sizes:
    """How large it all is; `cut` is the number of records of a batch where a backlog comes in several."""

    rows: int = 400_000
    changes: int = 200_000
    cut: int = 20_000
    batches: int = 30
    of_batch: int = 200
    rounds: int = 5  # the first ones of a process are compiled by Java as they run


QUICK = Sizes(rows=40_000, changes=20_000, cut=5_000, batches=6, rounds=1)


@dataclass
class Stage:
    """The topic, the contenders that were started, and the truth at each of the topic's marks."""

    kafka: str
    folder: Path
    sizes: Sizes
    ends: dict[str, int] = field(default_factory=dict)
    truths: dict[str, pa.Table] = field(default_factory=dict)
    trickle: list[int] = field(default_factory=list)
    _started: dict[str, SeparateProcess] = field(default_factory=dict)

    def fill_topic(self) -> None:
        """Produces all records."""
        source = Source()
        create_topic(self.kafka, TOPIC)
        self._send(source.snapshot(self.sizes.rows))
        self._mark("filled", source)
        self._send(source.changes(self.sizes.changes))
        self._mark("churned", source)
        for _ in range(self.sizes.batches + 1):
            self._send(source.changes(self.sizes.of_batch))
            self.trickle.append(self._end())
        self._mark("trickled", source)

    def of(self, name: str) -> SeparateProcess:
        """A contender, started and warm."""
        if name not in self._started:
            self._started[name] = SeparateProcess(name, self.kafka)
            self._warm(self._started[name])
        return self._started[name]

    def end(self) -> None:
        """Ends all contenders."""
        for one in self._started.values():
            one.end()

    def play(self, name: str, base: str | None, mark: str, most: int = ANY_NUMBER) -> Cost:
        """Has a contender take its topic up to `mark`, from where its table is at the mark `base`, in batches of so
        many records. What comes out must be the truth at `mark`, and is kept as its table there."""
        at = self.ends[base] if base else 0
        folder = self.folder / name / "now"
        shutil.rmtree(folder, ignore_errors=True)
        if base:
            shutil.copytree(self.folder / name / base, folder)
        one = self.of(name)
        one.begin(TOPIC, folder, at)
        cost = one.take(self.ends[mark], most)
        self.check(name, folder, mark)
        kept = self.folder / name / mark
        shutil.rmtree(kept, ignore_errors=True)
        folder.rename(kept)
        return cost

    def check(self, name: str, folder: Path, mark: str) -> None:
        """The table must be the truth; of `append`, that no record is lacking."""
        found = read_table(table_of(folder))
        assert found is not None, f"{name} made no table"
        if name == "append":
            began = 0 if mark == "filled" else self.ends["filled"]
            assert found.num_rows in (self.ends[mark], self.ends[mark] - began), f"{name}: {found.num_rows} records"
            return
        same = found.select(ARROW.names).cast(ARROW).sort_by("id").combine_chunks()
        assert same.equals(self.truths[mark].combine_chunks()), (
            f"{name}: the table is not what the source has at {mark}"
        )

    def _warm(self, one: SeparateProcess) -> None:
        """What compiles and loads classes at first is not to be measured."""
        for turn in range(2):
            folder = self.folder / "warm"
            one.begin(TOPIC, folder, 0)
            rows = min(self.sizes.rows, 20_000)
            one.take(rows // 2)
            one.take(rows)
            one.take(rows + turn)
            shutil.rmtree(folder, ignore_errors=True)

    def _send(self, records: Iterator) -> None:  # type: ignore[type-arg]
        produce(self.kafka, (record._replace(topic=TOPIC) for record in records))

    def _end(self) -> int:
        return end_offsets(self.kafka, TOPIC)[0]

    def _mark(self, mark: str, source: Source) -> None:
        self.ends[mark] = self._end()
        self.truths[mark] = source.truth()
        click.echo(f"{TOPIC}: {self.ends[mark]} records, {mark}")


@contextmanager
def stage(kafka: str, folder: Path, sizes: Sizes) -> Iterator[Stage]:
    """With all records in Kafka."""
    made = Stage(kafka, folder, sizes)
    with ExitStack() as ending:
        ending.callback(made.end)
        made.fill_topic()
        yield made


def bulk(on: Stage) -> Rounds:
    """The snapshot, into no table, as one batch."""
    return in_turns("bulk", MAIN, on.sizes.rounds, lambda name, _: on.play(name, None, "filled"))


def bulk_cut(on: Stage) -> Rounds:
    """The same in batches."""
    cut = on.sizes.cut
    found = in_turns("bulk, cut", MAIN, on.sizes.rounds, lambda name, _: on.play(name, None, "filled", cut))
    found.more["batches"] = -(-on.ends["filled"] // cut)
    return found


def churn(on: Stage) -> Rounds:
    """Changes of half of the rows as one batch."""
    _filled(on, MAIN)
    return in_turns("churn", MAIN, on.sizes.rounds, lambda name, _: on.play(name, "filled", "churned"))


def churn_cut(on: Stage) -> Rounds:
    """The same in batches."""
    cut = on.sizes.cut
    _filled(on, MAIN)
    found = in_turns("churn, cut", MAIN, on.sizes.rounds, lambda name, _: on.play(name, "filled", "churned", cut))
    found.more["batches"] = -(-(on.ends["churned"] - on.ends["filled"]) // cut)
    return found


def trickle(on: Stage) -> Rounds:
    """Small batches with keys all over the table; each batch is a round, the first of them is not counted."""
    _churned(on, ("service", "recipe"))
    shutil.copytree(on.folder / "recipe" / "churned", on.folder / "loop" / "churned", dirs_exist_ok=True)
    found = Rounds("trickle")
    for name in SMALL:
        on.of(name).begin(TOPIC, on.folder / name / "churned", on.ends["churned"])
    for number, end in enumerate(on.trickle):
        for name in SMALL:
            cost = on.of(name).take(end)
            if number:
                found.add(name, cost)
    for name in SMALL:
        on.check(name, on.folder / name / "churned", "trickled")
    return found


def _filled(on: Stage, names: Sequence[str]) -> None:
    for name in names:
        if not (on.folder / name / "filled").exists():
            on.play(name, None, "filled")


def _churned(on: Stage, names: Sequence[str]) -> None:
    _filled(on, names)
    for name in names:
        if not (on.folder / name / "churned").exists():
            on.play(name, "filled", "churned")
