"""The error tree, named for what the caller can do about it.

```
DistributaryError            code, message, the way out, and where it happened
├── UsageError               the command line or the config is wrong            exit 2
│   └── ConfigError          every fault of the config at once, with file:line  exit 2
├── SetupError               this machine lacks something (Java, a jar, …)      exit 2
├── TransientError           a retry may help; retried with growing pauses
├── TableHalt                one table can't continue; all others do            exit 1
└── AlreadyRunning           another driver runs this config                    exit 3
```
Messages never hold users' data: they name tables, topics, partitions, offsets, columns and types.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

_LONGEST = 4_000
"""Characters of a message about tables: it may name columns, and a record may bring thousands of long ones. It is in
the log, in a file of the lake and in each answer of /status."""


class DistributaryError(Exception):
    """Base of all errors that users see.

    `code` is stable and in the docs, `message` describes the error and its place, `fix` the way out.
    """

    exit_code = 2

    def __init__(self, code: str, message: str, fix: str = "") -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.fix = fix

    def __str__(self) -> str:
        way_out = f"\n  what to do: {self.fix}" if self.fix else ""
        return f"[{self.code}] {self.message}{way_out}"

    def as_dict(self) -> dict[str, str]:
        """The error as the status shows it: `code`, `message` and `fix`."""
        return {"code": self.code, "message": self.message, "fix": self.fix}


class UsageError(DistributaryError):
    """The command line or the config is wrong."""


@dataclass(frozen=True, order=True)
class Fault:
    """One fault of a config: its file and line, its stable code, the message and the fix."""

    file: Path
    line: int
    code: str
    message: str
    fix: str = ""

    def __str__(self) -> str:
        way_out = f" ({self.fix})" if self.fix else ""
        return f"{self.file}:{self.line}: [{self.code}] {self.message}{way_out}"


class ConfigError(UsageError):
    """All faults of a config, in the order of files and lines."""

    def __init__(self, faults: list[Fault]) -> None:
        self.faults = sorted(faults)
        count = len(self.faults)
        super().__init__(
            "config-invalid",
            f"the config has {count} fault{'' if count == 1 else 's'}:\n" + "\n".join(map(str, self.faults)),
        )


class SetupError(DistributaryError):
    """This machine lacks something that the service needs."""


class _OfTables(DistributaryError):
    """Has names that come from records, and cuts them where they are very many."""

    def __init__(self, code: str, message: str, fix: str = "") -> None:
        super().__init__(code, _cut(message), _cut(fix))


class TransientError(_OfTables):
    """Something outside the service failed and may work again: the work is tried again, nothing is lost."""


class TableHalt(_OfTables):
    """One table can't continue without losing or guessing something. It stays unchanged; all others continue."""

    exit_code = 1


class AlreadyRunning(DistributaryError):
    """Another driver runs this config."""

    exit_code = 3


def _cut(text: str) -> str:
    """The text, or if it is long its two ends: the end of a message has the place of the error."""
    cut_count = len(text) - _LONGEST
    half = _LONGEST // 2
    return text if cut_count <= 0 else f"{text[:half]} … ({cut_count} more characters) … {text[-half:]}"
