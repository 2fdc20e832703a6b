"""Directories of jars that are filled once and found whole at every later start, without Java and without network."""

from __future__ import annotations

import fcntl
import hashlib
import json
import logging
import os
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from importlib.resources import files
from pathlib import Path

from distributary.errors import SetupError
from distributary.launch.ivy import Artifact, artifact_name, module_xml, resolve

MANIFEST = "manifest.json"
_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Manifest:
    """The record of a bundle in a directory: its key, and each file's size in bytes. Written last."""

    key: str
    files: dict[str, int]


@dataclass(frozen=True)
class Bundle:
    """A set of artifacts with what they need.

    `without`: names of artifacts to leave out although others need them. `parts`: names of artifacts that a complete
    directory must have. `hashes`: the SHA-256 of each file by its name, to detect files that a mirror, a proxy or
    somebody else has replaced; empty if unknown.
    """

    name: str
    artifacts: tuple[Artifact, ...]
    without: frozenset[str] = frozenset()
    parts: tuple[str, ...] = ()
    hashes: Mapping[str, str] = field(default_factory=dict, hash=False)

    @property
    def key(self) -> str:
        """Identifies the bundle by its declared content, without `without`: the latter comes from PySpark's own
        directory, and a jar that somebody adds there must not make a filled directory look wrong.
        """
        decides = module_xml(self.artifacts, ()) + "\n".join(self.parts)
        return f"{self.name}-{hashlib.sha256(decides.encode()).hexdigest()[:8]}"

    def cached(self) -> Path:
        """The bundle in the user's cache directory, filled. Raises SetupError."""
        directory = cache_directory() / self.key
        self.fill(directory)
        return directory

    def fill(self, directory: Path) -> None:
        """Makes sure that `directory` has the whole bundle; other files in it stay. Raises SetupError.

        Several processes may call it at once. A directory that was filled by hand is used unchanged if it has every
        part, those with a fixed revision at that revision.
        """
        if self.is_in(directory):
            return
        try:
            directory.mkdir(parents=True, exist_ok=True)
            with _locked(directory):
                if not self.is_in(directory):
                    self._resolve(directory)
        except OSError as error:
            raise SetupError(
                "jars-directory",
                f"{directory} lacks jars, and they can't be written there: {error.strerror or error}",
                "name a directory that can be written in DISTRIBUTARY_JARS, or one that has the jars already",
            ) from error

    def is_in(self, directory: Path) -> bool:
        """Whether `directory` has the whole bundle."""
        manifest = _manifest(directory)
        if manifest is None:
            by_hand = bool(self.parts) and all(self._found_by_hand(directory, part) for part in self.parts)
            return by_hand and all(self._is_genuine(file) for part in self.parts for file in _versions(directory, part))
        whole = all(_size(directory / name) == size for name, size in manifest.files.items())
        return manifest.key == self.key and whole and all(self._is_genuine(directory / name) for name in manifest.files)

    def lock(self) -> str:
        """Fetches the bundle again without checking it, and gives the content for the file of its hashes."""
        with tempfile.TemporaryDirectory() as place:
            replace(self, hashes={}).fill(Path(place))
            return "".join(f"{sha256(jar)}  {jar.name}\n" for jar in sorted(Path(place).glob("*.jar")))

    def _is_genuine(self, file: Path) -> bool:
        """Whether the file is the one that is meant, where that is known."""
        if not self.hashes or self.hashes.get(file.name) == sha256(file):
            return True
        _log.warning("%s differs from the file of that name in this version", file)
        return False

    def _found_by_hand(self, directory: Path, part: str) -> bool:
        jars = list(_versions(directory, part))
        fixed = {a.name: f"{a.name}-{a.revision}.jar" for a in self.artifacts if not a.revision.startswith("[")}
        return len(jars) == 1 and fixed.get(part, jars[0].name) == jars[0].name

    def _resolve(self, directory: Path) -> None:
        # On the file system of `directory`, so that files appear there whole or not at all; the manifest comes last.
        with tempfile.TemporaryDirectory(prefix=".resolving-", dir=directory) as place:
            resolve(self.artifacts, Path(place), without=self.without)
            came = sorted(Path(place).iterdir())
            absent = [part for part in self.parts if not any(_versions(Path(place), part))]
            if absent:
                raise SetupError(
                    "jars-unresolved",
                    f"{self.name}: the repository's descriptions did not lead to: {', '.join(absent)}",
                    "name another repository in DISTRIBUTARY_MAVEN_REPOSITORY",
                )
            for file in came:
                if not self._is_genuine(file):
                    raise SetupError(
                        "jar-altered",
                        f"the downloaded {file.name} has the SHA-256 {sha256(file)}, not"
                        f" {self.hashes.get(file.name, 'that of any jar that belongs here')}",
                        "somebody may have replaced it: name another repository in DISTRIBUTARY_MAVEN_REPOSITORY, and"
                        " inform the operators of this one",
                    )
            self._remove_other_versions(directory, {file.name for file in came})
            for file in came:
                file.replace(directory / file.name)
            manifest = Manifest(self.key, {file.name: (directory / file.name).stat().st_size for file in came})
            draft = Path(place, MANIFEST)
            draft.write_text(json.dumps(asdict(manifest), indent=2) + "\n", "utf-8")
            draft.replace(directory / MANIFEST)

    def _remove_other_versions(self, directory: Path, new: set[str]) -> None:
        """Two versions of a jar on one class path would be worse than none."""
        manifest = _manifest(directory)
        (directory / MANIFEST).unlink(missing_ok=True)
        old = set(manifest.files) if manifest else set()
        old |= {file.name for part in self.parts for file in _versions(directory, part)}
        for name in old - new:
            (directory / name).unlink(missing_ok=True)


def read_hashes(package: str, name: str) -> dict[str, str]:
    """The SHA-256 of each jar by its file's name, from a file of a package; `sha256sum -c` reads the same file."""
    lines = (files(package) / name).read_text("ascii").splitlines()
    return {jar: digest for digest, _, jar in (line.partition("  ") for line in lines)}


def sha256(file: Path) -> str:
    """The digest of a file, as `sha256sum` prints it."""
    with file.open("rb") as content:
        digest = hashlib.sha256()
        while piece := content.read(1 << 20):
            digest.update(piece)
    return digest.hexdigest()


def cache_directory() -> Path:
    """Where this user's caches of this package are."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "distributary"


def _versions(directory: Path, artifact: str) -> Iterator[Path]:
    """The jars of one artifact, of any version."""
    return (file for file in directory.glob("*.jar") if artifact_name(file) == artifact)


def _manifest(directory: Path) -> Manifest | None:
    try:
        return Manifest(**json.loads((directory / MANIFEST).read_text("utf-8")))
    except (FileNotFoundError, NotADirectoryError, ValueError, TypeError):
        return None


def _size(file: Path) -> int | None:
    return file.stat().st_size if file.is_file() else None


@contextmanager
def _locked(directory: Path) -> Iterator[None]:
    with (directory / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
