"""The progress record."""

from __future__ import annotations

import json

import pytest

from distributary.errors import TableHalt
from distributary.merge.progress import Last, Progress, first_progress, user_metadata


def test_a_record_survives_the_commit_it_travels_in() -> None:
    first = first_progress("p.s.t", "topic-id", "sqlserver", "upsert", ("id",))
    record = first.next_commit(next={0: 7}, last={0: Last(position="000:a", ts_ms=5, deleted_key=-3)}, recent=((7, 1),))
    line = json.dumps({"commitInfo": {"operation": "MERGE", "userMetadata": record.to_json()}})
    assert Progress.from_json(user_metadata(line)) == record


def test_each_commit_has_a_number_and_an_identity_of_its_own() -> None:
    first = first_progress("p.s.t", "topic-id", "sqlserver", "upsert", ("id",)).next_commit()
    second = first.next_commit()
    assert (first.sequence, second.sequence) == (1, 2)
    assert first.commit != second.commit


@pytest.mark.parametrize("text", [None, "", "a note of somebody", '{"other": 1}', '{"distributary', '["distributary"]'])
def test_what_others_write_into_a_commit_is_none_of_ours(text: str | None) -> None:
    assert Progress.from_json(text) is None


def test_a_record_of_a_newer_version_halts_instead_of_being_guessed() -> None:
    with pytest.raises(TableHalt, match="progress-unreadable"):
        Progress.from_json('{"distributary": {"format": 9}}')
