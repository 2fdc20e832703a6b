"""Instances of the kinds of records that sources send: detected, decoded and applied as a new table's records are."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from tests.model.table_of_records import TableOfRecords
from tests.support.avro import AvroWriter
from tests.support.batch_reader import TOPIC, Lake, Raw, config, reader_of
from tests.support.decoding import LocalRegistry, rejections, struct_schema, with_schema
from tests.support.kafka import Record as Sent

from distributary.consume.sample import SampledRecord
from distributary.decode.options import DecodeOptions
from distributary.delta.plan_write import RemovalLayout
from distributary.errors import TableHalt
from distributary.progress.record import first_progress
from distributary.rules.state import RuleSettings

Fields = Mapping[str, Mapping[str, Any]]
"""Connect schemas by column."""


class Change(NamedTuple):
    """A record; `value` None is a tombstone. Keys and values that are bytes are sent as they are."""

    key: Any
    value: Any
    headers: tuple[tuple[str, bytes], ...] = ()


class Instance(NamedTuple):
    """Records of a topic and the `rule` of its table; what the table has, by its columns in their order, or the code of
    the `halt`; and the offsets of rejected records. `later` records come once the table has been created by `records`.
    `types`: Spark types of columns that the table must have. `rules`: more settings of the rules. `in_avro`: keys and
    values, which have schemas, are sent as Avro. `by_hand` changes the table, by its path, before the record with that
    number; its files are rewritten then, as not all writers know deletion vectors. `columns`: those of `rows`, if not
    all."""

    records: Sequence[Change]
    rows: Sequence[tuple[Any, ...]] = ()
    rule: Mapping[str, Any] = {}
    halt: str = ""
    rejected: Mapping[int, str] = {}
    later: Sequence[Change] = ()
    types: Mapping[str, str] = {}
    rules: Mapping[str, Any] = {}
    in_avro: bool = False
    by_hand: Mapping[int, Callable[[Path], None]] = {}
    columns: Sequence[str] = ()


def key_and_row(fields: Fields, row: Mapping[str, Any], block: Mapping[str, Any], op: str = "c") -> Change:
    """A change with the schema of its row; its key is the column `id`."""
    sent = struct_schema(fields)
    source = struct_schema({name: _type_of(value) for name, value in block.items()})
    parts = {"before": sent, "after": sent, "source": source, "op": {"type": "string"}}
    value = {"before": None, "after": dict(row), "source": dict(block), "op": op}
    key = with_schema(struct_schema({"id": fields["id"]}), json.dumps({"id": row["id"]}))
    return Change(key, with_schema(struct_schema(parts), json.dumps(value)))


def _type_of(value: Any) -> Mapping[str, Any]:
    return {"type": "int64" if isinstance(value, int) else "string"}


def check_instance(folder: Path, instance: Instance) -> None:
    """Checks what the table of an instance has, whatever the batches are: one for all records, or one for each."""
    every = [*instance.records, *instance.later]
    sent = [Sent("t", 0, _as_bytes(one.key), _as_bytes(one.value), one.headers) for one in every]
    records = [
        SampledRecord(0, index, one.key, one.value, tuple(one.headers), 1 + index) for index, one in enumerate(sent)
    ]
    first, later = records[: len(instance.records)], records[len(instance.records) :]
    lake = Lake({})
    reader = reader_of(config(folder, rule=instance.rule), lake, first)
    found: dict[int, str] = {}
    with pytest.raises(TableHalt) if instance.halt else nullcontext() as halted:
        topic_format = reader.detect_format(TOPIC, {0: 0}, None)
        assert topic_format is not None
        key = topic_format.key or tuple(instance.rule.get("key", ()))
        progress = first_progress(TOPIC.name, "id", topic_format.order, "upsert", key)
        for batch in filter(None, (first, later)):
            read = reader.read_and_change_table(Raw(batch), topic_format, progress)
            progress = progress.next_commit(next={0: batch[-1].offset + 1})
            found |= rejections(read.decoded)
    if halted is not None:
        assert halted.value.code == instance.halt
        return
    assert found == instance.rejected
    assert {name: lake.has.get(name) for name in instance.types} == instance.types
    options = reader.options_for(topic_format, key, progress)
    if instance.in_avro:
        sent, options = _in_avro(sent, options)
    rules = RuleSettings(topic_format.order, **instance.rules)
    cuts = {"one": [[one] for one in sent]} if instance.by_hand else {"one": [[one] for one in sent], "all": [sent]}
    for name, batches in cuts.items():
        (folder / name).mkdir()
        layout = RemovalLayout.REWRITE if instance.by_hand else RemovalLayout.VECTORS
        table = TableOfRecords(folder / name, rules, options, lake.has, key, layout=layout)
        for number, records_of_batch in enumerate(batches):
            if number in instance.by_hand:
                table.change_by_hand(instance.by_hand[number])
            table.take(records_of_batch)
        assert table.rows(*(instance.columns or lake.has)) == sorted(instance.rows, key=repr)


def _in_avro(sent: Sequence[Sent], options: DecodeOptions) -> tuple[list[Sent], DecodeOptions]:
    registry = LocalRegistry()
    writer = AvroWriter(registry)
    written = [one._replace(key=writer.written(one.key, "k"), value=writer.written(one.value, "v")) for one in sent]
    return written, replace(options, avro=registry.schemas)


def _as_bytes(value: Any) -> bytes | None:
    return value if value is None or isinstance(value, bytes) else json.dumps(value).encode()
