"""Names in the config that no column of the table has."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from distributary.config.load import load
from distributary.config.table import TableSettings, resolve
from distributary.config.table_rule import TableDefaults, TableRule
from distributary.errors import TableHalt
from distributary.evolve.unknown_columns import check_protected_columns, unknown_columns

COLUMNS = ("id", "email", "phone1", "Street_Name", "name")


def settings(match: str = "dbo.customers", defaults: dict[str, Any] | None = None, **rule: Any) -> TableSettings:
    return resolve(TableRule(match=match, **rule), TableDefaults(**(defaults or {})), "c.yaml:3")


def nearest(found: TableSettings) -> dict[str, tuple[str, ...]]:
    return {one.name: one.near for one in unknown_columns(found, COLUMNS)}


@pytest.mark.parametrize(
    ("name", "near"),
    [
        ("emial", ("email",)),
        ("e-mail", ("email",)),
        ("EMAIL", ("email",)),
        ("emails", ("email",)),
        ("mail", ("email",)),
        ("streetname", ("Street_Name",)),
    ],
)
@pytest.mark.parametrize("option", ["mask", "exclude"])
def test_a_misspelt_mask_or_exclude_halts_a_table_without_rows(option: str, name: str, near: tuple[str, ...]) -> None:
    given: Any = {name: "redact"} if option == "mask" else [name]
    found = settings(**{option: given})
    assert nearest(found) == {name: near}
    with pytest.raises(TableHalt) as halt:
        check_protected_columns(found, COLUMNS)
    assert halt.value.code == "unknown-column"
    for word in (option, name, near[0], "c.yaml:3"):
        assert word in halt.value.message


@pytest.mark.parametrize(
    "found",
    [
        settings(mask={"ssn": "redact"}),  # may come later
        settings(mask={"phone2": "redact"}),  # not phone1
        settings(mask={"emial": "redact"}, exclude=["email"]),  # it does not reach the lake
        settings(mask={"emails": "redact"}, columns={"email": "string"}),  # the config knows both
        settings(columns={"emial": "string"}, rename={"nmae": "n"}),  # publishes nothing
        settings(match="dbo.*", mask={"emial": "redact"}),  # another table's, perhaps
        settings(defaults={"mask": {"emial": "redact"}}),
    ],
)
def test_names_that_publish_nothing_for_certain_halt_no_table(found: TableSettings) -> None:
    check_protected_columns(found, COLUMNS)


def test_names_of_an_entry_for_one_table_are_unknown_wherever_they_differ() -> None:
    found = settings(mask={"ssn": "redact"}, exclude=["notes"], columns={"nmae": "string"}, rename={"xyz": "abc"})
    assert nearest(found) == {"ssn": (), "notes": (), "nmae": ("name",), "xyz": ()}


def test_names_for_several_tables_are_unknown_only_where_they_are_typos() -> None:
    shared: dict[str, Any] = {"mask": {"ssn": "redact", "emial": "redact"}}
    assert nearest(settings(match="dbo.*", **shared)) == {"emial": ("email",)}
    assert nearest(settings(defaults=shared)) == {"emial": ("email",)}


def test_the_lakes_name_of_a_renamed_column_is_reported_with_the_sources() -> None:
    found = settings(rename={"email": "contact"}, mask={"contact": "redact"})
    assert nearest(found) == {"contact": ("email",)}
    with pytest.raises(TableHalt, match="nearest: email"):
        check_protected_columns(found, COLUMNS)


def test_columns_that_are_not_known_yet_halt_nothing() -> None:
    check_protected_columns(settings(mask={"emial": "redact"}), ())


def test_each_name_is_reported_with_its_own_line(tmp_path: Path) -> None:
    (tmp_path / "c.yaml").write_text(
        "version: 1\nkafka: {bootstrap.servers: k}\nsource: {topic_prefix: s}\ntarget: {path: /l}\ncheckpoint: /c\n"
        "defaults:\n  mask:\n    emial: redact\n"
        "include: [more.yaml]\n"
        "tables:\n  - match: dbo.customers\n    mask:\n      id: redact\n      nmae: redact\n"
    )
    (tmp_path / "more.yaml").write_text("tables:\n  - match: dbo.t\n    exclude:\n      - a\n      - emali\n")
    config = load(tmp_path / "c.yaml")
    for table, expected in (
        ("customers", {"emial": "c.yaml:8", "nmae": "c.yaml:14"}),
        ("t", {"a": "more.yaml:4", "emali": "more.yaml:5", "emial": "c.yaml:8"}),
    ):
        found = config.settings_for("dbo", table)
        assert found is not None
        assert {one.name: Path(one.place).name for one in unknown_columns(found, COLUMNS)} == expected
