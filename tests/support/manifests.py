"""Generates the manifests from the chart, and the chart's copies: `python -m tests.support.manifests`."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import yaml
from tests.support.helm import Helm, running_helm

ROOT = Path(__file__).parents[2]
CHART = ROOT / "deploy/helm/distributary"
PLAIN = ROOT / "deploy/kubernetes"
PLAIN_VALUES = CHART / "examples/plain.yaml"

NAMESPACE = "distributary"
"""The namespace of the plain manifests: the config has the names of the Service, with the namespace, in it."""

_HEADER = "# Made from deploy/helm/distributary with {values} by `make manifests`: change it there.\n"
# Labels of what Helm has installed.
_HELMS_OWN = re.compile(r"^ *(helm\.sh/chart|app\.kubernetes\.io/managed-by):.*\n", re.MULTILINE)
_DOCUMENT = re.compile(r"^---\n# Source: distributary/templates/(?P<name>\S+)\n(?P<text>.*?)(?=^---\n|\Z)", re.M | re.S)


def copies() -> dict[Path, str]:
    """The chart's copies of other files, as they must be: rules, dashboard, and the config's schema within its own."""
    values = json.loads((CHART / "values.schema.json").read_text())
    return {
        CHART / "files/rules.yaml": (ROOT / "deploy/monitoring/rules.yaml").read_text(),
        CHART / "files/dashboard.json": (ROOT / "deploy/monitoring/grafana/dashboard.json").read_text(),
        CHART / "values.schema.json": json.dumps(values | {"$defs": _definitions(values)}, indent=2) + "\n",
    }


def _definitions(values: dict[str, Any]) -> dict[str, Any]:
    config = json.loads((ROOT / "config/schema.json").read_text())
    definitions = config.pop("$defs")
    # The chart adds `include`, so that neither it nor `tables` has to be there.
    del config["$schema"], config["anyOf"]
    return {"NoSecret": values["$defs"]["NoSecret"], "Config": config, **definitions}


def plain(helm: Helm) -> dict[Path, str]:
    """The plain manifests, a file for each template, and the kustomization that lists them."""
    header = _HEADER.format(values=PLAIN_VALUES.relative_to(CHART))
    texts = {
        found["name"]: found["text"] for found in _DOCUMENT.finditer(helm.template(PLAIN_VALUES, namespace=NAMESPACE))
    }
    namespace = {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"name": NAMESPACE, "labels": {"app.kubernetes.io/name": "distributary"}},
    }
    texts["namespace.yaml"] = yaml.safe_dump(namespace, sort_keys=False)
    kustomization = {
        "apiVersion": "kustomize.config.k8s.io/v1beta1",
        "kind": "Kustomization",
        "namespace": NAMESPACE,
        "resources": sorted(texts),
    }
    files = {PLAIN / name: header + _HELMS_OWN.sub("", text) for name, text in texts.items()}
    files[PLAIN / "kustomization.yaml"] = (
        header + "# kubectl apply --kustomize deploy/kubernetes\n" + yaml.safe_dump(kustomization, sort_keys=False)
    )
    return files


def main() -> None:
    for path, text in copies().items():
        path.write_text(text)
    with running_helm(CHART) as helm:
        files = plain(helm)
    for path in set(PLAIN.iterdir()) - set(files):
        path.unlink()
    for path, text in files.items():
        path.write_text(text)


if __name__ == "__main__":
    main()
