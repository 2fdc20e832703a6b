"""A table's record of its masks, and when other masks halt it."""

from __future__ import annotations

from contextlib import nullcontext

import pytest
from pydantic import SecretStr
from tests.support.decoding import type_named

from distributary.config.table import TableSettings
from distributary.decode.masks import Masks
from distributary.decode.renames import NO_RENAMES, Renames
from distributary.errors import TableHalt
from distributary.evolve.masks import Marks, check_masks, configured_marks, masks_of

COLUMNS = {"id": "bigint", "ssn": "string"}


def mark(masks: Masks, name: str, kind: str = "string") -> str | None:
    """The mark that records of such a column have."""
    return masks.over(name, type_named(kind)).mark


def marks(masks: Masks, **kinds: str) -> dict[str, str]:
    """What a table with these columns keeps."""
    found = {name: mark(masks, name, kind) for name, kind in (kinds or COLUMNS).items()}
    return {name: result for name, result in found.items() if result is not None}


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
    with pytest.raises(TableHalt, match="mask ssn differently"):
        check_masks(now, marks(before), NO_RENAMES, COLUMNS)
    with pytest.raises(TableHalt, match="mask ssn differently"):
        Marks(marks(before), COLUMNS).check({"ssn": mark(now, "ssn")})


def test_columns_that_the_table_does_not_have_may_be_masked_in_any_way() -> None:
    hashed = Masks({"ssn": "hash"}, "a")
    check_masks(Masks({"email": "redact"}), None, NO_RENAMES, COLUMNS)
    check_masks(hashed, None, NO_RENAMES, {})
    Marks(None, ["id"]).check({"ssn": mark(hashed, "ssn")})


def test_a_renamed_column_may_be_masked_under_either_name_until_its_records_show_it() -> None:
    kept, renames = marks(Masks({"ssn": "redact"})), Renames({"social": "ssn"})
    for name in ("ssn", "social"):
        check_masks(Masks({name: "redact"}), kept, renames, COLUMNS)
    with pytest.raises(TableHalt, match="mask-changed"):
        check_masks(Masks({"other": "redact"}), kept, renames, COLUMNS)


def test_what_is_kept_tells_masks_of_columns_that_may_come_and_none_of_those_that_have_none() -> None:
    masks, renames = Masks({"ssn": "hash", "email": "redact", "more": "hash"}, "a"), Renames({"more": "less"})
    met = Marks(None, ["id", "ssn"])  # whose rows are not masked
    kept = met.with_configured(configured_marks(masks, renames))
    assert set(kept) == {"email", "less"}
    # Added by a batch that was not committed, such a column is the one that it was to be.
    Marks(kept, ["less"]).check({"less": mark(masks, "more", "bigint")})


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
    refused = pytest.raises(TableHalt, match="equal values would get different hashes")
    with nullcontext() if same else refused:
        met.check({"id": mark(masks, "id", now)})


def test_a_key_whose_hashes_are_made_of_other_texts_than_its_rows_halts_the_table() -> None:
    """It has a schema, and the row beside it none: the row's hash of it would be another one."""
    masks = Masks({"id": "hash"}, "a")
    met = Marks(None, ())
    met.check({"id": mark(masks, "id", "string")})
    met.check({"id": mark(masks, "id", "bigint")})
    with pytest.raises(TableHalt, match="mask-changed"):
        met.check({"id": mark(masks, "id", "decimal(10,0)")})


def test_hashes_without_a_salt_halt_the_table() -> None:
    assert masks_of(TableSettings("a.b", mask={"ssn": "hash"}, salt=SecretStr("a"))).salt == "a"
    with pytest.raises(TableHalt, match="no-salt"):
        masks_of(TableSettings("a.b", mask={"ssn": "hash"}))


@pytest.mark.parametrize("how", ["hash", "redact"])
@pytest.mark.parametrize("kind", ["bigint", "double", "boolean", "timestamp_us", "decimal(9,2)"])
def test_a_column_is_masked_by_its_own_mask_alone(kind: str, how: str) -> None:
    own = type_named(kind)
    assert Masks({"c": how}, "salt").over("c", own).spark == "string"
    assert Masks({"other": how}, "salt").over("c", own) is own
