"""Two drivers that have the same table at once: what one of them has applied, the other one does not apply again."""

from __future__ import annotations

import pytest
from tests.support.changes import INT, TEXT, Row, Topic, key, row
from tests.support.kafka import Record, end_offsets, produce
from tests.support.spark import Bench

from distributary import failpoints
from distributary.errors import TransientError

OLD: dict[str, Row] = {"id": INT, "v": TEXT}
NEW: dict[str, Row] = {**OLD, "more": INT}


def records(topic: Topic) -> list[Record]:
    """A row; the column is added, and a row has it; both rows are changed."""
    topic.with_schema(topic.change("c", key(1), row(1, "a"), at=1), OLD)
    topic.with_schema(topic.change("c", key(2), row(2, "b", more=5), at=2), NEW)
    topic.with_schema(topic.change("u", key(1), row(1, "c", more=6), at=3), NEW)
    topic.with_schema(topic.change("d", key(2), at=4), NEW)
    return topic.records


@pytest.mark.parametrize("mode", ["upsert", "history", "append"])
def test_6_1_a_batch_is_refused_where_another_driver_applied_records_while_its_columns_changed(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, mode: str
) -> None:
    bench.rule = {"mode": mode}
    first, *rest = records(Topic(bench.create().topic))
    worker, other = bench.take([first]), bench.worker()
    produce(bench.kafka, rest)
    for one in (worker, other):
        one.set_target(end_offsets(bench.kafka, bench.topic))
    passing = failpoints.passing

    def let_the_other_one_go_first(point: str, table: str = "") -> None:
        if point == "after-schema-change":
            monkeypatch.setattr(failpoints, "passing", passing)
            while other.has_to_step():
                other.step()
        passing(point, table)

    monkeypatch.setattr(failpoints, "passing", let_the_other_one_go_first)
    with pytest.raises(TransientError):
        worker.step()
    while worker.has_to_step():
        worker.step()
    found = bench.rows("id", "v", "more")
    if mode == "upsert":
        assert found == [(1, "c", 6)]
    elif mode == "history":
        assert found == [(1, "a", None), (1, "c", 6), (2, "b", 5)]
    else:
        assert [one[0] for one in found] == [1, 1, 2, 2]
