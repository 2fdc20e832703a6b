"""Which topics are tables, and which table a topic is."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Iterable
from dataclasses import dataclass

DEFAULT_SIGNAL_TABLE = "debezium_signal"
# Folders of the target path that are the service's own: no table lies there, nor below.
RESERVED_FOLDERS = ("_quarantine", "_distributary")
# Readers take every folder that has a folder of this name for a Delta table.
DELTA_LOG = "_delta_log"


@dataclass(frozen=True, order=True)
class TableId:
    """A source table by its topic, with the topic's spelling. `database` only if the topic names one."""

    schema: str
    table: str
    database: str | None = None

    def __str__(self) -> str:
        return f"{self.schema}.{self.table}"

    @property
    def in_full(self) -> str:
        """With the database, where it is known."""
        return f"{self.database}.{self}" if self.database else str(self)


def subscription_pattern(topic_prefix: str, matches: Iterable[str]) -> str:
    """A Java regex for all topics that the config's tables may have, with and without a database part."""
    globs = "|".join(_regex_of_glob(m) for m in dict.fromkeys(matches))
    return rf"^{_quoted(topic_prefix)}\.(?:[^.]+\.)?(?:{globs})$"


def _regex_of_glob(glob: str) -> str:
    # fnmatch.translate writes Python's own syntax around the pattern; inside it is what Java knows, too.
    translated = fnmatch.translate(glob)
    return re.sub(r"^\(\?s:(.*)\)\\[Zz]$", r"\1", translated, flags=re.DOTALL)


def _quoted(text: str) -> str:
    return re.sub(r"([^A-Za-z0-9_])", r"\\\1", text)


def table_of(topic: str, topic_prefix: str, connector: str | None) -> TableId | None:
    """The table whose changes the topic holds; None for topics that are not tables.

    `<prefix>.<schema>.<table>`; the four-part form with a database is SQL Server's, for the others what follows the
    schema is the table's name, dots and all.
    """
    if not topic.startswith(topic_prefix + "."):
        return None
    parts = topic[len(topic_prefix) + 1 :].split(".")
    database = None
    if connector == "sqlserver" and len(parts) >= 3:
        database, parts = parts[0], parts[1:]
    if len(parts) < 2:
        return None  # the transaction topic, <prefix>.message, notifications
    schema, table = parts[0], ".".join(parts[1:])
    if not schema or schema in RESERVED_FOLDERS or table in ("", ".", "..", "._") or database == "":
        return None
    return TableId(schema, table, database)


def is_signal_table(table: TableId, signal_table: str | None) -> bool:
    """The table through which signals are sent to the connector: its topic is not a table of the lake."""
    if signal_table is None:
        return table.table == DEFAULT_SIGNAL_TABLE
    return signal_table in (str(table), table.in_full, table.table)


def has_database_part(topic: str, topic_prefix: str) -> bool:
    """Whether the topic's identity depends on the connector (four parts or more)."""
    return topic.startswith(topic_prefix + ".") and topic[len(topic_prefix) + 1 :].count(".") >= 2
