"""The offsets from which a topic is read, as operators write them."""

from __future__ import annotations

import pytest

from distributary.consume.starting_point import StartingPoint, checked, starting_point
from distributary.errors import UsageError


def test_offsets_a_time_or_nothing() -> None:
    assert starting_point(None, None) == StartingPoint()
    assert starting_point("0:1234, 1:88", None) == StartingPoint({0: 1234, 1: 88})
    for text in ("2026-01-31T06:00:00Z", "2026-01-31T07:00:00+01:00"):
        assert starting_point(None, text) == StartingPoint(time=1_769_839_200_000)


@pytest.mark.parametrize("text", ["", "5", "0:", "0:-1", "0:1,0:2", "0:1;1:2"])
def test_what_is_no_list_of_offsets_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="bad-offsets"):
        starting_point(text, None)


@pytest.mark.parametrize("text", ["", "yesterday", "2026-01-31T06:00:00", "1769839200000"])
def test_a_time_needs_a_zone(text: str) -> None:
    with pytest.raises(UsageError, match="bad-time"):
        starting_point(None, text)


def test_both_are_refused() -> None:
    with pytest.raises(UsageError, match="one-start"):
        starting_point("0:1", "2026-01-31T06:00:00Z")


def test_the_topic_must_have_them() -> None:
    first, end = {0: 5, 1: 0}, {0: 9, 1: 0}
    assert checked({0: 5, 1: 0}, "t", first, end) == {0: 5, 1: 0}
    assert checked({0: 9, 1: 0}, "t", first, end) == {0: 9, 1: 0}
    for offsets, why in (
        ({0: 4, 1: 0}, "partition 0 has the offsets 5 to 9, not 4"),
        ({0: 10, 1: 0}, "partition 0 has the offsets 5 to 9, not 10"),
        ({0: 5}, "partition 1 has no offset given"),
        ({0: 5, 1: 0, 2: 0}, "partition 2 is none of the topic"),
    ):
        with pytest.raises(UsageError, match="no-such-offsets") as error:
            checked(offsets, "t", first, end)
        assert why in error.value.message
