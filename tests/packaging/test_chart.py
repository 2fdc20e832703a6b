"""The Helm chart, rendered by Helm itself: what it makes is valid for Kubernetes and fits the service and its image."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path, PurePosixPath
from typing import Any

import pytest
import yaml
from kubernetes_validate.utils import all_versions
from tests.support import dockerfile
from tests.support.helm import Helm, HelmError, read, running_helm
from tests.support.kubernetes import Manifest, faults, mount_config_map, named, only, pods, volume_at
from tests.support.manifests import CHART, PLAIN, ROOT, copies, plain

import distributary
from distributary.cli import main
from distributary.config import load
from distributary.config.model import ABOUT_TABLES
from distributary.launch import session

EXAMPLES = sorted((CHART / "examples").glob("*.yaml"))
SPARK_APPLICATION = CHART / "examples/sparkapplication.yaml"
EVERYTHING = CHART / "examples/everything.yaml"
S3 = CHART / "examples/s3.yaml"
# Kinds that an operator brings along, of which kubernetes-validate has no schema.
CUSTOM = {"SparkApplication", "PodMonitor", "ServiceMonitor", "PrometheusRule"}
# Oldest first.
KUBERNETES = all_versions()
VALUES: dict[str, Any] = yaml.safe_load((CHART / "values.yaml").read_text())
THRESHOLDS: dict[str, int] = VALUES["prometheusRule"]["thresholds"]


@pytest.fixture(scope="module")
def helm() -> Iterator[Helm]:
    with running_helm(CHART) as helm:
        yield helm


@pytest.fixture(params=[None, *EXAMPLES], ids=lambda path: path.stem if path else "default")
def manifests(request: pytest.FixtureRequest, helm: Helm) -> list[Manifest]:
    """What each example makes, and the chart's own values."""
    return read(helm.template(*[request.param] if request.param else []))


def config_of(manifests: list[Manifest]) -> Manifest:
    config: Manifest = yaml.safe_load(only(manifests, "ConfigMap", "-config")["data"]["config.yaml"])
    return config


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_with_an_object_store_has_the_image_with_its_jars(example: Path) -> None:
    values = yaml.safe_load(example.read_text())
    [tag] = re.findall(r"--tag distributary:(\S+)", (ROOT / "docs/object-stores.md").read_text())
    if str(values["config"].get("target", {}).get("path", "")).startswith("s3a://"):
        assert values["image"]["tag"] == tag
    for secret in re.findall(r"kubectl create secret generic (\S+)", example.read_text()):
        assert secret in [one["name"] for one in values["secrets"]]


def test_helm_lint_finds_nothing(helm: Helm) -> None:
    content, messages = helm.lint()
    assert content, messages
    assert not [message for message in messages if not message.startswith("[INFO]")]


@pytest.mark.parametrize("kubernetes", [KUBERNETES[0], KUBERNETES[-1]])
def test_kubernetes_accepts_every_object(manifests: list[Manifest], kubernetes: str) -> None:
    known = [one for one in manifests if one["kind"] not in CUSTOM]
    assert len(known) >= 6
    templates = [
        {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": role}, "spec": with_image(pod["spec"])}
        for role, pod in pods(manifests).items()
    ]
    assert templates
    assert [found for one in [*known, *templates] if (found := faults(one, kubernetes))] == []


def with_image(spec: Manifest) -> Manifest:
    """The one thing that a template of Spark may leave out and a pod may not."""
    return spec | {"containers": [{"image": "distributary"} | container for container in spec["containers"]]}


def test_a_field_that_kubernetes_does_not_know_is_noticed() -> None:
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}, "spec": {"containers": [], "nodeSelektor": {}}}
    assert "nodeSelektor" in (faults(pod, KUBERNETES[-1]) or "")


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("mode", "client", "/mode"),
        ("replicaCount", 2, "replicaCount"),
        ("image.pullPolicy", "Sometimes", "/image/pullPolicy"),
        ("config.kafkaa", "x", "kafkaa"),
        ("config.trigger.intervall", "10s", "intervall"),
        ("config.http.host", "127.0.0.1", "/config/http/host"),
        ("config.http.enabled", False, "/config/http/enabled"),
        (r"config.kafka.sasl\.password", "hunter2", "/config/kafka/sasl.password"),
        (
            r"config.spark.spark\.hadoop\.fs\.s3a\.secret\.key",
            "hunter2",
            "/config/spark/spark.hadoop.fs.s3a.secret.key",
        ),
        ("tables.orders[0].matsch", "dbo.orders", "/tables/orders/0"),
        ("tables.orders[0].deletes", "sometimes", "/tables/orders/0"),
        ("secrets[0].value", "hunter2", "/secrets/0"),
        ("executors.memory", "much", "/executors/memory"),
        ("executors.instances", 0, "/executors/instances"),
        ("jobs.verify.memory", "4g", "/jobs/verify"),
        ("jobs.verify.args[0]", 1, "/jobs/verify/args/0"),
        ("jobs.Verify.args[0]", "verify", "Verify"),
        ("ingress.enabled", True, "/ingress/host"),
        ("prometheusRule.thresholds.lagRecord", 5, "lagRecord"),
        ("prometheusRule.thresholds.lagRecords", 0, "/prometheusRule/thresholds/lagRecords"),
        ("prometheusRule.alerts.DistributaryDown.after", "5m", "after"),
    ],
)
def test_wrong_values_are_refused_by_helm_itself(helm: Helm, key: str, value: Any, message: str) -> None:
    with pytest.raises(HelmError, match=re.escape(message)):
        helm.template(set_={key: value})


def test_every_value_has_a_default_and_a_schema() -> None:
    schema = json.loads((CHART / "values.schema.json").read_text())
    assert set(VALUES) == set(schema["properties"]) - {"global"}
    for name, one in schema["properties"].items():
        if one.get("additionalProperties") is False and "properties" in one:
            assert set(one["properties"]) - {"claims"} == set(VALUES[name]), name


def test_executors_that_can_not_reach_the_lake_are_refused(helm: Helm) -> None:
    with pytest.raises(HelmError, match="ReadWriteMany"):
        helm.template(set_={"mode": "sparkapplication"})
    helm.template(set_={"mode": "sparkapplication", "persistence.existingClaim": "lake"})


def test_what_the_chart_has_of_other_files_is_up_to_date() -> None:
    for path, text in copies().items():
        assert path.read_text() == text, f"{path}: make manifests"


def test_the_plain_manifests_are_what_the_chart_renders(helm: Helm) -> None:
    made = plain(helm)
    assert set(PLAIN.iterdir()) == set(made)
    for path, text in made.items():
        assert path.read_text() == text, f"{path}: make manifests"


def test_chart_and_image_are_this_version(helm: Helm) -> None:
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    assert chart["version"] == chart["appVersion"] == distributary.__version__
    [container] = pods(read(helm.template()))["driver"]["spec"]["containers"]
    assert container["image"] == f"distributary:{distributary.__version__}"


def test_the_service_accepts_each_config(
    manifests: list[Manifest], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = dict(only(manifests, "ConfigMap", "-config")["data"])
    for number, path in enumerate(sorted(set(re.findall(r"\$\{file:([^}]+)\}", files["config.yaml"])))):
        (tmp_path / str(number)).write_text("a secret that is long")
        files = {name: text.replace(path, str(tmp_path / str(number))) for name, text in files.items()}
    for name in re.findall(r"\$\{env:(\w+)\}", files["config.yaml"]):
        monkeypatch.setenv(name, "value")
    mount_config_map(tmp_path / "etc", files)
    tables = only(manifests, "ConfigMap", "-tables")["data"]
    mount_config_map(tmp_path / "etc/tables", tables)
    config = load(tmp_path / "etc/config.yaml")
    assert len(config.tables) == sum(len(yaml.safe_load(text)["tables"]) for text in tables.values()) + len(
        config_of(manifests).get("tables", [])
    )
    assert config.tables
    jobs = named(manifests, "CronJob").values()
    assert set(files) == {"config.yaml", *(PurePosixPath(config_at(job)).name for job in jobs)}
    for job in jobs:
        assert load(tmp_path / "etc" / PurePosixPath(config_at(job)).name).tables == config.tables


def config_at(job: Manifest) -> str:
    """Where a job's command looks for its config."""
    [container] = job["spec"]["jobTemplate"]["spec"]["template"]["spec"]["containers"]
    return str(next(one["value"] for one in container["env"] if one["name"] == "DISTRIBUTARY_CONFIG"))


def test_what_a_config_reads_from_files_and_environment_is_in_the_pod(manifests: list[Manifest]) -> None:
    text = only(manifests, "ConfigMap", "-config")["data"]["config.yaml"]
    spec = pods(manifests)["driver"]["spec"]
    [container] = spec["containers"]
    for path in re.findall(r"\$\{file:([^}]+)\}", text):
        assert "secret" in volume_at(spec, container, path), path
    assert set(re.findall(r"\$\{env:(\w+)\}", text)) <= {one["name"] for one in container.get("env", [])}


def test_the_values_in_the_docs_are_accepted(helm: Helm, tmp_path: Path) -> None:
    blocks = re.findall(r"```yaml\n(.*?)```", (ROOT / "docs/kubernetes.md").read_text(), re.DOTALL)
    assert len(blocks) == 2
    (tmp_path / "values.yaml").write_text("".join(blocks))
    manifests = read(helm.template(tmp_path / "values.yaml"))
    assert config_of(manifests)["source"] == {"topic_prefix": "server1"}
    assert set(only(manifests, "ConfigMap", "-tables")["data"]) == {"customers.yaml"}
    assert set(named(manifests, "CronJob")) == {"distributary-verify", "distributary-reconcile-customers"}


def test_large_numbers_stay_whole(helm: Helm) -> None:
    assert config_of(read(helm.template(EVERYTHING)))["trigger"]["max_records"] == 5_000_000
    assert "max_records: 5000000\n" in helm.template(EVERYTHING)


def test_of_no_tables_all_are_kept_and_named_ones_alone_otherwise(helm: Helm) -> None:
    def tables(**values: Any) -> dict[str, str]:
        rendered = read(helm.template(set_={key.replace("_", "."): value for key, value in values.items()}))
        found: dict[str, str] = only(rendered, "ConfigMap", "-tables")["data"]
        return found

    assert yaml.safe_load(tables()["all.yaml"]) == {"tables": [{"match": "*.*"}]}
    assert set(tables(**{"tables.orders[0].match": "dbo.orders"})) == {"orders.yaml"}
    assert tables(**{"config.tables[0].match": "dbo.orders"}) == {}


def test_what_is_said_of_tables_restarts_nothing_and_all_else_does(helm: Helm) -> None:
    def pod(**values: Any) -> Manifest:
        return pods(read(helm.template(set_=values)))["driver"]

    changes: dict[str, dict[str, Any]] = {
        "defaults": {"config.defaults.deletes": "soft"},
        "tables": {"config.tables[0].match": "dbo.orders", "tables.orders[0].match": "dbo.orders"},
        "include": {"config.include[0]": "more/*.yaml"},
        "paused": {"config.paused": "true"},
    }
    assert set(changes) == set(ABOUT_TABLES)
    for change in changes.values():
        assert pod(**change) == pod()
    assert pod(**{"config.trigger.interval": "1m"}) != pod()


def test_no_container_has_rights_that_it_does_not_need(manifests: list[Manifest]) -> None:
    image = dockerfile.read(ROOT / "deploy/docker/Dockerfile")[-1]
    for role, pod in pods(manifests).items():
        context = pod["spec"]["securityContext"]
        assert image.last("USER").text == f"{context['runAsUser']}:{context['runAsGroup']}"
        assert context["runAsNonRoot"]
        assert context["seccompProfile"] == {"type": "RuntimeDefault"}
        [container] = pod["spec"]["containers"]
        assert container["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        }
        for directory in ("HOME", "SPARK_LOCAL_DIRS"):
            assert "emptyDir" in volume_at(pod["spec"], container, image.environment()[directory]), (role, directory)


def test_the_kubernetes_api_is_for_drivers_with_executors_in_pods_alone(manifests: list[Manifest]) -> None:
    with_executors = "executor" in pods(manifests)
    driver = pods(manifests)["driver"]["spec"]
    assert driver["automountServiceAccountToken"] is with_executors
    assert bool(named(manifests, "Role")) is with_executors
    if with_executors:
        assert pods(manifests)["executor"]["spec"]["automountServiceAccountToken"] is False
        [subject] = only(manifests, "RoleBinding")["subjects"]
        assert subject["name"] == driver["serviceAccountName"]


def test_service_monitor_and_policy_select_the_driver_and_ask_the_port_of_the_config(manifests: list[Manifest]) -> None:
    pod = pods(manifests)["driver"]
    labels = pod["metadata"]["labels"].items()
    [container] = pod["spec"]["containers"]
    port = config_of(manifests)["http"]["port"]
    assert container["ports"] == [{"name": "http", "containerPort": port}]
    executor = pods(manifests).get("executor", {"metadata": {"labels": {}}})["metadata"]["labels"].items()
    selectors = [only(manifests, "Service")["spec"]["selector"]]
    selectors += [one["spec"]["selector"]["matchLabels"] for one in named(manifests, "PodMonitor").values()]
    selectors += [one["spec"]["selector"]["matchLabels"] for one in named(manifests, "Deployment").values()]
    for selector in selectors:
        assert selector.items() <= labels
        assert not selector.items() <= executor
    policy = only(manifests, "NetworkPolicy")["spec"]
    assert policy["podSelector"]["matchLabels"].items() <= labels
    pages = [rule for rule in policy["ingress"] if "ports" in rule]
    assert [rule["ports"] for rule in pages] == [[{"port": port}] for rule in pages]
    assert all(rule["from"] for rule in policy["ingress"])
    assert len(policy["ingress"]) == len(pages) + bool(executor)


def test_the_pages_are_there_for_those_who_are_named_and_nobody_else(helm: Helm) -> None:
    assert only(read(helm.template()), "NetworkPolicy")["spec"]["ingress"] == []
    peers = only(read(helm.template(EVERYTHING)), "NetworkPolicy")["spec"]["ingress"][0]["from"]
    assert peers == [{"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "monitoring"}}}]
    for name in ("podMonitor", "serviceMonitor", "ingress"):
        with pytest.raises(HelmError, match=rf"{name}\.enabled without networkPolicy\.from"):
            helm.template(set_={f"{name}.enabled": True, "ingress.host": "status.example.com"})


def test_the_service_knows_the_names_of_its_service(helm: Helm) -> None:
    config = config_of(read(helm.template(EVERYTHING, namespace="lake")))
    assert config["http"]["names"] == [
        *("orders-lake", "orders-lake.lake", "orders-lake.lake.svc"),
        *("status.example.com", "other.example.com"),  # the Ingress', and one of the user's own
    ]


def test_a_deployment_with_executors_tells_spark_of_its_pod(helm: Helm) -> None:
    manifests = read(helm.template(EVERYTHING, namespace="lake"))
    spark = config_of(manifests)["spark"]
    [container] = pods(manifests)["driver"]["spec"]["containers"]
    assert spark["spark.master"].startswith("k8s://")
    assert spark["spark.kubernetes.namespace"] == "lake"
    assert spark["spark.kubernetes.container.image"] == container["image"]
    assert spark["spark.driver.memory"] == VALUES["config"]["spark"]["spark.driver.memory"]
    template = Path(spark["spark.kubernetes.executor.podTemplateFile"])
    volume = volume_at(pods(manifests)["driver"]["spec"], container, str(template))
    assert template.name in named(manifests, "ConfigMap")[volume["configMap"]["name"]]["data"]


def test_a_spark_application_starts_what_the_image_has(helm: Helm) -> None:
    application = only(read(helm.template(SPARK_APPLICATION)), "SparkApplication")
    spec = application["spec"]
    assert application["apiVersion"] == "sparkoperator.k8s.io/v1beta2"
    assert {"type", "sparkVersion", "mainApplicationFile", "driver", "executor"} <= set(spec)
    assert (spec["type"], spec["mode"], spec["restartPolicy"]["type"]) == ("Python", "cluster", "Always")
    assert spec["sparkVersion"] == version("pyspark")
    build = next(stage for stage in dockerfile.read(ROOT / "deploy/docker/Dockerfile") if stage.name == "build")
    places = [f"{one.words()[-1]}{Path(word).name}" for one in build.all("COPY") for word in one.words()[:-1]]
    assert spec["mainApplicationFile"].removeprefix("local://") in places
    assert spec["arguments"] == ["run"]
    for role in ("driver", "executor"):
        # The name by which Spark knows its own container in a template.
        assert [one["name"] for one in spec[role]["template"]["spec"]["containers"]] == [f"spark-kubernetes-{role}"]


def test_a_spark_application_has_the_java_options_of_the_command(helm: Helm) -> None:
    application = only(
        read(
            helm.template(
                SPARK_APPLICATION, set_={r"sparkApplication.sparkConf.spark\.driver\.extraJavaOptions": "-Da=b"}
            )
        ),
        "SparkApplication",
    )
    options = session.JVM_OPTIONS
    assert application["spec"]["sparkConf"] == {
        "spark.driver.extraJavaOptions": f"{options} -Da=b",
        "spark.executor.extraJavaOptions": options,
    }


def test_the_alerts_are_the_rules_of_the_repository(helm: Helm) -> None:
    rules = yaml.safe_load((ROOT / "deploy/monitoring/rules.yaml").read_text())
    alerts = {
        "prometheusRule.alerts.DistributaryOrphanedRows.enabled": True,
        "prometheusRule.alerts.DistributaryLagGrowing.for": "15m",
        "prometheusRule.alerts.DistributaryLagGrowing.severity": "warning",
    }
    thresholds = {f"prometheusRule.thresholds.{key}": value for key, value in THRESHOLDS.items()}
    manifests = read(helm.template(EVERYTHING, set_=alerts | thresholds))
    found = only(manifests, "PrometheusRule")["spec"]
    name = only(manifests, "PodMonitor")["metadata"]["name"]
    pods_of = f'{{namespace="default", pod=~"{name}-([a-z0-9]+-[a-z0-9]{{5}}|driver)"}}'
    alerts = found["groups"][0]["rules"]
    links = [
        one["annotations"].pop("runbook_url") == f"https://docs.example.com/alerts#{one['alert'].lower()}"
        for one in alerts
    ]
    down, others = rules["groups"][0]["rules"][0], found["groups"][0]["rules"].pop(0)
    # Several releases tell of themselves, each.
    assert others == {**down, "expr": f"up{pods_of} == 0 or absent(distributary_ready{pods_of})"}
    rules["groups"][0]["rules"].pop(0)
    assert found == rules
    assert all(links)
    monitor = only(manifests, "PodMonitor")["spec"]
    token = {"credentials": {"name": "distributary-http", "key": "token"}}
    assert monitor["podMetricsEndpoints"] == [
        {"port": "http", "path": "/metrics", "interval": "30s", "authorization": token}
    ]


def rules_of(helm: Helm, **values: Any) -> dict[str, Manifest]:
    """The alerts by their names, of a release with these values of `prometheusRule`."""
    given = {f"prometheusRule.{key}": value for key, value in values.items()}
    found = only(read(helm.template(set_={"prometheusRule.enabled": True} | given)), "PrometheusRule")
    return {rule["alert"]: rule for rule in found["spec"]["groups"][0]["rules"]}


ALERT_OF = {
    "lagRecords": "DistributaryLagGrowing",
    "ageSeconds": "DistributaryTableTooOld",
    "silenceSeconds": "DistributaryNotLive",
    "planSeconds": "DistributaryPlansNothing",
    "heartbeatSeconds": "DistributaryConnectorSilent",
    "maintenanceTries": "DistributaryMaintenanceFails",
}


@pytest.mark.parametrize("threshold", THRESHOLDS)
def test_a_threshold_is_that_of_its_alert_alone(helm: Helm, threshold: str) -> None:
    alert = ALERT_OF[threshold]
    before, after = rules_of(helm), rules_of(helm, **{f"thresholds.{threshold}": 7654321})
    assert f"> {THRESHOLDS[threshold]}" in before[alert]["expr"]
    assert f"> {THRESHOLDS[threshold]}" not in after[alert]["expr"]
    assert "> 7654321" in after[alert]["expr"]
    assert str(THRESHOLDS[threshold]) not in after[alert]["annotations"]["description"]
    assert {name: rule for name, rule in before.items() if name != alert} == {
        name: rule for name, rule in after.items() if name != alert
    }


def test_single_alerts_are_changed_or_left_out(helm: Helm) -> None:
    before = rules_of(helm)
    after = rules_of(
        helm,
        **{
            "alerts.DistributaryLagGrowing.for": "1h",
            "alerts.DistributaryLagGrowing.severity": "info",
            "alerts.DistributaryOrphanedRows.enabled": False,
        },
    )
    assert set(before) - set(after) == {"DistributaryOrphanedRows"}
    changed = before["DistributaryLagGrowing"] | {"for": "1h", "labels": {"severity": "info"}}
    assert after["DistributaryLagGrowing"] == changed


def test_an_alert_is_changed_by_its_former_name_too(helm: Helm) -> None:
    former = {"alerts.DistributaryGhostRows.severity": "info", "alerts.DistributaryGhostRows.for": "1h"}
    rule = rules_of(helm, **former)["DistributaryOrphanedRows"]
    assert (rule["labels"]["severity"], rule["for"]) == ("info", "1h")
    both = rules_of(helm, **former, **{"alerts.DistributaryOrphanedRows.for": "2h"})["DistributaryOrphanedRows"]
    assert (both["labels"]["severity"], both["for"]) == ("info", "2h")


def test_an_alert_that_does_not_exist_is_refused(helm: Helm) -> None:
    with pytest.raises(HelmError, match="DistributaryTableToOld"):
        rules_of(helm, **{"alerts.DistributaryTableToOld.enabled": False})


def test_each_alerts_link_leads_to_a_place_of_the_page() -> None:
    rules = yaml.safe_load((ROOT / "deploy/monitoring/rules.yaml").read_text())["groups"][0]["rules"]
    page = (ROOT / "docs/alerts.md").read_text()
    for rule in rules:
        assert f'| <a id="{rule["alert"].lower()}"></a>`{rule["alert"]}` |' in page


def test_a_service_monitor_asks_for_the_same(helm: Helm) -> None:
    values = {
        "serviceMonitor.enabled": True,
        "serviceMonitor.token.name": "http",
        "networkPolicy.from[0].podSelector.matchLabels.app": "prometheus",
    }
    manifests = read(helm.template(set_=values))
    spec = only(manifests, "ServiceMonitor")["spec"]
    labels = only(manifests, "Service")["metadata"]["labels"]
    assert spec["selector"]["matchLabels"].items() <= labels.items()
    assert "distributary" in labels[spec["jobLabel"]]
    [port] = [one["name"] for one in only(manifests, "Service")["spec"]["ports"]]
    token = {"credentials": {"name": "http", "key": "token"}}
    assert spec["endpoints"] == [{"port": port, "path": "/metrics", "interval": "30s", "authorization": token}]
    with pytest.raises(HelmError, match="counted twice"):
        helm.template(set_=values | {"podMonitor.enabled": True})


def test_an_ingress_leads_to_the_status_pages(helm: Helm) -> None:
    manifests = read(helm.template(EVERYTHING))
    ingress = only(manifests, "Ingress")["spec"]
    service = only(manifests, "Service")
    assert (ingress["ingressClassName"], ingress["tls"][0]["secretName"]) == ("nginx", "status-tls")
    [rule] = ingress["rules"]
    assert rule["host"] in config_of(manifests)["http"]["names"]
    backend = rule["http"]["paths"][0]["backend"]["service"]
    assert backend["name"] == service["metadata"]["name"]
    assert backend["port"]["name"] == service["spec"]["ports"][0]["name"]


def test_jobs_have_memory_of_their_own_and_a_spark_in_their_own_pod(helm: Helm) -> None:
    manifests = read(helm.template(EVERYTHING))
    jobs = named(manifests, "CronJob")
    verify, reconcile = jobs["orders-lake-verify"]["spec"], jobs["orders-lake-reconcile-customers"]["spec"]
    assert (verify["schedule"], verify["suspend"]) == ("0 3 * * 0", False)
    assert reconcile["suspend"] is True  # run by hand: kubectl create job --from=…
    assert verify["jobTemplate"]["spec"]["backoffLimit"] == 0
    files = only(manifests, "ConfigMap", "-config")["data"]
    spark = {name: yaml.safe_load(files[f"job-{name}.yaml"])["spark"] for name in ("verify", "reconcile-customers")}
    assert spark["verify"] == {"spark.driver.memory": "4g"}  # no executors, which need a pod that Spark knows
    assert spark["reconcile-customers"] == VALUES["config"]["spark"]
    driver = pods(manifests)["driver"]["spec"]["containers"][0]
    for name, pod in pods(manifests).items():
        if name not in jobs:
            continue
        [container] = pod["spec"]["containers"]
        assert container["image"] == driver["image"]
        assert pod["spec"]["restartPolicy"] == "Never"
        heap = spark[container["name"]]["spark.driver.memory"]
        limit = container["resources"]["limits"]["memory"]
        assert int(limit.removesuffix("Gi")) >= int(heap.removesuffix("g")) + 2
        volume = volume_at(pod["spec"], container, config_at(jobs[name]))
        assert volume["configMap"]["name"] == only(manifests, "ConfigMap", "-config")["metadata"]["name"]
    commands = [pod["spec"]["containers"][0]["args"] for name, pod in pods(manifests).items() if name in jobs]
    assert sorted(commands) == [["resume", "dbo.customers", "--reconcile"], ["verify"]]
    assert {command[0] for command in commands} <= set(main.commands)


def test_no_probe_scrape_or_page_meets_a_job(helm: Helm) -> None:
    manifests = read(helm.template(EVERYTHING))
    labels = pods(manifests)["orders-lake-verify"]["metadata"]["labels"].items()
    selectors = [only(manifests, "Service")["spec"]["selector"]]
    selectors += [only(manifests, kind)["spec"]["selector"]["matchLabels"] for kind in ("PodMonitor", "Deployment")]
    assert not any(selector.items() <= labels for selector in selectors)
    assert only(manifests, "NetworkPolicy")["spec"]["podSelector"]["matchLabels"].items() <= labels


def test_a_job_is_where_its_volume_is(helm: Helm) -> None:
    def affinity(**values: Any) -> Manifest:
        found = pods(read(helm.template(set_={"jobs.verify.args[0]": "verify"} | values)))["distributary-verify"]
        return dict(found["spec"].get("affinity", {}))

    [near] = affinity()["podAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    driver = pods(read(helm.template()))["driver"]["metadata"]["labels"]
    assert near["topologyKey"] == "kubernetes.io/hostname"
    assert near["labelSelector"]["matchLabels"].items() <= driver.items()
    assert affinity(**{"persistence.accessModes[0]": "ReadWriteMany"}) == {}
    assert affinity(**{"persistence.enabled": False, "config.target.path": "s3a://a/b"}) == {}


def test_a_job_whose_name_is_too_long_is_refused(helm: Helm) -> None:
    with pytest.raises(HelmError, match=r"jobs\.verify.*name it shorter"):
        helm.template(release="distributary-" + "a" * 40, set_={"jobs.verify.args[0]": "verify"})


def test_alerts_lead_nowhere_where_no_page_is_named(helm: Helm) -> None:
    found = read(helm.template(set_={"prometheusRule.enabled": "true"}))
    assert "runbook_url" not in str(only(found, "PrometheusRule"))


def test_the_dashboard_is_there_for_grafana(helm: Helm) -> None:
    found = only(read(helm.template(EVERYTHING)), "ConfigMap", "-dashboard")
    assert found["metadata"]["labels"]["grafana_dashboard"] == "1"
    dashboard = json.loads((ROOT / "deploy/monitoring/grafana/dashboard.json").read_text())
    assert json.loads(found["data"]["distributary.json"]) == dashboard


def test_what_a_cluster_needs_beside_is_part_of_the_release(helm: Helm) -> None:
    manifests = read(helm.template(EVERYTHING))
    ingress = only(manifests, "Ingress")
    assert ingress["metadata"]["name"] == only(manifests, "Service")["metadata"]["name"] == "orders-lake"
    deployment = only(manifests, "Deployment")
    assert deployment["metadata"]["annotations"] == {"reloader.stakater.com/auto": "true"}
    image = deployment["spec"]["template"]["spec"]["containers"][0]["image"]
    assert image == f"registry.example.com/data/distributary:0.1.0-s3@sha256:{'0123456789abcdef' * 4}"


def test_an_uninstalled_release_leaves_the_tables(helm: Helm) -> None:
    claim = only(read(helm.template()), "PersistentVolumeClaim")
    assert claim["metadata"]["annotations"] == {"helm.sh/resource-policy": "keep"}


def test_the_notes_say_what_to_do_next(helm: Helm) -> None:
    assert "all that have a topic are kept" in helm.notes()
    notes = helm.notes(EVERYTHING)
    assert "port-forward service/orders-lake 9090" in notes
    assert "Secret distributary-kafka" in notes
    assert "get sparkapplication distributary" in helm.notes(SPARK_APPLICATION)


@pytest.mark.parametrize(
    ("resources", "counted"),
    [
        ({}, "requests.cpu"),
        ({"resources.limits.cpu": "2"}, "limits.cpu"),
        ({"resources.requests.cpu": "null"}, None),
    ],
)
def test_the_service_gets_the_cores_that_it_is_granted(
    helm: Helm, resources: dict[str, str], counted: str | None
) -> None:
    """A pod without a limit sees all processors of its node."""
    driver = pods(read(helm.template(set_=resources)))["driver"]["spec"]["containers"][0]
    result = [one for one in driver.get("env", ()) if one["name"] == "DISTRIBUTARY_CORES"]
    assert [one["valueFrom"]["resourceFieldRef"]["resource"] for one in result] == ([counted] if counted else [])
