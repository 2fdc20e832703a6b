"""Artifacts from a Maven repository, fetched by the Ivy that PySpark ships, run by itself: no Maven, no Spark."""

from __future__ import annotations

import logging
import os
import re
import subprocess
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import urlsplit
from xml.sax.saxutils import quoteattr

from distributary.errors import SetupError
from distributary.launch.java import java

# A mirror to ask instead of Maven Central, which Ivy knows by itself.
REPOSITORY_VARIABLE = "DISTRIBUTARY_MAVEN_REPOSITORY"
LAST_LINES = 15

_log = logging.getLogger(__name__)
_FIX = (
    "let this machine reach Maven Central (through a proxy: "
    "JAVA_TOOL_OPTIONS='-Dhttps.proxyHost=HOST -Dhttps.proxyPort=PORT'), or name a mirror of it in "
    f"{REPOSITORY_VARIABLE}, or run `python -m distributary.launch.jars --into DIR` on a machine that can, "
    "copy DIR here and name it in DISTRIBUTARY_JARS"
)
_UNRESOLVED = re.compile(r"^\s*:: (?P<org>[^\s#]+)#(?P<name>[^\s;]+);(?P<revision>[^\s!:]+)", re.MULTILINE)
_UNREACHABLE = re.compile(r"Server access error at url (?P<url>\S+) \((?P<reason>[^)\n]*)\)")


@dataclass(frozen=True, order=True)
class Artifact:
    """One file of a Maven repository. `revision` may be a range such as `[4.0.0,4.2.0]`: the newest in it.

    An artifact that is no plain jar, such as a plugin's archive, is assumed to contain all that it needs.
    """

    organisation: str
    name: str
    revision: str
    type: str = "jar"
    classifier: str = ""

    def __str__(self) -> str:
        return f"{self.organisation}:{self.name}:{self.revision}"


def resolve(artifacts: Sequence[Artifact], into: Path, *, without: Iterable[str] = ()) -> None:
    """Fetch the artifacts and what they need at run time into the directory `into`, as `<name>-<revision>.<type>`.

    A declared revision is used even if another artifact needs a different one. Artifacts named in `without` are left
    out, along with what only they need. Raises SetupError: `jars-unresolved` names what could not be had.
    """
    _log.info("fetching %s", ", ".join(map(str, artifacts)))
    with tempfile.TemporaryDirectory(prefix="distributary-ivy-") as scratch:
        settings, module = Path(scratch, "settings.xml"), Path(scratch, "ivy.xml")
        settings.write_text(settings_xml(os.environ.get(REPOSITORY_VARIABLE, "")), "utf-8")
        module.write_text(module_xml(artifacts, without), "utf-8")
        command = [java(), "-jar", str(_ivy_jar()), "-settings", str(settings), "-ivy", str(module)]
        # A separate cache: files of an earlier, interrupted run are never trusted.
        command += ["-cache", str(Path(scratch, "cache"))]
        command += ["-retrieve", str(into / "[artifact]-[revision](-[classifier]).[ext]")]
        run = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    if run.returncode != 0:
        raise unresolved(run.stdout + run.stderr)


def module_xml(artifacts: Iterable[Artifact], without: Iterable[str]) -> str:
    """The Ivy file with the artifacts as dependencies."""
    dependencies, overrides = [], []
    for wanted in artifacts:
        where = f"org={quoteattr(wanted.organisation)} name={quoteattr(wanted.name)} rev={quoteattr(wanted.revision)}"
        inner, more = "", ""
        if wanted.type != "jar" or wanted.classifier:
            kind = f"type={quoteattr(wanted.type)} ext={quoteattr(wanted.type)}"
            classifier = f" m:classifier={quoteattr(wanted.classifier)}" if wanted.classifier else ""
            more = ' transitive="false"'
            inner = f"<artifact name={quoteattr(wanted.name)} {kind}{classifier}/>"
        dependencies.append(f'<dependency {where} conf="default->default"{more}>{inner}</dependency>')
        overrides.append(f"<override {where.replace(' name=', ' module=', 1)}/>")
    excludes = [f'<exclude org="*" module={quoteattr(name)}/>' for name in sorted(set(without))]
    lines = "\n".join(f"    {line}" for line in [*dependencies, *excludes, *overrides])
    return f"""<ivy-module version="2.0" xmlns:m="http://ant.apache.org/ivy/maven">
  <info organisation="distributary" module="jars"/>
  <configurations><conf name="default"/></configurations>
  <dependencies>
{lines}
  </dependencies>
</ivy-module>
"""


def settings_xml(repository: str) -> str:
    """Ivy's settings: one repository, Maven Central if `repository` is empty; nothing of the user's own settings."""
    root = f" root={quoteattr(repository.rstrip('/') + '/')}" if repository else ""
    return f"""<ivysettings>
  <settings defaultResolver="maven"/>
  <resolvers><ibiblio name="maven" m2compatible="true"{root}/></resolvers>
</ivysettings>
"""


def unresolved(output: str) -> SetupError:
    """The error for a failed run of Ivy that printed `output`."""
    missing = sorted({f"{m['org']}:{m['name']}:{m['revision']}" for m in _UNRESOLVED.finditer(output)})
    unreachable = _UNREACHABLE.search(output)
    if not missing:
        end = "\n".join(output.strip().splitlines()[-LAST_LINES:])
        return SetupError("jars-unresolved", f"Ivy failed; the end of its output:\n{end}", _FIX)
    message = f"{len(missing)} artifact{'' if len(missing) == 1 else 's'} could not be had: {', '.join(missing)}"
    if unreachable:
        # The host alone: a URL may hold a password.
        message += f"; {urlsplit(unreachable['url']).hostname} did not answer: {unreachable['reason']}"
    return SetupError("jars-unresolved", message, _FIX)


def artifact_name(jar: Path) -> str:
    """`delta-spark_4.2_2.13` of `delta-spark_4.2_2.13-4.4.0.jar`; the whole name of a file without a version."""
    match = re.match(r"(.+)-\d+(\.\d+)+", jar.name)
    return match[1] if match else jar.name


def pyspark_jars() -> Path:
    """The directory of the jars that PySpark ships. Raises SetupError `pyspark-missing`."""
    spec = find_spec("pyspark")
    places = spec.submodule_search_locations if spec else None
    if not places:
        raise SetupError("pyspark-missing", "PySpark is not installed", "pip install pyspark")
    return Path(places[0], "jars")


def _ivy_jar() -> Path:
    jars = sorted(pyspark_jars().glob("ivy-*.jar"))
    if not jars:
        raise SetupError("pyspark-missing", f"{pyspark_jars()} has no ivy-*.jar", "install PySpark with pip")
    return jars[-1]
