"""Workloads of many tables, by the public command: all of them change at once; a few of many change all the time."""

from __future__ import annotations

import json
import random
import shutil
import statistics
import sys
import time
from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

from tests.benchmarks.command import PREFIX, Process, once, running, write_config
from tests.benchmarks.contenders import table_of
from tests.benchmarks.rounds import Rounds, in_turns
from tests.benchmarks.separate_process import Cost, SeparateProcess
from tests.benchmarks.source import ARROW, Source
from tests.support.kafka import Sender, create_topic, end_offsets
from tests.support.lake import read_table

_PATIENCE = 900  # seconds until all tables must have what is there
_BETWEEN_TRIGGERS = 60  # seconds; the changes of one round are all sent between two triggers


@dataclass
class Sources:
    """Tables of one database, each with its topic; `prefix` keeps those of one workload apart from others'."""

    kafka: str
    schema: str
    tables: int
    now: bool = False
    sources: dict[str, Source] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for number in range(self.tables):
            name = f"t{number:03d}"
            self.sources[name] = Source(seed=number, now=self.now)
            create_topic(self.kafka, self.topic(name))
        self._sender = Sender(self.kafka)

    def topic(self, table: str) -> str:
        """Its topic."""
        return f"{PREFIX}.{self.schema}.{table}"

    def snapshot(self, rows: int) -> None:
        """Rows for each table."""
        for name, source in self.sources.items():
            self._sender.send(r._replace(topic=self.topic(name)) for r in source.snapshot(rows))

    def change(self, tables: Iterable[str], changes: int, *, only_updates: bool = False) -> None:
        """So many changes of each of those tables."""
        self._sender.send(
            record._replace(topic=self.topic(table))
            for table in tables
            for record in self.sources[table].changes(changes, only_updates=only_updates)
        )

    def ends(self) -> dict[str, int]:
        """The end of each table's topic."""
        return {name: end_offsets(self.kafka, self.topic(name))[0] for name in self.sources}

    def check(self, place: Callable[[str], Path]) -> None:
        """Every table, which lies at `place(its name)`, must be what its source has."""
        for name, source in self.sources.items():
            found = read_table(place(name))
            assert found is not None, f"{place(name)}: no table"
            same = found.select(ARROW.names).cast(ARROW).sort_by("id").combine_chunks()
            assert same.equals(source.truth().combine_chunks()), f"{place(name)}: not what the source has"


def many(
    kafka: str, folder: Path, *, tables: int = 20, rows: int = 5_000, changes: int = 5_000, rounds: int = 2
) -> Rounds:
    """Changes of many tables at once, on tables that are there: `run --once` against the recipe, table after table;
    each from the start of its process to its end."""
    came = Sources(kafka, "many", tables)
    came.snapshot(rows)
    filled = came.ends()
    base = folder / "base"
    once(write_config(kafka, base / "service", tables=[{"match": "many.*"}]))
    _recipe(kafka, came, base / "recipe", dict.fromkeys(filled, 0), filled)
    came.change(came.sources, changes)
    ends = came.ends()

    def play(name: str, number: int) -> Cost:
        place = folder / f"{name}-{number}"
        shutil.copytree(base / name, place)
        if name == "service":
            cost = once(write_config(kafka, place, tables=[{"match": "many.*"}]))
        else:
            cost = _recipe(kafka, came, place, filled, ends)
        came.check((place / "lake" / "many").joinpath)
        shutil.rmtree(place)
        return cost

    return in_turns("many", ("service", "recipe"), rounds, play)


def _recipe(kafka: str, came: Sources, place: Path, at: Mapping[str, int], ends: Mapping[str, int]) -> Cost:
    place.mkdir(parents=True, exist_ok=True)
    turns = [(came.topic(n), str(place / "lake" / "many" / n), at[n], ends[n]) for n in came.sources]
    plan = place / "turns.json"
    plan.write_text(json.dumps({"kafka": kafka, "turns": turns}), encoding="utf-8")
    command = [sys.executable, "-m", "tests.benchmarks.recipe_in_turn", str(plan)]
    return Process(command, place / "recipe.log").wait()


def many_running(
    kafka: str, folder: Path, *, tables: int = 20, rows: int = 5_000, changes: int = 5_000, rounds: int = 5
) -> Rounds:
    """Changes of many tables at once, where service and recipe run and know the tables: from the trigger that meets
    the changes to the commit of the last table, against the recipe, table after table. Of these rounds the first is
    not counted: tables that were only filled are changed for the first time."""
    came = Sources(kafka, "manyrun", tables)
    service = folder / "service"
    config = write_config(
        kafka, service, tables=[{"match": "manyrun.*"}], trigger={"interval": f"{_BETWEEN_TRIGGERS}s"}
    )
    lake = service / "lake" / "manyrun"
    recipe = SeparateProcess("recipe", kafka)
    at = dict.fromkeys(came.sources, 0)

    def by_recipe(ends: Mapping[str, int]) -> Cost:
        cost = Cost(0, 0, 0)
        for name, end in ends.items():
            recipe.begin(came.topic(name), folder / "recipe" / name, at[name])
            cost += recipe.take(end)
            at[name] = end
        return cost

    found = Rounds("many, running")
    try:
        came.snapshot(rows)
        by_recipe(came.ends())
        with running(config) as process:
            _wait_for(lake, came.ends())
            for number in range(rounds + 1):
                time.sleep(_until_trigger() + 1)
                came.change(came.sources, changes)
                ends = came.ends()
                time.sleep(_until_trigger())
                before = process.cost()
                _wait_for(lake, ends, look_every=0.1)
                after = process.cost()
                other = by_recipe(ends)
                if number:
                    found.add("service", Cost(after.wall - before.wall, after.cpu - before.cpu, after.memory))
                    found.add("recipe", other)
        came.check(lake.joinpath)
        came.check(lambda name: table_of(folder / "recipe" / name))
    finally:
        recipe.end()
    return found


def _until_trigger() -> float:
    """Seconds until a stream's next trigger: Spark has them at whole multiples of the interval since the epoch."""
    return _BETWEEN_TRIGGERS - time.time() % _BETWEEN_TRIGGERS


def wide(kafka: str, folder: Path, *, tables: int = 200, active: int = 5, seconds: int = 120) -> Rounds:
    """`active` tables out of many change in each second, against as many tables in all."""
    found = Rounds("wide")
    for name, size in (("few", active), ("all", tables)):
        steady = Steady(kafka, folder / name, f"wide{size}", size, active, 20 * active)
        found.add(name, steady.play(seconds))
        found.more[name] = {"tables": size, **steady.as_dict()}
    return found


def freshness(kafka: str, folder: Path, *, tables: int = 20, per_second: int = 500, seconds: int = 600) -> Rounds:
    """A steady stream of changes over all tables: how old a change is when it is committed."""
    found = Rounds("freshness")
    steady = Steady(kafka, folder, "fresh", tables, tables, per_second)
    found.add("service", steady.play(seconds))
    found.more["service"] = {"tables": tables, "changes_per_second": per_second, **steady.as_dict()}
    return found


def beside(kafka: str, folder: Path, *, active: int = 5, seconds: int = 90, rows: int = 400_000) -> Rounds:
    """A few changes a second of 20 and of 200 tables, alone, and while another table is onboarded and filled with many
    rows: how old a change is when it is committed."""
    found = Rounds("beside")
    bulk = Sources(kafka, "large", 1)
    bulk.snapshot(rows)
    for name, tables, is_beside in (("20", 20, False), ("20+1", 20, True), ("200", 200, False), ("200+1", 200, True)):
        steady = Steady(kafka, folder / name, f"beside{name.replace('+', 'x')}", tables, active, 20 * active)
        found.add(name, steady.play(seconds, bulk if is_beside else None))
        found.more[name] = {"tables": tables, "rows_beside": rows if is_beside else 0, **steady.as_dict()}
    return found


class Steady:
    """The service, running, while `active` of its tables change in each second, `per_second` changes in all."""

    def __init__(self, kafka: str, folder: Path, schema: str, tables: int, active: int, per_second: int) -> None:
        self._came = Sources(kafka, schema, tables, now=True)
        self._folder = folder
        self._active = active
        self._per_second = per_second
        self._schema = schema
        self._config = self._write_config(schema)
        self._lake = folder / "lake" / schema
        self._sent: dict[str, list[tuple[int, float]]] = {name: [] for name in self._came.sources}
        self._fresh: list[float] = []
        self._behind = 0

    def _write_config(self, *schemas: str) -> Path:
        rules = [{"match": f"{schema}.*"} for schema in schemas]
        return write_config(self._came.kafka, self._folder, tables=rules, trigger={"interval": "1s"})

    def play(self, seconds: int, beside: Sources | None = None) -> Cost:
        """What the service costs while the changes come, its start and the first fill aside. `beside`: tables with
        records that are onboarded when the first change comes."""
        self._came.snapshot(50)
        ends = self._came.ends()
        with running(self._config) as service:
            _wait_for(self._lake, ends)
            before = service.cost()
            if beside is not None:
                self._write_config(self._schema, beside.schema)
            self._send(ends, seconds)
            after = service.cost()
            if beside is not None:
                assert not _behind(self._folder / "lake" / beside.schema, beside.ends())
                beside.check((self._folder / "lake" / beside.schema).joinpath)
            began = time.monotonic()
            _wait_for(self._lake, ends)
            self._behind = round(time.monotonic() - began)
        self._came.check(self._lake.joinpath)
        self._fresh = sorted(self._measured())
        return Cost(after.wall - before.wall, after.cpu - before.cpu, after.memory)

    def as_dict(self) -> dict[str, Any]:
        """Freshness in seconds: from when a change is made to the commit that has it."""
        cuts = statistics.quantiles(self._fresh, n=100)
        return {
            "changes": len(self._fresh),
            "freshness_s": {f"p{p}": round(cuts[p - 1], 2) for p in (50, 95, 99)},
            "seconds_behind_at_the_end": self._behind,
        }

    def _send(self, ends: dict[str, int], seconds: int) -> None:
        some = random.Random(1)
        names = list(self._sent)
        each = self._per_second // self._active
        began = time.monotonic()
        for number in count(1):
            chosen = some.sample(names, self._active)
            at = time.time()
            self._came.change(chosen, each, only_updates=True)
            for name in chosen:
                ends[name] += each
                self._sent[name].append((ends[name], at))
            if number >= seconds:
                return
            time.sleep(max(0.0, began + number - time.monotonic()))

    def _measured(self) -> list[float]:
        ages = []
        for name, sent in self._sent.items():
            offsets, times = _commits(self._lake / name)
            for end, at in sent:
                # All changes of one second and table are made at once; the last of them is the last to be committed.
                ages += [times[bisect_left(offsets, end)] - at] * (self._per_second // self._active)
        return ages


def _wait_for(lake: Path, ends: Mapping[str, int], *, look_every: float = 1) -> None:
    """Until every table has what its topic has up to these ends."""
    deadline = time.monotonic() + _PATIENCE
    left = dict(ends)
    while left := _behind(lake, left):
        if time.monotonic() > deadline:
            raise TimeoutError(f"{len(left)} tables in {lake} are behind; see the service's log")
        time.sleep(look_every)


def _behind(lake: Path, ends: Mapping[str, int]) -> dict[str, int]:
    """The tables that do not have what their topics have up to these ends."""
    return {name: end for name, end in ends.items() if _commits(lake / name)[0][-1:] < [end]}


def _commits(table: Path) -> tuple[list[int], list[float]]:
    """Of each commit of the service the next offset, and the time of the commit in seconds."""
    offsets, times = [], []
    for file in sorted((table / "_delta_log").glob("*.json")):
        for line in file.read_text(encoding="utf-8").splitlines():
            result = json.loads(line).get("commitInfo", {})
            record = json.loads(result.get("userMetadata") or "{}")
            if after := record.get("distributary", record).get("next"):
                offsets.append(max(after.values()))
                times.append(file.stat().st_mtime)
    return offsets, times
