"""Contenders in turns of one run, A B A B, and what came out: medians, and ratios of what was measured side by side."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import click
from tests.benchmarks.separate_process import Cost


@dataclass
class Rounds:
    """What one workload cost each contender, round by round."""

    workload: str
    costs: dict[str, list[Cost]] = field(default_factory=dict)
    more: dict[str, Any] = field(default_factory=dict)

    def add(self, name: str, cost: Cost) -> None:
        """One contender's next round."""
        self.costs.setdefault(name, []).append(cost)
        click.echo(f"{self.workload:>12}  {name:<10} {cost.wall:8.2f} s  {cost.cpu:8.2f} CPU s  {cost.memory:6d} MB")

    def ratio(self, name: str, to: str) -> float:
        """The median of the rounds' ratios of wall time."""
        pairs = zip(self.costs[name], self.costs[to], strict=True)
        return statistics.median(one.wall / other.wall for one, other in pairs)

    def as_dict(self) -> dict[str, Any]:
        """As it stands in the results: medians of each contender and its rounds' times, ratios to each other one."""
        names = list(self.costs)
        return {
            "contenders": {
                name: {
                    "rounds": len(costs),
                    "walls_s": [round(c.wall, 2) for c in costs],
                    "wall_s": _median(c.wall for c in costs),
                    "cpu_s": _median(c.cpu for c in costs),
                    "memory_mb": max(c.memory for c in costs),
                }
                for name, costs in self.costs.items()
            },
            "times": {
                f"{one}/{other}": round(self.ratio(one, other), 3)
                for one in names
                for other in names
                if one != other and len(self.costs[one]) == len(self.costs[other])
            },
            **self.more,
        }


def in_turns(workload: str, names: Sequence[str], rounds: int, play: Callable[[str, int], Cost]) -> Rounds:
    """`play(contender, round)` for each contender in each round."""
    found = Rounds(workload)
    for number in range(rounds):
        for name in names:
            found.add(name, play(name, number))
    return found


def _median(values: Iterable[float]) -> float:
    return round(statistics.median(values), 3)


ScriptedConnection = Mapping[str, Any]
