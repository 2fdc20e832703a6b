"""`${env:NAME}`, `${env:NAME:-default}` and `${file:PATH}` in the scalar values of a config."""

from __future__ import annotations

import os
import re
from pathlib import Path

FORMS = "${env:NAME}, ${env:NAME:-default} or ${file:PATH}"

# A secret is a line of text; anything larger is a wrong path, and would be held in memory for the whole run.
LARGEST_FILE = 1 << 20

_REFERENCE = re.compile(r"\$\$\{|\$\{([^{}]*)\}|\$\{")
_ENV = re.compile(r"env:([A-Za-z_][A-Za-z0-9_]*)(?::-(.*))?", re.DOTALL)
_FILE = re.compile(r"file:(.+)", re.DOTALL)


class Interpolated(str):
    """A value from outside of the config file. Its repr is the text in the file, never the value.

    `written` is the text in the config file; `from_outside` is False if all of it came from written defaults.
    """

    written: str
    from_outside: bool

    def __new__(cls, value: str, written: str, from_outside: bool = True) -> Interpolated:
        text = super().__new__(cls, value)
        text.written = written
        text.from_outside = from_outside
        return text

    def __repr__(self) -> str:
        return repr(self.written)


class InterpolationError(Exception):
    """A reference that can't be followed: `code`, `message` and `fix` become a fault of the config."""

    def __init__(self, code: str, message: str, fix: str = "") -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.fix = fix


def interpolate(written: str, directory: Path) -> str:
    """The value of the text `written`, with its references replaced; relative paths of files begin at `directory`. Text
    without references is returned unchanged, with references as `Interpolated`. `$${` is replaced by `${`. References
    in the inserted values are not resolved. Raises `InterpolationError`.
    """
    if "${" not in written:
        return written
    references = 0
    from_outside = False

    def follow(match: re.Match[str]) -> str:
        nonlocal references, from_outside
        if match.group() == "$${":
            return "${"
        references += 1
        value, outside = _value(match.group(1), directory)
        from_outside = from_outside or outside
        return value

    value = _REFERENCE.sub(follow, written)
    return Interpolated(value, written, from_outside) if references else value


def escaped(text: str) -> str:
    """`text` written so that interpolate() returns it."""
    return text.replace("${", "$${")


def unescaped(written: str) -> str | None:
    """The text of `written` where references are not allowed; None if it has one."""
    if any(match.group() != "$${" for match in _REFERENCE.finditer(written)):
        return None
    return written.replace("$${", "${")


def _value(reference: str | None, directory: Path) -> tuple[str, bool]:
    if reference is None:
        raise InterpolationError("interpolation-syntax", "`${` has no closing `}`", "write $${ for a literal ${")
    if match := _ENV.fullmatch(reference):
        name, default = match.groups()
        value = os.environ.get(name)
        if default is not None and not value:
            return default, False
        if value is None:
            raise InterpolationError(
                "env-missing",
                f"the environment variable {name} is not set",
                f"set it; where no secret is asked for, ${{env:{name}:-DEFAULT}} does without it",
            )
        return value, True
    if match := _FILE.fullmatch(reference):
        return _content(directory / match.group(1)), True
    raise InterpolationError(
        "interpolation-syntax",
        f"`${{{reference.partition(':')[0]}…}}` is not a reference that is known here",
        f"write {FORMS}; $${{ stands for a literal ${{",
    )


def _content(path: Path) -> str:
    """The text of a file without one line end at its end, which editors and `echo` put there."""
    try:
        if path.is_file() and path.stat().st_size > LARGEST_FILE:
            raise InterpolationError("file-unreadable", f"the file {path} is larger than {LARGEST_FILE} bytes")
        text = path.read_bytes().decode("utf-8")
    except FileNotFoundError:
        raise InterpolationError(
            "file-missing", f"there is no file {path}", "paths in ${file:…} start at the config file's directory"
        ) from None
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise InterpolationError("file-unreadable", f"the file {path} can't be read: {reason}") from None
    return text.removesuffix("\n").removesuffix("\r")
