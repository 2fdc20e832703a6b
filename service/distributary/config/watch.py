"""The config's files while the service runs: what of a change counts at once, and what is wrong with it.

Files are compared by their content: a ConfigMap changes by a link that points elsewhere, and times tell nothing of it.
A change counts when two looks have seen the same, so that a file that is being written is not taken for a whole one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from distributary.config.load import included_files, load
from distributary.config.model import ABOUT_TABLES, Config
from distributary.errors import ConfigError, Fault

Contents = Mapping[Path, bytes | None]


@dataclass(frozen=True)
class Change:
    """What became of the files.

    `config` is what counts from now on, None where nothing that counts at once has changed. `faults` are those of files
    that are not taken: what they said before counts. `waiting` are the keys of the main file that a start alone takes.
    """

    config: Config | None
    faults: tuple[Fault, ...] = ()
    waiting: tuple[str, ...] = ()

    def as_json(self) -> dict[str, Any] | None:
        """What does not count, with JSON's types only: `faults`, and the keys that are `waiting` for a restart; None
        where everything counts."""
        if not self.faults and not self.waiting:
            return None
        faults = [
            {"file": str(f.file), "line": f.line, "code": f.code, "message": f.message, "fix": f.fix}
            for f in self.faults
        ]
        return {"faults": faults, "waiting": list(self.waiting)}


class ConfigWatcher:
    """Looks at the files of a config that is in force."""

    def __init__(self, path: Path, config: Config) -> None:
        self._path = path
        self._config = config
        self._seen = self._contents()
        self._settling: Contents = self._seen
        self._valid: dict[Path, bytes | None] = {**self._seen}

    def poll(self) -> Change | None:
        """What has changed since the last look; None where nothing has, or where it may not be whole yet."""
        now = self._contents()
        settled, self._settling = now == self._settling, now
        if now == self._seen or not settled:
            return None
        self._seen = now
        return self._taken(now)

    def _contents(self) -> Contents:
        try:
            files = [self._path, *included_files(self._path, self._config.include)]
        except OSError:
            files = [self._path]
        return {file: _content(file) for file in files}

    def _taken(self, now: Contents) -> Change:
        held: dict[Path, bytes | None] = {}
        faults: list[Fault] = []
        while True:
            try:
                config = load(self._path, held)
                break
            except ConfigError as error:
                faults += error.faults
                bad = {fault.file for fault in error.faults} - held.keys()
                if not bad or self._path in bad:
                    return Change(None, tuple(faults))
                # A file that was valid before keeps its earlier content; a new one is left out.
                held |= {file: self._valid.get(file) for file in bad}
        self._valid = {**now, **held}
        waiting = tuple(
            name
            for name in Config.model_fields
            if name not in ABOUT_TABLES and getattr(config, name) != getattr(self._config, name)
        )
        changed = any(getattr(config, name) != getattr(self._config, name) for name in ABOUT_TABLES)
        self._config = self._config.with_tables_of(config)
        return Change(self._config if changed else None, tuple(faults), waiting)


def _content(file: Path) -> bytes | None:
    try:
        return file.read_bytes()
    except OSError:
        return None
