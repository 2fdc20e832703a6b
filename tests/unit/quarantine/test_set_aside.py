"""Records that an operator sets aside with the command."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import pyarrow as pa
import pytest
from click.testing import CliRunner
from tests.support.config_files import write_config

from distributary.cli import main
from distributary.config import load
from distributary.config.table import TableSettings
from distributary.consume.offsets import OffsetRange
from distributary.consume.record_tables import RAW
from distributary.consume.remaining import FetchRemaining, without
from distributary.consume.sample import SampledRecord
from distributary.consume.topics import TableId
from distributary.errors import UsageError
from distributary.ingest.tables import ConfiguredTable
from distributary.progress.record import first_progress
from distributary.quarantine import set_aside as module
from distributary.quarantine.coordinates import RecordCoordinates
from distributary.quarantine.set_aside import set_aside_path
from distributary.storage.lake_files import Newest

TOPIC = "p.dbo.t"
RECORDS = [
    SampledRecord(0, 5, b'{"id":1}', b'{"op":"d"}'),
    SampledRecord(0, 6, b'{"id":1}', None),
    SampledRecord(0, 7, b'{"id":2}', b'{"op":"u"}'),
    SampledRecord(0, 8, b'{"id":1}', None),
]


@dataclass
class Kafka:
    """A topic that has the offsets 3 to 8 of one partition."""

    def topics(self, names: list[str]) -> Mapping[str, str]:
        return {name: name for name in names}

    def earliest(self, _topic: str) -> Mapping[int, int]:
        return {0: 3}

    def latest(self, _topic: str) -> Mapping[int, int]:
        return {0: 9}

    def records(self, _topic: str, start: Mapping[int, int], at_most: int) -> list[SampledRecord]:
        [(partition, offset)] = start.items()
        return [r for r in RECORDS if r.partition == partition and r.offset >= offset][:at_most]


@pytest.fixture
def config_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    one = ConfiguredTable(TableId("dbo", "t"), TOPIC, TableSettings("dbo.*"), "/lake/dbo/t")
    taken = first_progress(TOPIC, "id", "sqlserver", "upsert", ("id",)).next_commit(next={0: 5})
    monkeypatch.setattr(module, "list_tables", lambda *_: [one])
    monkeypatch.setattr(module, "KafkaClient", lambda *_: Kafka())
    monkeypatch.setattr(module, "newest_record", lambda _path: Newest(taken, None))
    return write_config(tmp_path)


def add(config_file: Path, coordinates: str) -> None:
    module.set_aside(load(config_file), "dbo.t", RecordCoordinates.parse(coordinates), "")


def test_the_command_leaves_a_file(config_file: Path) -> None:
    words = ["quarantine", "add", "-c", str(config_file), "dbo.t", f"{TOPIC}:0:5", "--reason", "it crashes"]
    done = CliRunner().invoke(main, [*words, "--output", "json"])
    said = {"table": "dbo.t", "set_aside": f"{TOPIC}:0:5", "following_tombstone": f"{TOPIC}:0:6"}
    assert (done.exit_code, json.loads(done.output)) == (0, said)
    [file] = Path(set_aside_path(load(config_file))).iterdir()
    assert file.name == f"{TOPIC}@0@5.json"
    assert json.loads(file.read_text())["reason"] == "it crashes"


@pytest.mark.parametrize(("offset", "names_tombstone"), [(5, True), (6, False), (7, False), (8, False)])
def test_the_command_names_the_tombstone_that_would_delete_the_row(
    config_file: Path, offset: int, names_tombstone: bool
) -> None:
    done = CliRunner().invoke(main, ["quarantine", "add", "-c", str(config_file), "dbo.t", f"{TOPIC}:0:{offset}"])
    assert done.exit_code == 0
    follow_up = f"quarantine add -c {config_file} dbo.t {TOPIC}:0:6"
    assert (follow_up in done.output.replace("\n", "")) == names_tombstone


@pytest.mark.parametrize(
    "records",
    [
        [],
        RECORDS[:1],
        [replace(RECORDS[0], offset=4), RECORDS[1]],  # the record is gone: the topic is compacted
        [replace(RECORDS[0], key=None), replace(RECORDS[1], key=None)],
        [replace(RECORDS[0], value=None), RECORDS[1]],
    ],
)
def test_other_records_have_no_following_tombstone(records: list[SampledRecord]) -> None:
    assert module._following_tombstone(RecordCoordinates(TOPIC, 0, 5), records) is None


@pytest.mark.parametrize(
    ("coordinates", "code"),
    [
        (f"{TOPIC}:0", "bad-coordinates"),
        (f"{TOPIC}:0:-1", "bad-coordinates"),
        ("../../x:0:5", "bad-coordinates"),
        (f"{TOPIC}:0:{10**18}", "bad-coordinates"),
        ("p.dbo.other:0:5", "other-topic"),
        (f"{TOPIC}:0:9", "no-such-record"),
        (f"{TOPIC}:1:5", "no-such-record"),
        (f"{TOPIC}:0:2", "no-such-record"),
        (f"{TOPIC}:0:4", "already-applied"),
    ],
)
def test_what_can_not_be_set_aside_is_refused(config_file: Path, coordinates: str, code: str) -> None:
    with pytest.raises(UsageError) as refused:
        add(config_file, coordinates)
    assert refused.value.code == code
    assert not Path(set_aside_path(load(config_file))).exists()


def raw(offsets: list[int]) -> pa.Table:
    empty = pa.nulls(len(offsets))
    columns = dict.fromkeys(RAW.names, empty) | {"partition": [0] * len(offsets), "offset": offsets}
    return pa.table({name: pa.array(columns[name], RAW.field(name).type) for name in RAW.names})


def test_records_that_are_set_aside_are_not_decoded() -> None:
    assert without(raw([3, 4, 5]), frozenset({(0, 4), (1, 5)}))["offset"].to_pylist() == [3, 5]
    pieces = FetchRemaining(lambda _part, _records, _bytes: iter([raw([3, 4]), raw([5])]), {TOPIC: frozenset({(0, 4)})})
    found = [piece["offset"].to_pylist() for piece in pieces(OffsetRange(TOPIC, {0: 3}, {0: 6}), 10, 10)]
    assert found == [[3], [5]]
    assert RAW.equals(without(raw([3]), frozenset({(0, 3)})).schema)
