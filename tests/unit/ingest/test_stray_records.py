"""Single records that their table can't have go to quarantine, and several halt the table."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
from tests.support.batch_reader import FORMAT, PROGRESS, TOPIC, Lake, Raw, config, reader_of
from tests.support.changes import decimal
from tests.support.decoding import rejections
from tests.support.stray_records import COLUMNS, CONNECT, EVERY, SOURCE, STRAYS, good, record

from distributary.consume.sample import SampledRecord
from distributary.decode.decoder import Decoded
from distributary.errors import TableHalt
from distributary.ingest.batch_reader import BatchReader
from distributary.ingest.decoded_batch import ReadBatch
from distributary.ingest.stray_records import NEAR
from distributary.progress.record import Progress
from distributary.workers.batch_progress import progress_before

FILLED = PROGRESS.model_copy(update={"source_table": "d.dbo.t"})


@pytest.fixture
def reader(tmp_path: Path) -> BatchReader:
    found = reader_of(config(tmp_path, rule={"columns": {"text": "date"}}), Lake({**COLUMNS, "text": "date"}))
    found.detect_format(TOPIC, {0: 1}, FILLED)
    return found


def read(reader: BatchReader, records: Sequence[SampledRecord], progress: Progress = FILLED) -> ReadBatch:
    return reader.read_and_change_table(Raw(records), FORMAT, progress)


@pytest.mark.parametrize(("stray", "code"), EVERY)
def test_6_3_a_single_stray_record_goes_to_quarantine(reader: BatchReader, stray: dict[str, Any], code: str) -> None:
    found = read(reader, [good(1, stray), record(2, **stray), *(good(index, stray) for index in range(3, 9))])
    assert rejections(found.decoded) == {2: "needs-decision"}
    assert found.decoded.events["offset"].to_pylist() == [1, 3, 4, 5, 6, 7, 8]
    assert found.stats.strays == {0: 2}
    assert found.decoded.conflict is None or found.decoded.conflict.code == code


@pytest.mark.parametrize(("stray", "code"), EVERY)
def test_6_3_a_second_one_nearby_halts_the_table(reader: BatchReader, stray: dict[str, Any], code: str) -> None:
    batch = [good(1, stray), record(2, **stray), good(3, stray), record(2 + NEAR, **stray)]
    with pytest.raises(TableHalt) as caught:
        read(reader, batch)
    assert caught.value.code == code


@pytest.mark.parametrize(("stray", "code"), EVERY)
def test_6_3_batches_do_not_part_the_second_from_the_first(
    reader: BatchReader, stray: dict[str, Any], code: str
) -> None:
    after_first = FILLED.model_copy(update={"strays": {0: 2}, "next": {0: 3}})
    with pytest.raises(TableHalt) as caught:
        read(reader, [record(2 + NEAR, **stray), good(2 + NEAR + 1, stray)], after_first)
    assert caught.value.code == code
    far = read(reader, [record(3 + NEAR, **stray), good(3 + NEAR + 1, stray)], after_first)
    assert rejections(far.decoded) == {3 + NEAR: "needs-decision"}


@pytest.mark.parametrize(("stray", "code"), EVERY)
def test_6_3_strays_that_are_replayed_halt_nothing(reader: BatchReader, stray: dict[str, Any], code: str) -> None:
    passed = FILLED.model_copy(update={"strays": {0: 3}, "next": {0: 9}})
    found = read(reader, [record(1, **stray), record(2, **stray), good(3, stray)], passed)
    assert rejections(found.decoded) == {1: "needs-decision", 2: "needs-decision"}, code


@pytest.mark.parametrize(("stray", "code"), EVERY)
def test_5_1_the_last_record_may_be_a_change_at_the_source(
    reader: BatchReader, stray: dict[str, Any], code: str
) -> None:
    with pytest.raises(TableHalt) as caught:
        read(reader, [good(1, stray), record(2, **stray)])
    assert caught.value.message.endswith(f" (first in {TOPIC.name}:0:2)")
    assert caught.value.fix.endswith(f"`distributary quarantine add -c FILE TABLE {TOPIC.name}:0:2`, then `resume`")
    assert caught.value.code == code


WAITING: dict[str, tuple[Sequence[str], bool]] = {
    "nothing": ([], True),
    "good ones": (["good"] * 3, False),
    "a good one behind others": (["broken", "tombstone", "good"], False),
    "tombstones": (["tombstone"], True),
    "broken ones": (["broken"] * 3, True),
    "another stray": (["good", "stray"], True),
    "another stray far behind": (["good"] * 15 + ["", "far stray"], False),
}


def waiting(stray: dict[str, Any], kinds: Sequence[str], first: int = 3) -> list[SampledRecord]:
    """Records of these kinds from an offset on."""
    makers: dict[str, Callable[[int], SampledRecord]] = {
        "good": lambda at: good(at, stray),
        "stray": lambda at: record(at, **stray),
        "far stray": lambda at: record(at + NEAR, **stray),
        "broken": lambda at: SampledRecord(0, at, good(at, stray).key, b"{", (), 1),
        "tombstone": lambda at: record(at, plain=stray.get("plain", False), value=False),
    }
    return [makers[kind](at) for at, kind in enumerate(kinds, first) if kind]


@pytest.mark.parametrize(("kinds", "halts"), WAITING.values(), ids=WAITING)
@pytest.mark.parametrize(("stray", "code"), EVERY)
def test_6_3_records_that_wait_behind_a_batch_show_whether_its_last_one_is_stray(
    tmp_path: Path, stray: dict[str, Any], code: str, kinds: Sequence[str], halts: bool
) -> None:
    batch = [good(1, stray), record(2, **stray)]
    reader = reader_of(
        config(tmp_path, rule={"columns": {"text": "date"}}),
        Lake({**COLUMNS, "text": "date"}),
        [*batch, *waiting(stray, kinds)],
    )
    reader.table_columns.load(None)
    if halts:
        with pytest.raises(TableHalt) as caught:
            read(reader, batch)
        assert caught.value.code == code
    else:
        found = read(reader, batch)
        assert rejections(found.decoded) == {2: "needs-decision"}
        assert found.decoded.events["offset"].to_pylist() == [1]
        assert found.stats.strays == {0: 2}


def test_6_3_waiting_records_that_were_set_aside_show_nothing(tmp_path: Path) -> None:
    stray = STRAYS["type"][0]
    records = [record(1), record(2, **stray), record(3)]
    for aside, halts in ((set[tuple[int, int]](), False), ({(0, 3)}, True)):
        places = {TOPIC.name: aside}
        reader = reader_of(config(tmp_path), Lake(COLUMNS), records, ignored=lambda found=places: found)
        reader.table_columns.load(None)
        with pytest.raises(TableHalt) if halts else nullcontext():
            read(reader, records[:2])


def test_6_3_what_waits_brings_no_columns(tmp_path: Path) -> None:
    """They belong to the batch that has the records."""
    records = [record(1), record(2, **STRAYS["type"][0]), record(3, {**CONNECT, "new": {"type": "int32"}})]
    reader = reader_of(config(tmp_path), Lake(COLUMNS), records)
    reader.table_columns.load(None)
    found = read(reader, records[:2])
    assert "new" not in reader.columns
    assert not any("new" in one.types for one in found.decoded.observed)


@pytest.mark.parametrize("name", ["type", "key", "name in another case"])
def test_6_3_a_new_table_is_made_although_the_last_of_its_first_records_is_stray(tmp_path: Path, name: str) -> None:
    stray, code = STRAYS[name]
    records = [*(record(index) for index in range(1, 20)), record(20, **stray)]
    columns, decoded = new_table(tmp_path, [*records, record(21)])
    assert columns == {**COLUMNS, "text": "date"}
    assert rejections(decoded) == {20: "needs-decision"}
    with pytest.raises(TableHalt) as caught:
        new_table(tmp_path, records)
    assert caught.value.code == code


def test_6_3_a_delete_and_its_tombstone_are_one_stray(reader: BatchReader) -> None:
    other = STRAYS["key"][0]
    found = read(reader, [record(1), record(2, **other), record(3, **other, value=False), record(4)])
    assert rejections(found.decoded) == {2: "needs-decision", 3: "needs-decision"}
    assert found.stats.strays == {0: 2}
    with pytest.raises(TableHalt, match="now have the key"):
        read(reader, [record(1), record(2, **other), record(3, **other, value=False), record(4, **other)])


@pytest.mark.parametrize(("stray", "code"), EVERY)
def test_6_3_after_a_start_too_a_single_stray_halts_nothing(tmp_path: Path, stray: dict[str, Any], code: str) -> None:
    """The first records after a start show their format: whether the stray is the first or a later one."""
    some = [good(index, stray) for index in range(1, 6)]
    for records in ([record(1, **stray), *some[1:]], [*some[:3], record(4, **stray), some[4]]):
        own_config = config(tmp_path, rule={"columns": {"text": "date"}})
        own = reader_of(own_config, Lake({**COLUMNS, "text": "date"}), records[:4])
        settings = own_config.settings_for("dbo", "t")
        assert settings is not None
        topic_format = own.detect_format(TOPIC, {0: 1}, FILLED)
        assert topic_format is not None
        progress = progress_before(FILLED, TOPIC, topic_format, own, settings, ())
        found = own.read_and_change_table(Raw(records), topic_format, progress)
        assert set(rejections(found.decoded).values()) == {"needs-decision"}, code
        assert found.decoded.events.num_rows == len(records) - 1


def new_table(
    tmp_path: Path, records: Sequence[SampledRecord], rule: dict[str, Any] | None = None
) -> tuple[dict[str, str], Decoded]:
    lake = Lake({})
    reader = reader_of(config(tmp_path, rule=rule or {"columns": {"text": "date"}}), lake, records)
    topic_format = reader.detect_format(TOPIC, {0: 0}, None)
    assert topic_format is not None
    progress = PROGRESS.model_copy(update={"next": {}, "key": topic_format.key})
    decoded = reader.read_and_change_table(Raw(records), topic_format, progress).decoded
    return lake.has, decoded


@pytest.mark.parametrize("name", ["type", "key", "name in another case"])
def test_6_3_a_new_table_is_made_without_a_single_stray(tmp_path: Path, name: str) -> None:
    stray, code = STRAYS[name]
    columns, decoded = new_table(tmp_path, [record(1), record(2, **stray), record(3)])
    assert columns == {**COLUMNS, "text": "date"}
    assert rejections(decoded) == {2: "needs-decision"}
    with pytest.raises(TableHalt) as caught:
        new_table(tmp_path, [record(1), record(2), record(3, **stray), record(4, **stray)])
    assert caught.value.code == code


def test_6_3_of_two_schemas_that_contradict_each_other_the_first_one_brings_its_column(reader: BatchReader) -> None:
    number, text = ({**CONNECT, "new": {"type": kind}} for kind in ("int32", "bytes"))
    found = read(reader, [record(1), record(2, number), record(3, text), record(4, number)])
    assert rejections(found.decoded) == {3: "needs-decision"}
    assert reader.columns["new"] == "int"


ENVELOPE = {"before": None, "after": {"id": 1}, "source": SOURCE, "op": "u"}
ALONE = {
    "no envelope": {"id": 1},
    "part of an envelope": {"op": "u"},
    "unknown connector": {**ENVELOPE, "source": {**SOURCE, "connector": "x"}},
    "document": {**ENVELOPE, "source": {**SOURCE, "connector": "mongodb"}},
}


@pytest.mark.parametrize("value", [*(json.dumps(one).encode() for one in ALONE.values()), b"\x00\x00\x00\x00\x07\x02"])
def test_6_2_another_format_after_a_start_halts_the_table_at_once(tmp_path: Path, value: bytes) -> None:
    reader = reader_of(config(tmp_path), Lake(COLUMNS), [SampledRecord(0, 1, record(1).key, value, (), 1)])
    with pytest.raises(TableHalt):
        reader.detect_format(TOPIC, {0: 1}, FILLED)


def test_6_3_most_of_the_first_records_tell_key_and_connector(tmp_path: Path) -> None:
    stray = record(1, key={"n": {"type": "int32"}}, connector="x")
    reader = reader_of(config(tmp_path), Lake({}), [stray, record(2), record(3)])
    topic_format = reader.detect_format(TOPIC, {0: 1}, None)
    assert topic_format is not None
    assert (topic_format.key, topic_format.order) == (("id",), "sqlserver")


@pytest.mark.parametrize(
    ("rule", "code", "plain"),
    [
        ({"columns": {"text": "date"}}, "no-conversion", False),
        ({"mask": {"id": "redact"}}, "key-redacted", False),
        ({"mask": {"id": "redact"}}, "key-redacted", True),
        ({"exclude": ["id"]}, "key-excluded", False),
        ({"exclude": ["id"]}, "key-excluded", True),
    ],
)
def test_a_new_table_whose_config_contradicts_its_first_record_halts(
    tmp_path: Path, rule: dict[str, Any], code: str, plain: bool
) -> None:
    with pytest.raises(TableHalt) as caught:
        new_table(tmp_path, [record(1, {**CONNECT, "text": decimal(10, 2)}, plain=plain)], rule)
    assert caught.value.code == code


def test_6_3_the_message_of_a_stray_is_short(reader: BatchReader) -> None:
    long = {f"{number}{'k' * 900}": {"type": "int32"} for number in range(50)}
    found = read(reader, [record(1), record(2, key={"id": {"type": "int64"}, **long}), record(3), record(4)])
    [message] = found.decoded.rejected["message"].to_pylist()
    assert len(message) < 1_500


def test_6_2_a_single_record_of_a_second_source_table_halts_the_table(reader: BatchReader) -> None:
    with pytest.raises(TableHalt) as caught:
        read(reader, [record(1), record(2, table="other"), record(3), record(4)])
    assert caught.value.code == "two-tables-one-topic"
