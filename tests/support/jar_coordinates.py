"""The Maven coordinates of a jar and of its contents: from the jar itself, or from its name."""

from __future__ import annotations

import re
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

# A Maven build leaves this behind, also in what a shaded jar swallowed.
_POM = re.compile(r"META-INF/maven/[^/]+/[^/]+/pom\.properties")
_FILE = re.compile(r"(?P<name>.+?)-(?P<version>\d+(\.\d+)*([.-][\w.]+)*?)\.jar")
# Of jars of other builds, whose manifests name no group or a wrong one.
_GROUPS = {
    "RoaringBitmap": "org.roaringbitmap",
    "arpack_combined_all": "net.sourceforge.f2j",
    "derby": "org.apache.derby",
    "derbyshared": "org.apache.derby",
    "derbytools": "org.apache.derby",
    "hadoop-client-runtime": "org.apache.hadoop",
    "ivy": "org.apache.ivy",
    "jdo-api": "javax.jdo",
    "jsr305": "com.google.code.findbugs",
    "jta": "javax.transaction",
    "kafka-clients": "org.apache.kafka",
    "libfb303": "org.apache.thrift",
    "libthrift": "org.apache.thrift",
    "objenesis": "org.objenesis",
    "oro": "oro",
    "rocksdbjni": "org.rocksdb",
    "scala-compiler": "org.scala-lang",
    "scala-library": "org.scala-lang",
    "scala-reflect": "org.scala-lang",
    "stax-api": "stax",
    "tink": "com.google.crypto.tink",
    "transaction-api": "javax.transaction",
    "xz": "org.tukaani",
}


@dataclass(frozen=True, order=True)
class Coordinates:
    """An artifact of a Maven repository; `group` is empty if it is unknown."""

    group: str
    name: str
    version: str

    @property
    def purl(self) -> str:
        """Its package URL, by which databases know it."""
        return f"pkg:maven/{self.group}/{self.name}@{self.version}"


@dataclass(frozen=True)
class Jar:
    """A jar, and the artifacts that were put into it under other names of their classes (`shaded`)."""

    file: Path
    itself: Coordinates
    shaded: tuple[Coordinates, ...]


def read_jar(file: Path) -> Jar:
    """Raises ValueError for a file whose name has no version, zipfile.BadZipFile for a file that is no jar."""
    named = _FILE.fullmatch(file.name)
    if named is None:
        raise ValueError(f"{file.name} is not NAME-VERSION.jar")
    with zipfile.ZipFile(file) as jar:
        inside = sorted(set(_poms(jar)))
        itself = [one for one in inside if file.name.startswith(f"{one.name}-{one.version}")]
        if not itself:
            group = _GROUPS.get(named["name"]) or _manifest(jar).get("Implementation-Vendor-Id", "")
            itself = [Coordinates(group, named["name"], named["version"])]
    return Jar(file, itself[0], tuple(one for one in inside if one != itself[0]))


def _poms(jar: zipfile.ZipFile) -> Iterator[Coordinates]:
    for name in filter(_POM.fullmatch, jar.namelist()):
        lines = jar.read(name).decode("utf-8", "replace").splitlines()
        found = {key.strip(): value.strip() for key, mark, value in (line.partition("=") for line in lines) if mark}
        if {"groupId", "artifactId", "version"} <= set(found):
            yield Coordinates(found["groupId"], found["artifactId"], found["version"])


def _manifest(jar: zipfile.ZipFile) -> dict[str, str]:
    """The main part of the jar's manifest; long lines continue after a blank."""
    try:
        text = jar.read("META-INF/MANIFEST.MF").decode("utf-8", "replace")
    except KeyError:
        return {}
    lines = re.sub(r"\r?\n ", "", text).splitlines()
    return {key: value.strip() for key, mark, value in (line.partition(":") for line in lines) if mark}
