"""One driver for one config: a small file beside the tables, and one in the checkpoint, that say who runs it.

The lease keeps two drivers from doing each other's work over. It is not what keeps tables right: no file system has a
lock that a driver could rely on through pauses and broken networks. That is the progress record in each commit, which
comes about only on top of the state that its driver has seen (see progress/record.py). So the lease may be as simple as
it is: the last one who writes the file has it, and a driver that finds another one's name in it stops.

On S3 it is all there is between two processes: Delta's S3SingleDriverLogStore keeps two commits of one version apart
within a process only.

A holder gives a sign of life every few seconds. Another driver takes the lease over when the holder is gone (its
process ended, as far as this machine can tell) or has given no sign while the other one watched: by the watcher's own
clock, so that clocks need not agree.
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
from distributary.error_mapping import classified
from distributary.errors import AlreadyRunning, SetupError
from distributary.ingest.tables import own_path
from distributary.logs import get_logger
from distributary.storage.json_file import JsonFile
from distributary.storage.lake_files import note_at

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

BEAT_EVERY = 10.0
"""Seconds between two signs of life."""
EXPIRES_AFTER = 30.0
"""Seconds without one, after which the lease is free."""
_SETTLED_AFTER = 2.0  # seconds until the first look: of drivers that start together the last one to write has it
_LOOK_EVERY = 1.0  # seconds, while another one's sign is waited for
_READS = 5  # of a file that is there and can't be understood: on some file systems it is empty while it is written
_log = get_logger(__name__)


def lease_paths(config: Config) -> tuple[str, ...]:
    """Where the files lie. The first one decides; the second one keeps other configs off the checkpoint."""
    beside_the_tables = own_path(config, "driver", f"{config.source.topic_prefix}.json")
    return beside_the_tables, f"{config.checkpoint.rstrip('/')}/driver.json"


def refuse_second(config: Config) -> None:
    """Raises AlreadyRunning where a driver is seen to live on this machine, before Spark is started."""
    for path in lease_paths(config):
        try:
            holder = told_holder(path)
        except SetupError:
            continue  # Spark may get there; then the lease is looked at with it
        if holder is not None and holder.is_alive:
            raise already_running(holder, "runs")


def told_holder(path: str) -> Holder | None:
    """Whom the file names; None where there is no file, or none that can be understood. Needs no Spark. Raises
    SetupError where the storage can't be read."""
    text = note_at(path)
    return None if text is None else _parsed(text)


class Lease:
    """This driver's. `lost` is called once, from a thread of the lease's own, when another driver has taken over."""

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
        self._notes = [JsonFile(session, path) for path in paths]
        self._me = this_process(paths[0])
        self._lost = lost
        self._beat_every, self._expires_after = beat_every, expires_after
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._keep, name="lease", daemon=True)

    def take(self) -> None:
        """Raises AlreadyRunning where another driver has it, SetupError where the files can't be written."""
        try:
            for note in self._notes:
                self._wait_for(note)
                note.write(self._me.to_json())
        except AlreadyRunning:
            self._release()
            raise
        except Exception as error:
            raise SetupError(
                "lease-unwritable",
                f"the file that says which driver runs this config can't be written: {classified(error).message}",
                "check that this machine may write to target.path and checkpoint; `distributary doctor` tries it",
            ) from error
        self._thread.start()

    def end(self) -> None:
        """Gives it back, unless another one has it."""
        self._ending.set()
        if self._thread.is_alive():
            self._thread.join()
        self._release()

    def _wait_for(self, note: JsonFile) -> None:
        """Until nobody else has it. Raises AlreadyRunning where somebody has it and lives."""
        seen, until = self._other(note), time.monotonic() + self._expires_after
        if seen is not None and not seen.is_gone and not seen.is_alive:
            _log.warning("another driver had this config: its next sign of life is waited for", holder=str(seen))
        while seen is not None:
            if seen.is_alive:
                raise already_running(seen, "runs")
            if seen.is_gone or time.monotonic() >= until:
                _log.warning("taken over from a driver that is gone", holder=str(seen))
                return
            time.sleep(min(_LOOK_EVERY, self._expires_after))
            now = self._other(note)
            if now is not None and now != seen:
                raise already_running(now, "runs")
            seen = now

    def _keep(self) -> None:
        """Looks whether the lease is still this driver's, and gives a sign of life."""
        pause, failing = min(_SETTLED_AFTER, self._beat_every), False
        while not self._ending.wait(pause):
            pause = self._beat_every
            try:
                for note in self._notes:
                    other = self._other(note)
                    if other is not None:
                        self._lost(already_running(other, "has taken over"))
                        return
                    note.write(replace(self._me, beat=time.time()).to_json())
                failing = False
            except Exception as error:
                if not failing:
                    _log.warning("no sign of life could be given", reason=classified(error).message)
                failing = True

    def _other(self, note: JsonFile) -> Holder | None:
        """Who else has it; None where nobody does. Of two drivers of one config the first file decides alone: they
        could get one file each, and both would stop."""
        for attempt in range(_READS):
            try:
                if not note.exists():
                    return None
                holder = holder_of(note.read())
            except Py4JJavaError:  # it may have been given back in between
                if attempt == _READS - 1:
                    raise
                holder = None
            if holder is not None:
                decided = note is not self._notes[0] and holder.home == self._me.home
                return None if holder.id == self._me.id or decided else holder
            time.sleep(_LOOK_EVERY / _READS)
        return None

    def _release(self) -> None:
        try:
            for note in self._notes:
                holder = holder_of(note.read())
                if holder is not None and holder.id == self._me.id:
                    note.remove()
        except Exception as error:
            _log.warning("the lease could not be given back", reason=classified(error).message)


def _parsed(text: bytes) -> Holder | None:
    try:
        return holder_of(json.loads(text))
    except ValueError:
        return None
