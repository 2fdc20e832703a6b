"""Debezium signals for an ad-hoc snapshot. Pure: names and conditions in, SQL and JSON out.

Debezium reads the names in `data-collections` as regular expressions. All special characters of a name are escaped,
except the dots between its parts.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from distributary.decode.position import CONNECTORS
from distributary.errors import UsageError
from distributary.rules.log_traits import BINLOG_CONNECTORS

INCREMENTAL, BLOCKING = "incremental", "blocking"
EXECUTE = "execute-snapshot"
_WITH_DATABASE = ("sqlserver", "oracle")
"""Connectors whose names of tables have three parts."""
_SPECIAL = re.compile(r"([\\^$.|?*+()\[\]{},])")  # of regular expressions, and the comma between several
_PART = re.compile(r'"(?:[^"\\]|\\.)*"|[^."]+')

Name = tuple[str, ...]
"""A table of the source by its parts: schema (on MySQL and MariaDB the database) and table, with the database first if
the connector's names have one."""


@dataclass(frozen=True)
class Signal:
    """A request for a snapshot. `id` has at most 42 characters, like the signal table's column. `where` is a condition
    in the source's SQL; None requests all rows."""

    id: str
    connector: str
    tables: tuple[Name, ...]
    kind: str = INCREMENTAL
    where: str | None = None

    def data(self) -> dict[str, Any]:
        """The signal's `data`. Raises UsageError for a name that Debezium can't handle."""
        data: dict[str, Any] = {"data-collections": [_pattern(name) for name in self.tables], "type": self.kind}
        if self.where is not None:
            data["additional-conditions"] = list(self._conditions(self.where))
        return data

    def _conditions(self, where: str) -> Iterator[dict[str, str]]:
        for name in self.tables:
            if self.kind == INCREMENTAL:
                yield {"data-collection": _pattern(name), "filter": where}
                continue
            # A blocking snapshot needs a whole SELECT, and here the name is not a regular expression.
            if any(_SPECIAL.search(part) for part in name):
                raise UsageError(
                    "name-not-for-condition",
                    f"a blocking snapshot of {'.'.join(name)} can't have a condition: its name has special characters"
                    " of regular expressions",
                    "leave --where out, or use --type incremental",
                )
            of_oracle = self.connector == "oracle"  # its SQL has no database in a table's name
            place = quoted(self.connector, name[-2:] if of_oracle else name)
            yield {"data-collection": ".".join(name), "filter": f"SELECT * FROM {place} WHERE {where}"}

    def sql(self, signal_table: Name) -> str:
        """The INSERT for the signal table, in the SQL of the connector's database."""
        data = json.dumps(self.data(), ensure_ascii=False)
        values = ", ".join(_literal(self.connector, value) for value in (self.id, EXECUTE, data))
        return f"INSERT INTO {quoted(self.connector, signal_table)} (id, type, data) VALUES ({values});"

    def record(self) -> bytes:
        """The value of the signal's record for the signal topic."""
        signal = {"id": self.id, "type": EXECUTE, "data": self.data()}
        return json.dumps(signal, ensure_ascii=False).encode()


def source_name(connector: str, table: Name, announced: str | None, database: str | None) -> Name:
    """The connector's name of a table.

    `announced`: its name in its records (`db.schema.table`, see source_block.source_table). It takes precedence over
    `table`, the name in its topic, because topics can't have all characters. `database`: used if neither has one.
    Raises UsageError if the database is needed and unknown, and for connectors whose names are unknown.
    """
    if connector not in CONNECTORS:
        raise UsageError(
            "connector-without-signals",
            f"this command does not support signals for the connector {connector}",
            "write the signal by hand: docs/snapshots.md has its format",
        )
    parts = parts_of(announced) if announced else table
    if connector not in _WITH_DATABASE:
        return parts[-2:]
    if len(parts) < 3 and not database:
        raise UsageError(
            "database-unknown",
            f"on {connector} table names begin with the database, and that of {'.'.join(table)} is not known yet",
            "set it: --database NAME",
        )
    return parts[-3:] if len(parts) >= 3 else (str(database), *parts)


def parts_of(name: str) -> Name:
    """The parts of a dotted name; a part with a dot is in double quotes."""
    parts = _PART.findall(name)
    return tuple(str(json.loads(part)) if part.startswith('"') else part for part in parts)


def quoted(connector: str, name: Name) -> str:
    """The name in the SQL of the connector's database, with each part quoted."""
    return ".".join(_quoted(connector, part) for part in name)


def _quoted(connector: str, part: str) -> str:
    if connector in BINLOG_CONNECTORS:
        return "`" + part.replace("`", "``") + "`"
    if connector == "sqlserver":
        return "[" + part.replace("]", "]]") + "]"
    return '"' + part.replace('"', '""') + '"'


def _literal(connector: str, text: str) -> str:
    doubled = text.replace("'", "''")
    if connector in BINLOG_CONNECTORS:
        doubled = doubled.replace("\\", "\\\\")
    # Without N, SQL Server replaces characters that the database's code page lacks by question marks.
    wide = "N" if connector == "sqlserver" and not text.isascii() else ""
    return f"{wide}'{doubled}'"


def _pattern(name: Name) -> str:
    return ".".join(_SPECIAL.sub(r"\\\1", part) for part in name)
