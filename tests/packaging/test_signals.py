"""Who gets SIGTERM: Python, which ends the batches in flight. What it does is in tests/integration/test_session.py, and
under spark-submit in tests/e2e/test_spark_submit.py; the image's is in test_dockerfile.py and test_entrypoint.py."""

from __future__ import annotations

import configparser
import re
from pathlib import Path

import pytest
import yaml

from distributary.errors import AlreadyRunning

ROOT = Path(__file__).parents[2]
CHART = ROOT / "deploy/helm/distributary"


@pytest.fixture
def unit() -> configparser.SectionProxy:
    """The systemd unit in the docs."""
    [text] = re.findall(r"```ini\n(\[Unit\].*?)```", (ROOT / "docs/operations.md").read_text(), re.DOTALL)
    parser = configparser.ConfigParser(interpolation=None)
    parser.read_string(text)
    return parser["Service"]


def test_systemd_sends_the_signal_to_python_alone(unit: configparser.SectionProxy) -> None:
    assert unit["KillMode"] == "mixed"
    assert "KillSignal" not in unit
    assert re.fullmatch(r"/\S+/distributary run -c \S+", unit["ExecStart"]), "a shell in front would get it"


def test_systemd_waits_for_the_batch_as_long_as_kubernetes_does(unit: configparser.SectionProxy) -> None:
    values = yaml.safe_load((CHART / "values.yaml").read_text())
    assert int(unit["TimeoutStopSec"]) == values["terminationGracePeriodSeconds"]


def test_systemd_leaves_it_to_the_process_that_has_the_lease(unit: configparser.SectionProxy) -> None:
    assert int(unit["RestartPreventExitStatus"]) == AlreadyRunning.exit_code


def test_nothing_in_the_chart_stands_between_the_signal_and_the_image() -> None:
    for file in (CHART / "templates").glob("*"):
        assert not re.search(r"(?m)^\s*(command|lifecycle|preStop):", file.read_text()), file
