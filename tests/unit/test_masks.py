"""What a table keeps of its masks, and when other ones halt it."""

from __future__ import annotations

from contextlib import nullcontext

import pytest
from pydantic import SecretStr

from distributary.config.table import TableSettings
from distributary.decode.masks import Masks, check_marks, check_masks, masks_of
from distributary.decode.renames import NO_RENAMES, Renames
from distributary.decode.type_names import codec_named
from distributary.decode.types import STRING
from distributary.errors import TableHalt

COLUMNS = {"id": "bigint", "ssn": "string"}


def marks(masks: Masks, **kinds: str) -> dict[str, str]:
    """What a table with these columns keeps."""
    found = {name: masks.over(name, codec_named(kind, {})).mark for name, kind in (kinds or COLUMNS).items()}
    return {name: mark for name, mark in found.items() if mark is not None}


def test_marks_tell_another_salt_and_not_the_salt() -> None:
    masked = {"ssn": "hash", "email": "redact"}
    one, other = (marks(Masks(masked, salt), ssn="string", email="string") for salt in ("hunter2", "hunter3"))
    assert one["email"] == other["email"] == "redact"
    assert one["ssn"] != other["ssn"]
    assert "hunter" not in f"{one} {Masks({'ssn': 'hash'}, 'hunter2')}"


@pytest.mark.parametrize(
    ("before", "now"),
    [
        (Masks(), Masks({"ssn": "redact"})),
        (Masks({"ssn": "redact"}), Masks()),
        (Masks({"ssn": "redact"}), Masks({"ssn": "hash"}, "a")),
        (Masks({"ssn": "hash"}, "a"), Masks({"ssn": "hash"}, "b")),
    ],
)
def test_rows_that_are_masked_otherwise_halt_the_table(before: Masks, now: Masks) -> None:
    with pytest.raises(TableHalt, match="have ssn masked otherwise"):
        check_masks(marks(before), now, NO_RENAMES, COLUMNS)
    with pytest.raises(TableHalt, match="have ssn masked otherwise"):
        check_marks({"ssn": marks(before).get("ssn")}, {"ssn": now.over("ssn", STRING)})


def test_columns_that_the_table_does_not_have_may_be_masked_in_any_way() -> None:
    check_masks(None, Masks({"email": "redact"}), NO_RENAMES, COLUMNS)
    check_masks(None, Masks({"ssn": "hash"}, "a"), NO_RENAMES, {})
    check_marks({"id": None}, {"ssn": Masks({"ssn": "hash"}, "a").over("ssn", STRING)})


def test_a_renamed_column_may_be_masked_under_either_name_until_its_records_show_it() -> None:
    kept, renames = marks(Masks({"ssn": "redact"})), Renames({"social": "ssn"})
    for name in ("ssn", "social"):
        check_masks(kept, Masks({name: "redact"}), renames, COLUMNS)
    with pytest.raises(TableHalt, match="mask-changed"):
        check_masks(kept, Masks({"other": "redact"}), renames, COLUMNS)


@pytest.mark.parametrize(
    ("before", "now", "same"),
    [
        *[("int", "bigint", True), ("decimal(10,0)", "bigint", True), ("decimal(10,2)", "decimal(20,2)", True)],
        *[("decimal(10,2)", "decimal(10,3)", False), ("int", "string", False), ("date", "timestamp_us", False)],
    ],
)
def test_hashes_of_texts_that_are_spelled_otherwise_halt_the_table(before: str, now: str, same: bool) -> None:
    masks = Masks({"id": "hash"}, "a")
    kept, codecs = {"id": marks(masks, id=before)["id"]}, {"id": masks.over("id", codec_named(now, {}))}
    refused = pytest.raises(TableHalt, match="equal values would not have equal hashes")
    with nullcontext() if same else refused:
        check_marks(kept, codecs)


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
