"""The problem that a validator reports: a code, a message and a fix, which `load` turns into a fault with its line.

No message holds a value of the config, since a value may have come out of a secret file. `load` adds the text in the
config file if it helps.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from pydantic import ValidationError
from pydantic_core import InitErrorDetails, PydanticCustomError


@dataclass(frozen=True)
class Problem:
    """Something wrong below the value that is being validated; `loc` is the way from there."""

    code: str
    message: str
    fix: str = ""
    loc: tuple[str | int, ...] = ()

    def error(self) -> PydanticCustomError:
        """The exception to raise from a validator of one value."""
        return PydanticCustomError(self.code, "{message}", {"message": self.message, "fix": self.fix})


def refuse(problems: Iterable[Problem]) -> None:
    """Raises all problems at once, each at its own place; does nothing where there are none."""
    details = [InitErrorDetails(type=problem.error(), loc=problem.loc, input=None) for problem in problems]
    if details:
        raise ValidationError.from_exception_data("config", details, hide_input=True)


def with_problems(error: ValidationError, problems: Iterable[Problem]) -> ValidationError:
    """`error` with `problems` beside it, for a validator that also checks the sections below."""
    details = [
        InitErrorDetails(
            type=PydanticCustomError(known["type"], "{message}", {"message": known["msg"], **known.get("ctx", {})}),
            loc=known["loc"],
            input=None,
        )
        for known in error.errors(include_url=False, include_input=False)
    ]
    details += [InitErrorDetails(type=problem.error(), loc=problem.loc, input=None) for problem in problems]
    return ValidationError.from_exception_data("config", details, hide_input=True)
