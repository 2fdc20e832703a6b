"""The plan of one table: what `run` would do with it, as a value and as JSON."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from distributary.former_names import with_former_names
from distributary.preflight.plan_warning import PlanWarning

CREATE, ALTER, CONTINUE, UP_TO_DATE, WAIT, HALT = "create", "alter", "continue", "up_to_date", "wait", "halt"


@dataclass(frozen=True)
class TablePlan:
    """What `run` would do with one table.

    - `entry`: the `match` of the config entry that applies; `where`: that entry's file and line.
    - `action`: create, alter (columns are added or widened, properties or clustering set, then the table continues),
      continue, up_to_date, wait (the topic has no record yet) or halt.
    - `form`: envelope or rows; None if no record shows it.
    - `columns`: the table's columns after the action, name to Spark type; `added`: the new ones; `widened`: those that
      get a wider type; `widened_before`: the types that columns had before they were widened, the first one first.
    - `layout`: the one in force; `properties`: table properties to be set; `partitioned_by`, `clustered_by`: the new
      columns of the layout, empty if unchanged.
    - `start`, `end`: per partition, the offsets between which records are to be applied; `records`: their number.
    - `by_value`: columns whose types are inferred from values; `possible_types`: other possible types of these columns;
      `untyped`: columns with nothing but nulls so far. All three by the source's names.
    - `error`: `code`, `message` and `fix` of a table that would halt.
    """

    table: str
    topic: str
    path: str
    entry: str
    where: str
    mode: str
    action: str = WAIT
    layout: str = "auto"
    connector: str | None = None
    form: str | None = None
    key: tuple[str, ...] = ()
    columns: Mapping[str, str] = field(default_factory=dict)
    added: Mapping[str, str] = field(default_factory=dict)
    widened: Mapping[str, str] = field(default_factory=dict)
    widened_before: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    properties: Mapping[str, str] = field(default_factory=dict)
    partitioned_by: tuple[str, ...] = ()
    clustered_by: tuple[str, ...] = ()
    by_value: Mapping[str, str] = field(default_factory=dict)
    possible_types: Mapping[str, str] = field(default_factory=dict)
    untyped: tuple[str, ...] = ()
    start: Mapping[int, int] = field(default_factory=dict)
    end: Mapping[int, int] = field(default_factory=dict)
    records: int = 0
    warnings: tuple[PlanWarning, ...] = ()
    error: Mapping[str, str] | None = None

    def as_json(self) -> dict[str, Any]:
        """The plan in JSON's types."""
        named = {
            name: getattr(self, name)
            for name in ("table", "topic", "path", "entry", "where", "mode", "action", "layout")
        }
        partitions = [
            {"partition": p, "start": self.start.get(p, 0), "end": end} for p, end in sorted(self.end.items())
        ]
        fields = {
            **named,
            "connector": self.connector,
            "form": self.form,
            "key": list(self.key),
            "columns": dict(self.columns),
            "added": dict(self.added),
            "widened": dict(self.widened),
            "widened_before": {name: list(types) for name, types in self.widened_before.items()},
            "properties": dict(self.properties),
            "partitioned_by": list(self.partitioned_by),
            "clustered_by": list(self.clustered_by),
            "by_value": dict(self.by_value),
            "possible_types": dict(self.possible_types),
            "untyped": list(self.untyped),
            "partitions": partitions,
            "records": self.records,
            "warnings": [warning.as_json() for warning in self.warnings],
            "error": dict(self.error) if self.error is not None else None,
        }
        return with_former_names(fields)
