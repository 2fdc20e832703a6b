"""Points at which a test can make the service fail, to check that no change is lost or applied twice.

`DISTRIBUTARY_FAILPOINTS="after-commit=kill@3;before-quarantine:dbo.orders=wait(20)"`: at a point, perhaps of one table
only, an action, perhaps only when it is passed for the n-th time. Without the variable a point costs one look into an
empty dictionary.
"""

from __future__ import annotations

import os
import re
import signal
import threading
import time
from collections import defaultdict
from dataclasses import dataclass

from distributary.errors import TransientError, UsageError
from distributary.logs import get_logger

VARIABLE = "DISTRIBUTARY_FAILPOINTS"

POINTS = {
    "before-plan": "the stream has a micro-batch, and no table has its offsets yet",
    "before-batch": "a table is about to process its next batch",
    "after-schema-change": "the table was created or got columns, and has no row of the batch yet",
    "before-quarantine": "records that can't be applied are found, and not written yet",
    "after-quarantine": "they are in quarantine, and their offsets do not count as applied yet",
    "before-commit": "the new rows are computed, and nothing of the batch is written",
    "after-commit": "the batch is committed, and nothing else has changed",
    "before-compaction": "a compaction is about to start",
    "after-compaction": "the compaction is committed, and not recorded yet",
    "before-request": "an operator's request was found, and not processed yet",
    "after-request": "the request was processed, and its file still exists",
}
"""Each point, and the state of the service at it."""

ACTIONS = ("kill", "raise", "raise-transient", "wait(SECONDS)")
_RULE = re.compile(
    r"(?P<point>[a-z-]+)(?::(?P<table>[^=]+))?"
    r"=(?P<action>kill|raise-transient|raise|wait\((?P<seconds>\d+(?:\.\d+)?)\))(?:@(?P<nth>[1-9]\d*))?"
)
_log = get_logger(__name__)


class MadeToFail(Exception):
    """The error of the action `raise`, which nothing in the service expects."""


@dataclass
class _Rule:
    """The action at a point. `table`: of this one only; `nth`: only at this passing, which are counted."""

    point: str
    table: str | None
    action: str
    seconds: float
    nth: int | None
    passed: int = 0


_armed: dict[str, list[_Rule]] = {}
_counting = threading.Lock()


def arm(text: str | None) -> None:
    """Sets the failures from now on, from the variable's value; none for None. Raises UsageError if the value can't be
    parsed: a failure that never happens would look like one that was survived."""
    rules: dict[str, list[_Rule]] = defaultdict(list)
    for part in filter(None, (part.strip() for part in (text or "").split(";"))):
        match = _RULE.fullmatch(part)
        if match is None or match["point"] not in POINTS:
            raise UsageError(
                "bad-failpoint",
                f"{VARIABLE} has {part!r}",
                f"write POINT=ACTION, POINT:TABLE=ACTION or POINT=ACTION@N; points: {', '.join(POINTS)};"
                f" actions: {', '.join(ACTIONS)}",
            )
        nth = int(match["nth"]) if match["nth"] else None
        action = match["action"].partition("(")[0]
        rules[match["point"]].append(_Rule(match["point"], match["table"], action, float(match["seconds"] or 0), nth))
    _armed.clear()
    _armed.update(rules)
    if rules:
        _log.warning("the service is made to fail", failpoints=text)


def passing(point: str, table: str = "") -> None:
    """To be called at each point, with the table's name (schema.table) if the point concerns one table."""
    if point in _armed:
        for rule in _armed[point]:
            _fail(rule, table)


def _fail(rule: _Rule, table: str) -> None:
    if rule.table not in (None, table):
        return
    with _counting:
        rule.passed += 1
        if rule.nth not in (None, rule.passed):
            return
    _log.warning("made to fail", point=rule.point, table=table, action=rule.action)
    if rule.action == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    elif rule.action == "wait":
        time.sleep(rule.seconds)
    elif rule.action == "raise-transient":
        raise TransientError("made-to-fail", f"made to fail at {rule.point}", "it is tried again")
    else:
        raise MadeToFail(rule.point)
