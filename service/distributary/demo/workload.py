"""The changes of the demo: three waves over three source databases.

The simulated databases work by a fixed seed, so every run sends the same events.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterator
from decimal import Decimal
from random import Random
from typing import Any

from distributary.demo import recorded
from distributary.demo.connect import (
    BOOLEAN,
    DATE,
    INT16,
    INT32,
    INT64,
    MICRO_TIMESTAMP,
    STRING,
    TIMESTAMP,
    Column,
    decimal,
)
from distributary.demo.db2 import Db2Table
from distributary.demo.record import Origin, Record, Row, Truth, Wave
from distributary.demo.simulated import SimulatedTable
from distributary.demo.sqlserver import SqlServerTable

NAMES = ("Zoë Müller", "山田 太郎", "O'Brien; --", "Ana 'Quote\" López", "Łukasz \\ Nowak", "tab\there", "😀", "")
FIRST_DAY = dt.datetime(2025, 11, 1, 6, 30)  # noqa: DTZ001 - columns without time zone

KEY_CHANGES = (
    "A row that changes its key comes as a delete and an insert. PostgreSQL's and Db2's name each other's key in a "
    "header, SQL Server's do not."
)
TRUNCATES = (
    "Only the PostgreSQL connector sends truncates: SQL Server forbids them on tables under change data capture, and "
    "Db2 does not capture them. There, one transaction deletes half of the rows."
)

ORDERS = (
    Column("order_id", INT32),
    Column("reference", STRING),
    Column("customer", STRING),
    Column("amount", decimal(12, 2), optional=True),
    Column("quantity", INT64),
    Column("placed_at", TIMESTAMP),
    Column("ship_by", DATE, optional=True),
    Column("paid", BOOLEAN),
)
ACCOUNTS = (
    Column("ID", INT32),
    Column("OWNER", STRING),
    Column("BALANCE", decimal(15, 2)),
    Column("BRANCH", INT16, optional=True),
    Column("OPENED", DATE),
    Column("CHANGED_AT", MICRO_TIMESTAMP, optional=True),
)


class Workload:
    """The sources of the demo under one topic prefix. `waves` may be gone through once; then `truths` is the end."""

    def __init__(self, prefix: str) -> None:
        self._prefix = prefix
        self._random = Random(20260302)
        self._orders = SqlServerTable(prefix, "shop", "dbo", "orders", ORDERS, ["order_id"], unique=["reference"])
        self._accounts = Db2Table(prefix, "BANK", "DB2INST1", "ACCOUNTS", ACCOUNTS, ["ID"])
        self._simulated: tuple[tuple[SimulatedTable, Callable[[int], Row], Callable[[], dict[str, Any]]], ...] = (
            (self._orders, self._new_order, self._order_changes),
            (self._accounts, self._new_account, self._account_changes),
        )

    def truths(self) -> list[Truth]:
        """The current rows of the source tables (of recorded ones: their final rows)."""
        return [*recorded.truths(), self._orders.truth(), self._accounts.truth()]

    def topics(self) -> list[str]:
        """All topics that the waves write to."""
        recordings = [f"{self._prefix}.{truth.table}" for truth in recorded.truths()]
        return [*recordings, self._orders.topic, self._accounts.topic]

    def waves(self) -> Iterator[Wave]:
        """The waves in order. Each is executed in the simulated databases when the iterator reaches it."""
        yield self._wave(1, "the first snapshot", self._first_rows)
        yield self._wave(2, "inserts, updates, deletes, changed primary keys", self._change, KEY_CHANGES)
        yield self._wave(3, "truncates", self._empty, TRUNCATES)

    def _wave(self, number: int, title: str, work: Callable[..., list[Record]], *remarks: str) -> Wave:
        by_origin = {Origin.RECORDED_POSTGRESQL: recorded.records(self._prefix, number)}
        for table, new, changes in self._simulated:
            by_origin[table.origin] = work(table, new, changes)
        return Wave(title, by_origin, remarks)

    def _first_rows(self, table: SimulatedTable, new: Callable[[int], Row], _: Callable[[], Row]) -> list[Record]:
        table.load(new(number) for number in range(1, 41))
        return table.snapshot()

    def _change(
        self, table: SimulatedTable, new: Callable[[int], Row], changes: Callable[[], dict[str, Any]]
    ) -> list[Record]:
        return self._insert_and_update(table, new, changes) + self._delete_and_move(table, new, changes)

    def _insert_and_update(
        self, table: SimulatedTable, new: Callable[[int], Row], changes: Callable[[], dict[str, Any]]
    ) -> list[Record]:
        records = []
        for first in range(41, 101, 6):
            transaction = table.begin()
            for number in range(first, first + 6):
                transaction.insert(new(number))
            for _ in range(self._random.randint(1, 8)):
                # Rows of this transaction among them, and some more than once.
                transaction.update(self._random.randint(1, first + 5), **changes())
            records += transaction.commit()
        # Two at once: the one that began first commits last, so its changes stand lower in the log than its commit.
        long = table.begin().update(1, **changes())
        records += table.begin().update(2, **changes()).commit()
        return records + long.update(3, **changes()).commit()

    def _delete_and_move(
        self, table: SimulatedTable, new: Callable[[int], Row], changes: Callable[[], dict[str, Any]]
    ) -> list[Record]:
        key = table.key[0]
        records = []
        for number in range(5, 25):
            records += table.begin().delete(number).commit()
        for number in range(30, 40):
            records += table.begin().update(number, **{key: number + 1000}).commit()
        # Away and back again, with a change on the way.
        records += table.begin().update(40, **{key: 2000}).commit()
        records += table.begin().update(2000, **{key: 40}, **changes()).commit()
        # Two rows swap their keys in one transaction.
        swap = table.begin().update(41, **{key: -1}).update(42, **{key: 41}).update(-1, **{key: 42})
        records += swap.commit()
        # A row deleted and created again in one transaction; and one created and deleted in it.
        records += table.begin().delete(43).insert(new(43)).commit()
        records += table.begin().insert(new(3000)).delete(3000).commit()
        if table is self._orders:
            for number in range(50, 55):
                records += table.begin().update(number, reference=f"R-{number}-new").commit()
        return records

    def _empty(
        self, table: SimulatedTable, new: Callable[[int], Row], changes: Callable[[], dict[str, Any]]
    ) -> list[Record]:
        transaction = table.begin()
        for number in range(44, 95):
            transaction.delete(number)
        records = transaction.commit()
        transaction = table.begin()
        for number in range(60, 65):
            transaction.insert(new(number))
        return records + transaction.update(1030, **changes()).commit()

    def _new_order(self, number: int) -> Row:
        return {"order_id": number, "reference": f"R-{number}-{self._random.randint(0, 999)}", **self._order_changes()}

    def _order_changes(self) -> dict[str, Any]:
        placed_at = FIRST_DAY + dt.timedelta(milliseconds=self._random.randint(0, 10**10))
        return {
            "customer": self._random.choice(NAMES),
            "amount": self._maybe(Decimal(self._random.randint(-(10**12) + 1, 10**12 - 1)).scaleb(-2)),
            "quantity": self._random.choice((0, 1, 2**31, -(2**63), 2**63 - 1, 2**53 + 1)),
            "placed_at": placed_at,
            "ship_by": self._maybe(placed_at.date() + dt.timedelta(days=3)),
            "paid": self._random.random() < 0.5,
        }

    def _new_account(self, number: int) -> Row:
        opened = dt.date(1899, 12, 30) + dt.timedelta(days=self._random.randint(0, 45_000))
        return {"ID": number, "OPENED": opened, **self._account_changes()}

    def _account_changes(self) -> dict[str, Any]:
        changed_at = FIRST_DAY + dt.timedelta(microseconds=self._random.randint(0, 10**13))
        return {
            "OWNER": self._random.choice(NAMES),
            "BALANCE": Decimal(self._random.randint(-(10**15) + 1, 10**15 - 1)).scaleb(-2),
            "BRANCH": self._maybe(self._random.choice((-(2**15), 0, 2**15 - 1))),
            "CHANGED_AT": self._maybe(changed_at),
        }

    def _maybe(self, value: Any) -> Any:
        return value if self._random.random() < 0.8 else None
