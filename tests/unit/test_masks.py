"""What a table keeps of its masks, and when other ones halt it."""

from __future__ import annotations

import pytest
from pydantic import SecretStr

from distributary.config.table import TableSettings
from distributary.decode.masks import Masks, check_masks, masks_of
from distributary.decode.type_names import codec_named
from distributary.errors import TableHalt

COLUMNS = {"id": "bigint", "ssn": "string"}


def test_marks_tell_another_salt_and_not_the_salt() -> None:
    one, other = (Masks({"ssn": "hash", "email": "redact"}, salt).marks() for salt in ("hunter2", "hunter3"))
    assert one["email"] == other["email"] == "redact"
    assert one["ssn"] != other["ssn"]
    assert "hunter" not in f"{one} {Masks({'ssn': 'hash'}, 'hunter2')}"


@pytest.mark.parametrize(
    ("before", "now"),
    [
        (None, Masks({"ssn": "redact"})),
        (Masks({"ssn": "redact"}), Masks()),
        (Masks({"ssn": "redact"}), Masks({"ssn": "hash"}, "a")),
        (Masks({"ssn": "hash"}, "a"), Masks({"ssn": "hash"}, "b")),
    ],
)
def test_rows_that_are_masked_otherwise_halt_the_table(before: Masks | None, now: Masks) -> None:
    with pytest.raises(TableHalt, match="have ssn masked otherwise"):
        check_masks(before.marks() if before else None, now, COLUMNS)


def test_columns_that_the_table_does_not_have_may_be_masked_in_any_way() -> None:
    check_masks(None, Masks({"email": "redact"}), COLUMNS)
    check_masks(Masks({"email": "redact"}).marks(), Masks({"email": "hash"}, "a"), COLUMNS)
    check_masks(None, Masks({"ssn": "hash"}, "a"), {})


def test_hashes_without_a_salt_halt_the_table() -> None:
    assert masks_of(TableSettings("a.b", mask={"ssn": "hash"}, salt=SecretStr("a"))).salt == "a"
    with pytest.raises(TableHalt, match="no-salt"):
        masks_of(TableSettings("a.b", mask={"ssn": "hash"}))


@pytest.mark.parametrize("how", ["hash", "redact"])
@pytest.mark.parametrize("kind", ["bigint", "double", "boolean", "timestamp_us", "decimal(9,2)"])
def test_a_masked_column_is_read_by_its_mask_alone(kind: str, how: str) -> None:
    codec = codec_named(kind, {})
    assert codec.usual is not None
    assert Masks({"c": how}, "salt").over("c", codec).usual is None
    assert Masks({"other": how}, "salt").over("c", codec) is codec
