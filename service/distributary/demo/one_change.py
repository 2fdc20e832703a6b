"""One change of the demo, from its source to the lake."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from distributary.demo.comparison import Comparison, same
from distributary.demo.record import Record, Row

_SHOWN = 3  # columns beside the key


@dataclass(frozen=True)
class OneChange:
    """An update that wrote the current row of its key. `columns` are the columns to show, the key's first; `before` and
    `after` are their values in the event of `topic`; `row` is the row in the lake."""

    table: str
    topic: str
    columns: tuple[str, ...]
    before: Row
    after: Row
    row: Row

    @property
    def event(self) -> str:
        """The event's value, without the columns that are not shown."""
        payload = {"op": "u", "before": self._shown(self.before), "after": self._shown(self.after)}
        return json.dumps(payload, ensure_ascii=False)

    def _shown(self, row: Row) -> dict[str, Any]:
        return {name: row[name] for name in self.columns}


def one_change(records: Iterable[Record], comparisons: Sequence[Comparison]) -> OneChange | None:
    """The last update that is its key's last record and of which a change can be shown; None if there is none.

    Only columns are shown whose values stand in the event as they do in the table: a decimal is bytes there.
    """
    newest: dict[tuple[str, bytes | None], Record] = {(record.topic, record.key): record for record in records}
    by_topic = {record.topic: _of_topic(record.topic, comparisons) for record in newest.values()}
    for record in reversed(newest.values()):
        comparison = by_topic[record.topic]
        if comparison is not None and record.value is not None:
            shown = _shown_change(record, json.loads(record.value)["payload"], comparison)
            if shown is not None:
                return shown
    return None


def _of_topic(topic: str, comparisons: Sequence[Comparison]) -> Comparison | None:
    return next((comparison for comparison in comparisons if topic.endswith(f".{comparison.truth.table}")), None)


def _shown_change(record: Record, payload: dict[str, Any], comparison: Comparison) -> OneChange | None:
    before, after, key = payload.get("before"), payload.get("after"), comparison.truth.key
    if payload["op"] != "u" or before is None or after is None:
        return None
    row = comparison.lake.get(tuple(after[name] for name in key))
    if row is None:
        return None
    plain = [name for name in comparison.truth.columns if name not in key and same(after[name], row.get(name))]
    changed = [name for name in plain if before[name] != after[name]]
    if not changed:
        return None
    columns = (*key, *[*changed, *(name for name in plain if name not in changed)][:_SHOWN])
    return OneChange(comparison.truth.table, record.topic, columns, before, after, row)
