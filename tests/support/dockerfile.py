"""A parser for the parts of Dockerfile and .dockerignore that the project uses."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath


@dataclass(frozen=True)
class Instruction:
    """One instruction with its continuation lines joined: `COPY`, `a b /c`."""

    name: str
    text: str

    def words(self) -> list[str]:
        """The words of the exec form or of the shell form."""
        if self.text.startswith("["):
            return [str(word) for word in json.loads(self.text)]
        return shlex.split(self.text)


@dataclass(frozen=True)
class Stage:
    """The instructions between one FROM and the next."""

    base: str
    name: str
    instructions: tuple[Instruction, ...]

    def all(self, name: str) -> list[Instruction]:
        return [one for one in self.instructions if one.name == name]

    def last(self, name: str) -> Instruction:
        """The last instruction of that name, for those of which only the last one counts."""
        return self.all(name)[-1]

    def environment(self) -> dict[str, str]:
        """The variables that this stage's own ENV instructions set."""
        pairs = [word.partition("=") for one in self.all("ENV") for word in one.words()]
        return {name: value for name, _, value in pairs}


def read(path: Path) -> list[Stage]:
    """The stages of the Dockerfile at `path`, the final image's last."""
    stages: list[Stage] = []
    for one in _instructions(path.read_text()):
        if one.name == "FROM":
            base, _, name = one.text.partition(" AS ")
            stages.append(Stage(base, name, ()))
        else:
            stage = stages.pop()
            stages.append(Stage(stage.base, stage.name, (*stage.instructions, one)))
    return stages


def _instructions(text: str) -> Iterator[Instruction]:
    statement = ""
    for line in (line.strip() for line in text.splitlines()):
        if not line or line.startswith("#"):
            continue
        statement += line.removesuffix("\\").rstrip() + " "
        if not line.endswith("\\"):
            name, _, rest = statement.strip().partition(" ")
            yield Instruction(name, rest.strip())
            statement = ""


def hidden(path: PurePosixPath, dockerignore: str) -> bool:
    """Whether `path`, relative to the build's context, is left out of it: the last pattern that matches counts."""
    left_out = False
    for line in dockerignore.splitlines():
        pattern = line.strip()
        if pattern and not pattern.startswith("#") and _matches(path, pattern.removeprefix("!")):
            left_out = not pattern.startswith("!")
    return left_out


def _matches(path: PurePosixPath, pattern: str) -> bool:
    """Whether the pattern matches the path or a directory that it lies in."""
    places = (path, *path.parents)
    if pattern.startswith("**/"):
        return any(fnmatchcase(place.name, pattern.removeprefix("**/")) for place in places)
    wanted = PurePosixPath(pattern).parts
    return any(len(place.parts) == len(wanted) and all(map(fnmatchcase, place.parts, wanted)) for place in places)
