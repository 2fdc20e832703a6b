"""Colours of the terminal can be read on a light and on a dark background."""

from __future__ import annotations

from dataclasses import replace

import pytest
from rich.color import Color

from distributary.cli.output import NOTED, WARNING
from distributary.cli.tables_view import remarks
from distributary.control.overview import TableOverview
from distributary.table_state import TableState


def luminance(style: str) -> float:
    """The relative luminance of a colour, as WCAG 2 defines it."""
    parts = (value / 255 for value in Color.parse(style).get_truecolor())
    red, green, blue = (part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


@pytest.mark.parametrize("style", [WARNING, NOTED])
def test_they_stand_out_from_white_and_from_black(style: str) -> None:
    own = luminance(style)
    assert 1.05 / (own + 0.05) > 4
    assert (own + 0.05) / 0.05 > 4


def test_what_needs_somebody_has_one_of_these_colours_or_that_of_errors() -> None:
    table = TableOverview("t", "t", "/t", TableState.PAUSED, 0, None, paused="for a test", orphaned_rows=1)
    failed = replace(table, error={"code": "c", "message": "m", "fix": "f"}, ambiguous_deletes=1)
    assert {remark.style for remark in remarks([table, failed])} == {WARNING, "red"}
