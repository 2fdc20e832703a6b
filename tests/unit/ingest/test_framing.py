"""Topics whose records have schema ids in an unsupported format."""

from __future__ import annotations

import pytest

from distributary.consume.sample import SampledRecord
from distributary.errors import TableHalt
from distributary.ingest.framing import check_framing

JSON = b'{"op":"c"}'
GLUE = b"\x03\x00" + bytes(range(16)) + b"\x02\x06abc"
LONG_ID = bytes(8) + b"\x07\x02\x06abc"
GLOBAL_ID = (("apicurio.value.globalId", bytes(7) + b"\x02"),)


def records(*values: bytes | None, headers: tuple[tuple[str, bytes], ...] = ()) -> list[SampledRecord]:
    return [SampledRecord(0, offset, None, value, headers) for offset, value in enumerate(values)]


@pytest.mark.parametrize(
    ("found", "source_format", "named"),
    [
        (records(GLUE, None, GLUE), "avro", "AWS Glue"),
        (records(LONG_ID), "avro", "eight bytes"),
        (records(b"\x02\x06abc", headers=GLOBAL_ID), "avro", "global id"),
        (records(GLUE), "json", "AWS Glue"),
        (records(b"\x00\x00\x00\x00\x07\x02\x06abc"), "json", "format: avro"),
    ],
)
def test_6_2_a_form_that_is_not_read_halts_the_table_by_its_name(
    found: list[SampledRecord], source_format: str, named: str
) -> None:
    with pytest.raises(TableHalt, match="schema-id-not-read") as halt:
        check_framing(found, "t", source_format)
    assert named in f"{halt.value.message} {halt.value.fix}"


@pytest.mark.parametrize("source_format", ["json", "avro"])
def test_records_that_can_be_read_or_are_faults_among_others_halt_nothing(source_format: str) -> None:
    for found in (records(), records(None), records(JSON), records(JSON, GLUE), records(b"no", b"")):
        check_framing(found, "t", source_format)
    check_framing(records(b"\x00\x00\x00\x00\x07" + JSON), "t", "json")
