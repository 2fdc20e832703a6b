"""The lease: a small file beside the tables, and one in the checkpoint, that name the driver of a config.

The lease avoids that two drivers do the same work. It does not keep tables right, because no file system has a lock
that survives paused processes and broken networks. The progress record in each commit does: a commit succeeds only on
the version that its driver has read (see progress/record.py). So the lease can be simple: the last writer of the file
owns it, and a driver that finds another name in it stops.

The holder writes a heartbeat every few seconds. Another driver takes the lease over if the holder's process has ended
on this machine, or if there is no new heartbeat while it watches. It uses only its own clock, so clocks need not agree.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from py4j.protocol import Py4JJavaError

from distributary.config import Config
from distributary.control.lease_holder import Holder, already_running, holder_of, this_process
from distributary.error_mapping import classify
from distributary.errors import AlreadyRunning, SetupError
from distributary.ingest.tables import own_path
from distributary.logs import get_logger
from distributary.storage.json_file import JsonFile
from distributary.storage.lake_files import note_at

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

BEAT_EVERY = 10.0
"""Seconds between two heartbeats."""
EXPIRES_AFTER = 30.0
"""Seconds without a heartbeat after which the lease is free."""
_SETTLED_AFTER = 2.0  # seconds until the first check: if drivers start together, the last writer owns the lease
_LOOK_EVERY = 1.0  # seconds between two checks for another driver's heartbeat
_READS = 5  # attempts: on some file systems the file is empty while it is written
_log = get_logger(__name__)


def lease_paths(config: Config) -> tuple[str, ...]:
    """The files' paths. The first one decides; the second one protects the checkpoint from other configs."""
    beside_the_tables = own_path(config, "driver", f"{config.source.topic_prefix}.json")
    return beside_the_tables, f"{config.checkpoint.rstrip('/')}/driver.json"


def running_driver(config: Config) -> Holder | None:
    """The driver of the config if one runs on this machine. Needs no Spark."""
    for path in lease_paths(config):
        try:
            holder = read_holder(path)
        except SetupError:
            continue  # Spark may be able to read it; Lease.acquire() checks again
        if holder is not None and holder.is_alive:
            return holder
    return None


def refuse_second(config: Config) -> None:
    """Raises AlreadyRunning if a driver of the config runs on this machine. Called before Spark starts."""
    holder = running_driver(config)
    if holder is not None:
        raise already_running(holder, "runs")


def read_holder(path: str) -> Holder | None:
    """The driver in the file; None if there is no readable file. Needs no Spark. Raises SetupError if the storage can't
    be read."""
    text = note_at(path)
    return None if text is None else _parsed(text)


def is_lake_there(session: SparkSession, config: Config) -> bool:
    """Whether the directory of the lease beside the tables is there. While a driver holds the lease, it is missing only
    if somebody deleted it, or if its volume is not mounted any more."""
    return JsonFile(session, lease_paths(config)[0]).has_directory()


class Lease:
    """This driver's lease. `lost` is called once, from the lease's thread, when another driver has taken over."""

    def __init__(
        self,
        session: SparkSession,
        config: Config,
        lost: Callable[[AlreadyRunning], object],
        *,
        beat_every: float = BEAT_EVERY,
        expires_after: float = EXPIRES_AFTER,
    ) -> None:
        paths = lease_paths(config)
        self._files = [JsonFile(session, path) for path in paths]
        self._me = this_process(paths[0])
        self._on_lost = lost
        self._beat_every, self._expires_after = beat_every, expires_after
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._keep, name="lease", daemon=True)

    def acquire(self) -> None:
        """Takes the lease and starts the heartbeat. Raises AlreadyRunning if another driver has it, SetupError if the
        files can't be written."""
        try:
            for file in self._files:
                self._wait_for(file)
                file.write(self._me.to_json())
        except AlreadyRunning:
            self._remove_files()
            raise
        except Exception as error:
            raise SetupError(
                "lease-unwritable",
                f"the lease of this config can't be written: {classify(error).message}",
                "check that this machine may write to target.path and checkpoint; `distributary doctor` tries it",
            ) from error
        self._thread.start()

    def release(self) -> None:
        """Stops the heartbeat and releases the lease, unless another driver has it."""
        self._ending.set()
        if self._thread.is_alive():
            self._thread.join()
        self._remove_files()

    def _wait_for(self, file: JsonFile) -> None:
        """Waits until no other driver has the lease. Raises AlreadyRunning if its driver is alive."""
        other_holder, until = self._other(file), time.monotonic() + self._expires_after
        if other_holder is not None and not other_holder.is_gone and not other_holder.is_alive:
            _log.warning("another driver had this config: waiting for its next heartbeat", holder=str(other_holder))
        while other_holder is not None:
            if other_holder.is_alive:
                raise already_running(other_holder, "runs")
            if other_holder.is_gone or time.monotonic() >= until:
                _log.warning("taking over from a driver that is gone", holder=str(other_holder))
                return
            time.sleep(min(_LOOK_EVERY, self._expires_after))
            now = self._other(file)
            if now is not None and now != other_holder:
                raise already_running(now, "runs")
            other_holder = now

    def _keep(self) -> None:
        """Checks that the lease is still this driver's, and writes heartbeats, but not where a volume was mounted that
        is gone: see is_lake_there()."""
        pause, failing = min(_SETTLED_AFTER, self._beat_every), False
        while not self._ending.wait(pause):
            pause = self._beat_every
            try:
                for file in self._files:
                    other = self._other(file)
                    if other is not None:
                        self._on_lost(already_running(other, "has taken over"))
                        return
                present = [file for file in self._files if file.has_directory()]
                for file in present:
                    file.write(replace(self._me, beat=time.time()).to_json())
                reason = "" if len(present) == len(self._files) else "its directory is gone: is its volume mounted?"
            except Exception as error:
                reason = classify(error).message
            if reason and not failing:
                _log.warning("the lease could not be renewed", reason=reason)
            failing = bool(reason)

    def _other(self, file: JsonFile) -> Holder | None:
        """The other driver that has the lease; None if there is none. Between two drivers of one config only the first
        file decides: otherwise each could get one file, and both would stop."""
        for attempt in range(_READS):
            try:
                if not file.exists():
                    return None
                holder = holder_of(file.read())
            except Py4JJavaError:  # it may have been released in between
                if attempt == _READS - 1:
                    raise
                holder = None
            if holder is not None:
                decided = file is not self._files[0] and holder.home == self._me.home
                return None if holder.id == self._me.id or decided else holder
            time.sleep(_LOOK_EVERY / _READS)
        return None

    def _remove_files(self) -> None:
        try:
            for file in self._files:
                holder = holder_of(file.read())
                if holder is not None and holder.id == self._me.id:
                    file.remove()
        except Exception as error:
            _log.warning("the lease could not be released", reason=classify(error).message)


def _parsed(text: bytes) -> Holder | None:
    try:
        return holder_of(json.loads(text))
    except ValueError:
        return None
