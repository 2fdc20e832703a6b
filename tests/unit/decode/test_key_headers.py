"""The keys in the headers of a key change, as converters really wrote them: they must be the keys of the records."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from tests.support.decoding import decode_all, options_of, plain_change
from tests.support.recorded import Record, Scenario

from distributary.decode.envelope import OLD_KEY_HEADER
from distributary.decode.options import DecodeOptions, TypeSources


@pytest.mark.parametrize(
    ("scenario", "table"),
    [
        ("pg_json_schema", "num_keys"),  # the key has base64, the header a number
        ("pg_json_schema", "text_keys"),
        ("pg_json_plain", "num_keys"),  # in the key's own form
        ("pg_extra", "reserved"),  # columns called schema and payload
        ("maria_json_schema", "dt_keys"),
        ("maria_json_schema", "num_keys"),
    ],
)
def test_3_4_the_headers_of_a_key_change_name_the_other_records_key(scenario: str, table: str) -> None:
    source = Scenario(scenario)
    truth = source.tables[table]
    decoded, _ = decode_all(source.topic(truth.schema, truth.name), options_of(source, truth))
    events = decoded.events.select(["operation", "key", "old_key", "new_key", "moved_in", "moved_out"]).to_pylist()
    created = [(event["old_key"], event["key"]) for event in events if event["moved_in"]]
    deleted = [(event["key"], event["new_key"]) for event in events if event["moved_out"]]
    assert created
    assert sorted(created, key=repr) == sorted(deleted, key=repr)
    assert all(None not in pair for pair in created)


@pytest.mark.parametrize("renames", [{}, {"k": "a `key`"}], ids=["the source's name", "renamed"])
def test_3_4_header_texts_with_line_breaks_and_in_every_form(renames: dict[str, str]) -> None:
    lsn = "00000027:00000ac0:0000000000000002"
    source = {"connector": "db2", "commit_lsn": lsn, "change_lsn": lsn}
    texts = ["a\nb", 'q"\\', "\t", "plain", "ä🎉"]
    records: list[Record] = []
    for text in texts:
        escaped = text.replace("\\", "\\\\").replace('"', '\\"')  # all that SimpleHeaderConverter escapes
        wrapped = json.dumps({"schema": {"type": "struct"}, "payload": {"k": text}}, separators=(",", ":"))
        for header in (f'{{"k":"{escaped}"}}', json.dumps({"k": text}), wrapped):
            record = plain_change(len(records), {"k": "x"}, {"k": "x"}, source=source)
            records.append(replace(record, headers=((OLD_KEY_HEADER, header.encode()),)))
    options = DecodeOptions("db2", types=TypeSources(configured={"k": "string"}), renames=renames)
    decoded, _ = decode_all(records, options)
    name = renames.get("k", "k")
    assert decoded.events["old_key"].to_pylist() == [{name: text} for text in texts for _ in range(3)]
