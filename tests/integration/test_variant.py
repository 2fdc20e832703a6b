"""JSON columns as VARIANT (`columns: {c: variant}`), in every mode.

With them, what stays of columns that can't hold the placeholder where a value was not sent (rule 3.7).
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from datetime import date, datetime, timezone
from typing import Any

import pytest
from tests.support.changes import INT, LONG, TEXT, Row, Topic, key
from tests.support.spark import Bench, rows_of
from tests.support.variants import variant_as_json

from distributary.decode.options import DEFAULT_PLACEHOLDER as NOT_SENT

DOCUMENTS: list[Any] = [{"b": [1, 2.5, None], "a": "ü"}, "text", 7, [], None]
# As the source has them; the last one is JSON's null, not SQL's.
TEXTS = [
    '{"b":[1,2.5,null],"a":"ü"}',
    '"a \\"text\\" with \\\\ and \U0001f600"',
    "[12345678901234567890123,1.50,1e300,-0.001,true,{}]",
    "null",
]
DOC = {"columns": {"doc": "variant"}}
ONE, OTHER = '{"one":[1,{"deep":"x"}]}', '{"other":2.5}'


pytestmark = pytest.mark.bench(rule=DOC)


def document_row(number: int, text: str | None, n: int = 0) -> Row:
    return {"id": number, "n": n, "doc": text}


def parsed(text: str | None) -> Any:
    """The document; None for no text, and for JSON's null."""
    return None if text is None else json.loads(text)


def kept(bench: Bench, *columns: str) -> list[tuple[Any, ...]]:
    """The table's rows: id, n, the document as JSON, and the columns."""
    rows = bench.rows("id", "n", "doc", *columns)
    return sorted(((id_, n, variant_as_json(doc), *more) for id_, n, doc, *more in rows), key=repr)


@pytest.mark.parametrize("mode", ["upsert", "history", "append"])
def test_json_columns_are_kept_as_variants(bench: Bench, mode: str) -> None:
    bench.rule = {**DOC, "mode": mode}
    topic = Topic(bench.create().topic)

    def change(op: str, number: int, document: Any) -> None:
        text = None if document is None else json.dumps(document, ensure_ascii=False)
        topic.change(op, {"id": number}, {"id": number, "doc": text}, at=len(topic.records) + 1)

    for number, document in enumerate(DOCUMENTS):
        change("c", number, document)
    worker = bench.take(topic.records)
    change("u", 0, DOCUMENTS[1])
    change("u", 1, {"new": True})
    change("u", 1, {"new": True})
    topic.change("d", {"id": 2}, at=len(topic.records) + 1)
    topic.change("c", {"id": 9}, {"id": 9, "doc": "{no json"}, at=len(topic.records) + 1)
    bench.take(topic.records[len(DOCUMENTS) :], worker)
    before = [(number, document) for number, document in enumerate(DOCUMENTS)]
    expected = {
        "upsert": [(0, "text"), (1, {"new": True}), *before[3:]],
        "history": [*before, (0, "text"), (1, {"new": True})],
        "append": [*before, (0, "text"), (1, {"new": True}), (1, {"new": True}), (2, None)],
    }
    rows = bench.frame()
    assert dict(rows.dtypes)["doc"] == "variant"
    found = [(row["id"], row["text"]) for row in rows.selectExpr("id", "to_json(doc) AS text").collect()]
    documents = [(number, parsed(text)) for number, text in found]
    assert sorted(documents, key=repr) == sorted(expected[mode], key=repr)
    assert rows_of(bench.quarantine, "offset", "reason") == [(len(topic.records) - 1, "bad-value")]


@pytest.mark.parametrize("connector", ["postgresql", "oracle"])
def test_3_7_documents_that_were_not_sent_stay_exactly_as_they_are(bench: Bench, connector: str) -> None:
    bench.create()
    topic = Topic(bench.topic, connector)
    for number, text in enumerate([*TEXTS, None]):
        topic.change("c", key(number), document_row(number, text), at=number + 1)
    bench.take(topic.records)
    before = kept(bench)
    assert [parsed(text) for _, _, text in before] == [*map(json.loads, TEXTS), None]
    # By a worker that has not met such values yet: there the placeholder is at first a bad value.
    more = Topic(bench.topic, connector)
    for number, _, _ in before:
        more.change("u", key(number), document_row(number, NOT_SENT, 1), at=number + 11)
    worker = bench.take(more.records)
    assert kept(bench) == [(number, 1, text) for number, _, text in before]
    again = Topic(bench.topic, connector)
    for number, _, _ in before:
        again.change("u", key(number), document_row(number, NOT_SENT, 2), at=number + 21)
    bench.take([*more.records, *again.records], worker)
    assert kept(bench) == [(number, 2, text) for number, _, text in before]
    by_spark = sorted(bench.frame().selectExpr("id", "n", "to_json(doc)").collect())
    assert [(*row[:2], parsed(row[2])) for row in by_spark] == [(*row[:2], parsed(row[2])) for row in kept(bench)]
    assert not bench.quarantine.exists()


@pytest.mark.parametrize("first", ["old key", "new key", "together"])
def test_3_4_a_new_key_takes_the_document_from_the_old_one(bench: Bench, first: str) -> None:
    bench.create(partitions=2)
    start = Topic(bench.topic, "postgresql")
    for number in (1, 2):
        start.change("c", key(number), document_row(number, ONE), at=number)
    worker = bench.take(start.records)
    old, new = Topic(bench.topic, "postgresql"), Topic(bench.topic, "postgresql")
    old.change("u", key(2), document_row(2, OTHER), at=10)
    for number in (1, 2):
        old.change("d", key(number), at=20 + number, headers={"newkey": key(number + 10)})
        old.tombstone(key(number))
        moved = document_row(number + 10, NOT_SENT, 1)
        new.change("c", key(number + 10), moved, at=20 + number, headers={"oldkey": key(number)}, partition=1)
    new.change("u", key(12), document_row(12, NOT_SENT, 2), at=50, partition=1)
    parts = {"old key": [old, new], "new key": [new, old], "together": []}[first]
    if not parts:
        bench.take([*old.records, *new.records], worker)
    for part in parts:
        bench.take(part.records, worker)
    expected = [(11, 1, ONE), (12, 2, OTHER)]
    assert kept(bench) == expected
    bench.take([*new.records, *old.records], worker)
    assert kept(bench) == expected
    assert not bench.quarantine.exists()


def test_3_2_a_softly_deleted_row_stays_with_the_document_that_was_not_sent(bench: Bench) -> None:
    bench.rule = {**DOC, "deletes": "soft"}
    bench.create()
    topic = Topic(bench.topic, "postgresql")
    for number in (1, 2):
        topic.change("c", key(number), document_row(number, ONE), at=number)
    worker = bench.take(topic.records)
    more = Topic(bench.topic, "postgresql")
    more.change("u", key(1), document_row(1, NOT_SENT, 1), at=11)
    more.change("d", key(1), at=12)
    more.change("u", key(2), document_row(2, OTHER, 1), at=13)
    more.change("u", key(2), document_row(2, NOT_SENT, 2), at=14)
    bench.take(more.records, worker)
    last = Topic(bench.topic, "postgresql")
    last.change("d", key(2), at=21)
    bench.take(last.records, worker)
    assert kept(bench, "__deleted") == [(1, 1, ONE, True), (2, 2, OTHER, True)]
    assert not bench.quarantine.exists()


def test_4_2_versions_have_the_documents_that_were_not_sent(bench: Bench) -> None:
    bench.rule = {**DOC, "mode": "history"}
    bench.create()
    topic = Topic(bench.topic, "postgresql")
    topic.change("c", key(1), document_row(1, ONE), at=1)
    bench.take(topic.records)
    more = Topic(bench.topic, "postgresql")
    more.change("u", key(1), document_row(1, NOT_SENT, 1), at=2)
    more.change("u", key(1), document_row(1, NOT_SENT, 1), at=3)  # opens no version
    more.change("u", key(1), document_row(1, OTHER, 1), at=4)
    worker = bench.take(more.records)
    last = Topic(bench.topic, "postgresql")
    last.change("d", key(1), at=5, headers={"newkey": key(2)})
    last.change("c", key(2), document_row(2, NOT_SENT, 2), at=5, headers={"oldkey": key(1)})
    bench.take(last.records, worker)
    expected = [(1, 0, ONE, False), (1, 1, ONE, False), (1, 1, OTHER, False), (2, 2, OTHER, True)]
    assert kept(bench, "__current") == sorted(expected, key=repr)
    bench.take([*topic.records, *more.records, *last.records], worker)
    assert kept(bench, "__current") == sorted(expected, key=repr)
    assert not bench.quarantine.exists()


def test_4_3_a_document_that_was_not_sent_is_null_and_its_column_is_named(bench: Bench) -> None:
    bench.rule = {**DOC, "mode": "append"}
    bench.create()
    topic = Topic(bench.topic, "postgresql")
    topic.change("c", key(1), document_row(1, ONE), at=1)
    topic.change("u", key(1), document_row(1, NOT_SENT, 1), at=2)
    bench.take(topic.records)
    assert kept(bench, "__unavailable") == [(1, 0, ONE, None), (1, 1, None, ["doc"])]
    assert not bench.quarantine.exists()


def test_6_3_beside_a_document_that_was_not_sent_a_bad_value_stays_one(bench: Bench) -> None:
    bench.rule = {"columns": {"doc": "variant", "more": "variant"}}
    bench.create()
    topic = Topic(bench.topic, "postgresql")
    topic.change("c", key(1), {**document_row(1, ONE), "more": ONE}, at=1)
    bench.take(topic.records)
    more = Topic(bench.topic, "postgresql")
    more.change("u", key(1), {**document_row(1, NOT_SENT, 1), "more": "{no json"}, at=2)
    bench.take(more.records)
    [(offset, reason, message)] = rows_of(bench.quarantine, "offset", "reason", "message")
    assert (offset, reason, message.rpartition(": ")[2]) == (1, "bad-value", "more")
    [(*row, other)] = kept(bench, "more")
    assert (*row, variant_as_json(other)) == (1, 0, ONE, ONE)


def test_3_7_a_masked_document_that_was_not_sent_keeps_its_mask(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SALT", "a salt of a good length for this")
    bench.rule = {**DOC, "mask": {"doc": "hash"}}
    bench.create()
    bench.options = {"masking": {"salt": "${env:SALT}"}}
    topic = Topic(bench.topic, "postgresql")
    topic.change("c", key(1), document_row(1, ONE), at=1)
    bench.take(topic.records)
    [(_, _, mask)] = bench.rows("id", "n", "doc")
    more = Topic(bench.topic, "postgresql")
    more.change("u", key(1), document_row(1, NOT_SENT, 1), at=2)
    bench.take(more.records)
    assert bench.rows("id", "n", "doc") == [(1, 1, mask)]
    assert not bench.quarantine.exists()


def not_sent(bench: Bench, sent: Mapping[str, Any], placeholders: Mapping[str, Any]) -> None:
    """A row with the values that were sent, and then, by a worker that does not know them, a change without them."""
    for index, values in enumerate((sent, placeholders), 1):
        topic = Topic(bench.topic, "postgresql")
        topic.change("c" if index == 1 else "u", key(1), {"id": 1, "n": index, **values}, at=index)
        bench.take(topic.records)


def test_3_7_lists_and_maps_of_what_can_not_be_the_placeholder_stay_exactly_as_they_are(bench: Bench) -> None:
    columns = {"doc": "variant", "docs": "array<variant>", "tags": "map<string,int>", "times": "array<timestamp_us>"}
    bench.rule = {"columns": columns}
    bench.create()
    sent = {"doc": '{"a":"1"}', "docs": [ONE, None, "null"], "tags": {"a": "1"}, "times": [1_700_000_000_123_456, None]}
    of_hstore = {NOT_SENT: NOT_SENT}
    placeholders = {
        "doc": json.dumps(of_hstore, separators=(",", ":")),
        "docs": [NOT_SENT],
        "tags": of_hstore,
        "times": list(NOT_SENT.encode()),
    }
    not_sent(bench, sent, placeholders)
    [(*row, docs, tags, times)] = kept(bench, "docs", "tags", "times")
    assert row == [1, 2, '{"a":"1"}']
    assert list(map(variant_as_json, docs)) == [ONE, None, "null"]
    assert tags == [("a", 1)]
    assert times == [datetime.fromisoformat("2023-11-14T22:13:20.123456"), None]
    assert not bench.quarantine.exists()


LISTS: Mapping[str, tuple[list[Any], list[Any]]] = {
    "texts": (["a", None], [NOT_SENT]),
    "bytes": (["AP8="], [base64.b64encode(NOT_SENT.encode()).decode()]),
    "numbers": ([1, 2], list(NOT_SENT.encode())),
    "uuids": (["00000000-0000-0000-0000-00000000000f"], ["b68a35a7-17ad-35b3-af2a-ae46edb4545a"]),
}
"""What lists of PostgreSQL hold, and what comes where they were not sent (seen in recorded events)."""
OF_LISTS = {"texts": TEXT, "bytes": {"type": "bytes"}, "numbers": INT, "uuids": TEXT}
LIST_SCHEMAS = {name: {"type": "array", "items": {**of, "optional": True}} for name, of in OF_LISTS.items()}


@pytest.mark.parametrize("schema", [True, False])
@pytest.mark.parametrize(
    "rule",
    [
        {},
        {"columns": dict.fromkeys(LISTS, "string")},
        {"columns": dict.fromkeys(LISTS, "variant")},
        {"mask": dict.fromkeys(LISTS, "hash")},
    ],
    ids=["as they come", "string", "variant", "masked"],
)
def test_3_7_lists_that_are_read_as_text_stay_exactly_as_they_are(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, rule: Row, schema: bool
) -> None:
    monkeypatch.setenv("SALT", "a salt of a good length for this")
    bench.rule = {"columns": {}, **rule}
    bench.create()
    bench.options = {"masking": {"salt": "${env:SALT}"}}

    def take(op: str, at: int, values: Mapping[str, Any]) -> list[tuple[Any, ...]]:
        topic = Topic(bench.topic, "postgresql")
        topic.change(op, key(1), {"id": 1, "n": at, **values}, at=at)
        if schema:
            topic.with_schema(topic.records[-1], {"id": LONG, "n": LONG, **LIST_SCHEMAS})
        bench.take(topic.records)
        return bench.rows("n", *LISTS)

    [(_, *before)] = take("c", 1, {name: sent for name, (sent, _) in LISTS.items()})
    assert None not in before
    assert take("u", 2, {name: placeholder for name, (_, placeholder) in LISTS.items()}) == [(2, *before)]
    assert not bench.quarantine.exists()


def test_3_7_texts_that_are_read_as_times_stay_where_they_were_not_sent(bench: Bench) -> None:
    rule = {"columns": {"at": "timestamp", "created": "date"}, "rename": {"created": "day"}}
    bench.rule = {**DOC, **rule}
    bench.create()
    not_sent(
        bench,
        {"at": "2026-01-31T10:11:12.123456Z", "created": "2026-01-31"},
        {"at": NOT_SENT, "created": NOT_SENT},
    )
    at = datetime(2026, 1, 31, 10, 11, 12, 123456, tzinfo=timezone.utc)
    assert bench.rows("n", "at", "day") == [(2, at, date(2026, 1, 31))]
    assert not bench.quarantine.exists()


def test_6_3_a_placeholder_where_a_number_is_usual_is_a_bad_value(bench: Bench) -> None:
    bench.rule = {"columns": {"doc": "variant", "x": "bigint"}}
    bench.create()
    # Also where it is known that there are such values.
    not_sent(bench, {"doc": ONE, "x": "7"}, {"doc": NOT_SENT, "x": NOT_SENT})
    [(reason, message)] = rows_of(bench.quarantine, "reason", "message")
    assert (reason, message.rpartition(": ")[2]) == ("bad-value", "x")
    assert kept(bench, "x") == [(1, 1, ONE, 7)]
