"""What a table keeps of its masks, and when other ones halt it."""

from __future__ import annotations

from contextlib import nullcontext

import pytest
from pydantic import SecretStr

from distributary.config.table import TableSettings
from distributary.decode.masks import Marks, Masks, masks_of
from distributary.decoding.renames import NO_RENAMES, Renames
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
        now.check(marks(before), NO_RENAMES, COLUMNS)
    with pytest.raises(TableHalt, match="have ssn masked otherwise"):
        Marks(marks(before), COLUMNS).meet({"ssn": now.over("ssn", STRING)}, {})


def test_columns_that_the_table_does_not_have_may_be_masked_in_any_way() -> None:
    Masks({"email": "redact"}).check(None, NO_RENAMES, COLUMNS)
    Masks({"ssn": "hash"}, "a").check(None, NO_RENAMES, {})
    Marks(None, ["id"]).meet({"ssn": Masks({"ssn": "hash"}, "a").over("ssn", STRING)}, {})


def test_a_renamed_column_may_be_masked_under_either_name_until_its_records_show_it() -> None:
    kept, renames = marks(Masks({"ssn": "redact"})), Renames({"social": "ssn"})
    for name in ("ssn", "social"):
        Masks({name: "redact"}).check(kept, renames, COLUMNS)
    with pytest.raises(TableHalt, match="mask-changed"):
        Masks({"other": "redact"}).check(kept, renames, COLUMNS)


def test_what_is_kept_tells_masks_of_columns_that_may_come_and_none_of_those_that_have_none() -> None:
    masks, renames = Masks({"ssn": "hash", "email": "redact", "more": "hash"}, "a"), Renames({"more": "less"})
    met = Marks(None, ["id", "ssn"])  # whose rows are not masked
    kept = met.kept(masks.told(renames))
    assert set(kept) == {"email", "less"}
    # Added by a slice that was not committed, such a column is the one that it was to be.
    Marks(kept, ["less"]).meet({"less": masks.over("more", codec_named("bigint", {}))}, {})


@pytest.mark.parametrize(
    ("before", "now", "same"),
    [
        *[("int", "bigint", True), ("int", "string", True), ("decimal(10,2)", "decimal(20,2)", True)],
        *[("decimal(10,2)", "decimal(10,3)", False), ("decimal(10,0)", "string", False)],
        ("date", "timestamp_us", False),
    ],
)
def test_hashes_of_texts_that_are_spelled_otherwise_halt_the_table(before: str, now: str, same: bool) -> None:
    masks = Masks({"id": "hash"}, "a")
    met = Marks({"id": marks(masks, id=before)["id"]}, ["id"])
    refused = pytest.raises(TableHalt, match="equal values would not have equal hashes")
    with nullcontext() if same else refused:
        met.meet({}, {"id": masks.over("id", codec_named(now, {}))})


def test_a_key_counts_as_it_comes_beside_a_row_without_schema() -> None:
    masks = Masks({"id": "hash"}, "a")
    key, row = (masks.over("id", codec_named(kind, {})) for kind in ("decimal(10,0)", "string"))
    met = Marks(None, ())
    for _ in range(2):
        met.meet({"id": row}, {"id": key})


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
