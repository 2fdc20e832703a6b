"""Which records without schema are read as one: all, but those whose columns the lake could not tell apart."""

from __future__ import annotations

import json
from collections.abc import Iterable

import pytest

from distributary.decode.discover import combined, common
from distributary.decoding.renames import Renames
from distributary.decode.shapes import Signature, TypeSources, joined, shape_of
from distributary.decode.types import by_value
from distributary.errors import TableHalt

KEY = '["id"]'
RENAMES = Renames({"full_name": "name"})


def listed(*names: str) -> str:
    return json.dumps(names, ensure_ascii=False, separators=(",", ":"))


def rows(
    *names: Iterable[str], renames: Renames = RENAMES, exclude: Iterable[str] = (), key: str | None = KEY
) -> list[list[str]]:
    """The columns of the signatures that records with such fields have, each a second younger than the one before."""
    seen = [(key, listed(*fields), float(at)) for at, fields in enumerate(names)]
    found = combined(seen, renames, exclude)
    assert all(one.signature.key == key for one in found)
    assert [one.newest for one in found] == sorted(one.newest for one in found)
    return [json.loads(one.signature.row or "[]") for one in found]


@pytest.mark.parametrize(
    ("shown", "kind"),
    [
        *(("BIGINT", "bigint"), ("DOUBLE", "double"), ("DECIMAL(3,1)", "double"), ("DECIMAL(38,20)", "double")),
        *(("DECIMAL(1,0)", "double"), ("DECIMAL(19,0)", "string"), ("DECIMAL(38,0)", "string")),
        *(("BOOLEAN", "boolean"), ("STRING", "string"), ("ARRAY<DECIMAL(19,0)>", "string"), ("VOID", None)),
    ],
)
def test_a_whole_number_that_bigint_can_not_hold_is_text_and_no_double(shown: str, kind: str | None) -> None:
    assert by_value(shown) == kind


def test_a_column_in_which_some_whole_numbers_are_beyond_bigint_is_text() -> None:
    assert common({"bigint", "string"}) == common({"bigint", "double", "string"}) == "string"


def test_fields_of_all_records_are_united() -> None:
    assert rows(["id", "a"], ["id"], ["id", "b"], renames=Renames()) == [["id", "a", "b"]]
    assert rows(["id", "full_name"], ["id", "b"]) == [["id", "full_name", "b"]]


def test_records_from_before_and_after_a_column_was_renamed_stay_apart() -> None:
    assert rows(["id", "name"], ["id", "full_name"]) == [["id", "name"], ["id", "full_name"]]
    assert rows(["id", "full_name"], ["id", "name"]) == [["id", "full_name"], ["id", "name"]]
    # What both can have goes to the younger one, and what only one can have to that one.
    assert rows(["id", "name"], ["id", "full_name"], ["id", "a"], ["id", "name", "b"], ["id"]) == [
        ["id", "name", "b"],
        ["id", "full_name", "a"],
    ]


def test_records_whose_columns_differ_in_case_stay_apart() -> None:
    assert rows(["id", "Name"], ["id", "full_name"]) == [["id", "Name"], ["id", "full_name"]]
    assert rows(["id", "a"], ["id", "A"], renames=Renames()) == [["id", "a"], ["id", "A"]]
    assert rows(["id", "a"], ["id", "A"], renames=Renames({"A": "old_a"})) == [["id", "a", "A"]]


def test_a_column_that_is_left_out_clashes_with_none() -> None:
    assert rows(["id", "name"], ["id", "full_name"], exclude=["name"]) == [["id", "name", "full_name"]]


def test_a_record_that_has_both_names_keeps_both() -> None:
    clashing = ["id", "name", "full_name"]
    assert rows(["id", "name"], clashing, ["id", "a"], clashing) == [["id", "name", "a"], clashing]
    with pytest.raises(TableHalt, match="rename-taken"):
        shape_of(
            Signature(KEY, listed(*clashing)),
            TypeSources({}, dict.fromkeys(clashing, "string"), {}, {}, renames=RENAMES),
        )


def test_tombstones_and_records_without_a_key_need_no_shape_of_their_own() -> None:
    before, after = listed("id", "name"), listed("id", "full_name")
    seen = [(KEY, None, 9.0), (KEY, before, 1.0), (KEY, after, 2.0), (None, after, 3.0), (KEY, "[]", 4.0)]
    assert [one.signature for one in combined(seen, RENAMES)] == [Signature(KEY, before), Signature(KEY, after)]


def test_each_record_fits_the_shape_that_has_its_columns() -> None:
    types = TypeSources({}, {"id": "bigint", "name": "string", "full_name": "string"}, {}, {}, renames=RENAMES)
    seen = [(KEY, listed("id", "name", "a"), 1.0), (KEY, listed("id", "full_name"), 2.0)]
    before, after = joined(shape_of(one.signature, types) for one in combined(seen, RENAMES))
    assert (list(before.row), list(after.row)) == (["id", "name"], ["id", "name"])
    assert (before.sent(before.row), after.sent(after.row)) == (
        "`id`: STRING, `name`: STRING",
        "`id`: STRING, `full_name`: STRING",
    )
    for names, fits in (
        (("id", "name"), (True, False)),
        (("id", "full_name"), (False, True)),
        (("id",), (True, True)),  # the row is the same by either
        (("id", "name", "full_name"), (False, False)),
    ):
        of_record = Signature(KEY, listed(*names))
        assert (before.fits(of_record), after.fits(of_record)) == fits
