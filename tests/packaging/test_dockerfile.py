"""The Dockerfile is parsed and compared with repository, config and service; no container engine runs here."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path, PurePosixPath

import pytest
from tests.support import dockerfile
from tests.support.dockerfile import Stage

from distributary.config.http import Http

ROOT = Path(__file__).parents[2]
FULL_VERSION_AND_DIGEST = re.compile(r".+:\d+\.\d+\.\d+[\w.-]*@sha256:[0-9a-f]{64}")


@pytest.fixture
def stages() -> list[Stage]:
    return dockerfile.read(ROOT / "deploy/docker/Dockerfile")


@pytest.fixture
def build(stages: list[Stage]) -> Stage:
    return next(stage for stage in stages if stage.name == "build")


@pytest.fixture
def image(stages: list[Stage]) -> Stage:
    return stages[-1]


def commands(stage: Stage) -> list[str]:
    return [command for one in stage.all("RUN") for command in " ".join(one.text.split()).split(" && ")]


def test_every_base_image_is_pinned_to_a_full_version_and_its_digest(stages: list[Stage]) -> None:
    names = {stage.name for stage in stages}
    bases = [stage.base for stage in stages if stage.base not in names]
    assert bases
    assert all(FULL_VERSION_AND_DIGEST.fullmatch(base) for base in bases), bases


def test_the_container_runs_as_a_user_without_rights(image: Stage) -> None:
    user, _, group = image.last("USER").text.partition(":")
    assert int(user) >= 10000
    assert int(group) >= 10000
    # Hadoop asks the system for the name of the user.
    assert any(f"useradd --uid {user} --user-group" in command for command in commands(image))
    assert image.instructions.index(image.last("USER")) > image.instructions.index(image.all("RUN")[-1])


def test_what_is_copied_is_in_the_repository_and_in_the_build_context(build: Stage) -> None:
    dockerignore = (ROOT / ".dockerignore").read_text()
    sources = [PurePosixPath(word.rstrip("/")) for one in build.all("COPY") for word in one.words()[:-1]]
    assert {str(source) for source in sources} >= {"pyproject.toml", "requirements.lock", "README.md", "LICENSE"}
    for source in sources:
        path = ROOT / source
        assert path.exists(), source
        files = [path] if path.is_file() else [one for one in path.rglob("*") if one.suffix == ".py"]
        assert files, source
        for file in files:
            assert not dockerfile.hidden(PurePosixPath(file.relative_to(ROOT)), dockerignore), file


@pytest.mark.parametrize(
    "path",
    [
        ".git/config",
        ".venv/bin/python",
        "tests/conftest.py",
        "docs/deploy.md",
        "service/distributary/__pycache__/a.pyc",
    ],
)
def test_what_the_image_does_not_need_is_not_in_the_build_context(path: str) -> None:
    assert dockerfile.hidden(PurePosixPath(path), (ROOT / ".dockerignore").read_text())


def test_dependencies_come_from_the_lock_file_and_without_the_development_tools(build: Stage) -> None:
    installs = [command for command in commands(build) if "pip install" in command]
    installer, dependencies, package = installs
    assert installer.endswith("pip install --require-hashes --requirement uv.txt")
    assert "uv pip install --no-cache --constraint requirements.lock --requirement" in dependencies
    assert package == "pip install --no-deps --no-build-isolation ."  # of PyPI nothing that has no hash
    assert not any("dev" in re.findall(r"\w+", command) for command in installs)


def test_every_version_of_the_lock_file_has_its_hashes() -> None:
    lock = (ROOT / "requirements.lock").read_text(encoding="utf-8")
    pinned = re.split(r"(?m)^(?=[a-z])", lock)
    assert any(one.startswith("uv==") for one in pinned)
    assert not [one for one in pinned if "==" in one and "--hash=sha256:" not in one]


def test_the_jars_are_where_the_service_looks_for_them(build: Stage, image: Stage) -> None:
    directory = image.environment()["DISTRIBUTARY_JARS"]
    [command] = [one for one in commands(build) if "distributary.launch.jars" in one]
    assert command.startswith(f"python -m distributary.launch.jars --into {directory} ")
    copied = image.last("COPY").words()
    assert copied[:1] == ["--from=build"]
    assert copied[1] == copied[2]
    assert PurePosixPath(copied[2]) in PurePosixPath(directory).parents


def test_all_that_is_written_beside_the_lake_goes_below_tmp(image: Stage) -> None:
    environment = image.environment()
    for name in ("HOME", "SPARK_LOCAL_DIRS"):
        assert PurePosixPath(environment[name]).is_relative_to("/tmp")
    assert image.last("WORKDIR").text == "/tmp"
    # With the working directory in Python's search path, a file that somebody puts into /tmp would be run.
    assert environment["PYTHONSAFEPATH"] == "1"


def test_signals_reach_python(image: Stage) -> None:
    for name in ("ENTRYPOINT", "CMD"):
        assert image.last(name).text.startswith("["), "the shell form would put a shell in front"
    assert image.last("ENTRYPOINT").words() == ["tini", "-g", "--", "/opt/distributary/entrypoint.sh"]
    assert image.last("CMD").words() == ["run"]


def test_the_port_of_the_image_is_that_of_a_config_by_default(image: Stage) -> None:
    assert int(image.last("EXPOSE").text) == Http().port


def test_hadolint_finds_nothing() -> None:
    program = shutil.which("hadolint", path=os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]))
    assert program, "make setup installs it"
    done = subprocess.run([program, ROOT / "deploy/docker/Dockerfile"], capture_output=True, text=True, check=False)
    assert done.stdout == ""
    assert done.returncode == 0
