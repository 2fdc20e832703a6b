"""Masked columns: their values are nowhere, and all rules hold for the hashes."""

from __future__ import annotations

import hashlib
import hmac
import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from tests.support.changes import Row, Topic, key
from tests.support.spark import Bench, rows_of

from distributary.cli import main
from distributary.decode.options import DEFAULT_PLACEHOLDER
from distributary.errors import TableHalt
from distributary.halt_actions import ResumeAction
from distributary.ingest.tables import list_tables
from distributary.verify.check import VerifyOptions, report

SALT = "a salt that is longer than a block of SHA-256, which is sixty-four bytes, so that it is hashed"
SECRETS = ["078-05-1120", "219-09-9999", "457-55-5462", "12345678.25"]
MASK = {"ssn": "hash", "phone": "redact"}


MASKED: dict[str, Any] = {
    "rule": {"mask": MASK},
    "options": {"masking": {"salt": "${env:SALT}"}},
    "partitions": 1,
}
pytestmark = pytest.mark.bench(**MASKED)


@pytest.fixture(autouse=True)
def salt(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SALT", SALT)


def hashed(value: str) -> str:
    return hmac.new(SALT.encode(), value.encode(), hashlib.sha256).hexdigest()


def found_in(folder: Path) -> list[str]:
    """The files that hold a secret, as text or in columns that are not compressed."""
    return [
        f"{secret} in {path.name}"
        for path in folder.rglob("*")
        if path.is_file()
        for secret in SECRETS
        if secret.encode() in path.read_bytes()
    ]


def person(number: int, ssn: Any, phone: Any = "0800") -> Row:
    return {"id": number, "ssn": ssn, "phone": phone}


@pytest.mark.parametrize("mode", ["upsert", "history", "append"])
def test_values_are_hashed_or_redacted_and_null_stays_null(bench: Bench, mode: str) -> None:
    bench.rule = {**bench.rule, "mode": mode}
    topic = Topic(bench.topic)
    topic.change("c", key(1), person(1, SECRETS[0]), at=1)
    topic.change("c", key(2), person(2, SECRETS[0], None), at=2)
    topic.change("c", key(3), person(3, None), at=3)
    worker = bench.take(topic.records)
    topic.change("u", key(3), person(3, SECRETS[1], SECRETS[2]), at=4, before=person(3, None))
    topic.change("u", key(3), person(3, SECRETS[1], "0900"), at=5, before=person(3, SECRETS[1], SECRETS[2]))
    topic.change("d", key(2), at=6, before=person(2, SECRETS[0], None))
    bench.take(topic.records[3:], worker)
    one, three = (1, hashed(SECRETS[0]), "***"), (3, hashed(SECRETS[1]), "***")
    two = (2, hashed(SECRETS[0]), None)
    expected: dict[str, list[tuple[Any, ...]]] = {
        "upsert": [one, three],
        # The last change of 3 leaves the masked row as it was: it opens no version.
        "history": [one, two, (3, None, "***"), three],
        "append": [one, two, two, (3, None, "***"), three, three],
    }
    assert bench.rows("id", "ssn", "phone") == sorted(expected[mode], key=repr)
    assert found_in(bench.folder / "lake") == []


@pytest.mark.parametrize("connector", ["sqlserver", "postgresql"])
def test_a_hashed_key_is_found_by_deletes_tombstones_and_changes_of_the_key(bench: Bench, connector: str) -> None:
    topic = Topic(bench.topic, connector)

    def of(ssn: str) -> Row:
        return {"ssn": ssn}

    first, second, third = SECRETS[:3]
    for index, ssn in enumerate(SECRETS[:3], start=1):
        topic.change("c", of(ssn), {"ssn": ssn, "v": index}, at=index)
    worker = bench.take(topic.records)
    topic.change("u", of(first), {"ssn": first, "v": 10}, at=4)
    topic.change("d", of(second), at=5)
    topic.tombstone(of(second))
    moved = "987-65-4321"
    topic.change("d", of(third), at=6, tx=9, headers={"newkey": of(moved)})
    topic.change("c", of(moved), {"ssn": moved, "v": 30}, at=6, step=2, tx=9, headers={"oldkey": of(third)})
    bench.take(topic.records[3:], worker)
    expected = sorted([(hashed(first), 10), (hashed(moved), 30)])
    assert bench.rows("ssn", "v") == expected
    bench.take(topic.records)  # sent again: nothing comes back
    assert bench.rows("ssn", "v") == expected
    topic.tombstone(of(first))
    bench.take(topic.records[-1:])
    assert bench.rows("ssn", "v") == [(hashed(moved), 30)]
    assert found_in(bench.folder / "lake") == []


def test_a_value_that_was_not_sent_keeps_its_mask(bench: Bench) -> None:
    topic = Topic(bench.topic, "postgresql")
    topic.change("c", key(1), person(1, SECRETS[0]), at=1)
    topic.change("c", key(2), person(2, SECRETS[1]), at=2)
    worker = bench.take(topic.records)
    topic.change("u", key(1), person(1, DEFAULT_PLACEHOLDER, DEFAULT_PLACEHOLDER), at=11)
    topic.change("u", key(2), person(2, SECRETS[2]), at=12)
    topic.change("u", key(2), person(2, DEFAULT_PLACEHOLDER, "1"), at=13)
    bench.take(topic.records[2:], worker)
    assert bench.rows("id", "ssn", "phone") == [(1, hashed(SECRETS[0]), "***"), (2, hashed(SECRETS[2]), "***")]


def schema(**types: Row) -> Row:
    """A Connect schema of envelopes whose rows have these columns."""
    fields = [{"field": name, "optional": True, **kind} for name, kind in types.items()]
    source = {"type": "struct", "field": "source", "fields": []}
    return {
        "type": "struct",
        "fields": [
            {"type": "struct", "field": "before", "optional": True, "fields": fields},
            {"type": "struct", "field": "after", "optional": True, "fields": fields},
            source,
            {"type": "string", "field": "op"},
        ],
    }


def test_values_of_every_type_are_hashed_as_their_text(bench: Bench) -> None:
    decimal = {"scale": "2", "connect.decimal.precision": "10"}
    types: dict[str, Row] = {
        "id": {"type": "int64"},
        "n": {"type": "int32"},
        "d": {"type": "bytes", "name": "org.apache.kafka.connect.data.Decimal", "parameters": decimal},
        "day": {"type": "int32", "name": "io.debezium.time.Date"},
        "b": {"type": "bytes"},
        "list": {"type": "array", "items": {"type": "int32"}},
    }
    bench.rule = {"mask": dict.fromkeys(["n", "d", "day", "b", "list"], "hash")}
    change = json.loads(
        Topic("")
        .change("c", None, {"id": 1, "n": 42, "d": "SZYCkQ==", "day": 20484, "b": "AP8=", "list": [1, 2]}, at=1)
        .value
        or b""
    )
    topic = Topic(bench.topic)
    value = json.dumps({"schema": schema(**types), "payload": change}, separators=(",", ":"))
    topic.add(key(1), value.encode())
    bench.take(topic.records)
    texts = ["42", "12345678.25", "2026-01-31", "00ff", "[1,2]"]
    assert bench.rows("id", "n", "d", "day", "b", "list") == [(1, *map(hashed, texts))]


def quarantined(bench: Bench) -> list[tuple[Any, ...]]:
    return rows_of(bench.quarantine, "offset", "reason", "key", "value")


def test_the_quarantine_has_none_of_the_values_and_records_are_replayed_from_kafka(bench: Bench) -> None:
    bench.rule = {"mask": {"ssn": "hash"}, "exclude": ["card"], "columns": {"x": "int"}}
    topic = Topic(bench.topic)
    topic.change("c", key(1), {"id": 1, "ssn": SECRETS[0], "card": SECRETS[1], "x": 1}, at=1)
    escaped = f'a "quote", a \\ and \\"ssn\\": \\" {"x" * 20_000}'
    topic.change("c", key(2), {"id": 2, "ssn": f'\\"{SECRETS[0]}', "card": 7.5, "x": escaped}, at=2)
    topic.change("c", key(3), {"id": 3, "ssn": SECRETS[0], "card": [SECRETS[1]], "x": "no number"}, at=3)
    topic.add(key(4), f'{{"ssn": "{SECRETS[2]}", "cut'.encode())
    topic.add(key(5), f'{{"s\\u0073n": "{SECRETS[2]}", "op": "c"}}'.encode())
    topic.add(None, f'"{SECRETS[2]}"'.encode())
    bench.take(topic.records)
    assert bench.rows("id", "ssn", "x") == [(1, hashed(SECRETS[0]), 1)]
    kept = {offset: (reason, key_, value) for offset, reason, key_, value in quarantined(bench)}
    assert sorted(kept) == [1, 2, 3, 4, 5]
    assert json.loads(kept[1][2])["after"] == {"id": 2, "ssn": None, "card": None, "x": escaped}
    assert [kept[offset][2] for offset in (2, 3, 4, 5)] == [None] * 4
    assert [json.loads(kept[offset][1]) for offset in (1, 2, 3, 4)] == [key(2), key(3), key(4), key(5)]
    assert found_in(bench.folder / "lake") == []
    shown = CliRunner().invoke(
        main, ["quarantine", "show", "-c", str(bench.folder / "config.yaml"), f"{bench.topic}:0:1"]
    )
    assert "__distributary.redacted" in shown.output
    assert not [secret for secret in SECRETS if secret in shown.output]

    bench.rule = {**bench.rule, "columns": {}, "exclude": ["card", "x"]}
    worker = bench.worker()
    worker.resume(ResumeAction.REPLAY)
    bench.take([], worker)
    expected = [(1, hashed(SECRETS[0])), (2, hashed(f'\\"{SECRETS[0]}')), (3, hashed(SECRETS[0]))]
    assert bench.rows("id", "ssn") == expected
    assert found_in(bench.folder / "lake") == []


def test_another_mask_or_salt_halts_a_table_that_has_rows_until_it_is_filled_again(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = Topic(bench.topic)
    topic.change("c", key(1), person(1, SECRETS[0]), at=1)
    masked = bench.rule
    bench.rule = {}
    bench.take(topic.records)
    topic.change("u", key(1), person(1, SECRETS[1]), at=2)
    bench.rule = masked
    with pytest.raises(TableHalt, match="mask-changed") as halt:
        bench.take(topic.records[1:])
    assert "ssn, phone" in halt.value.message
    worker = bench.worker()
    worker.resume(ResumeAction.REBUILD)
    bench.take([], worker)
    assert bench.rows("id", "ssn", "phone") == [(1, hashed(SECRETS[1]), "***")]
    topic.change("u", key(1), person(1, SECRETS[2]), at=3)
    monkeypatch.setenv("SALT", "another")
    with pytest.raises(TableHalt, match="mask-changed"):
        bench.take(topic.records[2:])
    monkeypatch.setenv("SALT", SALT)
    bench.rule = {"mask": {**MASK, "not_there": "hash"}}  # no row has it
    bench.take([])
    assert bench.rows("id", "ssn", "phone") == [(1, hashed(SECRETS[2]), "***")]


@pytest.mark.parametrize("restarted", [True, False])
def test_a_masked_column_that_the_source_renames_is_masked_under_its_new_name_or_halts(
    bench: Bench, restarted: bool
) -> None:
    """Be the rename in the config beforehand or after the halt that it is for."""
    topic = Topic(bench.topic)
    rule = {"mask": MASK, "rename": {"social": "ssn"}}
    bench.rule = {"mask": MASK} if restarted else rule
    topic.change("c", key(1), person(1, SECRETS[0]), at=1)
    worker = bench.take(topic.records)
    bench.rule = rule
    topic.change("u", key(1), {"id": 1, "social": SECRETS[1], "phone": "0800"}, at=2)
    with pytest.raises(TableHalt, match="mask ssn differently"):
        bench.take(topic.records[1:], None if restarted else worker)
    assert bench.rows("id", "ssn") == [(1, hashed(SECRETS[0]))]
    assert found_in(bench.folder / "lake") == []
    bench.rule = {"mask": {**MASK, "social": "hash"}, "rename": {"social": "ssn"}}
    bench.take([])
    assert bench.rows("id", "ssn", "phone") == [(1, hashed(SECRETS[1]), "***")]
    topic.change("u", key(1), {"id": 1, "social": SECRETS[2], "phone": "0800"}, at=3)
    bench.take(topic.records[2:])
    assert bench.rows("id", "ssn", "phone") == [(1, hashed(SECRETS[2]), "***")]


def test_a_hashed_key_whose_values_are_spelled_otherwise_now_halts_the_table(bench: Bench) -> None:
    """Its rows would not be found any more: updates would add rows, and deletes take none."""
    bench.rule = {"mask": {"id": "hash"}}
    topic = Topic(bench.topic)
    topic.change("c", key(1), {"id": 1, "v": 1}, at=1)
    topic.change("d", key(1), at=2)
    bench.take(topic.records[:1])
    bench.rule = {"mask": {"id": "hash"}, "columns": {"id": "double"}}
    with pytest.raises(TableHalt, match="equal values would get different hashes"):
        bench.take(topic.records[1:])
    bench.rule = {"mask": {"id": "hash"}}
    bench.take([])
    assert bench.rows("id") == []


def test_a_key_that_is_redacted_halts_the_table(bench: Bench) -> None:
    bench.rule = {"mask": {"id": "redact"}}
    topic = Topic(bench.topic)
    topic.change("c", key(1), person(1, SECRETS[0]), at=1)
    with pytest.raises(TableHalt, match="key-redacted"):
        bench.take(topic.records)


@pytest.mark.bench(on_kafka=True, **MASKED)
def test_verify_compares_what_is_masked(bench: Bench) -> None:
    topic = Topic(bench.topic)
    topic.change("c", key(1), person(1, SECRETS[0]), at=1)
    topic.change("c", key(2), person(2, SECRETS[1]), at=2)
    bench.take(topic.records)
    bench.session.sql(f"UPDATE delta.`{bench.table}` SET ssn = 'spoilt' WHERE id = 2")
    config = bench.config()
    broker = bench.client(config)
    [one] = list_tables(config, broker)
    result = json.dumps(report(config, one, bench.session, broker, VerifyOptions(), lambda _doing: None).as_json())
    assert hashed(SECRETS[1]) in result
    assert "spoilt" in result
    assert not [secret for secret in SECRETS if secret in result]
