"""Rolling back: the older version continues the tables of the newer one, and the newer one its own."""

from __future__ import annotations

import json

import pytest
from tests.support.changes import Topic
from tests.support.spark import Bench

from distributary.progress.record import Progress
from distributary.storage.lake_files import newest_record


def test_an_older_version_goes_on_with_a_newer_one_s_table_and_keeps_its_record(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.create()
    topic = Topic(bench.topic)
    to_json = Progress.to_json

    def newer(self: Progress) -> str:
        record = json.loads(to_json(self))
        record["distributary"]["watermark"] = {"0": "later"}
        return json.dumps(record)

    monkeypatch.setattr(Progress, "to_json", newer)
    topic.change("c", {"id": 1}, {"id": 1}, at=1)
    bench.take(topic.records)
    monkeypatch.setattr(Progress, "to_json", to_json)

    topic.change("c", {"id": 2}, {"id": 2}, at=2)
    bench.take(topic.records[1:])
    assert bench.rows("id") == [(1,), (2,)]
    newest = newest_record(str(bench.table))
    assert newest is not None
    assert newest.progress.model_extra == {"watermark": {"0": "later"}}
    assert dict(newest.progress.next) == {0: 2}
