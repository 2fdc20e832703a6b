"""All simulated sources, and how each of them executes a history."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from tests.model.source.binlog import MariaDb, MySql
from tests.model.source.database import Database, Entry
from tests.model.source.db2 import Db2
from tests.model.source.history import History
from tests.model.source.layout import LAYOUTS, Layout
from tests.model.source.oracle import Oracle
from tests.model.source.postgresql import PostgreSql
from tests.model.source.sent import Connector, Sent
from tests.model.source.sqlserver import SqlServer

FLAVOURS: dict[str, Callable[[Layout], Connector]] = {
    "sqlserver": SqlServer,
    "sqlserver_direct": partial(SqlServer, direct=True),
    "db2": Db2,
    "postgresql": PostgreSql,
    "postgresql_full": partial(PostgreSql, full=True),
    "mysql": MySql,
    "mariadb": MariaDb,
    "oracle": Oracle,
}


@dataclass(frozen=True)
class Played:
    """A played history: the database's log, and the records that the connector sent."""

    flavour: str
    layout: Layout
    connector: Connector
    log: tuple[Entry, ...]
    sent: tuple[Sent, ...]


def play(flavour: str, layout: str, history: History) -> Played:
    """Plays a history in a source of the flavour, on a table of the layout."""
    connector = FLAVOURS[flavour](LAYOUTS[layout])
    database = Database(connector.layout, connector.dialect)
    log = database.run(history)
    return Played(flavour, connector.layout, connector, tuple(log), tuple(connector.send(log)))
