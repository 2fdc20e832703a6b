"""What one check of `doctor` says, and how checks follow each other."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass

from distributary.errors import DistributaryError

OK, WARNING, FAILED, NOT_LOOKED_AT = "ok", "warning", "failed", "not_looked_at"


@dataclass(frozen=True)
class Finding:
    """What a check found. `code` is stable and empty where all is well; `fix` says what to do."""

    check: str
    state: str
    message: str
    code: str = ""
    fix: str = ""

    def as_json(self) -> dict[str, str]:
        """The same with JSON's types only."""
        return asdict(self)


@dataclass(frozen=True)
class Healthy:
    """Nothing is to be done."""

    message: str


@dataclass(frozen=True)
class Doubtful:
    """The service would run, but perhaps not as it is meant."""

    code: str
    message: str
    fix: str


@dataclass(frozen=True)
class Check:
    """`look` raises DistributaryError for what has to be mended. `needs` are checks without which it can't look."""

    name: str
    look: Callable[[], Healthy | Doubtful]
    needs: tuple[str, ...] = ()


def findings(checks: Iterable[Check]) -> Iterator[Finding]:
    """What the checks say, each as soon as it is known; one that fails holds up those only that need it."""
    lacking: set[str] = set()
    for check in checks:
        missing = [name for name in check.needs if name in lacking]
        finding = _skipped(check, missing) if missing else _found(check)
        if finding.state in (FAILED, NOT_LOOKED_AT):
            lacking.add(check.name)
        yield finding


def _skipped(check: Check, missing: list[str]) -> Finding:
    return Finding(check.name, NOT_LOOKED_AT, f"not looked at, because this needs: {', '.join(missing)}")


def _found(check: Check) -> Finding:
    try:
        found = check.look()
    except DistributaryError as error:
        return Finding(check.name, FAILED, error.message, error.code, error.fix)
    if isinstance(found, Doubtful):
        return Finding(check.name, WARNING, found.message, found.code, found.fix)
    return Finding(check.name, OK, found.message)
