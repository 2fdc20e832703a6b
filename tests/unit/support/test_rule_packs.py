"""Cases of a pack do not affect each other, and a case that fails shows its name and its records."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest
from tests.support.changes import key, row
from tests.support.rule_cases import KEYS, PARTITIONS, Case, Settings
from tests.support.rule_packs import Pack

SETTINGS = Settings("postgresql", (), (("id", "bigint"), ("v", "string")))


def test_a_case_has_keys_and_partitions_of_its_own_and_its_rows_come_back_with_its_own_keys() -> None:
    case = Case(SETTINGS, 2)
    topic = case.topic()
    topic.change("u", key(1), row(1, "a"), at=1, partition=1, before=row(1, "b"))
    topic.move(1, 2, row(2, "a"), at=2)
    topic.tombstone(key(1))
    case.take(topic.records)
    [records] = [step.records for step in case.steps]
    assert [json.loads(record.key or b"")["id"] - 2 * KEYS for record in records] == [1, 1, 2, 1]
    assert [(record.partition or 0) - 2 * PARTITIONS for record in records] == [1, 0, 0, 0]
    values = [json.loads(record.value or b"{}") for record in records]
    assert [image["id"] - 2 * KEYS for image in (values[0]["before"], values[0]["after"], values[2]["after"])] == [
        1,
        1,
        2,
    ]
    headers = [json.loads(value or b"")["id"] - 2 * KEYS for record in records for _, value in record.headers]
    assert headers == [2, 1]
    table = pa.table({"id": [KEYS + 5, 2 * KEYS + 5, 3 * KEYS], "v": ["other", "own", "other"]})
    assert case.found(table, ("id", "v")) == [(5, "own")]


def test_records_are_cut_into_batches_of_so_many() -> None:
    case = Case(SETTINGS, 0)
    topic = case.topic()
    for index in range(5):
        topic.change("c", key(index), row(index, "a"), at=index)
    case.take(topic.records, at_most=2)
    assert [len(step.records) for step in case.steps] == [2, 2, 1]


def tell(case: Case) -> None:
    topic = case.topic()
    topic.change("c", key(1), row(1, "sent"), at=1)
    case.take(topic.records)
    case.expect([(1, "expected")])


def test_a_case_that_fails_names_itself_and_its_records(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    pack = Pack(SETTINGS)
    pack.add("test_of_that_name", tell)

    def run(self: Pack, _session: object, _folder: Path) -> None:
        self._cases = {"test_of_that_name": Case(SETTINGS, 0)}
        tell(self._cases["test_of_that_name"])
        self._after = [pa.table({"id": [1], "v": ["found"]})]

    monkeypatch.setattr(Pack, "run_steps", run)
    with pytest.raises(AssertionError) as failed:
        pack.check("test_of_that_name", None, lambda: tmp_path)  # type: ignore[arg-type]
    result = str(failed.value)
    assert "test_of_that_name after step 0" in result
    assert "expected [(1, 'expected')]" in result
    assert "found    [(1, 'found')]" in result
    assert '"v": "sent"' in result


def test_a_pack_that_can_not_run_fails_all_its_cases_and_runs_once(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    pack, runs = Pack(SETTINGS), []

    def run(*_: object) -> None:
        runs.append(1)
        raise OSError("no disk")

    monkeypatch.setattr(Pack, "run_steps", run)
    pack.add("one", tell)
    pack.add("other", tell)
    with pytest.raises(OSError, match="no disk"):
        pack.check("one", None, lambda: tmp_path)  # type: ignore[arg-type]
    with pytest.raises(AssertionError, match="did not run to its end: no disk"):
        pack.check("other", None, lambda: tmp_path)  # type: ignore[arg-type]
    assert runs == [1]
    with pytest.raises(ValueError, match="two cases one"):
        pack.add("one", tell)
