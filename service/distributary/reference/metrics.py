"""docs/metrics.md: every metric that the service exposes, from the catalogue."""

from __future__ import annotations

from distributary.observe.metric import Kind
from distributary.observe.metrics import CATALOGUE, CHANGES, OPERATIONS, PHASES, PROCESSES, STAGES, TASKS

_HEAD = """\
# Metrics

What `/metrics` has, in Prometheus' text format. This page is made from the catalogue in the code (`make docs` writes
it anew); [monitoring.md](monitoring.md) says how to use it.

Counters over all runs come from the table's own progress record and continue after a restart; those since the start
begin at 0. A gauge whose value is not known is absent.

| metric | type | labels | unit | what it is |
| --- | --- | --- | --- | --- |"""


def as_markdown() -> str:
    """The page."""
    lines = [_HEAD]
    for metric in CATALOGUE:
        names = metric.name if metric.kind in (Kind.SUMMARY, Kind.HISTOGRAM) else metric.series[0]
        labels = ", ".join(f"`{label}`" for label in metric.labels)
        lines.append(f"| `{names}` | {metric.kind.value} | {labels} | {metric.unit} | {metric.help} |")
    told = " and ".join(f"`{prefix}_process_…` are of {what}" for prefix, what in PROCESSES.items())
    lines += ["", f"{told}; the latter are there where the service has started it itself."]
    lines += ["", "| label | values |", "| --- | --- |"]
    lines.append("| `table` | `<schema>.<table>`; of maintenance `_quarantine`, too |")
    lines.append("| `state` | `starting`, `running`, `catching_up`, `retrying`, `paused`, `halted` |")
    lines.append(f"| `op` | {', '.join(f'`{op}`' for op in OPERATIONS)} |")
    lines.append(f"| `change` | {', '.join(f'`{change}`' for change in CHANGES)} |")
    lines.append(f"| `phase` | {'; '.join(f'`{phase}`: {what}' for phase, what in PHASES.items())} |")
    lines.append(f"| `stage` | {'; '.join(f'`{stage}`: {what}' for stage, what in STAGES.items())} |")
    lines.append(f"| `task` | {'; '.join(f'`{task}`: {what}' for task, what in TASKS.items())} |")
    lines.append("| `reason` | the reasons of the quarantine table |")
    return "\n".join(lines) + "\n"
