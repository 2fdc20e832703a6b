"""How long it takes beside what people copy, and beside a plain append.

    make bench                          # all of it, on a machine that does nothing else
    make bench-quick                    # the same at a tenth of the size, some workloads, one round
    python -m tests.benchmarks bulk churn --rounds 5

Every contender runs in a process of its own, in turns with the others in one run; every table that comes out is
compared with what the source has. Results go to tests/benchmarks/results/<workload>.json, beside them is told how they
were the last time.
"""

from __future__ import annotations

import json
import os
import platform
import shutil
import tempfile
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path

import click
from rich.console import Console
from rich.table import Table
from tests.benchmarks import backlog, forms, large, maintenance, many_tables, one_table, peer, stores
from tests.benchmarks.one_table import QUICK, Sizes, Stage
from tests.benchmarks.rounds import Rounds, ScriptedConnection
from tests.support.kafka import running_kafka

RESULTS = Path(__file__).parent / "results"
_OF_ONE_TABLE: dict[str, Callable[[Stage], Rounds]] = {
    "bulk": one_table.bulk,
    "bulk-cut": one_table.bulk_cut,
    "churn": one_table.churn,
    "churn-cut": one_table.churn_cut,
    "trickle": one_table.trickle,
}
_OF_THEIR_OWN: dict[str, Callable[[str, Path], Rounds]] = {
    "many": many_tables.many,
    "many-running": many_tables.many_running,
    "wide": many_tables.wide,
    "freshness": many_tables.freshness,
    "beside": many_tables.beside,
    "large": large.large,
    "decode": forms.decode,
    "peer": peer.peer,
    "maintenance": maintenance.maintenance,
    "backlog": backlog.backlog,
    "stores": stores.stores,
}
_QUICK = ("bulk", "churn", "trickle")


@click.command(help=__doc__)
@click.argument("workloads", nargs=-1, type=click.Choice([*_OF_ONE_TABLE, *_OF_THEIR_OWN]))
@click.option(
    "--quick", is_flag=True, help="A tenth of the size, one round, of the workloads of one table; nothing is recorded."
)
@click.option("--rounds", type=int, help="Of each contender, in the workloads of one table.")
@click.option("--batches", type=int, help="Of the trickle.")
@click.option("--results", type=click.Path(path_type=Path), default=RESULTS, show_default=False)
def main(workloads: Sequence[str], *, quick: bool, rounds: int | None, batches: int | None, results: Path) -> None:
    """Runs the workloads and prints what came out."""
    wanted = workloads or (_QUICK if quick else (*_OF_ONE_TABLE, *_OF_THEIR_OWN))
    sizes = QUICK if quick else Sizes()
    sizes = replace(sizes, rounds=rounds or sizes.rounds, batches=batches or sizes.batches)
    folder = Path(tempfile.mkdtemp(prefix="bench"))
    result: dict[str, ScriptedConnection] = {}
    with running_kafka(folder / "kafka") as kafka:
        with ExitStack() as ending:
            stage: Stage | None = None
            for name in (w for w in wanted if w in _OF_ONE_TABLE):
                stage = stage or ending.enter_context(one_table.stage(kafka, folder / "one", sizes))
                result[name] = _told(name, _OF_ONE_TABLE[name](stage), results, record=not quick)
        for name in (w for w in wanted if w in _OF_THEIR_OWN):
            result[name] = _told(name, _OF_THEIR_OWN[name](kafka, folder / name), results, record=not quick)
    shutil.rmtree(folder)
    Console().print(_table(result))


def _told(name: str, found: Rounds, results: Path, *, record: bool) -> ScriptedConnection:
    """What came out of a workload: shown beside the last run's, and recorded at once, as the others may take long."""
    result = found.as_dict()
    click.echo(f"{name}: {json.dumps({k: v for k, v in result.items() if k != 'contenders'})}")
    before = results / f"{name}.json"
    if before.exists():
        was = json.loads(before.read_text(encoding="utf-8"))
        click.echo(f"{name}, on {was['when']}: {json.dumps(was['times'])}")
    if record:
        results.mkdir(exist_ok=True)
        text = json.dumps({"workload": name, "when": _today(), "machine": _machine(), **result}, indent=2)
        before.write_text(text + "\n", encoding="utf-8")
    return result


def _table(result: dict[str, ScriptedConnection]) -> Table:
    table = Table(title="medians; times of the service: how many times as long the others take")
    for column in ("workload", "contender", "wall s", "CPU s", "MB at most", "times of the service"):
        table.add_column(column, justify="left" if column in ("workload", "contender") else "right")
    for name, one in result.items():
        for contender, cost in one["contenders"].items():
            ratio = one["times"].get(f"{contender}/service")
            figures = (cost["wall_s"], cost["cpu_s"], cost["memory_mb"])
            table.add_row(name, contender, *map(str, figures), "" if ratio is None else f"{ratio:.2f}")
    return table


def _machine() -> dict[str, object]:
    memory = round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30)
    return {"cores": os.cpu_count(), "memory_gb": memory, "python": platform.python_version()}


def _today() -> str:
    return datetime.now(timezone.utc).date().isoformat()


if __name__ == "__main__":
    main()
