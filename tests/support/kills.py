"""A service that is killed repeatedly while it applies a history: at failpoints and at random times."""

from __future__ import annotations

import signal
import subprocess
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from tests.support.playback import Playback, Run

from distributary.config import load
from distributary.control.resume_requests import Request, write_request
from distributary.failpoints import VARIABLE
from distributary.halt_actions import ResumeAction
from distributary.storage.lake_files import newest_record

AT_ANY_TIME = "at any time"
BEFORE_ANY_COMMIT = (
    *("before-plan", "after-schema-change", "before-request", "after-request"),
    *("before-compaction", "after-compaction"),
)
"""Points that a driver may pass before it has committed anything: a kill there need not come after progress."""
_NEVER_REACHED = 300.0
"""Seconds without a commit after which the rest of the history counts as not passing the point."""
_STILL_THERE = 10.0
"""The same once all records are applied."""


@dataclass
class Killer:
    """`tables`: schema and name of each; `topics`: theirs, and how many offsets they have; `later`: how many times more
    than needed a point may be passed."""

    playback: Playback
    tables: Sequence[tuple[str, str]]
    topics: dict[str, int]
    random: Random
    later: int = 0
    kills: Counter[str] = field(default_factory=Counter)
    progress: list[int] = field(default_factory=list)
    """Records applied at each kill."""

    @property
    def lease(self) -> Path:
        """The file that shows which driver runs the config."""
        return self.playback.lake / "_distributary" / "driver" / f"{self.playback.prefix}.json"

    def taken(self) -> int:
        """The number of applied records, by the tables' progress records."""
        found = [newest_record(str(self.playback.lake / schema / name)) for schema, name in self.tables]
        return sum(sum(newest.progress.next.values()) for newest in found if newest is not None)

    @property
    def is_through(self) -> bool:
        """Whether all records are applied."""
        return self.taken() == sum(self.topics.values())

    def kill(self, where: str) -> bool:
        """Runs the service until it is killed at that point; False if it never passed the point. Raises AssertionError
        if it ended otherwise, or made no progress since the last kill."""
        before = self.taken()
        if where.endswith("-request"):
            for topic in self.topics:
                write_request(load(self.playback.config_file), Request(topic, ResumeAction.RETRY))
        with self.playback.start(**self._environment(where)) as running:
            killed = self._until_killed(running.process, where)
            if not killed:
                running.process.send_signal(signal.SIGTERM)
                assert running.ended(120).exit_code == 0, running.log.read_text(encoding="utf-8")[-4000:]
                return False
            run = running.ended(60)
        assert run.exit_code == -signal.SIGKILL, str(run)
        now = self.taken()
        assert now > before or where in BEFORE_ANY_COMMIT, f"nothing was applied before the kill {where}: {run}"
        assert now >= before, "the tables went back"
        self.kills[where] += 1
        self.progress.append(now)
        return True

    def finish(self) -> Run:
        """Lets the service apply the remaining records."""
        return self.playback.run()

    def _environment(self, where: str) -> dict[str, str]:
        if where == AT_ANY_TIME:
            return {}
        # Each table is at work on one batch at a time: passed once more than there are tables, one has committed.
        passed = 1 if where in BEFORE_ANY_COMMIT else len(self.tables) + 1 + self.random.randint(0, self.later)
        return {VARIABLE: f"{where}=kill@{passed}"}

    def _until_killed(self, process: subprocess.Popen[bytes], where: str) -> bool:
        first = last = self.taken()
        # Not after some seconds: how many batches these are depends on the machine.
        goal = first + self.random.randint(1, max(1, (sum(self.topics.values()) - first) // 2))
        changed = time.monotonic()
        while process.poll() is None:
            time.sleep(0.05)
            now = self.taken()
            if where == AT_ANY_TIME and now >= goal:
                time.sleep(self.random.uniform(0, 0.2))
                process.kill()
                break
            if now != last:
                last, changed = now, time.monotonic()
            through = now == sum(self.topics.values()) and not where.endswith("-request")
            if time.monotonic() - changed > (_STILL_THERE if through else _NEVER_REACHED):
                return False
        return True


def children(pid: int) -> list[int]:
    """The processes that the process has started: of the service its JVM."""
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="utf-8").split()]
