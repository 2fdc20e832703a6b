"""Messages of errors: as long as somebody can read."""

from __future__ import annotations

import pytest

from distributary.errors import TableHalt, TransientError


@pytest.mark.parametrize("kind", [TableHalt, TransientError])
def test_a_message_with_thousands_of_names_is_cut_in_its_middle(kind: type[TableHalt] | type[TransientError]) -> None:
    """A record brings them, and the message is in each answer of /status."""
    error = kind("schema-changed", "new columns (" + "x" * 4_000_000 + "), at these offsets: 0: 5 to 7", "y" * 5_000)
    assert len(error.message) < 4_100
    assert error.message.startswith("new columns (x")
    assert error.message.endswith("), at these offsets: 0: 5 to 7")
    assert "3996043 more characters" in error.message
    assert len(error.fix) < 4_100
    assert kind("code", "short", "fix").message == "short"
