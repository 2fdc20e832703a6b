"""Polls the config's files while the service runs: which changes are applied at once, and which faults they have. Files
are compared by content: a ConfigMap changes by a symbolic link, which no modification time shows. A change is applied
once it has been the same for two polls, so that no half-written file is read.
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
    """A change of the files. `config`: the new config, None if no key that can change at once has changed. `faults`: of
    files that are ignored; their earlier content counts. `waiting`: changed keys of the main file that need a restart.
    """

    config: Config | None
    faults: tuple[Fault, ...] = ()
    waiting: tuple[str, ...] = ()

    def as_json(self) -> dict[str, Any] | None:
        """The ignored changes, with JSON's types only: `faults`, and the keys that are `waiting` for a restart; None if
        there are none."""
        if not self.faults and not self.waiting:
            return None
        faults = [
            {"file": str(f.file), "line": f.line, "code": f.code, "message": f.message, "fix": f.fix}
            for f in self.faults
        ]
        return {"faults": faults, "waiting": list(self.waiting)}


class ConfigWatcher:
    """Polls the files of the config that the service runs with."""

    def __init__(self, path: Path, config: Config) -> None:
        self._path = path
        self._config = config
        self._seen = self._contents()
        self._settling: Contents = self._seen
        self._valid: dict[Path, bytes | None] = {**self._seen}

    def poll(self) -> Change | None:
        """The change since the last poll; None if there is none, or a file may be half-written."""
        now = self._contents()
        settled, self._settling = now == self._settling, now
        if now == self._seen or not settled:
            return None
        self._seen = now
        return self._apply(now)

    def _contents(self) -> Contents:
        try:
            files = [self._path, *included_files(self._path, self._config.include)]
        except OSError:
            files = [self._path]
        return {file: _content(file) for file in files}

    def _apply(self, now: Contents) -> Change:
        previous: dict[Path, bytes | None] = {}
        faults: list[Fault] = []
        while True:
            try:
                config = load(self._path, previous)
                break
            except ConfigError as error:
                faults += error.faults
                bad = {fault.file for fault in error.faults} - previous.keys()
                if not bad or self._path in bad:
                    return Change(None, tuple(faults))
                # A file that was valid before keeps its earlier content; a new one is left out.
                previous |= {file: self._valid.get(file) for file in bad}
        self._valid = {**now, **previous}
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
