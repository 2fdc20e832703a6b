"""The alert rules and the dashboard: checked by Prometheus' own tool and compared with the metrics' catalogue."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from distributary.observe.metrics import CATALOGUE
from distributary.table_state import TableState

MONITORING = Path(__file__).parents[2] / "deploy/monitoring"
SERIES = {name: metric for metric in CATALOGUE for name in metric.series}
SELECTOR = re.compile(r"(?P<name>[a-zA-Z_:][\w:]*)\s*\{(?P<labels>[^}]*)\}")


def promtool(*arguments: str | Path) -> str:
    """Runs promtool, which must pass, and returns its output. Debian has it in the package prometheus."""
    done = subprocess.run(["promtool", *map(str, arguments)], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def rules() -> list[dict[str, Any]]:
    [group] = yaml.safe_load((MONITORING / "rules.yaml").read_text())["groups"]
    found: list[dict[str, Any]] = group["rules"]
    return found


@pytest.fixture(scope="module")
def dashboard() -> dict[str, Any]:
    found: dict[str, Any] = json.loads((MONITORING / "grafana/dashboard.json").read_text())
    return found


def queries(value: Any) -> Iterator[str]:
    """Every expression in the dashboard, Grafana's own variables in their place."""
    if isinstance(value, dict):
        for name, inner in value.items():
            if name == "expr":
                yield re.sub(r"\$__(rate_interval|range)", "5m", inner)
            else:
                yield from queries(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from queries(inner)


def asked(expression: str) -> set[str]:
    """The names of our series in an expression."""
    return set(re.findall(r"\bdistributary_\w+", re.sub(r'"[^"]*"', '""', expression)))


def check_labels(expression: str) -> None:
    for found in SELECTOR.finditer(expression):
        metric = SERIES.get(found["name"])
        if metric is None:
            continue
        for label, value in re.findall(r'(\w+)\s*(?:=~|!~|!=|=)\s*"([^"]*)"', found["labels"]):
            assert label in {"job", "instance", *metric.labels}, expression
            if label == "state":
                assert value in {state.value for state in TableState}, expression


def test_promtool_takes_the_rules_and_the_scrape_config() -> None:
    assert "rules found" in promtool("check", "rules", MONITORING / "rules.yaml")
    promtool("check", "config", MONITORING / "prometheus.yaml")


def test_each_alert_comes_when_it_must_and_not_otherwise(rules: list[dict[str, Any]]) -> None:
    promtool("test", "rules", MONITORING / "rules.test.yaml")
    cases = [
        case
        for test in yaml.safe_load((MONITORING / "rules.test.yaml").read_text())["tests"]
        for case in test["alert_rule_test"]
    ]
    names = {rule["alert"] for rule in rules}
    assert {case["alertname"] for case in cases if case.get("exp_alerts")} == names
    assert {case["alertname"] for case in cases if not case.get("exp_alerts")} == names


def test_rules_ask_for_what_is_there(rules: list[dict[str, Any]]) -> None:
    for rule in rules:
        names = asked(rule["expr"])
        assert names, rule["alert"]
        assert names <= set(SERIES), rule["alert"]
        check_labels(rule["expr"])
        assert rule["labels"]["severity"] in ("critical", "warning")


def test_the_dashboard_asks_for_what_is_there(dashboard: dict[str, Any]) -> None:
    found = [
        *queries(dashboard),
        *(v["query"]["query"] for v in dashboard["templating"]["list"] if v["name"] != "datasource"),
    ]
    assert len(found) > len(dashboard["panels"])
    for expression in found:
        names = asked(expression)
        assert names, expression
        assert names <= set(SERIES), expression
        check_labels(expression)


def test_the_queries_of_the_dashboard_are_promql(dashboard: dict[str, Any], tmp_path: Path) -> None:
    recorded = [{"record": f"panel:{i}", "expr": expression} for i, expression in enumerate(queries(dashboard))]
    file = tmp_path / "panels.yaml"
    file.write_text(yaml.safe_dump({"groups": [{"name": "panels", "rules": recorded}]}))
    assert f"{len(recorded)} rules found" in promtool("check", "rules", file)


def test_panels_have_a_place_of_their_own(dashboard: dict[str, Any]) -> None:
    taken: set[tuple[int, int]] = set()
    for panel in dashboard["panels"]:
        at = panel["gridPos"]
        cells = {(x, y) for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])}
        assert at["x"] + at["w"] <= 24
        assert taken.isdisjoint(cells), panel["title"]
        taken |= cells
    assert len({panel["id"] for panel in dashboard["panels"]}) == len(dashboard["panels"])
