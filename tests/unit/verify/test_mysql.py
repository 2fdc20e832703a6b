"""Parsing a MySQL or MariaDB DSN and GTIDs."""

from __future__ import annotations

import pytest

from distributary.errors import UsageError
from distributary.verify.mysql import connected
from distributary.verify.mysql_log import newest, read_point
from distributary.verify.source_check import source_of


@pytest.mark.parametrize("dsn", ["mysql://u:hidden@h/d", "MariaDB://u:hidden@h:3307/d"])
def test_both_are_known_by_their_dsn(dsn: str) -> None:
    assert source_of(dsn).name == "MySQL or MariaDB"


def test_gtids_are_known_in_both_forms() -> None:
    assert newest("0-1-12,3-7-9") == {"0": 12, "3": 9}
    assert newest("0-1-12,0-2-14") == {"0": 14}
    assert newest("a-b:1-77:80,\nc-d:5:tag:1-3") == {"a-b": 80, "c-d": 5, "c-d:tag": 3}


def test_where_the_source_was_read_is_reported() -> None:
    assert (
        read_point(("binlog.000012", 1234), "a-b:1-7,\nc-d:5").description == "binlog.000012:1234, GTID a-b:1-7,c-d:5"
    )
    assert "unknown" in read_point(None, "").description
    assert read_point(None, "").is_later("p") == "false"


@pytest.mark.parametrize(
    "dsn",
    [
        "mysql://u:hid#den@h/d",  # not escaped: the rest is a fragment
        "mysql://u:hidden@/d",
        "mysql://u:hidden@h:hidden/d",
        "mysql://u:hidden@h/d?hidden=1",
    ],
)
def test_a_dsn_that_is_none_is_refused_without_its_text(dsn: str) -> None:
    with pytest.raises(UsageError, match="bad-source-dsn") as raised, connected(dsn):
        pass
    assert "hid" not in str(raised.value)


def test_a_password_is_in_no_error() -> None:
    with pytest.raises(UsageError, match="source-unreachable") as raised, connected("mysql://me:hidden@127.0.0.1:1/d"):
        pass
    assert "hidden" not in str(raised.value)
