"""Applies changes of the config's files to the running service: which tables there are, and with which settings."""

from __future__ import annotations

import time
from collections.abc import Callable
from logging import ERROR, WARNING

from distributary.config import Config
from distributary.config.watch import ConfigWatcher
from distributary.error_mapping import classify
from distributary.logs import get_logger
from distributary.observe.status import ServiceStatus
from distributary.workers.offset_planner import OffsetPlanner
from distributary.workers.table_set import TableSet

_EVERY = 2.0  # seconds between two polls of the files
_log = get_logger(__name__)


class ConfigChanges:
    """Passes a changed config to `tables`, `planner` and `also_apply`; shows its faults in the status.

    `watch` is None for a service that keeps the config that it was started with.
    """

    def __init__(
        self,
        watch: ConfigWatcher | None,
        status: ServiceStatus,
        tables: TableSet,
        planner: OffsetPlanner,
        also_apply: Callable[[Config], None],
    ) -> None:
        self._watch = watch
        self._status = status
        self._tables = tables
        self._planner = planner
        self._also_apply = also_apply
        self._polled_at = time.monotonic()
        self._replan = False

    def follow(self) -> None:
        """Polls the files if it is time, and applies a change. To be called at each turn of the service's loop."""
        self._tables.replace_outdated()
        if self._replan:
            self._plan_newest()
        now = time.monotonic()
        if self._watch is None or now < self._polled_at + _EVERY:
            return
        self._polled_at = now
        change = self._watch.poll()
        if change is None:
            return
        ignored = change.as_json()
        if ignored is not None and ignored != self._status.config:
            _log.log(ERROR if change.faults else WARNING, "a change of the config's files is ignored", **ignored)
        self._status.show_config(ignored)
        if change.config is not None:
            self._apply(change.config)

    def _apply(self, config: Config) -> None:
        _log.info("the config's tables have changed", entries=len(config.tables))
        self._also_apply(config)
        self._tables.follow(config)
        self._tables.replace_outdated()
        self._planner.follow(config)
        self._plan_newest()

    def _plan_newest(self) -> None:
        """Sets the targets of all tables from the newest planned batch: a new table may never get another one."""
        try:
            self._planner.plan_newest()
            self._replan = False
        except Exception as error:
            self._replan = True
            _log.warning("new tables can't be looked up yet", reason=classify(error).message)
