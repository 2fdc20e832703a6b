"""The one list of jars that the service needs beside PySpark's own, and where they are.

Versions follow from the installed pyspark and delta-spark, so that wheel and jar are always equal.
`python -m distributary.launch.jars` fills the directory; the Makefile and the image do so with this same list.
"""

from __future__ import annotations

import os
import sys
from importlib.metadata import version
from pathlib import Path

import click

from distributary.errors import DistributaryError
from distributary.launch.bundle import Bundle, read_hashes
from distributary.launch.ivy import Artifact, artifact_name, pyspark_jars, resolve

HASHES = "jars.sha256"
DIRECTORY_VARIABLE = "DISTRIBUTARY_JARS"
# Spark 4 is made for this Scala only.
_SCALA = "2.13"
# Needed by Delta for Unity Catalog's temporary credentials only.
_NEVER_USED = frozenset({"unitycatalog-hadoop", "jackson-datatype-jdk8"})


def jars() -> list[Path]:
    """The jars to give to Spark: the declared ones and those that the user put beside them, sorted by name.

    Fetched if they are not there yet. Raises SetupError (`jars-unresolved`, `java-missing`, `java-too-old`, …).
    """
    return sorted(jar_directory().glob("*.jar"))


def jar_directory() -> Path:
    """The directory with the jars: that of DISTRIBUTARY_JARS, else one in the user's cache. Raises SetupError."""
    named = os.environ.get(DIRECTORY_VARIABLE)
    if not named:
        return declared().cached()
    directory = Path(named).absolute()
    declared().fill(directory)
    return directory


def declared(spark: str | None = None, delta: str | None = None) -> Bundle:
    """The declared list, for these versions or for the installed ones; of these the files' hashes are known.

    Not every mirror of Maven Central has every jar of a Spark release: if the token provider is missing, the newest
    earlier one of the same major version is used.
    """
    installed = version("pyspark"), version("delta-spark")
    spark, delta = spark or installed[0], delta or installed[1]
    major, minor = spark.split(".")[:2]
    up_to_spark = f"[{major}.0.0,{spark}]"
    artifacts = (
        Artifact("io.delta", f"delta-spark_{major}.{minor}_{_SCALA}", delta),
        Artifact("org.apache.spark", f"spark-sql-kafka-0-10_{_SCALA}", spark),
        Artifact("org.apache.spark", f"spark-token-provider-kafka-0-10_{_SCALA}", up_to_spark),
    )
    needed_by_them = (
        "delta-storage",
        "delta-kernel-api",
        "delta-kernel-defaults",
        "delta-kernel-unitycatalog",
        "unitycatalog-client",
        "kafka-clients",
        "commons-pool2",
    )
    return Bundle(
        name=f"jars/spark-{spark}-delta-{delta}",
        artifacts=artifacts,
        without=_in_pyspark() | _NEVER_USED,
        parts=(*(artifact.name for artifact in artifacts), *needed_by_them),
        hashes=read_hashes("distributary.launch", HASHES) if (spark, delta) == installed else {},
    )


def add(coordinates: str, directory: Path) -> None:
    """Put an artifact and what it needs beside the jars in `directory`: `GROUP:NAME:VERSION`, such as the connector of
    an object store, in place of another version of it. Dependencies that PySpark or the directory already has stay
    unchanged. Raises SetupError."""
    group, name, revision = coordinates.split(":")
    there = {artifact_name(file) for file in directory.glob("*.jar")} - {name}
    resolve([Artifact(group, name, revision)], directory, without=_in_pyspark() | there)
    for file in directory.glob("*.jar"):
        if artifact_name(file) == name and file.name != f"{name}-{revision}.jar":
            file.unlink()


def _in_pyspark() -> frozenset[str]:
    """The artifacts that PySpark ships. They are not fetched, because they must not override PySpark's own."""
    return frozenset(artifact_name(file) for file in pyspark_jars().glob("*.jar"))


def _coordinates(_context: click.Context, _option: click.Parameter, given: tuple[str, ...]) -> tuple[str, ...]:
    for coordinates in given:
        if coordinates.count(":") != 2:
            raise click.BadParameter(f"{coordinates} is not GROUP:NAME:VERSION")
    return given


@click.command()
@click.option("--list", "only_list", is_flag=True, help="Print the declared artifacts and fetch nothing.")
@click.option("--lock", "only_lock", is_flag=True, help="Fetch them anew and print their hashes, for jars.sha256.")
@click.option(
    "--into",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="DIR",
    help="Fill this directory (default: what DISTRIBUTARY_JARS names, else one in the user's cache).",
)
@click.option(
    "--with",
    "more",
    multiple=True,
    callback=_coordinates,
    metavar="GROUP:NAME:VERSION",
    help="Put this artifact and what it needs beside them, such as the connector of an object store.",
)
def main(only_list: bool, only_lock: bool, into: Path | None, more: tuple[str, ...]) -> None:
    """Fetches the jars that the service needs and prints where they are; does nothing where they are already.

    What --with names is resolved each time."""
    try:
        if only_list:
            for artifact in declared().artifacts:
                click.echo(artifact)
            return
        if only_lock:
            click.echo(declared().lock(), nl=False)
            return
        if into:
            declared().fill(into.absolute())
        directory = into or jar_directory()
        for coordinates in more:
            add(coordinates, directory.absolute())
        click.echo(directory)
    except DistributaryError as error:
        click.echo(error, err=True)
        sys.exit(error.exit_code)


if __name__ == "__main__":
    main()
