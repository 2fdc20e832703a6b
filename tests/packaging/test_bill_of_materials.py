"""The bills of materials, and what is asked of a database of weaknesses."""

from __future__ import annotations

import json
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
from tests.support import bill_of_materials, jar_audit
from tests.support.http_servers import serving
from tests.support.jar_coordinates import Coordinates, read_jar

import distributary
from distributary.launch.ivy import pyspark_jars

ROOT = Path(__file__).parents[2]


def jar(file: Path, **entries: str) -> Path:
    with zipfile.ZipFile(file, "w") as archive:
        for name, text in entries.items():
            archive.writestr(name, text)
    return file


def pom(group: str, name: str, revision: str) -> dict[str, str]:
    text = f"#Created by Maven\ngroupId={group}\nartifactId={name}\nversion={revision}\n"
    return {f"META-INF/maven/{group}/{name}/pom.properties": text}


@pytest.fixture(scope="module")
def wheel() -> bill_of_materials.Bom:
    return bill_of_materials.of_wheel()


@pytest.fixture
def jars(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """The jars beside PySpark's; the real ones are in tests/integration/test_resolved_jars.py."""
    files = [
        jar(tmp_path / "kafka-clients-3.9.2.jar"),
        jar(tmp_path / "big-1.0.jar", **pom("org.big", "big", "1.0"), **pom("io.netty", "netty-common", "4.1.1.Final")),
    ]
    for module in (bill_of_materials, jar_audit):
        monkeypatch.setattr(module, "jars", lambda: files)
    return files


def names(bom: bill_of_materials.Bom) -> set[str]:
    return {one["name"].lower() for one in bom["components"]}


def test_the_wheels_bill_has_what_it_needs_and_no_tools(wheel: bill_of_materials.Bom) -> None:
    assert wheel["metadata"]["component"]["version"] == distributary.__version__
    # Of an extra of a dependency, and of a dependency's dependency.
    assert {"pyspark", "delta_spark", "click", "confluent-kafka", "authlib", "pydantic_core"} <= names(wheel)
    assert names(wheel).isdisjoint({"pytest", "mypy", "cyclonedx-bom", "boto3", "pandas", "distributary"})
    [spark] = [one for one in wheel["components"] if one["name"] == "pyspark"]
    assert spark["purl"] == f"pkg:pypi/pyspark@{version('pyspark')}"


def test_the_images_bill_has_each_jar_with_its_hash_and_what_is_shaded_into_it(
    wheel: bill_of_materials.Bom, jars: list[Path]
) -> None:
    image = bill_of_materials.of_image(wheel)
    found = {one["bom-ref"]: one for one in image["components"]}
    for file in [*pyspark_jars().glob("*.jar"), *jars]:
        [digest] = found[file.name]["hashes"]
        assert len(digest["content"]) == 64
    assert names(wheel) <= names(image)
    assert found["kafka-clients-3.9.2.jar"]["purl"] == "pkg:maven/org.apache.kafka/kafka-clients@3.9.2"
    [inside] = found["big-1.0.jar"]["components"]
    assert inside["purl"] == "pkg:maven/io.netty/netty-common@4.1.1.Final"


@pytest.mark.usefixtures("jars")
def test_a_bill_is_what_cyclonedx_asks_for(wheel: bill_of_materials.Bom) -> None:
    image = bill_of_materials.of_image(wheel)
    validator = JsonStrictValidator(SchemaVersion.from_version(image["specVersion"]))
    assert validator.validate_str(json.dumps(image)) is None
    last = image["components"][-1]
    last["hashes"][0]["content"] = "no digest"
    assert validator.validate_str(json.dumps(image | {"components": [last]})) is not None


def test_each_jar_of_pyspark_says_what_it_is() -> None:
    files = sorted(pyspark_jars().glob("*.jar"))
    assert len(files) > 100
    read = [read_jar(file) for file in files]
    assert jar_audit.unknown(read) == []
    for one in read:
        assert one.file.name.startswith(f"{one.itself.name}-{one.itself.version}")


def test_a_jar_of_which_nobody_knows_the_group_is_reported(tmp_path: Path) -> None:
    read = read_jar(jar(tmp_path / "strange-1.2.jar", **{"META-INF/MANIFEST.MF": "Manifest-Version: 1.0\r\n"}))
    assert jar_audit.unknown([read]) == ["strange-1.2.jar"]
    assert "purl" not in bill_of_materials.jar_component(read.file)
    with pytest.raises(ValueError, match=r"strange\.jar"):
        read_jar(jar(tmp_path / "strange.jar"))


def test_long_lines_of_a_manifest_are_put_together(tmp_path: Path) -> None:
    manifest = "Implementation-Vendor-Id: org.ve\r\n ry.long\r\nX: y\r\n"
    read = read_jar(jar(tmp_path / "a_2.13-1.0.jar", **{"META-INF/MANIFEST.MF": manifest}))
    assert read.itself == Coordinates("org.very.long", "a_2.13", "1.0")


class Osv(ThreadingHTTPServer):
    """Serves the part of OSV's API that the audits use; `known` maps a purl without its version to the results."""

    known: dict[str, list[str]]

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class _Answers(BaseHTTPRequestHandler):
    server: Osv

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.path == "/v1/querybatch":
            answer: dict[str, Any] = {"results": [self._page(query) for query in asked["queries"]]}
        else:
            name = f"pkg:pypi/{asked['package']['name']}"
            answer = {"vulns": [_details(one, name) for one in self.server.known.get(name, [])]}
        body = json.dumps(answer).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def _page(self, query: dict[str, Any]) -> dict[str, Any]:
        """One weakness on each page."""
        ids = self.server.known.get(query["package"]["purl"].partition("@")[0], [])
        at = int(query.get("page_token", 0))
        page: dict[str, Any] = {"vulns": [{"id": one} for one in ids[at : at + 1]]} if ids else {}
        return page | ({"next_page_token": str(at + 1)} if at + 1 < len(ids) else {})

    def log_message(self, *_arguments: object) -> None:
        """Says nothing."""


def _details(identifier: str, purl: str) -> dict[str, Any]:
    ranges = [{"type": "ECOSYSTEM", "events": [{"introduced": "0"}, {"fixed": "999"}]}]
    package = {"name": purl.rpartition("/")[2], "ecosystem": "PyPI"}
    return {
        "id": identifier,
        "summary": "it is weak",
        "details": "it is weak",
        "published": "2026-01-01T00:00:00Z",
        "affected": [{"package": package, "ranges": ranges}],
    }


@pytest.fixture
def osv() -> Iterator[Osv]:
    server = Osv(("127.0.0.1", 0), _Answers)
    server.known = {}
    with serving(server):
        yield server


@pytest.mark.usefixtures("jars")
def test_a_weakness_of_a_jar_or_of_what_is_shaded_into_it_fails_the_audit(osv: Osv) -> None:
    well = CliRunner().invoke(jar_audit.main, ["--osv", osv.url])
    assert (well.exit_code, well.output.count("no known weaknesses")) == (0, 1)
    osv.known = {"pkg:maven/io.netty/netty-common": ["GHSA-1", "GHSA-2"], "pkg:maven/org.big/big": ["GHSA-3"]}
    ill = CliRunner().invoke(jar_audit.main, ["--osv", osv.url, "--ignore", "GHSA-2"])
    assert ill.exit_code == 1
    assert "GHSA-1  pkg:maven/io.netty/netty-common@4.1.1.Final  in big-1.0.jar" in ill.output
    assert "GHSA-3  pkg:maven/org.big/big@1.0  in big-1.0.jar" in ill.output
    assert "GHSA-2" not in ill.output


@pytest.mark.usefixtures("jars")
def test_a_database_that_does_not_answer_fails_the_audit() -> None:
    audit = CliRunner().invoke(jar_audit.main, ["--osv", "http://127.0.0.1:1"])
    assert audit.exit_code == 1
    assert "nothing was looked up" in audit.output


def test_a_database_that_leaves_answers_out_fails_the_audit() -> None:
    with pytest.raises(Exception, match="0 of 1 queries"):
        jar_audit.weaknesses([Coordinates("a", "b", "1")], lambda _: [])


def test_a_weakness_of_a_package_in_the_lock_file_fails_the_audit(osv: Osv) -> None:
    def audit() -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "pip_audit", "--requirement", str(ROOT / "requirements.lock")]
        command += ["--require-hashes", "--disable-pip", "--strict", "--progress-spinner", "off"]
        command += ["--vulnerability-service", "osv", "--osv-url", f"{osv.url}/v1/query"]
        return subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)

    well = audit()
    assert well.returncode == 0, well.stderr
    osv.known = {"pkg:pypi/waitress": ["PYSEC-2026-1"]}
    ill = audit()
    assert ill.returncode == 1
    assert "PYSEC-2026-1" in ill.stdout
