"""Points of the service at which it can be made to fail, to see that nothing is lost and nothing comes twice.

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
    "before-plan": "a batch of the stream is there, and no table knows of it yet",
    "before-batch": "a table's next batch is about to be taken: between the batches of two tables, too",
    "after-schema-change": "the table was made or got columns, and has none of the batch's rows yet",
    "before-quarantine": "the batch has records that can't be applied, and they are nowhere yet",
    "after-quarantine": "they are in quarantine, and the table does not count them as applied yet",
    "before-commit": "it is known what becomes of each key, and nothing of the batch is written",
    "after-commit": "the batch is in the table, and nobody was told",
    "before-compaction": "a table's small files are about to be made into larger ones",
    "after-compaction": "they are, and nothing notes it yet",
    "before-request": "an operator's request was found, and nothing of it is done",
    "after-request": "what the operator asked for is done, and the request is still there",
}
"""Each point, and what is so when it is passed."""

ACTIONS = ("kill", "raise", "raise-transient", "wait(SECONDS)")
_RULE = re.compile(
    r"(?P<point>[a-z-]+)(?::(?P<table>[^=]+))?"
    r"=(?P<action>kill|raise-transient|raise|wait\((?P<seconds>\d+(?:\.\d+)?)\))(?:@(?P<nth>[1-9]\d*))?"
)
_log = get_logger(__name__)


class MadeToFail(Exception):
    """What `raise` raises: an error that nothing in the service expects."""


@dataclass
class _Rule:
    """What happens at a point. `table`: of this one only; `nth`: only at this passing, which are counted."""

    point: str
    table: str | None
    action: str
    seconds: float
    nth: int | None
    passed: int = 0


_armed: dict[str, list[_Rule]] = {}
_counting = threading.Lock()


def arm(text: str | None) -> None:
    """Sets what happens from now on, from the variable's value; nothing for None. Raises UsageError where it can't be
    understood: a failure that never comes would look like one that was survived."""
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
    """Called where the service passes the point, with the table's name (schema.table) where it is about one."""
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
