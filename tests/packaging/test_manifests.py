"""The plain manifests as a user applies them: held against each other, the image and the config. That they are what the
chart renders, and valid for Kubernetes, is in test_chart.py."""

from __future__ import annotations

import re
from pathlib import Path, PurePosixPath

import pytest
import yaml
from tests.support import dockerfile
from tests.support.kubernetes import Manifest, mount_config_map, volume_at

import distributary
from distributary.config import Config, load
from distributary.observe import answers

ROOT = Path(__file__).parents[2]
MANIFESTS = ROOT / "deploy/kubernetes"


def read(name: str) -> Manifest:
    manifest: Manifest = yaml.safe_load((MANIFESTS / name).read_text())
    return manifest


@pytest.fixture
def deployment() -> Manifest:
    return read("deployment.yaml")


@pytest.fixture
def pod(deployment: Manifest) -> Manifest:
    spec: Manifest = deployment["spec"]["template"]["spec"]
    return spec


@pytest.fixture
def container(pod: Manifest) -> Manifest:
    [container] = pod["containers"]
    found: Manifest = container
    return found


@pytest.fixture
def image() -> dockerfile.Stage:
    return dockerfile.read(ROOT / "deploy/docker/Dockerfile")[-1]


@pytest.fixture
def config(tmp_path: Path) -> Config:
    """The config of the ConfigMaps, read as Kubernetes mounts it."""
    password = tmp_path / "secret"
    mount_config_map(password, {"password": "hunter2"})
    files = dict(read("configmap.yaml")["data"])
    files["config.yaml"] = files["config.yaml"].replace("/run/secrets/kafka/", f"{password}/")
    mount_config_map(tmp_path / "etc", files)
    mount_config_map(tmp_path / "etc/tables", read("configmap-tables.yaml")["data"])
    return load(tmp_path / "etc/config.yaml")


def test_kustomization_has_every_manifest() -> None:
    names = {path.name for path in MANIFESTS.glob("*.yaml")}
    assert set(read("kustomization.yaml")["resources"]) == names - {"kustomization.yaml"}


@pytest.mark.parametrize("path", sorted(MANIFESTS.glob("*.yaml")), ids=lambda path: path.name)
def test_every_manifest_says_what_it_is(path: Path) -> None:
    manifest = yaml.safe_load(path.read_text())
    assert {"apiVersion", "kind"} <= set(manifest)
    if manifest["kind"] != "Kustomization":
        assert manifest["metadata"]["name"].startswith("distributary")
        assert manifest["metadata"]["labels"]["app.kubernetes.io/name"] == "distributary"
        assert "namespace" not in manifest["metadata"]


def test_everything_is_in_the_namespace_whose_names_the_config_accepts(config: Config) -> None:
    namespace = read("kustomization.yaml")["namespace"]
    assert read("namespace.yaml")["metadata"]["name"] == namespace
    service = read("service.yaml")["metadata"]["name"]
    assert {f"{service}.{namespace}", f"{service}.{namespace}.svc"} <= set(config.http.names)


def test_the_commands_in_the_docs_name_the_namespace_of_the_manifests() -> None:
    page = (ROOT / "docs/kubernetes.md").read_text().partition("## Without Helm")[2]
    commands = re.findall(r"kubectl [^`\n]+", page)
    assert len(commands) >= 6
    namespace = read("kustomization.yaml")["namespace"]
    for command in commands:
        path = re.search(r"deploy/kubernetes\S*", command)
        assert path or f"--namespace={namespace} " in command
        assert not path or (ROOT / path.group()).exists()


def test_what_the_deployment_names_exists(pod: Manifest) -> None:
    names = {(one["kind"], one["metadata"]["name"]) for one in map(yaml.safe_load, _texts()) if "metadata" in one}
    wanted = {("ServiceAccount", pod["serviceAccountName"])}
    for volume in pod["volumes"]:
        if "configMap" in volume:
            wanted.add(("ConfigMap", volume["configMap"]["name"]))
        if "secret" in volume:
            wanted.add(("Secret", volume["secret"]["secretName"]))
        if "persistentVolumeClaim" in volume:
            wanted.add(("PersistentVolumeClaim", volume["persistentVolumeClaim"]["claimName"]))
    assert len(wanted) == 5
    # The secret is the user's own.
    assert wanted - names == {("Secret", "distributary-kafka")}


def _texts() -> list[str]:
    return [path.read_text() for path in MANIFESTS.glob("*.yaml")]


def test_the_image_is_this_version(container: Manifest) -> None:
    assert container["image"] == f"distributary:{distributary.__version__}"


def test_there_is_never_more_than_one_driver(deployment: Manifest) -> None:
    assert deployment["spec"]["replicas"] == 1
    assert deployment["spec"]["strategy"] == {"type": "Recreate"}


def test_probes_and_service_ask_the_pages_and_the_port_of_the_config(container: Manifest, config: Config) -> None:
    [port] = container["ports"]
    assert config.http.enabled
    assert config.http.host == "0.0.0.0"  # on loopback no probe would reach it
    assert port["containerPort"] == config.http.port
    pages = {name: container[name]["httpGet"] for name in ("startupProbe", "livenessProbe", "readinessProbe")}
    assert {page["port"] for page in pages.values()} == {port["name"]}
    assert {name: page["path"] for name, page in pages.items()} == {
        "startupProbe": "/livez",
        "livenessProbe": "/livez",
        "readinessProbe": "/readyz",
    }
    service = read("service.yaml")
    annotations = service["metadata"]["annotations"]
    assert [one["targetPort"] for one in service["spec"]["ports"]] == [port["name"]]
    assert int(annotations["prometheus.io/port"]) == config.http.port
    asked = {page["path"] for page in pages.values()} | {annotations["prometheus.io/path"]}
    assert asked <= set(re.findall(r"/\w+", answers.INDEX))


def test_service_and_deployment_select_the_pods(deployment: Manifest) -> None:
    labels = deployment["spec"]["template"]["metadata"]["labels"]
    assert deployment["spec"]["selector"]["matchLabels"].items() <= labels.items()
    assert read("service.yaml")["spec"]["selector"].items() <= labels.items()


def test_the_container_has_no_rights_that_it_does_not_need(
    pod: Manifest, container: Manifest, image: dockerfile.Stage
) -> None:
    user, _, group = image.last("USER").text.partition(":")
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["securityContext"]["runAsUser"] == int(user)
    assert pod["securityContext"]["runAsGroup"] == int(group)
    assert pod["securityContext"]["fsGroup"] == int(group)  # else the volume belongs to root and can't be written
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert pod["automountServiceAccountToken"] is False


def test_all_that_is_written_lies_on_a_volume_that_can_be_written(
    pod: Manifest, container: Manifest, image: dockerfile.Stage, config: Config
) -> None:
    environment = image.environment()
    for directory in (environment["HOME"], environment["SPARK_LOCAL_DIRS"], image.last("WORKDIR").text):
        assert "emptyDir" in volume_at(pod, container, directory), directory
    for directory in (str(config.target.path), config.checkpoint):
        assert "persistentVolumeClaim" in volume_at(pod, container, directory), directory
    assert not any(mount.get("readOnly") for mount in container["volumeMounts"] if mount["name"] == "data")


def test_the_configs_are_mounted_where_the_service_looks_for_them(
    pod: Manifest, container: Manifest, image: dockerfile.Stage, config: Config
) -> None:
    file = PurePosixPath(image.environment()["DISTRIBUTARY_CONFIG"])
    volume = volume_at(pod, container, str(file))
    assert volume["configMap"]["name"] == read("configmap.yaml")["metadata"]["name"]
    assert file.name in read("configmap.yaml")["data"]
    [pattern] = config.include
    tables = volume_at(pod, container, str(file.parent / pattern))
    assert tables["configMap"]["name"] == read("configmap-tables.yaml")["metadata"]["name"]


def test_the_password_is_mounted_where_the_config_reads_it(pod: Manifest, container: Manifest, config: Config) -> None:
    [path] = re.findall(r"\$\{file:([^}]+)\}", read("configmap.yaml")["data"]["config.yaml"])
    assert volume_at(pod, container, path)["secret"]["secretName"] == "distributary-kafka"
    # The key that docs/kubernetes.md has the secret made with.
    name = PurePosixPath(path).name
    assert f"secret generic distributary-kafka --from-literal={name}=" in (ROOT / "docs/kubernetes.md").read_text()
    assert "hunter2" not in repr(config)


def test_the_tables_come_from_the_second_config_map_in_the_order_of_its_keys(config: Config) -> None:
    assert [table.match for table in config.tables] == ["dbo.customers", "dbo.*"]


def test_the_pod_has_more_memory_than_java_takes(container: Manifest, config: Config) -> None:
    limit = container["resources"]["limits"]["memory"]
    assert container["resources"]["requests"]["memory"] == limit
    driver = str(dict(config.spark)["spark.driver.memory"])
    assert int(limit.removesuffix("Gi")) >= int(driver.removesuffix("g")) + 2
