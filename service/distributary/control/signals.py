"""The texts by which Debezium is asked for an ad-hoc snapshot: pure, names and conditions in, SQL and JSON out.

Debezium takes the names of `data-collections` as regular expressions. The dots between the parts of a name stay as they
are: all other characters are matched as themselves, so that nothing but dots can stand there.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from distributary.decode.source_block import BINLOG_CONNECTORS, CONNECTORS
from distributary.errors import UsageError

INCREMENTAL, BLOCKING = "incremental", "blocking"
KINDS = (INCREMENTAL, BLOCKING)
EXECUTE = "execute-snapshot"
_WITH_DATABASE = ("sqlserver", "oracle")
"""Connectors whose names of tables have three parts."""
_SPECIAL = re.compile(r"([\\^$.|?*+()\[\]{},])")  # of regular expressions, and the comma between several
_PART = re.compile(r'"(?:[^"\\]|\\.)*"|[^."]+')

Name = tuple[str, ...]
"""A table of the source by its parts: the schema (on MySQL and MariaDB the database) and the table, behind the database
where the connector's names have one."""


@dataclass(frozen=True)
class Signal:
    """A request for a snapshot. `id` is at most 42 characters, as the signal table's column. `where` is a condition in
    the source's SQL; None asks for all rows."""

    id: str
    connector: str
    tables: tuple[Name, ...]
    kind: str = INCREMENTAL
    where: str | None = None

    def data(self) -> dict[str, Any]:
        """What the signal carries. Raises UsageError for a name that Debezium can't take."""
        data: dict[str, Any] = {"data-collections": [_pattern(name) for name in self.tables], "type": self.kind}
        if self.where is not None:
            data["additional-conditions"] = list(self._conditions(self.where))
        return data

    def _conditions(self, where: str) -> Iterator[dict[str, str]]:
        for name in self.tables:
            if self.kind == INCREMENTAL:
                yield {"data-collection": _pattern(name), "filter": where}
                continue
            # A blocking snapshot takes a whole SELECT, and the name as a name, not as an expression.
            if any(_SPECIAL.search(part) for part in name):
                raise UsageError(
                    "name-not-for-condition",
                    f"a blocking snapshot of {'.'.join(name)} can't have a condition: its name has characters that"
                    " Debezium reads in two ways",
                    "leave --where out, or ask for --type incremental",
                )
            of_oracle = self.connector == "oracle"  # where a database is no part of a table's name in SQL
            place = quoted(self.connector, name[-2:] if of_oracle else name)
            yield {"data-collection": ".".join(name), "filter": f"SELECT * FROM {place} WHERE {where}"}

    def sql(self, signal_table: Name) -> str:
        """The statement that writes the signal into the signal table, in the SQL of the connector's database."""
        data = json.dumps(self.data(), ensure_ascii=False)
        values = ", ".join(_literal(self.connector, value) for value in (self.id, EXECUTE, data))
        return f"INSERT INTO {quoted(self.connector, signal_table)} (id, type, data) VALUES ({values});"

    def record(self) -> bytes:
        """The value of the record that is the signal, for the signal topic."""
        told = {"id": self.id, "type": EXECUTE, "data": self.data()}
        return json.dumps(told, ensure_ascii=False).encode()


def source_name(connector: str, table: Name, told: str | None, database: str | None) -> Name:
    """What the connector calls a table: `table` is its schema and name by its topic, `told` its name by its records
    (`db.schema.table`, see source_block.source_table), which comes first, as topics lack some characters. `database`
    is taken where neither tells it. Raises UsageError where the database is needed and nobody tells it, and for
    connectors whose names are not known."""
    if connector not in CONNECTORS:
        raise UsageError(
            "connector-without-signals",
            f"signals for the connector {connector} are not known to this command",
            "write the signal by hand: docs/snapshots.md shows what is in it",
        )
    parts = parts_of(told) if told else table
    if connector not in _WITH_DATABASE:
        return parts[-2:]
    if len(parts) < 3 and not database:
        raise UsageError(
            "database-unknown",
            f"names of tables begin with the database on {connector}, and nothing tells that of {'.'.join(table)} yet",
            "name it: --database NAME",
        )
    return parts[-3:] if len(parts) >= 3 else (str(database), *parts)


def parts_of(name: str) -> Name:
    """The parts of a name with dots between them; a part that has a dot itself is in double quotes."""
    found = _PART.findall(name)
    return tuple(str(json.loads(part)) if part.startswith('"') else part for part in found)


def quoted(connector: str, name: Name) -> str:
    """The name as the connector's database writes it, with each part in quotes."""
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
    # Without N, SQL Server would turn characters that the database's code page lacks into question marks.
    wide = "N" if connector == "sqlserver" and not text.isascii() else ""
    return f"{wide}'{doubled}'"


def _pattern(name: Name) -> str:
    return ".".join(_SPECIAL.sub(r"\\\1", part) for part in name)
