"""The reference on small hand-written cases that no recording has, mostly SQL Server's and Db2's."""

from __future__ import annotations

import itertools
import json
from typing import Any

import pytest
from tests.model.reference.table import reference
from tests.support.recorded import Record

Json = Any


class Log:
    """Records of one topic, written one after the other."""

    def __init__(self, connector: str) -> None:
        self.connector = connector
        self.records: list[Record] = []

    def add(
        self,
        operation: str,
        key: int | None,
        content: str | None = None,
        *,
        moved_from: int | None = None,
        **source: Json,
    ) -> Log:
        """A change of `key` to the value `content`, with what `source` says of its place. `x` writes a tombstone."""
        envelope = {
            "op": operation,
            "after": None if content is None else {"id": key, "v": content},
            "source": {"connector": self.connector, **source},
        }
        payload = None if operation == "x" else json.dumps(envelope).encode()
        headers = () if moved_from is None else (("__debezium.oldkey", json.dumps({"id": moved_from}).encode()),)
        raw_key = None if key is None else json.dumps({"id": key}).encode()
        offset = len(self.records)
        self.records.append(Record("t", 0, offset, 1000 + offset, raw_key, payload, headers))
        return self

    def again(self, start: int) -> Log:
        """The records from `start` on, sent a second time."""
        for record in self.records[start:]:
            offset = len(self.records)
            self.records.append(Record("t", 0, offset, 1000 + offset, record.key, record.value, record.headers))
        return self

    def rows(self) -> dict[int, str]:
        return rows(self.records)


def rows(records: list[Record]) -> dict[int, str]:
    """The final rows: key to value."""
    return {json.loads(key)["id"]: row.values["v"] for key, row in reference(records).rows().items()}


def place(commit: int, change: int | None = None, serial: int | None = None) -> dict[str, Json]:
    """A place in SQL Server's log."""
    return {
        "commit_lsn": f"0000002a:{commit:08x}:0001",
        "change_lsn": None if change is None else f"0000002a:{change:08x}:0002",
        "event_serial_no": serial,
    }


def sequence(level: int | None, lsn: int, transaction: int = 1, **more: Json) -> dict[str, Json]:
    """A place in PostgreSQL's log."""
    parts = [None if level is None else str(level), str(lsn)]
    return {"sequence": json.dumps(parts), "lsn": lsn, "txId": transaction, **more}


def test_an_update_sent_as_delete_and_create_at_one_place_leaves_the_row() -> None:
    log = Log("sqlserver").add("r", 1, "old", **place(1))
    log.add("d", 1, **place(5, 5, 1)).add("x", 1).add("c", 1, "new", **place(5, 5, 1))
    assert log.rows() == {1: "new"}


@pytest.mark.parametrize("start", [1, 3])
@pytest.mark.parametrize("cut", [1, 2, 3])
def test_a_repetition_cut_between_the_two_changes_nothing(start: int, cut: int) -> None:
    log = Log("sqlserver").add("r", 1, "old", **place(1))
    log.add("d", 1, **place(5, 5, 1)).add("x", 1).add("c", 1, "new", **place(5, 5, 1))
    log.again(start)
    assert rows(log.records[: 4 + cut]) == {1: "new"}


def test_sqlserver_orders_by_commit_then_change_then_serial_number() -> None:
    changes = [("a", place(1, 9, 9)), ("b", place(2, 1, 9)), ("c", place(2, 2, 1)), ("d", place(2, 2, 2))]
    for order in itertools.permutations(changes):
        log = Log("sqlserver")
        for value, at in order:
            log.add("u", 1, value, **at)
        assert log.rows() == {1: "d"}


def test_a_snapshot_row_sorts_below_the_changes_of_its_commit() -> None:
    log = Log("sqlserver").add("u", 1, "changed", **place(7, 3, 1)).add("r", 1, "snapshot", **place(7))
    assert log.rows() == {1: "changed"}


def test_db2_has_no_serial_number() -> None:
    log = Log("db2").add("c", 1, "one", commit_lsn="00A", change_lsn="001")
    log.add("u", 1, "two", commit_lsn="00A", change_lsn="002").again(0)
    assert log.rows() == {1: "two"}
    assert rows(log.records[:3]) == {1: "two"}


def test_binlog_files_are_ordered_by_their_number() -> None:
    log = Log("mariadb").add("u", 1, "later", file="binlog.1000000", pos=4, row=0)
    log.add("u", 1, "earlier", file="binlog.999999", pos=900, row=0)
    assert log.rows() == {1: "later"}


def test_postgres_orders_by_commit_not_by_lsn() -> None:
    log = Log("postgresql").add("d", 1, **sequence(50, 40, 1)).add("c", 1, "lives", **sequence(60, 30, 2))
    assert log.rows() == {1: "lives"}
    assert log.again(0).rows() == {1: "lives"}


def test_a_postgres_snapshot_row_counts_by_offset_and_moves_no_position() -> None:
    log = Log("postgresql").add("u", 1, "streamed", **sequence(10, 11))
    log.add("r", 1, "snapshot", **sequence(90, 95, snapshot="incremental"))
    assert log.rows() == {1: "snapshot"}
    log.add("u", 1, "later", **sequence(20, 21, 2))
    assert log.rows() == {1: "later"}
    assert log.again(0).rows() == {1: "later"}


def test_a_repetition_that_ends_before_the_snapshot_row_keeps_it() -> None:
    log = Log("postgresql").add("u", 1, "streamed", **sequence(10, 11))
    log.add("r", 1, "snapshot", **sequence(10, 5, snapshot="incremental")).again(0)
    assert rows(log.records[:3]) == {1: "snapshot"}
    assert rows(log.records[:4]) == {1: "snapshot"}


def test_the_first_transaction_after_a_start_does_not_know_the_one_before() -> None:
    log = Log("postgresql").add("c", 1, "one", **sequence(100, 101, 7)).add("u", 1, "two", **sequence(100, 102, 7))
    log.add("c", 1, "one", **sequence(None, 101, 7))
    assert log.rows() == {1: "two"}
    log.add("u", 1, "two", **sequence(None, 102, 7)).add("u", 1, "three", **sequence(110, 103, 8))
    assert log.rows() == {1: "three"}


def test_a_tombstone_by_itself_deletes_and_one_after_its_delete_does_not() -> None:
    log = Log("sqlserver").add("c", 1, "row", **place(1, 1, 1)).add("x", 1)
    assert log.rows() == {}
    stale = Log("sqlserver").add("c", 1, "row", **place(2, 1, 1)).add("d", 1, **place(1, 1, 1)).add("x", 1)
    assert stale.rows() == {1: "row"}


def test_after_a_lone_tombstone_an_equal_place_is_accepted() -> None:
    log = Log("sqlserver").add("d", 1, **place(5, 5, 1)).add("c", 1, "one", **place(5, 5, 1)).add("x", 1)
    log.add("u", 1, "two", **place(5, 5, 1))
    assert log.rows() == {1: "two"}


def test_a_deferred_move_leaves_the_row_that_the_transaction_brought() -> None:
    log = Log("postgresql").add("c", 1, "a", **sequence(1, 2, 1)).add("c", 2, "b", **sequence(1, 3, 1))
    log.add("d", 1, **sequence(5, 10, 2)).add("x", 1)
    log.add("c", 2, "a", moved_from=1, **sequence(5, 10, 2))
    log.add("d", 2, **sequence(5, 11, 2)).add("x", 2)
    log.add("c", 3, "b", moved_from=2, **sequence(5, 11, 2))
    assert log.rows() == {2: "a", 3: "b"}
    for start in (0, 2, 4, 5):
        assert rows([*log.records, *log.again(start).records[8:]]) == {2: "a", 3: "b"}
        del log.records[8:]


def test_a_row_that_takes_the_key_of_one_deleted_after_it_stays() -> None:
    log = Log("postgresql").add("c", 1, "takes it", **sequence(1, 2, 1)).add("c", 2, "had it", **sequence(1, 3, 1))
    log.add("d", 1, **sequence(5, 10, 2)).add("x", 1)
    log.add("c", 2, "takes it", moved_from=1, **sequence(5, 10, 2)).add("d", 2, **sequence(5, 11, 2)).add("x", 2)
    assert log.rows() == {2: "takes it"}
    log.add("d", 2, **sequence(5, 12, 2))
    assert log.rows() == {}


def test_a_row_made_and_deleted_by_one_transaction_is_gone() -> None:
    log = Log("postgresql").add("c", 1, "a", **sequence(1, 2, 1)).add("d", 1, **sequence(1, 3, 1))
    assert log.rows() == {}
    moved = Log("postgresql").add("c", 2, "a", moved_from=1, **sequence(1, 2, 1)).add("d", 2, **sequence(1, 3, 1))
    assert moved.rows() == {}


def test_a_truncate_takes_what_lies_before_it_whenever_it_comes() -> None:
    log = Log("postgresql").add("c", 1, "before", **sequence(1, 10, 1)).add("c", 2, "after", **sequence(30, 31, 3))
    log.add("t", None, **sequence(20, 25, 2)).add("c", 3, "late", **sequence(2, 12, 1))
    assert log.rows() == {2: "after"}


def test_a_snapshot_row_is_compared_with_a_truncate_by_the_higher_of_two_positions() -> None:
    log = Log("postgresql").add("u", 1, "streamed", **sequence(30, 31, 3))
    log.add("r", 1, "snapshot", **sequence(10, 11, snapshot="incremental")).add("t", None, **sequence(20, 25, 2))
    assert log.rows() == {1: "snapshot"}
    log.add("t", None, **sequence(40, 45, 4))
    assert log.rows() == {}
