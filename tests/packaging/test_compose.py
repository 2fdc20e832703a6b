"""docker-compose.yml is parsed and compared with the files that it mounts; no container engine runs here."""

from __future__ import annotations

import json
import re
from pathlib import Path, PurePosixPath
from typing import Any

import pytest
import yaml
from tests.support import dockerfile

import distributary
from distributary.config import load

ROOT = Path(__file__).parents[2]
FULL_VERSION = re.compile(r"[\w./-]+:v?\d+\.\d+(\.\d+)?[\w.-]*")
DIGEST = re.compile(r"sha256:[0-9a-f]{64}")
# Debezium's registry drops an image some weeks after its tag was built anew, and a pinned digest with it.
BY_TAG_ALONE = {"connect", "distributary"}

Service = dict[str, Any]


@pytest.fixture
def compose() -> dict[str, Any]:
    document: dict[str, Any] = yaml.safe_load((ROOT / "docker-compose.yml").read_text())
    return document


@pytest.fixture
def services(compose: dict[str, Any]) -> dict[str, Service]:
    found: dict[str, Service] = compose["services"]
    return found


@pytest.fixture
def connector() -> dict[str, Any]:
    found: dict[str, Any] = json.loads((ROOT / "deploy/debezium/connector.json").read_text())
    return found


def mounts(service: Service) -> dict[str, str]:
    """What is mounted where: container's path to source."""
    parts = [volume.split(":") for volume in service.get("volumes", [])]
    return {part[1]: part[0] for part in parts}


def test_every_image_is_pinned(services: dict[str, Service]) -> None:
    for name, service in services.items():
        tag, _, digest = service["image"].partition("@")
        assert FULL_VERSION.fullmatch(tag), name
        assert DIGEST.fullmatch(digest) or (name in BY_TAG_ALONE and not digest), name
    assert services["distributary"]["image"] == f"distributary:{distributary.__version__}"


def test_every_service_that_stays_has_a_health_check(services: dict[str, Service]) -> None:
    assert {name for name, service in services.items() if "healthcheck" not in service} == {"register"}


def test_what_waits_for_health_waits_for_a_service_that_tells_its_health(services: dict[str, Service]) -> None:
    waits = [wait for service in services.values() for wait in service.get("depends_on", {}).items()]
    assert waits
    for name, wait in waits:
        if wait["condition"] == "service_healthy":
            assert "healthcheck" in services[name], name
        else:
            assert (name, wait["condition"]) == ("register", "service_completed_successfully")


def test_what_is_mounted_from_the_repository_is_in_the_repository(compose: dict[str, Any]) -> None:
    sources = [source for service in compose["services"].values() for source in mounts(service).values()]
    files = [source for source in sources if source.startswith("./")]
    assert len(files) == 8
    for file in files:
        assert (ROOT / file).is_file(), file
    assert {source for source in sources if not source.startswith("./")} == set(compose["volumes"])


def test_ports_are_open_to_this_machine_only(services: dict[str, Service]) -> None:
    ports = [port for service in services.values() for port in service.get("ports", [])]
    assert ports
    assert all(port.startswith("127.0.0.1:") for port in ports)


def test_the_service_is_built_from_the_dockerfile_and_finds_its_config(services: dict[str, Service]) -> None:
    service = services["distributary"]
    image = dockerfile.read(ROOT / service["build"]["context"] / service["build"]["dockerfile"])[-1]
    config_file = image.environment()["DISTRIBUTARY_CONFIG"]
    config = load(ROOT / mounts(service)[config_file])
    assert config.http.host == "0.0.0.0"
    assert [port.rpartition(":")[2] for port in service["ports"]] == [str(config.http.port)]
    assert f":{config.http.port}/readyz" in service["healthcheck"]["test"][-1]
    for directory in (str(config.target.path), config.checkpoint):
        assert any(PurePosixPath(directory).is_relative_to(place) for place in mounts(service)), directory
    advertised = services["kafka"]["environment"]["KAFKA_ADVERTISED_LISTENERS"]
    assert f"INSIDE://{dict(config.kafka)['bootstrap.servers']}" in advertised.split(",")


def test_nothing_is_written_outside_of_the_volumes(services: dict[str, Service]) -> None:
    service = services["distributary"]
    user, _, group = dockerfile.read(ROOT / "deploy/docker/Dockerfile")[-1].last("USER").text.partition(":")
    assert service["read_only"] is True
    assert service["tmpfs"] == [f"/tmp:exec,uid={user},gid={group},mode=1777"]


def test_the_connector_reads_the_database_and_writes_the_topics_of_the_config(
    services: dict[str, Service], connector: dict[str, Any]
) -> None:
    database = services["postgres"]["environment"]
    assert "wal_level=logical" in services["postgres"]["command"]
    assert connector["database.hostname"] == "postgres"
    assert int(connector["database.port"]) == 5432
    assert connector["database.dbname"] == database["POSTGRES_DB"]
    assert connector["database.user"] == database["POSTGRES_USER"]
    assert connector["database.password"] == database["POSTGRES_PASSWORD"]
    config = load(ROOT / "deploy/compose/config.yaml")
    assert connector["topic.prefix"] == config.source.topic_prefix
    assert connector["connector.class"] == "io.debezium.connector.postgresql.PostgresConnector"
    assert config.source.connector == "postgresql"


def test_the_connector_is_registered_with_connect(services: dict[str, Service]) -> None:
    command = services["register"]["command"]
    assert "@/connector.json" in command
    assert "/connector.json" in mounts(services["register"])
    assert re.fullmatch(r"http://connect:8083/connectors/\w+/config", command[-1])
    assert services["connect"]["environment"]["BOOTSTRAP_SERVERS"] == "kafka:29092"


def test_monitoring_is_there_on_request_only_and_scrapes_the_service(services: dict[str, Service]) -> None:
    extra = {name for name, service in services.items() if service.get("profiles") == ["monitoring"]}
    assert extra == {"prometheus", "grafana"}
    scraped = yaml.safe_load((ROOT / "deploy/monitoring/prometheus.yaml").read_text())
    [job] = scraped["scrape_configs"]
    port = services["distributary"]["ports"][0].rpartition(":")[2]
    assert job["static_configs"] == [{"targets": [f"distributary:{port}"]}]
    assert "distributary" in job["job_name"]  # the rules ask for it
    # The rules lie beside the config, as it names them.
    places = {PurePosixPath(place) for place in mounts(services["prometheus"])}
    assert {
        PurePosixPath("/etc/prometheus/prometheus.yml"),
        *(PurePosixPath("/etc/prometheus") / file for file in scraped["rule_files"]),
    } == places


def test_grafana_finds_prometheus_and_the_dashboard(services: dict[str, Service]) -> None:
    provisioning = ROOT / "deploy/monitoring/grafana"
    [source] = yaml.safe_load((provisioning / "datasource.yaml").read_text())["datasources"]
    assert source["url"] == "http://prometheus:9090"
    [provider] = yaml.safe_load((provisioning / "dashboards.yaml").read_text())["providers"]
    [dashboard] = [p for p in map(PurePosixPath, mounts(services["grafana"])) if p.suffix == ".json"]
    assert str(dashboard.parent) == provider["options"]["path"]
