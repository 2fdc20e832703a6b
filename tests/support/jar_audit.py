"""Known vulnerabilities of jars and of the artifacts shaded into them: `python -m tests.support.jar_audit` asks OSV's
database."""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import click
from tests.support.jar_coordinates import Coordinates, Jar, read_jar

from distributary.launch.ivy import pyspark_jars
from distributary.launch.jars import jars

OSV = "https://api.osv.dev"
# As many as the database takes in one request.
_AT_ONCE = 1000

Ask = Callable[[list[dict[str, Any]]], list[dict[str, Any]]]
"""Queries of OSV's `querybatch` to its results, in the same order."""


def weaknesses(artifacts: Iterable[Coordinates], ask: Ask) -> dict[Coordinates, list[str]]:
    """The identifiers of each artifact's known vulnerabilities; artifacts without any are left out."""
    found: dict[Coordinates, list[str]] = {}
    ahead: list[tuple[Coordinates, dict[str, Any]]] = [
        (one, {"package": {"purl": one.purl}}) for one in sorted(set(artifacts))
    ]
    while ahead:
        now, ahead = ahead[:_AT_ONCE], ahead[_AT_ONCE:]
        results = ask([query for _, query in now])
        if len(results) != len(now):
            raise click.ClickException(f"the database answered {len(results)} of {len(now)} queries")
        for (one, query), result in zip(now, results, strict=True):
            if ids := [weakness["id"] for weakness in result.get("vulns", ())]:
                found.setdefault(one, []).extend(ids)
            if token := result.get("next_page_token"):
                ahead.append((one, query | {"page_token": token}))
    return found


def ask_osv(url: str) -> Ask:
    """Raises ClickException where the database does not answer."""

    def ask(queries: list[dict[str, Any]]) -> list[dict[str, Any]]:
        request = urllib.request.Request(
            f"{url.rstrip('/')}/v1/querybatch",
            json.dumps({"queries": queries}).encode(),
            {"Content-Type": "application/json"},
        )
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                results: list[dict[str, Any]] = json.load(answer)["results"]
                return results
        except (OSError, ValueError, KeyError) as error:
            raise click.ClickException(
                f"{url} does not answer as a database of OSV ({error}): nothing was looked up; --osv names another one"
            ) from error

    return ask


def unknown(read: Iterable[Jar]) -> list[str]:
    """The jars without a known group, which no database can look up."""
    return [jar.file.name for jar in read if not jar.itself.group]


@click.command()
@click.option("--osv", default=OSV, show_default=True, metavar="URL", help="The database.")
@click.option("--ignore", multiple=True, metavar="ID", help="A weakness that was looked at and does not count.")
def main(osv: str, ignore: tuple[str, ...]) -> None:
    """Look up known weaknesses of PySpark's jars, of those beside them, and of what is shaded into them.

    Exits with 1 if there are any, or if not all could be looked up."""
    read = [read_jar(file) for file in [*sorted(pyspark_jars().glob("*.jar")), *jars()]]
    if nameless := unknown(read):
        raise click.ClickException(f"of these jars the group is not known: {', '.join(nameless)}")
    places: dict[Coordinates, list[Path]] = {}
    for jar in read:
        for one in (jar.itself, *jar.shaded):
            places.setdefault(one, []).append(jar.file)
    found = weaknesses(places, ask_osv(osv))
    count = 0
    for one, ids in sorted(found.items()):
        for identifier in sorted(set(ids) - set(ignore)):
            count += 1
            click.echo(f"{identifier}  {one.purl}  in {', '.join(file.name for file in places[one])}")
    click.echo(f"{len(read)} jars with {len(places)} artifacts: {count or 'no'} known weaknesses")
    if count:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
