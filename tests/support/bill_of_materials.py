"""The bills of material of wheel and image, as CycloneDX: `python -m tests.support.bill_of_materials` writes both.

Python's packages are those that are installed here, which requirements.lock holds, without the tools for development.
The image has Debian's packages beside, which are known once it is built: the release's build lists those.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from importlib.metadata import requires
from pathlib import Path
from typing import Any

import click
from packaging.requirements import Requirement
from packaging.utils import NormalizedName, canonicalize_name
from tests.support.jar_coordinates import Coordinates, read_jar

import distributary
from distributary.launch.bundle import sha256
from distributary.launch.ivy import pyspark_jars
from distributary.launch.jars import jars

ROOT = Path(__file__).parents[2]
PLACE = ROOT / "build/sbom"

Bom = dict[str, Any]


def of_wheel() -> Bom:
    """The packages that `pip install distributary` installs."""
    with tempfile.TemporaryDirectory() as place:
        file = Path(place, "environment.json")
        command = [sys.executable, "-m", "cyclonedx_py", "environment", "--pyproject", str(ROOT / "pyproject.toml")]
        # Only a part of it is used, and tests validate that part. To validate all of it takes 15 seconds.
        command += ["--no-validate", "--output-reproducible", "--output-file", str(file), sys.executable]
        subprocess.run(command, check=True, capture_output=True, text=True)
        bom: Bom = json.loads(file.read_text("utf-8"))
    bom["metadata"]["component"]["version"] = distributary.__version__
    return only_needed(bom, _dependencies())


def of_image(wheel: Bom) -> Bom:
    """The same with the jars of PySpark and of the service. Fetches these where they are not there yet."""
    files = [*sorted(pyspark_jars().glob("*.jar")), *jars()]
    components = [*wheel["components"], *map(jar_component, files)]
    root = wheel["metadata"]["component"]
    image = wheel["metadata"] | {"component": root | {"type": "container"}}
    return wheel | {"metadata": image, "components": components}


def needed_by(direct: Iterable[str]) -> dict[NormalizedName, set[NormalizedName]]:
    """The packages that these requirements lead to here, each with those that it needs itself, by their plain names.

    Extras count only if a requirement names them; optional packages do not.
    """
    edges: dict[NormalizedName, set[NormalizedName]] = {}
    followed: set[tuple[str, str]] = set()
    ahead = [Requirement(one) for one in direct]
    while ahead:
        wanted = ahead.pop()
        name = canonicalize_name(wanted.name)
        edges.setdefault(name, set())
        for extra in ("", *sorted(wanted.extras)):
            if (name, extra) in followed:
                continue
            followed.add((name, extra))
            for needed in map(Requirement, requires(name) or ()):
                if needed.marker is None or needed.marker.evaluate({"extra": extra}):
                    edges[name].add(canonicalize_name(needed.name))
                    ahead.append(needed)
    return edges


def only_needed(bom: Bom, direct: list[str]) -> Bom:
    """The part of a bill that these requirements lead to."""
    edges = needed_by(direct)
    refs = {canonicalize_name(one["name"]): one["bom-ref"] for one in bom["components"]}
    depends = {refs[name]: sorted(refs[one] for one in needed) for name, needed in edges.items()}
    depends[bom["metadata"]["component"]["bom-ref"]] = sorted(
        refs[canonicalize_name(Requirement(one).name)] for one in direct
    )
    return bom | {
        "components": [one for one in bom["components"] if one["bom-ref"] in depends],
        "dependencies": [{"ref": ref, "dependsOn": on} for ref, on in sorted(depends.items())],
    }


def jar_component(file: Path) -> Bom:
    """A jar with its SHA-256, and within it what is shaded into it."""
    jar = read_jar(file)
    component = _maven_component(jar.itself, file.name) | {"hashes": [{"alg": "SHA-256", "content": sha256(file)}]}
    inside = [_maven_component(one, f"{file.name}!{one.purl}") for one in jar.shaded]
    return component | ({"components": inside} if inside else {})


def _maven_component(one: Coordinates, ref: str) -> Bom:
    known = {"group": one.group, "purl": one.purl} if one.group else {}
    return {"type": "library", "bom-ref": ref, "name": one.name, "version": one.version} | known


def _dependencies() -> list[str]:
    """`dependencies` of pyproject.toml. Python 3.10 has no reader of TOML."""
    [block] = re.findall(r"(?ms)^dependencies = \[$(.*?)^\]$", (ROOT / "pyproject.toml").read_text("utf-8"))
    return re.findall(r'(?m)^ +"([^"]+)"', block)


def main() -> None:
    PLACE.mkdir(parents=True, exist_ok=True)
    wheel = of_wheel()
    for name, bom in (("wheel", wheel), ("image", of_image(wheel))):
        file = PLACE / f"{name}.cdx.json"
        file.write_text(json.dumps(bom, indent=2) + "\n", "utf-8")
        click.echo(f"{file.relative_to(ROOT)}: {len(bom['components'])} components")


if __name__ == "__main__":
    main()
