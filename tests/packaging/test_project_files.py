"""Files for the project's host (workflows, forms, updates), checked against their schemas."""

from __future__ import annotations

import importlib
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result
from tests.support.bill_of_materials import PLACE

ROOT = Path(__file__).parents[2]
WORKFLOWS = sorted((ROOT / ".github/workflows").glob("*.yml"))
FORMS = sorted(path for path in (ROOT / ".github/ISSUE_TEMPLATE").glob("*.yml") if path.name != "config.yml")


@pytest.fixture(scope="module")
def check_jsonschema() -> Any:
    """The command. Its import takes 2 seconds, which only the process that runs these tests is to wait for."""
    return importlib.import_module("check_jsonschema").main


def schema_check(check_jsonschema: Any, schema: str, *files: Path) -> Result:
    """check-jsonschema with a schema that comes with it: nothing is fetched."""
    return CliRunner().invoke(check_jsonschema, ["--builtin-schema", f"vendor.{schema}", *map(str, files)])


@pytest.mark.parametrize(
    ("schema", "files"),
    [
        ("github-workflows", WORKFLOWS),
        ("github-issue-forms", FORMS),
        ("dependabot", [ROOT / ".github/dependabot.yml"]),
        ("renovate", [ROOT / ".github/renovate.json"]),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_files_are_what_their_schema_says(check_jsonschema: Any, schema: str, files: list[Path]) -> None:
    assert files
    run = schema_check(check_jsonschema, schema, *files)
    assert run.exit_code == 0, run.output


def test_a_workflow_with_a_misspelt_key_is_noticed(check_jsonschema: Any, tmp_path: Path) -> None:
    (tmp_path / "wrong.yml").write_text("on: push\njobs: {a: {runs_on: ubuntu-24.04, steps: []}}\n")
    run = schema_check(check_jsonschema, "github-workflows", tmp_path / "wrong.yml")
    assert run.exit_code == 1
    assert "runs_on" in run.output


def test_workflows_have_no_known_weakness() -> None:
    program = Path(sys.executable).with_name("zizmor")
    run = subprocess.run(
        [program, "--offline", "--no-progress", *WORKFLOWS], capture_output=True, text=True, timeout=120, check=False
    )
    assert run.returncode == 0, run.stdout + run.stderr


def test_every_change_and_every_release_goes_through_all_checks() -> None:
    for path in WORKFLOWS:
        jobs: dict[str, Any] = yaml.safe_load(path.read_text())["jobs"]
        assert any(".ci/run" in step.get("run", "") for step in jobs["test"]["steps"]), path.name
    release: dict[str, Any] = yaml.safe_load((ROOT / ".github/workflows/release.yml").read_text())["jobs"]
    for name in ("package", "image"):
        assert release[name]["needs"] == "test"


def test_every_change_installs_the_chart_with_the_image_that_it_builds() -> None:
    steps = yaml.safe_load((ROOT / ".github/workflows/ci.yml").read_text())["jobs"]["package"]["steps"]
    commands = [line for step in steps for line in step.get("run", "").splitlines()]
    [tag] = re.findall(r"--tag (\S+)", " ".join(commands))
    loaded = commands.index(f"kind load docker-image {tag}")
    [install] = [number for number, line in enumerate(commands) if line.startswith("helm install ")]
    assert loaded < install
    chart = ROOT / commands[install].split()[3]
    repository, _, version = tag.partition(":")
    assert yaml.safe_load((chart / "values.yaml").read_text())["image"]["repository"] == repository
    assert f"--set image.tag={version}" in commands[install]
    assert "kafka-unreachable" in commands[install + 2]
    assert "kafka-unreachable" in (ROOT / "docs/errors.md").read_text()


def test_hooks_run_what_the_makefile_runs() -> None:
    config = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())
    makefile = (ROOT / "Makefile").read_text().replace("$(BIN)", ".venv/bin")
    for hook in config["repos"][0]["hooks"]:
        command = hook["entry"]
        assert command in makefile or f"{command.removeprefix('make ')}:" in makefile, command


def test_images_are_pinned_by_digest_and_by_one_tool_alone() -> None:
    renovate = json.loads((ROOT / ".github/renovate.json").read_text())
    assert renovate["pinDigests"] is True
    assert renovate["enabledManagers"] == ["dockerfile", "docker-compose"]
    updates = yaml.safe_load((ROOT / ".github/dependabot.yml").read_text())["updates"]
    assert {one["package-ecosystem"] for one in updates} == {"uv", "github-actions"}


def test_a_release_has_the_bills_of_materials() -> None:
    steps = yaml.safe_load((ROOT / ".github/workflows/release.yml").read_text())["jobs"]["package"]["steps"]
    assert "make sbom" in [step.get("run") for step in steps]
    uploaded = {step["with"]["name"]: step["with"]["path"] for step in steps if "upload" in step.get("uses", "")}
    assert uploaded["sbom"] == str(PLACE.relative_to(ROOT))
