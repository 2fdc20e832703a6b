"""Records for Kafka, the expected rows in the lake, and the origin of both."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

Row = Mapping[str, Any]
"""A row of a source table: column names to Python values (int, str, bool, float, Decimal, date, datetime, None)."""

Headers = tuple[tuple[str, bytes], ...]


class Origin(str, Enum):
    """Where change events come from. The demo always shows this."""

    RECORDED_POSTGRESQL = "recorded from a real PostgreSQL"
    SIMULATED_SQLSERVER = "simulated SQL Server"
    SIMULATED_DB2 = "simulated Db2"


@dataclass(frozen=True)
class Record:
    """One Kafka record. `partition` is None if the record's key decides, as it does with Debezium."""

    topic: str
    key: bytes | None
    value: bytes | None
    headers: Headers = ()
    partition: int | None = None


@dataclass(frozen=True)
class Truth:
    """The final rows of a source table, which the table in the lake must have.

    `table` is `<schema>.<table>` as in the topic. `null_arrives_as` names columns where the connector sends a value in
    place of NULL: in these the lake must have the value that was sent.
    """

    table: str
    origin: Origin
    key: tuple[str, ...]
    columns: tuple[str, ...]
    rows: Sequence[Row]
    null_arrives_as: Mapping[str, Any] = field(default_factory=dict)

    def on_the_wire(self) -> list[dict[str, Any]]:
        """The rows as change events can carry them."""
        return [
            {
                name: self.null_arrives_as[name] if value is None and name in self.null_arrives_as else value
                for name, value in row.items()
            }
            for row in self.rows
        ]

    def nulls_replaced(self) -> dict[str, int]:
        """Per column of `null_arrives_as` in how many rows a NULL arrived as something else."""
        counts = {name: sum(row[name] is None for row in self.rows) for name in self.null_arrives_as}
        return {name: count for name, count in counts.items() if count}


@dataclass(frozen=True)
class Wave:
    """One step of the demo: its title, its records per origin, and remarks on them."""

    title: str
    records: Mapping[Origin, Sequence[Record]]
    remarks: tuple[str, ...] = ()
