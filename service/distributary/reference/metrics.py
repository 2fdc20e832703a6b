"""docs/metrics.md: every metric that the service exposes, from the catalogue."""

from __future__ import annotations

from distributary.observe.metric import Kind
from distributary.observe.metrics import CATALOGUE, CHANGES, OPERATIONS, PHASES, PROCESSES, STAGES, TASKS
from distributary.table_state import TableState

_HEAD = """\
# Metrics

Every metric of `/metrics`, in Prometheus' text format. `make docs` writes this page from the code.
[alerts.md](alerts.md) has the scrape job, alert rules and a dashboard.

Counters over all runs are stored in the table's progress record and continue after a restart. Counters since the
start of the service begin at 0. A gauge without a known value is left out.

| metric | type | labels | unit | meaning |
| --- | --- | --- | --- | --- |"""


def as_markdown() -> str:
    """The page."""
    lines = [_HEAD]
    for metric in CATALOGUE:
        names = metric.name if metric.kind in (Kind.SUMMARY, Kind.HISTOGRAM) else metric.series[0]
        labels = ", ".join(f"`{label}`" for label in metric.labels)
        lines.append(f"| `{names}` | {metric.kind.value} | {labels} | {metric.unit} | {metric.help} |")
    lines += ["", *(f"- `{prefix}_process_…`: {process}." for prefix, process in PROCESSES.items())]
    lines += ["", "| label | values |", "| --- | --- |"]
    lines.append("| `table` | `<schema>.<table>`; metrics of maintenance have `_quarantine`, too |")
    lines.append(
        f"| `state` | {', '.join(f'`{state.value}`' for state in TableState)}; `new` only in `distributary status` |"
    )
    lines.append(f"| `op` | {', '.join(f'`{op}`' for op in OPERATIONS)} |")
    lines.append(f"| `change` | {', '.join(f'`{change}`' for change in CHANGES)} |")
    lines.append(f"| `phase` | {'; '.join(f'`{phase}`: {what}' for phase, what in PHASES.items())} |")
    lines.append(f"| `stage` | {'; '.join(f'`{stage}`: {what}' for stage, what in STAGES.items())} |")
    lines.append(f"| `task` | {'; '.join(f'`{task}`: {what}' for task, what in TASKS.items())} |")
    lines.append("| `reason` | the reasons in [errors.md](errors.md#records-in-quarantine) |")
    return "\n".join(lines) + "\n"
