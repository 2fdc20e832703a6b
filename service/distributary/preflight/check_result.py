"""The checks of `doctor`: a single check, running several in order, and their results."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass

from distributary.errors import DistributaryError

OK, WARNING, FAILED, SKIPPED = "ok", "warning", "failed", "not_looked_at"


@dataclass(frozen=True)
class CheckResult:
    """The result of a check. `code` is stable, and empty if `state` is ok; `fix` is the way to fix it."""

    check: str
    state: str
    message: str
    code: str = ""
    fix: str = ""

    def as_json(self) -> dict[str, str]:
        """The result in JSON's types."""
        return asdict(self)


@dataclass(frozen=True)
class CheckPassed:
    """The check passed."""

    message: str


@dataclass(frozen=True)
class CheckWarning:
    """The service would run, but perhaps not as intended."""

    code: str
    message: str
    fix: str


@dataclass(frozen=True)
class Check:
    """`run` raises DistributaryError for a fault. `needs`: the checks that must not have failed before this one."""

    name: str
    run: Callable[[], CheckPassed | CheckWarning]
    needs: tuple[str, ...] = ()


def run_checks(checks: Iterable[Check], show: Callable[[str], None] = lambda _check: None) -> Iterator[CheckResult]:
    """Runs the checks and yields each result at once; `show` is given the name of each before it runs. A check that
    fails skips only those that need it."""
    lacking: set[str] = set()
    for check in checks:
        show(check.name)
        missing = [name for name in check.needs if name in lacking]
        result = _skipped(check, missing) if missing else _found(check)
        if result.state in (FAILED, SKIPPED):
            lacking.add(check.name)
        yield result


def _skipped(check: Check, missing: list[str]) -> CheckResult:
    return CheckResult(check.name, SKIPPED, f"skipped, because it needs: {', '.join(missing)}")


def _found(check: Check) -> CheckResult:
    try:
        outcome = check.run()
    except DistributaryError as error:
        return CheckResult(check.name, FAILED, error.message, error.code, error.fix)
    if isinstance(outcome, CheckWarning):
        return CheckResult(check.name, WARNING, outcome.message, outcome.code, outcome.fix)
    return CheckResult(check.name, OK, outcome.message)
